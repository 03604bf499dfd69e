// safetensors: 8 bytes of length, a JSON header, then the bytes of all tensors.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/formats.h"

namespace ein {
namespace {

using nlohmann::json;

constexpr uint64_t kLongestTensorHeader = 100'000'000;  // as in the format's own reader
constexpr std::pair<const char*, DType> kTensorTypes[] = {
    {"BOOL", DType::Bool}, {"I8", DType::I8},   {"U8", DType::U8},   {"I16", DType::I16},
    {"I32", DType::I32},   {"I64", DType::I64}, {"F16", DType::F16}, {"BF16", DType::BF16},
    {"F32", DType::F32},   {"F64", DType::F64}};

[[noreturn]] void bad(const std::string& why) {
  throw Malformed{"its header is not a safetensors header: " + why};
}

// A number that is not negative.
int64_t count(const json& j, const std::string& name) {
  if (!j.is_number_unsigned() || j.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    bad(fmt::format("`{}` has an extent or offset that is not a number of 63 bits", name));
  }
  return j.get<int64_t>();
}

SafeEntry entry(const std::string& name, const json& j, uint64_t begin, uint64_t available) {
  if (!j.is_object() || !j.contains("dtype") || !j["dtype"].is_string() || !j.contains("shape") ||
      !j["shape"].is_array() || j["shape"].size() > 64 || !j.contains("data_offsets") ||
      !j["data_offsets"].is_array() || j["data_offsets"].size() != 2) {
    bad(fmt::format("`{}` needs dtype, shape and data_offsets", name));
  }
  SafeEntry out;
  out.name = name;
  out.type = j["dtype"].get<std::string>();
  for (auto [text, dtype] : kTensorTypes) {
    if (out.type == text) out.dtype = dtype;
  }
  for (const json& n : j["shape"]) out.shape.push_back(count(n, name));
  auto from = static_cast<uint64_t>(count(j["data_offsets"][0], name)),
       to = static_cast<uint64_t>(count(j["data_offsets"][1], name));
  if (to > available) {
    throw Malformed{fmt::format("it is truncated: {} bytes of data where `{}` ends at {}",
                                available, name, to)};
  }
  if (from > to) bad(fmt::format("`{}` ends before it begins", name));
  if (out.dtype && to - from != byte_count(*out.dtype, out.shape)) {
    bad(fmt::format("`{}` has {} bytes of data, its extents need {}", name, to - from,
                    byte_count(*out.dtype, out.shape)));
  }
  out.begin = begin + from;
  out.size = to - from;
  return out;
}

// JSON without duplicate keys: readers would disagree about which one counts.
json parsed(const std::string& text) {
  std::vector<std::set<std::string>> open;  // the keys of the objects around
  auto look = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::object_end) open.pop_back();
    if (event == json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second) {
      bad(fmt::format("it has `{}` twice", value.get<std::string>().substr(0, 100)));
    }
    return true;
  };
  return json::parse(text, look, false);
}

// Every byte belongs to exactly one tensor, as the format demands: a byte that none has, or two, is
// a sign that an offset is wrong.
void check_layout(std::vector<SafeEntry> entries, uint64_t begin, uint64_t end) {
  std::stable_sort(entries.begin(), entries.end(), [](const SafeEntry& a, const SafeEntry& b) {
    return std::pair(a.begin, a.size) < std::pair(b.begin, b.size);
  });
  uint64_t at = begin;
  const SafeEntry* before = nullptr;
  for (const SafeEntry& e : entries) {
    if (e.begin < at) bad(fmt::format("`{}` and `{}` share bytes", before->name, e.name));
    if (e.begin > at) {
      bad(fmt::format("bytes {} to {} belong to no tensor", at - begin, e.begin - begin));
    }
    at = e.begin + e.size;
    if (e.size > 0) before = &e;
  }
  if (at < end && !entries.empty()) {
    bad(fmt::format("bytes {} to {} belong to no tensor", at - begin, end - begin));
  }
}

}  // namespace

std::vector<SafeEntry> safetensors_entries(const InFile& file) {
  unsigned char start[8];
  if (file.size() < 8) throw Malformed{"it is not a safetensors file"};
  file.read_at(0, start, 8);
  auto length = little_at<uint64_t>(start);
  if (length > kLongestTensorHeader) bad("it is too long");
  if (length > file.size() - 8) throw Malformed{"it is truncated inside its header"};
  std::string text(length, ' ');
  file.read_at(8, text.data(), length);
  json j = parsed(text);
  if (!j.is_object()) bad("it is not a JSON object");
  uint64_t begin = 8 + length;
  std::vector<SafeEntry> out;
  for (const auto& [name, value] : j.items()) {
    if (name == "__metadata__") continue;
    out.push_back(entry(name, value, begin, file.size() - begin));
  }
  check_layout(out, begin, file.size());
  return out;
}

std::string safetensors_header(const std::vector<NamedTensor>& tensors) {
  nlohmann::ordered_json j = nlohmann::ordered_json::object();
  uint64_t at = 0;
  for (const NamedTensor& t : tensors) {
    const char* type = nullptr;
    for (auto [text, dtype] : kTensorTypes) {
      if (dtype == t.tensor->dtype()) type = text;
    }
    if (!type) {
      throw Malformed{
          fmt::format("safetensors has no element type for {}", name_of(t.tensor->dtype()))};
    }
    uint64_t end = at + byte_count(t.tensor->dtype(), t.tensor->shape());
    j[t.name] = {{"dtype", type}, {"shape", t.tensor->shape()}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = j.dump();
  while (text.size() % 8 != 0) text += ' ';
  std::string out;
  add_little<uint64_t>(out, text.size());
  return out + text;
}

}  // namespace ein

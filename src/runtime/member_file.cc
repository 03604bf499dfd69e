// Files of several tensors: choosing by name, and tensors that are numbered in the file but one
// value in a program.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/formats.h"

namespace ein {
namespace {

std::string npz_name(const ZipMember& m) {
  return m.name.ends_with(".npy") ? m.name.substr(0, m.name.size() - 4) : m.name;
}

size_t byte_size(const Tensor& t) { return static_cast<size_t>(t.size()) * size_of(t.dtype()); }

}  // namespace

MemberFile MemberFile::npz(const InFile& file) {
  MemberFile out(file);
  out.zip_ = zip_members(file);
  for (const ZipMember& m : out.zip_) out.names_.push_back(npz_name(m));
  return out;
}

MemberFile MemberFile::safetensors(const InFile& file) {
  MemberFile out(file);
  out.safe_ = safetensors_entries(file);
  for (const SafeEntry& e : out.safe_) out.names_.push_back(e.name);
  return out;
}

ChosenMembers MemberFile::choose(const std::string& wanted) const {
  if (names_.empty()) throw Malformed{"it contains no tensor"};
  if (wanted.empty() && names_.size() == 1) return {{0}, {}};
  auto chosen = choose_members(names_, wanted);
  if (const auto* why = std::get_if<std::string>(&chosen)) throw Malformed{*why};
  if (const auto& found = std::get<ChosenMembers>(chosen); !found.at.empty()) return found;
  std::string list = "it has " + listed(names_);
  throw Malformed{wanted.empty() ? "it contains several tensors, name one of them: " + list
                                 : fmt::format("it contains no tensor `{}`: {}", wanted, list)};
}

FileHeader MemberFile::header(size_t member) const {
  FileHeader out;
  if (!zip_.empty()) {
    NpyHeader h = read_npy_header(*open_member(file_, zip_[member]));
    out.dtype = h.dtype;
    out.shape = h.shape;
    return out;
  }
  const SafeEntry& e = safe_[member];
  if (!e.dtype) {
    throw Malformed{fmt::format("the elements of `{}` are {}, which has no Einlang type", e.name,
                                e.type.substr(0, 40))};
  }
  out.dtype = *e.dtype;
  out.shape = e.shape;
  return out;
}

FileHeader MemberFile::header(const ChosenMembers& chosen) const {
  FileHeader out = header(chosen.at[0]);
  for (size_t member : chosen.at) {
    FileHeader other = header(member);
    if (other.dtype == out.dtype && other.shape == out.shape) continue;
    throw Malformed{
        fmt::format("`{}` is {}, but `{}` is {}: tensors that differ in their number "
                    "alone must have the same type and extents",
                    names_[member], show_type(other), names_[chosen.at[0]], show_type(out))};
  }
  out.shape.insert(out.shape.begin(), chosen.counts.begin(), chosen.counts.end());
  return out;
}

Tensor MemberFile::tensor(size_t member) const {
  if (!zip_.empty()) {
    auto in = open_member(file_, zip_[member]);
    NpyHeader h = read_npy_header(*in);
    return read_npy_data(*in, h);
  }
  FileHeader h = header(member);
  Tensor t(h.dtype, h.shape);
  file_.read_at(safe_[member].begin, t.data(), byte_count(t.dtype(), h.shape));
  if (t.dtype() == DType::Bool) {
    for (int64_t i = 0; i < t.size(); ++i) t.set_int(i, t.get_int(i) != 0);
  }
  return t;
}

Tensor MemberFile::tensor(const ChosenMembers& chosen) const {
  if (chosen.counts.empty()) return tensor(chosen.at[0]);
  FileHeader h = header(chosen);
  byte_count(h.dtype, h.shape);  // they fit in memory, by their number at least
  Tensor out(h.dtype, h.shape);
  std::byte* to = out.as<std::byte>();
  for (size_t member : chosen.at) {
    Tensor one = tensor(member);
    if (byte_size(one) > 0) std::memcpy(to, one.data(), byte_size(one));
    to += byte_size(one);
  }
  return out;
}

std::vector<NamedTensor> numbered(const std::vector<NamedTensor>& values,
                                  std::deque<Tensor>& slices) {
  std::vector<NamedTensor> out;
  for (const NamedTensor& value : values) {
    const Tensor& t = *value.tensor;
    size_t numbers = count_numbers(value.name);
    if (numbers == 0) {
      out.push_back(value);
      continue;
    }
    if (numbers > t.rank()) {
      throw Malformed{
          fmt::format("`{}` needs a coordinate for every `#`, but has {}", value.name, t.rank())};
    }
    auto own = t.shape().begin() + static_cast<ptrdiff_t>(numbers);
    std::vector<int64_t> counts(t.shape().begin(), own), at(numbers);
    const std::byte* from = t.as<std::byte>();
    bool any = std::none_of(counts.begin(), counts.end(), [](int64_t n) { return n == 0; });
    for (bool more = any; more;) {
      Tensor& slice = slices.emplace_back(t.dtype(), std::vector<int64_t>(own, t.shape().end()));
      if (byte_size(slice) > 0) std::memcpy(slice.data(), from, byte_size(slice));
      from += byte_size(slice);
      out.push_back({with_numbers(value.name, at), &slice});
      more = false;
      for (size_t k = numbers; k-- > 0 && !more;) {
        more = ++at[k] < counts[k];
        if (!more) at[k] = 0;
      }
    }
  }
  return out;
}

}  // namespace ein

#include "runtime/npy.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <new>
#include <optional>

namespace ein {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File open(const std::string& path, const char* mode) {
  return File(std::fopen(path.c_str(), mode), [](std::FILE* f) { return f ? std::fclose(f) : 0; });
}

struct Header {
  DType dtype;
  bool fortran = false;
  std::vector<int64_t> shape;
};

std::optional<DType> dtype_of(const std::string& descr) {
  static const std::pair<const char*, DType> table[] = {
      {"|b1", DType::Bool}, {"|i1", DType::I8},  {"|u1", DType::U8},
      {"<i2", DType::I16},  {"<i4", DType::I32}, {"<i8", DType::I64},
      {"<f2", DType::F16},  {"<f4", DType::F32}, {"<f8", DType::F64}};
  for (auto [text, dtype] : table) {
    if (descr == text) return dtype;
  }
  return std::nullopt;
}

const char* descr_of(DType t) {
  switch (t) {
    case DType::Bool: return "|b1";
    case DType::I8: return "|i1";
    case DType::U8: return "|u1";
    case DType::I16: return "<i2";
    case DType::I32: return "<i4";
    case DType::I64: return "<i8";
    case DType::F16: return "<f2";
    case DType::F32: return "<f4";
    case DType::F64: return "<f8";
    case DType::BF16:
    case DType::Str: return nullptr;
  }
  return nullptr;
}

// The value of a key in the header's Python dict literal: text up to the next top-level comma.
std::optional<std::string> field(const std::string& dict, const std::string& key) {
  size_t at = dict.find("'" + key + "'");
  if (at == std::string::npos) return std::nullopt;
  at = dict.find(':', at);
  if (at == std::string::npos) return std::nullopt;
  std::string out;
  int depth = 0;
  for (size_t i = at + 1; i < dict.size(); ++i) {
    char c = dict[i];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (depth < 0 || (depth == 0 && (c == ',' || c == '}'))) break;
    if (c != ' ') out += c;
  }
  return out;
}

std::variant<Header, std::string> parse_header(const std::string& dict) {
  auto descr = field(dict, "descr"), order = field(dict, "fortran_order"),
       shape = field(dict, "shape");
  if (!descr || !order || !shape || shape->size() < 2) return "its header is not an npy header";
  Header h;
  std::string type = descr->size() > 2 ? descr->substr(1, descr->size() - 2) : "";
  auto dtype = dtype_of(type);
  if (!dtype) return fmt::format("its element type `{}` is not supported", type);
  h.dtype = *dtype;
  h.fortran = *order == "True";
  std::string number;
  for (char c : shape->substr(1)) {
    if (c >= '0' && c <= '9') {
      number += c;
      if (number.size() > 18) return "its extents do not fit 64 bits";
    } else if (!number.empty()) {
      h.shape.push_back(std::stoll(number));
      number.clear();
    }
  }
  return h;
}

// Column-major to row-major.
Tensor reordered(const Tensor& in) {
  std::vector<int64_t> reversed(in.shape().rbegin(), in.shape().rend());
  Tensor out(in.dtype(), reversed);
  size_t rank = reversed.size(), bytes = size_of(in.dtype());
  std::vector<int64_t> at(rank, 0);
  for (int64_t i = 0; i < out.size(); ++i) {
    int64_t from = 0;  // `in` was read as if its extents were reversed
    for (size_t k = rank; k-- > 0;) from = from * reversed[k] + at[k];
    std::memcpy(out.as<std::byte>() + static_cast<size_t>(i) * bytes,
                in.as<std::byte>() + static_cast<size_t>(from) * bytes, bytes);
    for (size_t k = rank; k-- > 0;) {
      if (++at[k] < reversed[k]) break;
      at[k] = 0;
    }
  }
  return out;
}

}  // namespace

std::variant<Tensor, RuntimeError> read_npy(const std::string& path) {
  auto fail = [&](const std::string& why) {
    return RuntimeError{fmt::format("cannot read `{}`: {}", path, why)};
  };
  File f = open(path, "rb");
  if (!f) return fail("no such file, or no permission");
  unsigned char start[12];
  if (std::fread(start, 1, 10, f.get()) != 10 || std::memcmp(start, "\x93NUMPY", 6) != 0) {
    return fail("it is not an npy file");
  }
  size_t length = static_cast<size_t>(start[8]) | static_cast<size_t>(start[9]) << 8;
  if (start[6] >= 2) {
    if (std::fread(start + 10, 1, 2, f.get()) != 2) return fail("it ends inside its header");
    length |= static_cast<size_t>(start[10]) << 16 | static_cast<size_t>(start[11]) << 24;
  }
  if (length > (1u << 20)) return fail("its header is not an npy header");
  std::string dict(length, ' ');
  if (std::fread(dict.data(), 1, length, f.get()) != length)
    return fail("it ends inside its header");
  auto header = parse_header(dict);
  if (auto* why = std::get_if<std::string>(&header)) return fail(*why);
  auto h = std::get<Header>(header);
  try {
    std::vector<int64_t> shape = h.shape;
    if (h.fortran) shape.assign(h.shape.rbegin(), h.shape.rend());
    // Before allocating: a truncated or lying file must not ask for its claimed size.
    long data_begin = std::ftell(f.get());
    std::fseek(f.get(), 0, SEEK_END);
    auto available = static_cast<uint64_t>(std::ftell(f.get()) - data_begin);
    std::fseek(f.get(), data_begin, SEEK_SET);
    uint64_t wanted = size_of(h.dtype);
    for (int64_t n : shape) {
      if (__builtin_mul_overflow(wanted, static_cast<uint64_t>(n), &wanted))
        return fail("its extents do not fit 64 bits");
    }
    if (wanted > available) {
      return fail(fmt::format("it is truncated: {} bytes of data where its header needs {}",
                              available, wanted));
    }
    Tensor t(h.dtype, shape);
    if (std::fread(t.data(), 1, wanted, f.get()) != wanted) return fail("it is truncated");
    return h.fortran ? reordered(t) : t;
  } catch (const std::bad_alloc&) { return fail("out of memory"); }
}

std::variant<std::monostate, RuntimeError> write_npy(const std::string& path, const Tensor& t) {
  auto fail = [&](const std::string& why) {
    return RuntimeError{fmt::format("cannot write `{}`: {}", path, why)};
  };
  const char* descr = descr_of(t.dtype());
  if (!descr) return fail(fmt::format("npy has no element type for {}", name_of(t.dtype())));
  std::string shape;
  for (int64_t n : t.shape()) shape += fmt::format("{}, ", n);
  std::string dict =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  while ((10 + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(dict.size() & 0xff);
  start += static_cast<char>(dict.size() >> 8);
  File f = open(path, "wb");
  if (!f) return fail("no such folder, or no permission");
  size_t bytes = static_cast<size_t>(t.size()) * size_of(t.dtype());
  bool ok = std::fwrite(start.data(), 1, start.size(), f.get()) == start.size() &&
            std::fwrite(dict.data(), 1, dict.size(), f.get()) == dict.size() &&
            std::fwrite(t.data(), 1, bytes, f.get()) == bytes && std::fflush(f.get()) == 0;
  if (!ok) return fail("the disk is full, or the device failed");
  return std::monostate{};
}

}  // namespace ein

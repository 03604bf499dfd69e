// NumPy's .npy files. bf16 is written as NumPy writes it, two opaque bytes (`|V2`).
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/formats.h"

namespace ein {
namespace {

constexpr size_t kLongestNpyHeader = 1 << 20;
constexpr size_t kMostExtents = 64;

struct NpyType {
  const char* kind;  // without the byte order
  DType dtype;
};
constexpr NpyType kNpyTypes[] = {{"b1", DType::Bool}, {"i1", DType::I8},  {"u1", DType::U8},
                                 {"i2", DType::I16},  {"i4", DType::I32}, {"i8", DType::I64},
                                 {"f2", DType::F16},  {"f4", DType::F32}, {"f8", DType::F64},
                                 {"V2", DType::BF16}};

// The header is a Python dict literal with three keys, in any order.
class HeaderParser {
 public:
  explicit HeaderParser(const std::string& text) : text_(text) {}

  NpyHeader parse() {
    expect('{');
    bool descr = false, order = false, shape = false;
    while (peek() != '}') {
      std::string key = string();
      expect(':');
      if (key == "descr" && !descr) {
        descr = true;
        type();
      } else if (key == "fortran_order" && !order) {
        order = true;
        out_.fortran = boolean();
      } else if (key == "shape" && !shape) {
        shape = true;
        extents();
      } else {
        bool twice = key == "descr" || key == "fortran_order" || key == "shape";
        bad(fmt::format("it has {} `{}`{}", twice ? "the key" : "an unknown key", key.substr(0, 40),
                        twice ? " twice" : ""));
      }
      separator('}');
    }
    ++at_;
    if (!descr || !order || !shape) bad("it needs `descr`, `fortran_order` and `shape`");
    if (peek() != '\0' || at_ != text_.size()) bad("there is something after its dictionary");
    return out_;
  }

 private:
  [[noreturn]] static void bad(const std::string& why = "") {
    throw Malformed{"its header is not an npy header" + (why.empty() ? "" : ": " + why)};
  }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void expect(char c) {
    if (peek() != c) bad();
    ++at_;
  }
  // Between two items; after the last one it may be left out.
  void separator(char close) {
    if (peek() == ',') {
      ++at_;
    } else if (peek() != close) {
      bad();
    }
  }
  std::string string() {
    char quote = peek();
    if (quote != '\'' && quote != '"') bad();
    size_t end = text_.find(quote, ++at_);
    if (end == std::string::npos) bad();
    std::string s = text_.substr(at_, end - at_);
    at_ = end + 1;
    return s;
  }
  bool boolean() {
    peek();
    for (bool value : {true, false}) {
      std::string word = value ? "True" : "False";
      if (text_.compare(at_, word.size(), word) != 0) continue;
      at_ += word.size();
      return value;
    }
    bad();
  }
  void type() {
    if (peek() == '[') throw Malformed{"its elements are records, which have no Einlang type"};
    std::string descr = string();
    std::string kind = descr.size() > 1 ? descr.substr(1) : "";
    if (kind.starts_with('O')) throw Malformed{"its elements are Python objects"};
    if (descr.empty() || std::string("<>|=").find(descr[0]) == std::string::npos) bad();
    for (const NpyType& k : kNpyTypes) {
      if (kind != k.kind) continue;
      out_.dtype = k.dtype;
      out_.swapped = descr[0] == '>' && size_of(k.dtype) > 1;
      return;
    }
    throw Malformed{fmt::format(
        "its element type `{}` has no Einlang type (bool, i8 to i64, u8, f16, bf16, f32, f64)",
        descr)};
  }
  void extents() {
    expect('(');
    while (peek() != ')') {
      if (peek() == '-') throw Malformed{"it has a negative extent"};
      int64_t n = 0;
      size_t begin = at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, text_[at_] - '0', &n)) {
          throw Malformed{"its extents do not fit in 64 bits"};
        }
        ++at_;
      }
      bool padded = text_[begin] == '0' && at_ - begin > 1;  // 012 is no number in Python
      if (at_ == begin || padded || out_.shape.size() == kMostExtents) bad();
      out_.shape.push_back(n);
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // written by Python 2
      // `(3)` is a number in parentheses, `(3,)` a tuple.
      if (out_.shape.size() == 1 && peek() != ',') bad("`shape` is not a tuple");
      separator(')');
    }
    ++at_;
  }

  const std::string& text_;
  size_t at_ = 0;
  NpyHeader out_;
};

// Column-major to row-major.
Tensor reordered(const Tensor& in) {
  std::vector<int64_t> shape(in.shape().rbegin(), in.shape().rend());
  Tensor out(in.dtype(), shape);
  size_t rank = shape.size(), bytes = size_of(in.dtype());
  std::vector<int64_t> at(rank, 0);
  for (int64_t i = 0; i < out.size(); ++i) {
    int64_t from = 0;  // `in` was read as if its extents were reversed
    for (size_t k = rank; k-- > 0;) from = from * shape[k] + at[k];
    std::memcpy(out.as<std::byte>() + static_cast<size_t>(i) * bytes,
                in.as<std::byte>() + static_cast<size_t>(from) * bytes, bytes);
    for (size_t k = rank; k-- > 0;) {
      if (++at[k] < shape[k]) break;
      at[k] = 0;
    }
  }
  return out;
}

}  // namespace

uint64_t byte_count(DType dtype, const std::vector<int64_t>& shape) {
  // A zero must not hide that other extents are absurd: strides are products of them.
  uint64_t wanted = size_of(dtype), product = size_of(dtype);
  for (int64_t n : shape) {
    if (n < 0) throw Malformed{"it has a negative extent"};
    wanted *= static_cast<uint64_t>(n);
    if (__builtin_mul_overflow(product, static_cast<uint64_t>(std::max<int64_t>(n, 1)), &product) ||
        product > static_cast<uint64_t>(INT64_MAX)) {
      throw Malformed{"its extents do not fit in 64 bits"};
    }
  }
  return wanted;
}

void check_rest(const Source& in, DType dtype, const std::vector<int64_t>& shape) {
  uint64_t wanted = byte_count(dtype, shape);
  if (wanted == in.left()) return;
  throw Malformed{fmt::format("{}: {} bytes of data where its header needs {}",
                              wanted > in.left() ? "it is truncated" : "it is damaged", in.left(),
                              wanted)};
}

void swap_bytes(Tensor& t) {
  size_t n = size_of(t.dtype());
  auto* p = t.as<std::byte>();
  for (int64_t i = 0; i < t.size(); ++i, p += n) std::reverse(p, p + n);
}

NpyHeader read_npy_header(Source& in) {
  unsigned char start[12];
  if (in.left() < 10) throw Malformed{"it is not an npy file"};
  in.read(start, 10);
  if (std::memcmp(start, "\x93NUMPY", 6) != 0) throw Malformed{"it is not an npy file"};
  if (start[6] < 1 || start[6] > 3 || start[7] != 0) {
    throw Malformed{
        fmt::format("it is an npy file of version {}.{}, not 1.0 to 3.0", start[6], start[7])};
  }
  size_t length = little_at<uint16_t>(start + 8);
  if (start[6] >= 2) {
    in.read(start + 10, 2);
    length = little_at<uint32_t>(start + 8);
  }
  if (length > kLongestNpyHeader) throw Malformed{"its header is not an npy header"};
  if (length > in.left()) throw Malformed{"it is truncated inside its header"};
  std::string dict(length, ' ');
  in.read(dict.data(), length);
  NpyHeader h = HeaderParser(dict).parse();
  check_rest(in, h.dtype, h.shape);
  return h;
}

Tensor read_npy_data(Source& in, const NpyHeader& h) {
  std::vector<int64_t> shape = h.shape;
  if (h.fortran) std::reverse(shape.begin(), shape.end());
  Tensor t(h.dtype, shape);
  in.read(t.data(), byte_count(h.dtype, shape));
  in.finish();
  if (h.swapped) swap_bytes(t);
  if (h.dtype == DType::Bool) {  // any other byte than 0 and 1 would not be a bool in machine code
    for (int64_t i = 0; i < t.size(); ++i) t.set_int(i, t.get_int(i) != 0);
  }
  return h.fortran && shape.size() > 1 ? reordered(t) : t;
}

std::string npy_header(const Tensor& t) {
  const NpyType* type = std::find_if(std::begin(kNpyTypes), std::end(kNpyTypes),
                                     [&](auto& k) { return k.dtype == t.dtype(); });
  if (type == std::end(kNpyTypes)) {
    throw Malformed{fmt::format("npy has no element type for {}", name_of(t.dtype()))};
  }
  bool ordered = size_of(t.dtype()) > 1 && t.dtype() != DType::BF16;
  std::string shape;
  for (int64_t n : t.shape()) shape += fmt::format("{}, ", n);
  std::string dict = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 ordered ? '<' : '|', type->kind, shape);
  while ((10 + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  add_little(start, static_cast<uint16_t>(dict.size()));
  return start + dict;
}

}  // namespace ein

// IDX, the format of the MNIST files: two zero bytes, an element type, a rank, the extents and the
// cells, all of it big-endian.
#include <fmt/format.h>

#include "runtime/formats.h"

namespace ein {
namespace {

struct IdxType {
  unsigned char code;
  DType dtype;
};
constexpr IdxType kIdxTypes[] = {{0x08, DType::U8},  {0x09, DType::I8},  {0x0b, DType::I16},
                                 {0x0c, DType::I32}, {0x0d, DType::F32}, {0x0e, DType::F64}};

}  // namespace

IdxHeader read_idx_header(Source& in) {
  unsigned char start[4];
  if (in.left() < sizeof start) throw Malformed{"it is not an IDX file"};
  in.read(start, sizeof start);
  if (start[0] == 0x1f && start[1] == 0x8b) {
    throw Malformed{"compressed files are not supported; use gunzip"};
  }
  if (start[0] != 0 || start[1] != 0) throw Malformed{"it is not an IDX file"};
  IdxHeader h;
  const IdxType* type = nullptr;
  for (const IdxType& k : kIdxTypes) {
    if (k.code == start[2]) type = &k;
  }
  if (!type) {
    throw Malformed{
        fmt::format("its element type 0x{:02x} is not an IDX type "
                    "(0x08 u8, 0x09 i8, 0x0b i16, 0x0c i32, 0x0d f32, 0x0e f64)",
                    start[2])};
  }
  h.dtype = type->dtype;
  size_t rank = start[3];
  if (4 * rank > in.left()) throw Malformed{"it is truncated inside its header"};
  for (size_t i = 0; i < rank; ++i) {
    unsigned char n[4];
    in.read(n, sizeof n);
    h.shape.push_back(int64_t{n[0]} << 24 | int64_t{n[1]} << 16 | int64_t{n[2]} << 8 | n[3]);
  }
  check_rest(in, h.dtype, h.shape);
  return h;
}

Tensor read_idx_data(Source& in, const IdxHeader& h) {
  Tensor t(h.dtype, h.shape);
  in.read(t.data(), byte_count(h.dtype, h.shape));
  swap_bytes(t);
  return t;
}

std::string idx_bytes(const Tensor& t) {
  if (std::string why = idx_problem(t.dtype()); !why.empty()) throw Malformed{why};
  std::string out(2, '\0');
  for (const IdxType& k : kIdxTypes) {
    if (k.dtype == t.dtype()) out += static_cast<char>(k.code);
  }
  out += static_cast<char>(t.rank());
  for (int64_t n : t.shape()) {
    if (n > int64_t{UINT32_MAX}) throw Malformed{"an extent does not fit in the 32 bits of IDX"};
    for (int shift : {24, 16, 8, 0}) out += static_cast<char>(n >> shift & 0xff);
  }
  size_t bytes = size_of(t.dtype());
  const char* from = t.as<char>();
  for (int64_t i = 0; i < t.size(); ++i, from += bytes) {
    for (size_t k = bytes; k-- > 0;) out += from[k];
  }
  return out;
}

}  // namespace ein

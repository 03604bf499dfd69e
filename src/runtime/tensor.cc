#include "runtime/tensor.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <new>

#include "base/check.h"
#include "runtime/block.h"

namespace ein {
namespace {

float half_to_float(uint16_t h) {
  uint32_t sign = (h & 0x8000u) << 16, exp = (h >> 10) & 0x1fu, man = h & 0x3ffu;
  if (exp == 0) return std::copysign(std::ldexp(static_cast<float>(man), -24), sign ? -1.0f : 1.0f);
  uint32_t bits =
      exp == 31 ? sign | 0x7f800000u | (man << 13) : sign | ((exp + 112) << 23) | (man << 13);
  return std::bit_cast<float>(bits);
}

uint16_t float_to_half(float f) {
  uint32_t bits = std::bit_cast<uint32_t>(f), sign = (bits >> 16) & 0x8000u;
  if (std::isnan(f)) return static_cast<uint16_t>(sign | 0x7e00u);
  float a = std::fabs(f);
  if (a >= 65520.0f) return static_cast<uint16_t>(sign | 0x7c00u);
  if (a < 6.103515625e-05f) {  // subnormal: round to a multiple of 2^-24
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(std::nearbyint(std::ldexp(a, 24))));
  }
  uint32_t rest = (bits & 0x7fffffffu) - (112u << 23);
  uint32_t rounded = rest + 0xfffu + ((rest >> 13) & 1u);  // to nearest even
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

float bf16_to_float(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }

uint16_t float_to_bf16(float f) {
  uint32_t bits = std::bit_cast<uint32_t>(f);
  if (std::isnan(f)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace

bool is_float(DType t) {
  return t == DType::F16 || t == DType::BF16 || t == DType::F32 || t == DType::F64;
}

bool is_int(DType t) {
  return t == DType::I8 || t == DType::I16 || t == DType::I32 || t == DType::I64 || t == DType::U8;
}

int64_t wrap_to(DType t, int64_t v) {
  switch (t) {
    case DType::I8: return static_cast<int8_t>(v);
    case DType::I16: return static_cast<int16_t>(v);
    case DType::I32: return static_cast<int32_t>(v);
    case DType::U8: return static_cast<uint8_t>(v);
    case DType::Bool: return v != 0;
    default: return v;
  }
}

const char* name_of(DType t) {
  switch (t) {
    case DType::Bool: return "bool";
    case DType::I8: return "i8";
    case DType::I16: return "i16";
    case DType::I32: return "i32";
    case DType::I64: return "i64";
    case DType::U8: return "u8";
    case DType::F16: return "f16";
    case DType::BF16: return "bf16";
    case DType::F32: return "f32";
    case DType::F64: return "f64";
    case DType::Str: return "str";
  }
  EIN_UNREACHABLE("dtype");
}

size_t size_of(DType t) {
  switch (t) {
    case DType::Bool:
    case DType::I8:
    case DType::U8: return 1;
    case DType::I16:
    case DType::F16:
    case DType::BF16: return 2;
    case DType::I32:
    case DType::F32: return 4;
    case DType::I64:
    case DType::F64: return 8;
    case DType::Str: return 0;
  }
  EIN_UNREACHABLE("dtype");
}

std::string shift_text(DType t, int64_t by) {
  return fmt::format("shift by {}: an `{}` can be shifted by 0 to {}", by, name_of(t),
                     8 * size_of(t) - 1);
}

Tensor Tensor::uncleared(DType dtype, std::vector<int64_t> shape) {
  Tensor out;
  out.dtype_ = dtype;
  out.shape_ = std::move(shape);
  for (int64_t extent : out.shape_) {
    EIN_CHECK(extent >= 0, "negative extent");
    if (__builtin_mul_overflow(out.size_, extent, &out.size_)) { throw std::bad_alloc(); }
  }
  size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(out.size_), size_of(dtype), &bytes))
    throw std::bad_alloc();
  auto block = std::make_shared<Block>(bytes);
  out.data_ = std::shared_ptr<std::byte>(block, block->at());
  return out;
}

Tensor::Tensor(DType dtype, std::vector<int64_t> shape)
    : Tensor(uncleared(dtype, std::move(shape))) {
  std::memset(data_.get(), 0, static_cast<size_t>(size_) * size_of(dtype));
}

double Tensor::get_float(int64_t i) const {
  switch (dtype_) {
    case DType::F16: return half_to_float(as<uint16_t>()[i]);
    case DType::BF16: return bf16_to_float(as<uint16_t>()[i]);
    case DType::F32: return as<float>()[i];
    case DType::F64: return as<double>()[i];
    default: return static_cast<double>(get_int(i));
  }
}

int64_t Tensor::get_int(int64_t i) const {
  switch (dtype_) {
    case DType::Bool:
    case DType::U8: return as<uint8_t>()[i];
    case DType::I8: return as<int8_t>()[i];
    case DType::I16: return as<int16_t>()[i];
    case DType::I32: return as<int32_t>()[i];
    case DType::I64: return as<int64_t>()[i];
    default: EIN_UNREACHABLE("integer read of a float tensor");
  }
}

void Tensor::set_float(int64_t i, double value) {
  switch (dtype_) {
    case DType::F16: as<uint16_t>()[i] = float_to_half(static_cast<float>(value)); return;
    case DType::BF16: as<uint16_t>()[i] = float_to_bf16(static_cast<float>(value)); return;
    case DType::F32: as<float>()[i] = static_cast<float>(value); return;
    case DType::F64: as<double>()[i] = value; return;
    default: EIN_UNREACHABLE("float write to an integer tensor");
  }
}

void Tensor::set_int(int64_t i, int64_t value) {
  switch (dtype_) {
    case DType::Bool:
    case DType::U8: as<uint8_t>()[i] = static_cast<uint8_t>(value); return;
    case DType::I8: as<int8_t>()[i] = static_cast<int8_t>(value); return;
    case DType::I16: as<int16_t>()[i] = static_cast<int16_t>(value); return;
    case DType::I32: as<int32_t>()[i] = static_cast<int32_t>(value); return;
    case DType::I64: as<int64_t>()[i] = value; return;
    default: EIN_UNREACHABLE("integer write to a float tensor");
  }
}

}  // namespace ein

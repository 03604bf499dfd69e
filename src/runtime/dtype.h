// Element types of tensors, shared by the compiler and the run-time library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ein {

enum class DType : uint8_t { Bool, I8, I16, I32, I64, U8, F16, BF16, F32, F64, Str };

bool is_float(DType t);
bool is_int(DType t);  // signed and unsigned integers, not bool
const char* name_of(DType t);
size_t size_of(DType t);              // bytes of one element in memory; bool is one byte
int64_t wrap_to(DType t, int64_t v);  // to an integer type, modulo its width; to bool: v != 0

}  // namespace ein

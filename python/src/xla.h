// What a handler of XLA's foreign functions meets, version 0.3 of its C interface, declared here so that the
// package builds without XLA. tests/python/test_jax.py compares sizes and offsets with jaxlib's own header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace einlang::xla {

constexpr int kMajor = 0, kMinor = 3;

struct Extension {
  size_t size;
  int type;
  Extension* next;
};
constexpr int kMetadata = 1;  // the type of MetadataExtension

struct Version {
  size_t size;
  Extension* extensions;
  int major, minor;
};

struct Metadata {
  size_t size;
  Version version;
  uint32_t traits;
  int64_t state_type;
};

struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

struct Error;  // XLA's

struct ErrorArguments {
  size_t size;
  Extension* extensions;
  const char* message;
  int code;
};
constexpr int kInvalidArgument = 3, kFailedPrecondition = 9, kAborted = 10, kInternal = 13;

// The beginning of the table of functions that XLA offers.
struct Api {
  size_t size;
  Extension* extensions;
  Version version;
  const void* internal;
  Error* (*make_error)(ErrorArguments*);
};

enum DataType : int {
  kPred = 1,
  kS8 = 2,
  kS16 = 3,
  kS32 = 4,
  kS64 = 5,
  kU8 = 6,
  kF16 = 10,
  kF32 = 11,
  kF64 = 12,
  kBf16 = 16
};

struct Buffer {
  size_t size;
  Extension* extensions;
  int dtype;
  void* data;
  int64_t rank;
  int64_t* dims;
};

struct Bytes {
  const char* data;
  size_t length;
};
struct Scalar {
  int dtype;
  void* value;
};
struct Array {
  int dtype;
  size_t length;
  void* data;
};
constexpr int kArray = 1, kScalar = 3;  // types of attributes
constexpr int kBuffer = 1;              // type of arguments and results

struct Values {  // arguments, and results likewise
  size_t size;
  Extension* extensions;
  int64_t count;
  int* types;
  void** values;
};

struct Attributes {
  size_t size;
  Extension* extensions;
  int64_t count;
  int* types;
  Bytes** names;
  void** values;
};

struct CallFrame {
  size_t size;
  Extension* extensions;
  const Api* api;
  void* context;
  int stage;
  Values arguments;
  Values results;
  Attributes attributes;
  void* future;
};
constexpr int kExecute = 3;  // the stage in which handlers compute

}  // namespace einlang::xla

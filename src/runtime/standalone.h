// What code made by `ein build` calls: a program without its compiler. Nothing throws out of here;
// whatever goes wrong is a status and a message.
//
// The structs that callers pass follow from the image, field by field in its order, and are written
// down in the generated header: a scalar by value; a tensor as a pointer and its extents; a record
// as a struct of its parts. After the outputs comes a byte for each of them: whether the pointer is
// the library's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/image.h"
#include "runtime/native_abi.h"

namespace ein {

struct StandaloneProgram {  // in the generated object, which knows this layout
  const char* image;
  uint64_t size;
  NativeEntry entry;
  void* state;  // null before the first call
};

struct StandaloneError {
  char code[8];  // "E0803"
  char message[1016];
};

// A struct as a tree: a record has `parts`, anything else is a field.
struct StructPart {
  std::string name;
  uint32_t field = 0;  // its place in the list that the struct is made of
  std::vector<StructPart> parts = {};
};
StructPart input_struct(const Image& image);   // of `inputs`
StructPart output_struct(const Image& image);  // of `outputs`

struct StructField {
  uint32_t buffer = 0;  // outputs: which buffer; inputs: which input
  DType dtype = DType::F32;
  size_t rank = 0;
  size_t offset = 0;  // of the scalar, or of the pointer, after which the extents stand
};
struct StructLayout {
  std::vector<StructField> fields;  // in the order of the struct
  size_t owned = 0;                 // outputs: where the bytes start
};
StructLayout input_layout(const Image& image);
StructLayout output_layout(const Image& image);

}  // namespace ein

extern "C" {
int ein_standalone_run(ein::StandaloneProgram* program, const void* inputs, void* outputs,
                       ein::StandaloneError* error);
void ein_standalone_free(ein::StandaloneProgram* program, void* outputs);
int ein_standalone_main(ein::StandaloneProgram* program, int argc, char** argv);
}

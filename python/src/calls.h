// What all kinds of calls share: arguments, the call itself, and failures as exceptions.
#pragma once

#include "native.h"

namespace einlang {

nb::object str(const char* text);

// Raises what a function of errors.py makes of these.
[[noreturn]] void raise(const char* function, nb::object a, nb::object b, nb::object c,
                        nb::object d);
[[noreturn]] void raise_failure(ein_status status, const ein_error& error);  // of a call

// Room for the arguments of one call.
struct Arguments {
  static constexpr size_t kFew = 12, kFewExtents = 32;
  ein_tensor few[kFew];
  int64_t few_scratch[kFew], few_extents[kFewExtents];
  std::vector<ein_tensor> many;
  std::vector<int64_t> many_scratch, many_extents;
  ein_tensor* tensors = few;
  int64_t *scratch = few_scratch, *extents = few_extents;

  explicit Arguments(const std::vector<Program::Value>& values) {
    size_t total = 0;
    for (const Program::Value& v : values) total += static_cast<size_t>(v.rank);
    if (values.size() > kFew) {
      many.resize(values.size());
      many_scratch.resize(values.size());
      tensors = many.data();
      scratch = many_scratch.data();
    }
    if (total > kFewExtents) {
      many_extents.resize(total);
      extents = many_extents.data();
    }
  }
};

// Where the number of a value stands among `values`; −1 when it is not there.
int64_t find(const std::vector<Program::Value>& values, PyObject* name);

// All inputs from a dict that has nothing else; false when something takes a closer look.
bool take_inputs(const Program& p, PyObject* given, Arguments& to, Memory& memory);
// Memory for outputs; those that are not named keep the rank −1.
bool take_outputs(const Program& p, PyObject* given, Arguments& to, Memory& memory);

// While a call runs without the GIL, this is its thread's state.
struct Running {
  PyThreadState* state = nullptr;
};

// `memory` gets the result. Raises when the call fails.
void call(Program& p, const ein_tensor* inputs, const ein_tensor* outputs, Memory& memory);

// Runs `body` for a slot of a type, which reports exceptions by null.
PyObject* guarded(nb::object (*body)(PyObject*, PyObject*), PyObject* self, PyObject* given);

}  // namespace einlang

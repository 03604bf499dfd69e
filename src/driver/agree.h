// Compares two ways to the same program; each function returns what is wrong (empty: they agree).
#pragma once

#include <string>
#include <vector>

#include "codegen/native.h"
#include "core/eval.h"
#include "driver/compile.h"

namespace ein {

// print → parse → check gives the same Core hash. `name` is what the printed file is called: `load`
// looks beside it.
std::string printed_agrees(core::Module& m, const CompileOptions& options = {},
                           const std::string& name = "program.ein");

// Native code and the reference evaluator give the same values (floats within a tolerance), and
// native code the same bits for 1, 2 and 3 threads.
std::string native_agrees(core::Module& m, const core::Inputs& inputs,
                          const std::vector<std::string>& values,
                          const NativeOptions& options = {});

bool close(const Tensor& a, const Tensor& b, double tolerance, std::string& where);

}  // namespace ein

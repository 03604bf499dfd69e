// A module compiled to machine code for this process, and running it. Compiled code takes extents
// as arguments, so one compilation serves every shape.
//
//   auto compiled = compile_native(module, wanted, {});
//   if (auto* why = std::get_if<std::string>(&compiled)) …          // a known limitation
//   NativeResult r = run(*std::get<std::shared_ptr<Native>>(compiled), inputs);
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/trace.h"
#include "codegen/jit.h"
#include "core/core.h"
#include "core/eval.h"
#include "plan/plan.h"
#include "runtime/image.h"
#include "runtime/native_abi.h"
#include "runtime/processor.h"
#include "runtime/row_file.h"
#include "runtime/tensor.h"

namespace ein {

class Native;

// Compiled programs by the names that cache_key.h gives them. Where they are kept is the caller's
// business; whatever goes wrong there counts as not found.
class ImageCache {
 public:
  virtual ~ImageCache() = default;
  virtual std::optional<std::string> find(const std::string& key) = 0;
  virtual void store(const std::string& key, const std::string& image) = 0;
};

// What changes the code is part of its name in the cache (cache_key.cc).
struct NativeOptions {
  int opt_level = 2;
  Processor processor = Processor::Native;  // must be one that runs here
  bool check_bounds = false;                // of every address that the code uses
  ImageCache* cache = nullptr;
  plan::Choices choices;
  Trace* trace = nullptr;  // of the passes
};

// ---- compiling: what compile_native (driver/compile.h) does besides running passes

// The program's name in the cache (none: no cache, or a drawn plan), and the program kept under it.
std::optional<std::string> native_key(const core::Module& m,
                                      const std::vector<core::FamilyId>& wanted,
                                      const NativeOptions& options);
std::shared_ptr<Native> kept_native(ImageCache& cache, const std::string& key);
// The first reason why a planned module cannot become machine code; empty when there is none.
std::string limitation(const plan::Plan& plan);
codegen::JitOptions jit_options(const NativeOptions& options);

// A program before machine code is made of it.
struct Lowered {
  plan::Plan plan;
  loops::Program program;
  Image image;
};
// Loads the object code of the image into this process. `passes`: what was spent so far.
std::shared_ptr<Native> make_native(Lowered lowered, const std::vector<PassTime>& passes,
                                    codegen::JitTimes inside);

// ---- running

struct NativeResult {
  std::unordered_map<core::FamilyId, Tensor> values;  // of `wanted`
  std::optional<RuntimeError> error;
  std::optional<Stopped> stopped;  // by the monitor; `values` then has what was finished
  std::string refused;             // why Watch::resume does not fit; nothing has run
  std::vector<int64_t> params;     // the symbolic extents
};

// With `kernel_times`, those become the nanoseconds that each kernel took. `files`, by name, are
// the inputs that the program was compiled to stream; they are not among `inputs`.
NativeResult run(Native& native, const core::Inputs& inputs, const core::Watch& watch = {},
                 std::vector<int64_t>* kernel_times = nullptr,
                 const std::map<std::string, RowFile>& files = {});

// What it was compiled from, its image moved to image_of; null for a program from the cache.
Lowered* lowered_of(Native& native);

// How to call it without the compiler (execute.h), as long as `native` lives.
const Image& image_of(const Native& native);
NativeEntry entry_of(const Native& native);

// Milliseconds per phase of the compilation, in order.
std::vector<std::pair<std::string, double>> compile_times(const Native& native);
uint64_t native_compile_count();  // LLVM compilations in this process

}  // namespace ein

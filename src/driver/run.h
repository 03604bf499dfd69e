// Running a compiled program: which values are needed, on which back end, and its effects in order.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/trace.h"
#include "codegen/native.h"
#include "core/core.h"
#include "core/eval.h"
#include "driver/work.h"
#include "optimise/checkpoint.h"
#include "runtime/device.h"
#include "runtime/effect.h"
#include "runtime/paths.h"
#include "runtime/processor.h"
#include "runtime/row_file.h"
#include "runtime/tensor.h"
#include "shard/mesh.h"

namespace ein {

class MpiTransport;

enum class Backend { Native, Reference };

// A name that is watched while a program runs (observe.h), and the values it may stand for: families
// of the program before autodiff. What was not asked for is shown where that is possible.
struct Watched {
  std::string name;
  std::vector<core::FamilyId> meant;
  bool asked = true;
};

struct RunOptions {
  Backend backend = Backend::Native;
  Device device = Device::Cpu;  // of native code
  int opt_level = 2;
  int threads = 0;                          // how many threads to use; 0: one per processor
  Processor processor = Processor::Native;  // one that runs here
  bool check_bounds = false;                // of every address that compiled code uses
  bool check_overflow = false;              // integer overflow is an error instead of wrapping
  bool trap = false;                        // a cell that is not finite is an error
  DType operands = DType::F32;              // of contractions; see optimise/precision.h
  Tuning tuning;                            // other numbers for the plan than those of tuning.def
  std::optional<uint64_t> grad_memory;      // bytes; see optimise/checkpoint.h
  std::vector<std::string> show;            // values asked for besides what effects need
  std::map<std::string, RowFile> files;     // inputs that are read when the program runs, by name
  bool streams = true;                      // files may be read step by step; see plan/streams.h
  ImageCache* cache = nullptr;              // of compiled programs
  const FileAccess* access = nullptr;       // what `save` may write; null: everything
  Monitor* monitor = nullptr;               // told where the program is, and may stop it
  std::vector<Watched> watch;               // values that the monitor is shown at each step
  const core::Module* asked = nullptr;      // with `watch`: the program before autodiff
  bool scalars = false;                     // what is watched must be one number at each step
  bool keeps_state = false;                 // Moment::state gives the content of a file (state.h)
  std::optional<std::string> resume;        // what such a file holds: where to go on
  bool time = false;                        // leave a Timing, when it runs natively
  const shard::Spec* ranks = nullptr;       // on several ranks (ranks.h), those of this mesh
  MpiTransport* mpi = nullptr;              // they are processes, and this is one of them
  Trace* trace = nullptr;                   // of the native passes
};

// The one place in which options of a run become those of its compilation.
NativeOptions native_options(const RunOptions& options);

// What a run took: the phases of its native compilation, then its kernels.
struct KernelTime {
  Work work;
  double seconds = 0;
};
struct Timing {
  std::vector<std::pair<std::string, double>> compile;  // phase, milliseconds
  std::vector<KernelTime> kernels;
  double seconds = 0;  // the whole run; what is not in kernels is memory and entry checks
};

struct RunResult {
  std::map<std::string, Tensor> values;  // of `show`; when stopped, those that were finished
  std::optional<Stopped> stopped;        // by the monitor; then no effect has happened
  std::optional<RuntimeError> error;
  std::string refused;     // why something cannot be watched, or not go on; nothing has happened
  bool elsewhere = false;  // another rank has the values, and effects happen there
  bool unwatched = false;  // some watched values could not be computed beside the run
  std::string fallback;    // why the reference evaluator ran although native was asked for
  std::vector<optimise::SegmentPlan> checkpoints;  // what was decided under `grad_memory`
  uint64_t operations = 0;                         // counted by the reference evaluator
  std::optional<Timing> timing;
};

// `write` receives what the program prints.
RunResult run(core::Module& m, const core::Inputs& inputs, const RunOptions& options,
              const std::function<void(const std::string&)>& write);

// What has to be computed, from what: the files read, except those of `streamed`, and, under a memory
// budget, recurrences cut into segments.
struct Prepared {
  std::vector<core::FamilyId> wanted;
  core::Inputs inputs;
  std::vector<optimise::SegmentPlan> checkpoints;
  std::optional<core::Module> cut;  // to be run instead of the original
};
std::variant<Prepared, RuntimeError> prepare(core::Module& m, std::vector<core::FamilyId> wanted,
                                             const core::Inputs& inputs, const RunOptions& options,
                                             const std::map<std::string, RowFile>& streamed = {});
// `params`: the symbolic extents.
std::vector<KernelTime> kernel_times(Native& native, const std::vector<int64_t>& params,
                                     const std::vector<int64_t>& nanoseconds);
// What effects and `show` need, reports of `dbg` apart; if that is nothing: nothing, or the values that nothing else reads.
enum class Else : uint8_t { Nothing, Unread };
std::vector<core::FamilyId> wanted_families(const core::Module& m, const RunOptions& options,
                                            Else otherwise = Else::Nothing);

// What a native pass (driver/compile.h) gives for what `run` would compute, as text; if that is
// nothing, for the values that nothing else reads. Inputs matter only where recurrences are cut
// into segments, which depends on extents; where those are not known, nothing is cut.
std::variant<std::string, RuntimeError> native_dump(core::Module& m, const core::Inputs& inputs,
                                                    const std::string& pass,
                                                    RunOptions options = {});

// A stage of the native compilation of the same, as text: `plan`, `loops`, `llvm` or `asm`.
std::variant<std::string, RuntimeError> emit(core::Module& m, const core::Inputs& inputs,
                                             RunOptions options, const std::string& stage);

// What would be decided about recurrences that derivatives run over, as far as extents are known
// without inputs; nothing where they are not.
std::optional<std::vector<optimise::SegmentPlan>> plan_checkpoints(core::Module& m,
                                                                   const RunOptions& options);

// Whether `at` lies in a clause that `wanted` needs. Equal expressions share one node with the span
// of the first, which may lie elsewhere.
bool is_certain(const core::Module& m, const std::vector<core::FamilyId>& wanted, Span at);

// The same effect without Core; values are numbered like families.
Effect plain_effect(const core::Module& m, const core::Effect& e);

// The coordinate names of a family, empty where there is none.
std::vector<std::string> coordinate_texts(const core::Family& family);

}  // namespace ein

// Runs a compiled program: decides which values are needed, computes them on a back end, and
// performs effects in order.
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

// A name that is watched while a program runs (observe.h), and the values it may stand for, as
// families of the program before autodiff. If it was not asked for explicitly, it is shown only
// where that is possible.
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
  Processor processor = Processor::Native;  // must be one that runs here
  bool check_bounds = false;                // check every address that compiled code uses
  bool check_overflow = false;              // integer overflow is an error instead of wrapping
  bool trap = false;                        // a cell that is not finite is an error
  DType operands = DType::F32;              // of contractions; see optimise/precision.h
  Tuning tuning;                            // replace the numbers of tuning.def
  std::optional<uint64_t> grad_memory;      // bytes; see optimise/checkpoint.h
  std::vector<std::string> show;            // values wanted in addition to what effects need
  std::map<std::string, RowFile> files;     // inputs that are read when the program runs, by name
  bool streams = true;                      // files may be read step by step (plan/streams.h)
  ImageCache* cache = nullptr;              // compiled programs
  const FileAccess* access = nullptr;       // what `save` may write; null: everything
  Monitor* monitor = nullptr;               // is told where the program is, and may stop it
  std::vector<Watched> watch;               // values that the monitor sees at each step
  const core::Module* asked = nullptr;      // with `watch`: the program before autodiff
  bool scalars = false;                     // a watched value must be a single number at each step
  bool keeps_state = false;            // Moment::state returns the contents of a file (state.h)
  std::optional<std::string> resume;   // the contents of such a file: where to resume
  bool time = false;                   // fill in a Timing if the program runs natively
  const shard::Spec* ranks = nullptr;  // run on several ranks (ranks.h), on this mesh
  MpiTransport* mpi = nullptr;         // the ranks are processes, and this is one of them
  Trace* trace = nullptr;              // for the native passes
};

// The only place where options of a run are turned into options of its compilation.
NativeOptions native_options(const RunOptions& options);

// How long a run took: the phases of its native compilation, then its kernels.
struct KernelTime {
  Work work;
  double seconds = 0;
};
struct Timing {
  std::vector<std::pair<std::string, double>> compile;  // phase, milliseconds
  std::vector<KernelTime> kernels;
  double seconds = 0;  // the whole run; the time outside of kernels is memory and entry checks
};

struct RunResult {
  // Of `show`; if the run was stopped, those that were finished.
  std::map<std::string, Tensor> values;
  std::optional<Stopped> stopped;  // by the monitor; then no effect was performed
  std::optional<RuntimeError> error;
  // Why something cannot be watched, or the run cannot resume; then nothing was done.
  std::string refused;
  bool elsewhere = false;  // another rank has the values and performs the effects
  bool unwatched = false;  // some watched values could not be computed
  std::string fallback;    // why the reference evaluator ran instead of native code
  std::vector<optimise::SegmentPlan> checkpoints;  // what was decided because of `grad_memory`
  uint64_t operations = 0;                         // counted by the reference evaluator
  std::optional<Timing> timing;
};

// `write` receives what the program prints.
RunResult run(core::Module& m, const core::Inputs& inputs, const RunOptions& options,
              const std::function<void(const std::string&)>& write);

// What must be computed, and from what: the files that were read, except `streamed` ones; and, with
// a memory budget, the program with its recurrences cut into segments.
struct Prepared {
  std::vector<core::FamilyId> wanted;
  core::Inputs inputs;
  std::vector<optimise::SegmentPlan> checkpoints;
  std::optional<core::Module> cut;  // run this instead of the original
};
std::variant<Prepared, RuntimeError> prepare(core::Module& m, std::vector<core::FamilyId> wanted,
                                             const core::Inputs& inputs, const RunOptions& options,
                                             const std::map<std::string, RowFile>& streamed = {});
// `params`: the symbolic extents.
std::vector<KernelTime> kernel_times(Native& native, const std::vector<int64_t>& params,
                                     const std::vector<int64_t>& nanoseconds);
// What effects and `show` need, except for reports of `dbg`. If that is nothing: nothing, or the
// values that nothing else reads.
enum class Else : uint8_t { Nothing, Unread };
std::vector<core::FamilyId> wanted_families(const core::Module& m, const RunOptions& options,
                                            Else otherwise = Else::Nothing);

// The result of a native pass (driver/compile.h) for what `run` would compute, as text; if `run`
// would compute nothing, for the values that nothing else reads. Inputs only matter if recurrences
// are cut into segments, which depends on extents; if those are not known, nothing is cut.
std::variant<std::string, RuntimeError> native_dump(core::Module& m, const core::Inputs& inputs,
                                                    const std::string& pass,
                                                    RunOptions options = {});

// A stage of the native compilation of the same values, as text: `plan`, `loops`, `llvm`, `asm` or
// `ptx`.
std::variant<std::string, RuntimeError> emit(core::Module& m, const core::Inputs& inputs,
                                             RunOptions options, const std::string& stage);

// What would be decided about recurrences that derivatives go through, as far as extents are known
// without inputs; nothing if they are not.
std::optional<std::vector<optimise::SegmentPlan>> plan_checkpoints(core::Module& m,
                                                                   const RunOptions& options);

// Whether `at` lies in a clause that `wanted` needs. Equal expressions share one node with the span
// of the first, which may be elsewhere.
bool is_certain(const core::Module& m, const std::vector<core::FamilyId>& wanted, Span at);

// The same effect without Core; its values are numbered like families.
Effect plain_effect(const core::Module& m, const core::Effect& e);

// The names of a family's coordinates; empty for those without a name.
std::vector<std::string> coordinate_texts(const core::Family& family);

}  // namespace ein

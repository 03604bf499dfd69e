// The pipeline, from text to machine code: source → Ast → Core → Core without requests (`compile`),
// → Core ready for planning → Plan → Loops (`lower_native`) → object code (`compile_native`). The
// passes are ordered here, except for `shard`, which driver/ranks.cc runs. Dumping, timing and
// verification are in pipeline.h. Nothing here reads files (`load` asks CompileOptions::files) or
// prints.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "autodiff/differentiate.h"
#include "base/diag.h"
#include "base/source.h"
#include "base/trace.h"
#include "codegen/native.h"
#include "core/core.h"
#include "driver/derivation.h"
#include "driver/library.h"
#include "loops/loops.h"
#include "optimise/checkpoint.h"
#include "plan/plan.h"
#include "sema/file_lookup.h"
#include "sema/modules.h"

namespace ein {

namespace sema {
struct Meanings;
}

// A derivative that the command line asks for: `ein grad --of loss --wrt W,b`.
struct ExtraRequest {
  std::string of;
  std::vector<std::string> wrt;
};

struct CompileOptions {
  ReadFile read_file;      // for modules; without it, a program cannot import any
  std::string dump_after;  // a pass; its result is left in Compiled::trace
  ExtraRequest extra;
  bool tests = false;        // also compile the `test` blocks
  bool strict = false;       // extents that cannot be proven equal are an error
  sema::FileLookup files;    // answers `load`; without it, `load` is an error
  sema::InputShapes inputs;  // the shapes of inputs, as far as they are known
  bool keep_asked = false;   // keep the program with its requests in Compiled::asked
  autodiff::Direction direction = autodiff::Direction::Auto;
  autodiff::Record* record = nullptr;  // receives a record of what differentiation did
  // Each replaces the program by a derivative of it, in turn.
  std::vector<Derivation> derivations;
  std::vector<sema::EarlierText> earlier =
      {};                           // texts whose definitions the program also has, the newest last
  std::set<uint32_t> printed = {};  // where the statements begin whose values are printed
  // For tools: `meanings` receives what every name means; `names_only` stops after sema;
  // `cancelled` is asked between passes.
  sema::Meanings* meanings = nullptr;
  bool names_only = false;
  std::function<bool()> cancelled = {};
};

// A `test` block, ready to run: the file's definitions and its own, but only its own effects.
struct CompiledTest {
  std::string name;
  Span span;
  core::Module module;
};

struct Compiled {
  sema::Program program;
  core::Module module;  // ready to run
  core::Module asked;   // the same before autodiff (CompileOptions::keep_asked)
  std::vector<CompiledTest> tests;
  Derived derived;         // from CompileOptions::derivations
  bool ok = false;         // no errors; otherwise `module` must not be used
  bool cancelled = false;  // `cancelled` returned true; nothing else may be used
  Trace trace;
};

// The names of all passes in order, for `--dump-after` and `--help`. Those after autodiff are
// native passes.
const std::vector<std::string>& pass_names();
bool is_native_pass(const std::string& name);

Compiled compile(FileId file, SourceMap& sources, const CompileOptions& options,
                 Diagnostics& diags);

// Runs autodiff alone on a program that `compile` has seen (Compiled::asked).
core::Module derive(core::Module m, autodiff::Direction direction, Diagnostics& diags);
// The program for the reference evaluator if factors of sums of products are rounded.
core::Module rounded_for_reference(core::Module m, DType operands);

// Runs `checkpoint`. That happens after `compile`, because it needs this run's extents, and before
// `compile_native`, because the reference evaluator needs it, too. If there are no plans, `m` is
// unchanged.
optimise::Checkpointed checkpoint_of(core::Module& m, const std::vector<core::FamilyId>& wanted,
                                     const std::vector<int64_t>& params,
                                     std::optional<uint64_t> memory, Trace* trace = nullptr);

// The passes up to the plan, and the passes from there to loops.
plan::Plan plan_of(const core::Module& m, const std::vector<core::FamilyId>& wanted,
                   const plan::Choices& choices = {}, Trace* trace = nullptr);
loops::Program loops_of(plan::Plan& plan, Trace* trace = nullptr);
// Both, and an image. If the program cannot be compiled natively (because it computes strings),
// says why.
std::variant<Lowered, std::string> lower_native(const core::Module& m,
                                                const std::vector<core::FamilyId>& wanted,
                                                const NativeOptions& options = {});
// All of it, and machine code. Times that are already in `options.trace` count as compiling, too.
std::variant<std::shared_ptr<Native>, std::string> compile_native(
    const core::Module& m, const std::vector<core::FamilyId>& wanted,
    const NativeOptions& options = {});
// The result of a native pass after `checkpoint`, as text; later stages do not run. Empty if the
// program cannot be compiled natively; `why` says why.
std::string dump_native_pass(const core::Module& m, const std::vector<core::FamilyId>& wanted,
                             const NativeOptions& options, const std::string& pass,
                             std::string& why);

}  // namespace ein

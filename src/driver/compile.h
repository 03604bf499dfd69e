// The pipeline, from text to machine code: source → Ast → Core → Core without requests (`compile`),
// → Core to be planned → Plan → Loops (`lower_native`) → object code (`compile_native`). One place
// orders the passes, and dump, timing and verification come from it alone (pipeline.h). Nothing
// here reads files (`load` asks CompileOptions::files) or prints.
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

// A derivative asked for on the command line: `ein grad --of loss --wrt W,b`.
struct ExtraRequest {
  std::string of;
  std::vector<std::string> wrt;
};

struct CompileOptions {
  ReadFile read_file;      // for modules; without it a program stands alone
  std::string dump_after;  // a pass; what it gave is left in Compiled::trace
  ExtraRequest extra;
  bool tests = false;        // compile the `test` blocks too
  bool strict = false;       // an equality of extents that is not proven is an error
  sema::FileLookup files;    // what `load` finds; empty: it is an error
  sema::InputShapes inputs;  // the shapes that are known already
  bool keep_asked = false;   // leave the program with its requests in Compiled::asked
  autodiff::Direction direction = autodiff::Direction::Auto;
  autodiff::Record* record = nullptr;  // gets what differentiation did
  // The program becomes a derivative of itself, which becomes a derivative of itself, and so on.
  std::vector<Derivation> derivations;
  std::vector<sema::EarlierText> earlier =
      {};                           // texts whose definitions it has too, the newest last
  std::set<uint32_t> printed = {};  // where statements begin whose values are printed
  // For tools: gets what every name means; stops after sema; stops between passes when true.
  sema::Meanings* meanings = nullptr;
  bool names_only = false;
  std::function<bool()> cancelled = {};
};

// A `test` block, ready to run: the file's definitions and its own, its effects alone.
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
  Derived derived;         // of CompileOptions::derivations
  bool ok = false;         // no errors; otherwise `module` is not to be used
  bool cancelled = false;  // CompileOptions::cancelled said so; nothing else is to be used
  Trace trace;
};

// The passes in order, for `--dump-after` and `--help`; those after autodiff are native ones.
const std::vector<std::string>& pass_names();
bool is_native_pass(const std::string& name);

Compiled compile(FileId file, SourceMap& sources, const CompileOptions& options,
                 Diagnostics& diags);

// Runs autodiff alone on a program that `compile` has seen (Compiled::asked).
core::Module derive(core::Module m, autodiff::Direction direction, Diagnostics& diags);
// What the reference evaluates when factors of sums of products have another precision.
core::Module rounded_for_reference(core::Module m, DType operands);

// Runs `checkpoint`: after `compile` because it needs this run's extents, before `compile_native`
// because the reference evaluator needs it too. No plans: `m` stays as it is.
optimise::Checkpointed checkpoint_of(core::Module& m, const std::vector<core::FamilyId>& wanted,
                                     const std::vector<int64_t>& params,
                                     std::optional<uint64_t> memory, Trace* trace = nullptr);

// The passes up to the plan, and from there to loops.
plan::Plan plan_of(const core::Module& m, const std::vector<core::FamilyId>& wanted,
                   const plan::Choices& choices = {}, Trace* trace = nullptr);
loops::Program loops_of(plan::Plan& plan, Trace* trace = nullptr);
// Both, and an image. Says what cannot be compiled natively (strings) instead of guessing.
std::variant<Lowered, std::string> lower_native(const core::Module& m,
                                                const std::vector<core::FamilyId>& wanted,
                                                const NativeOptions& options = {});
// All of it, and machine code. What `options.trace` has timed before counts as compiling, too.
std::variant<std::shared_ptr<Native>, std::string> compile_native(
    const core::Module& m, const std::vector<core::FamilyId>& wanted,
    const NativeOptions& options = {});
// What a native pass after `checkpoint` gives, as text; the stages after that pass do not run.
// Empty where `why` says what cannot be compiled natively.
std::string dump_native_pass(const core::Module& m, const std::vector<core::FamilyId>& wanted,
                             const NativeOptions& options, const std::string& pass,
                             std::string& why);

}  // namespace ein

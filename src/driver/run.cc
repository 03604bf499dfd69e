#include "driver/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "codegen/native.h"
#include "core/groups.h"
#include "core/rewrite.h"
#include "driver/compile.h"
#include "driver/files.h"
#include "optimise/precision.h"
#include "runtime/native_abi.h"
#include "runtime/pool.h"

namespace ein {
namespace {

using core::FamilyId;
using Values = std::unordered_map<FamilyId, Tensor>;

// Points an error at its expression where that is certain: it stands in a clause that was to be
// computed. Otherwise (it stands in a function, or an equal one stood first in a clause that nobody
// asked for) at the statement that was being computed.
void locate(const core::Module& m, const std::vector<FamilyId>& wanted, RuntimeError& error) {
  if (error.statement.valid() && !is_certain(m, wanted, error.at)) error.at = error.statement;
}

bool segments_wanted(const core::Module& m, const RunOptions& options) {
  return options.grad_memory || std::any_of(m.families.begin(), m.families.end(),
                                            [](const auto& f) { return f.checkpoint != 0; });
}

// Refuses a file that the program may not write.
std::optional<RuntimeError> refuse_effect(const FileAccess* access, const core::Effect& e) {
  bool writes = e.kind == core::Effect::Kind::Save || e.kind == core::Effect::Kind::Write;
  if (!access || !writes) return std::nullopt;
  auto refused = refuse_write(*access, e.path);
  if (refused) refused->at = e.span;
  return refused;
}

double seconds_now() { return static_cast<double>(clock_nanoseconds()) * 1e-9; }

}  // namespace

// What effects and `show` need; nothing else is computed (decisions.md, 30).
std::vector<FamilyId> wanted_families(const core::Module& m, const RunOptions& options) {
  std::vector<FamilyId> wanted;
  std::set<FamilyId> seen;
  auto want = [&](FamilyId f) {
    if (f && seen.insert(f).second) wanted.push_back(f);
  };
  for (const core::Effect& e : m.effects) {
    want(e.cond);
    for (const core::Piece& p : e.pieces) want(p.value);
  }
  for (const std::string& name : options.show) want(m.find(intern(name)));
  for (const std::string& name : options.watch) want(m.find(intern(name)));
  return wanted;
}

std::vector<FamilyId> unread_families(const core::Module& m) {
  std::set<FamilyId> read;
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    core::for_each_body(m, FamilyId(i), [&](core::ExprId body) {
      core::for_each_node(m, body, [&](core::ExprId e) {
        if (const auto* a = core::get_if<core::Access>(m, e)) read.insert(a->family);
      });
    });
  }
  std::vector<FamilyId> out;
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    if (!read.contains(FamilyId(i))) out.push_back(FamilyId(i));
  }
  return out;
}

std::vector<std::string> coordinate_texts(const core::Family& family) {
  std::vector<std::string> out;
  for (const core::Coord& c : family.coords) out.push_back(text(c.name));
  return out;
}

bool is_certain(const core::Module& m, const std::vector<FamilyId>& wanted, Span at) {
  for (FamilyId id : reached(m, wanted)) {
    for (const core::Clause& c : m[id].clauses) {
      if (at.valid() && at.file == c.span.file && at.begin >= c.span.begin && at.end <= c.span.end)
        return true;
    }
  }
  return false;
}

Effect plain_effect(const core::Module& m, const core::Effect& e) {
  Effect out;
  switch (e.kind) {
    case core::Effect::Kind::Print: out.kind = Effect::Kind::Print; break;
    case core::Effect::Kind::Assert: out.kind = Effect::Kind::Assert; break;
    case core::Effect::Kind::Save: out.kind = Effect::Kind::Save; break;
    case core::Effect::Kind::Write: out.kind = Effect::Kind::Write; break;
  }
  if (e.cond) out.cond = e.cond.v;
  for (const core::Piece& p : e.pieces) {
    Effect::Piece to{p.text, Effect::kNoValue, {}, p.format};
    to.join = static_cast<Effect::Piece::Join>(p.join);
    to.rank = p.rank;
    if (p.value) {
      to.value = p.value.v;
      to.coords = coordinate_texts(m[p.value]);
    }
    out.pieces.push_back(std::move(to));
  }
  out.path = e.path;
  out.span = e.span;
  return out;
}

std::vector<KernelTime> kernel_times(Native& native, const core::Inputs& inputs,
                                     const std::vector<int64_t>& nanoseconds) {
  std::vector<KernelTime> out;
  for (lower::Work& work : work_of(native, inputs)) {
    out.push_back({std::move(work), static_cast<double>(nanoseconds[out.size()]) * 1e-9});
  }
  return out;
}

std::optional<std::vector<optimise::SegmentPlan>> plan_checkpoints(core::Module& m,
                                                                   const RunOptions& options) {
  if (m.params.size() > 0) return std::nullopt;
  std::vector<FamilyId> wanted = wanted_families(m, options);
  if (wanted.empty()) wanted = unread_families(m);
  return optimise::checkpoint(m, wanted, {}, options.grad_memory).plans;
}

std::variant<Prepared, RuntimeError> prepare(core::Module& m, std::vector<FamilyId> wanted,
                                             const core::Inputs& inputs,
                                             const RunOptions& options) {
  Prepared out{std::move(wanted), inputs, {}, {}};
  if (auto error = read_loaded(m, out.wanted, out.inputs)) return *error;
  bool cut = segments_wanted(m, options);
  if (!cut && !(options.trace && options.trace->dump_after == "checkpoint")) return out;
  auto params =
      core::bind_params(m, out.inputs, core::families_of(core::schedule(m, out.wanted).steps));
  if (auto* e = std::get_if<RuntimeError>(&params)) return *e;
  optimise::Checkpointed planned = checkpoint_of(
      m, out.wanted, std::get<std::vector<int64_t>>(params), options.grad_memory, options.trace);
  out.checkpoints = std::move(planned.plans);
  if (!out.checkpoints.empty()) out.cut = std::move(planned.module);
  return out;
}

NativeOptions native_options(const RunOptions& options) {
  NativeOptions out;
  out.opt_level = options.opt_level;
  out.processor = options.processor;
  out.check_bounds = options.check_bounds;
  // Where the time goes is worked out from the plan, which a cached program does not have.
  out.cache = options.time ? nullptr : options.cache;
  out.trace = options.trace;
  if (options.check_overflow) out.choices.overflow = core::Overflow::Stops;
  out.choices.operands = options.operands;
  out.choices.tuning = options.tuning;
  out.choices.rows = options.watch.empty();  // steps are watched, not rows
  return out;
}

RunResult run(core::Module& original, const core::Inputs& supplied, const RunOptions& options,
              const std::function<void(const std::string&)>& write) {
  RunResult out;
  Values values;
  // Before anything is computed: a long run that cannot save its result is of no use.
  for (const core::Effect& e : original.effects) {
    out.error = refuse_effect(options.access, e);
    if (out.error) return out;
  }
  auto ready = prepare(original, wanted_families(original, options), supplied, options);
  if (auto* e = std::get_if<RuntimeError>(&ready)) {
    out.error = *e;
    return out;
  }
  auto& [wanted, inputs, checkpoints, cut] = std::get<Prepared>(ready);
  out.checkpoints = std::move(checkpoints);
  core::Module& m = cut ? *cut : original;
  core::Watch watch{options.monitor, {}};
  for (const std::string& name : options.watch) watch.families.push_back(m.find(intern(name)));
  if (!wanted.empty()) {
    bool native = options.backend == Backend::Native;
    if (native) {
      set_threads(options.threads);
      auto compiled = compile_native(m, wanted, native_options(options));
      if (auto* why = std::get_if<std::string>(&compiled)) {
        out.fallback = *why;
        native = false;
      } else {
        Native& code = *std::get<std::shared_ptr<Native>>(compiled);
        std::vector<int64_t> times;
        double begin = seconds_now();
        NativeResult result = run(code, inputs, watch, options.time ? &times : nullptr);
        double spent = seconds_now() - begin;
        values = std::move(result.values);
        out.error = result.error;
        out.stopped = result.stopped;
        if (!times.empty()) {
          out.timing = Timing{compile_times(code), kernel_times(code, inputs, times), spent};
        }
      }
    }
    if (!native) {
      core::Module rounded = m;
      optimise::round_operands(rounded, options.operands);
      core::EvalResult result =
          core::evaluate(rounded, inputs, wanted, watch, {options.check_overflow});
      values = std::move(result.values);
      out.error = result.error;
      out.stopped = result.stopped;
      out.operations = result.operations;
    }
  }
  if (out.error) {
    locate(m, wanted, *out.error);
    return out;
  }
  auto keep_shown = [&] {
    for (const std::string& name : options.show) {
      auto it = values.find(m.find(intern(name)));
      if (it != values.end()) out.values[name] = it->second;
    }
  };
  if (out.stopped) {
    keep_shown();
    return out;
  }
  auto value_of = [&](uint32_t id) -> const Tensor& { return values.at(FamilyId(id)); };
  for (const core::Effect& e : m.effects) {
    out.error = refuse_effect(options.access, e);  // links may have changed since
    if (!out.error) out.error = perform(plain_effect(m, e), value_of, write);
    if (out.error) return out;
  }
  keep_shown();
  return out;
}

namespace {

// The machine code that `run` would make, from the same passes.
std::variant<std::shared_ptr<Native>, RuntimeError> compile_prepared(core::Module& m,
                                                                     const core::Inputs& inputs,
                                                                     const RunOptions& options) {
  std::vector<FamilyId> wanted = wanted_families(m, options);
  if (wanted.empty()) wanted = unread_families(m);
  bool early = options.trace && options.trace->dump_after == "checkpoint";
  std::optional<core::Module> cut;
  if (early || segments_wanted(m, options)) {
    auto ready = prepare(m, wanted, inputs, options);
    if (auto* e = std::get_if<RuntimeError>(&ready)) return *e;
    cut = std::move(std::get<Prepared>(ready).cut);
  }
  auto compiled = compile_native(cut ? *cut : m, wanted, native_options(options));
  if (auto* why = std::get_if<std::string>(&compiled)) return RuntimeError{Code::E0701, *why};
  return std::get<std::shared_ptr<Native>>(compiled);
}

}  // namespace

std::variant<std::string, RuntimeError> native_dump(core::Module& m, const core::Inputs& inputs,
                                                    const std::string& pass, RunOptions options) {
  Trace trace{pass};
  options.trace = &trace;
  options.cache = nullptr;  // a cached program skips the passes, so there would be nothing to print
  auto compiled = compile_prepared(m, inputs, options);
  if (auto* e = std::get_if<RuntimeError>(&compiled)) return *e;
  return trace.dump;
}

std::variant<std::string, RuntimeError> emit(core::Module& m, const core::Inputs& inputs,
                                             RunOptions options, const std::string& stage) {
  options.cache = nullptr;  // a cached program has no stages to show
  auto compiled = compile_prepared(m, inputs, options);
  if (auto* e = std::get_if<RuntimeError>(&compiled)) return *e;
  Emit what = stage == "plan"    ? Emit::Plan
              : stage == "loops" ? Emit::Loops
              : stage == "llvm"  ? Emit::Llvm
                                 : Emit::Assembly;
  return emit(*std::get<std::shared_ptr<Native>>(compiled), what);
}

}  // namespace ein

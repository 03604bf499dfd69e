#include "driver/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "codegen/native.h"
#include "core/groups.h"
#include "core/rewrite.h"
#include "driver/files.h"

namespace ein {
namespace {

using core::FamilyId;
using Values = std::unordered_map<FamilyId, Tensor>;

// An expression's own place where that is certain: it stands in a clause that was to be computed.
// Otherwise (it stands in a function, or an equal one stood first in a clause that nobody asked
// for) the statement that was being computed.
void locate(const core::Module& m, const std::vector<FamilyId>& wanted, RuntimeError& error) {
  if (error.statement.valid() && !is_certain(m, wanted, error.at)) error.at = error.statement;
}

// What effects and `show` need (decision 30).
std::vector<FamilyId> wanted_families(const core::Module& m, const RunOptions& options) {
  std::vector<FamilyId> wanted;
  auto want = [&](FamilyId f) {
    if (f && std::find(wanted.begin(), wanted.end(), f) == wanted.end()) wanted.push_back(f);
  };
  for (const core::Effect& e : m.effects) {
    want(e.cond);
    for (const core::Piece& p : e.pieces) want(p.value);
  }
  for (const std::string& name : options.show) want(m.find(intern(name)));
  for (const std::string& name : options.watch) want(m.find(intern(name)));
  return wanted;
}

bool segments_wanted(const core::Module& m, const RunOptions& options) {
  return options.grad_memory || std::any_of(m.families.begin(), m.families.end(),
                                            [](const auto& f) { return f.checkpoint != 0; });
}

}  // namespace

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
  }
  if (e.cond) out.cond = e.cond.v;
  for (const core::Piece& p : e.pieces) {
    Effect::Piece to{p.text, Effect::kNoValue, {}, p.format};
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

std::optional<std::vector<plan::SegmentPlan>> plan_checkpoints(core::Module& m,
                                                               const RunOptions& options) {
  if (m.params.size() > 0) return std::nullopt;
  std::vector<FamilyId> wanted = wanted_families(m, options);
  if (wanted.empty()) {  // the values that nothing else reads
    std::set<FamilyId> read;
    for (uint32_t i = 0; i < m.families.size(); ++i) {
      core::for_each_body(m, FamilyId(i), [&](core::ExprId body) {
        core::for_each_node(m, body, [&](core::ExprId e) {
          if (const auto* a = core::get_if<core::Access>(m, e)) read.insert(a->family);
        });
      });
    }
    for (uint32_t i = 0; i < m.families.size(); ++i) {
      if (!read.contains(FamilyId(i))) wanted.push_back(FamilyId(i));
    }
  }
  return plan::checkpoint(m, wanted, {}, options.grad_memory).plans;
}

RunResult run(core::Module& original, const core::Inputs& supplied, const RunOptions& options,
              const std::function<void(const std::string&)>& write) {
  RunResult out;
  core::Module cut;  // when steps are computed again instead of kept
  std::vector<FamilyId> wanted = wanted_families(original, options);
  Values values;
  core::Inputs inputs = supplied;
  out.error = read_loaded(original, wanted, inputs);
  if (out.error) return out;
  if (segments_wanted(original, options)) {
    auto params = core::bind_params(original, inputs,
                                    core::families_of(core::schedule(original, wanted).steps));
    if (auto* e = std::get_if<RuntimeError>(&params)) {
      out.error = *e;
      return out;
    }
    plan::Checkpointed planned = plan::checkpoint(
        original, wanted, std::get<std::vector<int64_t>>(params), options.grad_memory);
    out.checkpoints = std::move(planned.plans);
    cut = std::move(planned.module);
  }
  core::Module& m = out.checkpoints.empty() ? original : cut;
  core::Watch watch{options.monitor, {}};
  for (const std::string& name : options.watch) watch.families.push_back(m.find(intern(name)));
  if (!wanted.empty()) {
    bool native = options.backend == Backend::Native;
    if (native && options.check_overflow) {
      out.fallback = "native code does not check for integer overflow";
      native = false;
    }
    if (native) {
      NativeOptions native_options;
      native_options.opt_level = options.opt_level;
      native_options.cache = options.cache;
      auto compiled = compile_native(m, wanted, native_options);
      if (auto* why = std::get_if<std::string>(&compiled)) {
        out.fallback = *why;
        native = false;
      } else {
        NativeResult result = run(*std::get<std::shared_ptr<Native>>(compiled), inputs, watch);
        values = std::move(result.values);
        out.error = result.error;
        out.stopped = result.stopped;
      }
    }
    if (!native) {
      core::EvalResult result = core::evaluate(m, inputs, wanted, watch, {options.check_overflow});
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
    out.error = perform(plain_effect(m, e), value_of, write);
    if (out.error) return out;
  }
  keep_shown();
  return out;
}

std::variant<std::string, RuntimeError> emit(core::Module& m, const RunOptions& options,
                                             const std::string& stage) {
  NativeOptions native_options;
  native_options.opt_level = options.opt_level;
  auto compiled = compile_native(m, wanted_families(m, options), native_options);
  if (auto* why = std::get_if<std::string>(&compiled)) return RuntimeError{Code::E0701, *why};
  Emit what = stage == "plan"    ? Emit::Plan
              : stage == "loops" ? Emit::Loops
              : stage == "llvm"  ? Emit::Llvm
                                 : Emit::Assembly;
  return emit(*std::get<std::shared_ptr<Native>>(compiled), what);
}

}  // namespace ein

#include "driver/observe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "autodiff/differentiate.h"
#include "base/check.h"
#include "codegen/native.h"
#include "core/eval_order.h"
#include "core/rewrite.h"
#include "driver/compile.h"
#include "driver/files.h"
#include "driver/observe_module.h"
#include "driver/requests.h"

namespace ein {

using core::Family;
using core::FamilyId;

// ---- names --------------------------------------------------------------------------------------

namespace {

// What the program calls a family. A local becomes a family with a generated name, `w_loss` for
// `loss` in the steps of `w`; the source at its definition has the name that the user wrote.
struct Spelled {
  std::string name, owner;  // `loss`, `w`
};

// The value in whose equation this local is defined: the names of its locals' families begin with
// its name.
std::string owner_of(const core::Module& m, const Family& local) {
  std::string owner;
  size_t longest = 0;
  for (const Family& f : m.families) {
    const std::string& name = text(f.name);
    bool inside = text(local.name).starts_with(name + "_") && name.size() > longest;
    if (f.generated || !inside) continue;
    longest = name.size();
    owner = f.spelled().substr(0, f.spelled().find('.'));
  }
  return owner;
}

Spelled spelled(const core::Module& m, const SourceMap& sources, const Family& f) {
  if (!f.generated) return {f.spelled(), ""};
  if (!f.span.valid()) return {};
  return {std::string(sources.text(f.span)), owner_of(m, f)};
}

bool is_named(const Family& f, const Spelled& s, const std::string& name) {
  if (!f.generated) return s.name == name;
  if (s.name.empty()) return false;
  if (name == s.name) return true;
  // A part of a local record `p` is a family `w_p_b`; another local of that name has a number
  // appended.
  if (!name.starts_with(s.name + ".")) return false;
  std::string has = text(f.name), part = "_" + flat(name);
  size_t end = has.find_last_not_of("0123456789");
  if (end != std::string::npos && has[end] == '_' && end + 1 < has.size()) has.resize(end);
  return has.ends_with(part) || text(f.name).ends_with(part);
}

}  // namespace

std::variant<Watched, std::string> find_watched(const core::Module& asked, const SourceMap& sources,
                                                const std::string& name) {
  Watched out{name, {}};
  std::vector<FamilyId> locals;
  std::vector<std::string> known;
  for (uint32_t i = 0; i < asked.families.size(); ++i) {
    const Family& f = asked[FamilyId(i)];
    Spelled s = spelled(asked, sources, f);
    bool qualified = !s.owner.empty() && name.starts_with(s.owner + ".") &&
                     is_named(f, s, name.substr(s.owner.size() + 1));
    if (is_named(f, s, name) || qualified) {
      (f.generated ? locals : out.meant).push_back(FamilyId(i));
    }
    if (!s.name.empty()) known.push_back(s.name);
  }
  out.meant.insert(out.meant.end(), locals.begin(), locals.end());
  if (!out.meant.empty()) return out;
  if (FamilyId id = asked.find(intern(flat(name)))) {  // as `ein grad` prints it
    out.meant.push_back(id);
    return out;
  }
  std::string near = did_you_mean(name, known);
  return fmt::format("the program defines no value `{}`{}", name,
                     near.empty() ? "" : fmt::format("; did you mean `{}`?", near));
}

// ---- recurrences --------------------------------------------------------------------------------

std::vector<RunningSteps> running_steps(const Image& image) {
  std::vector<RunningSteps> out;
  for (const Image::Site& site : image.sites) {
    if (site.kind != Image::Site::Kind::Step || site.members.empty()) continue;
    RunningSteps& steps = out.emplace_back(RunningSteps{site.name, site.downward, {}});
    for (const Image::Site::Member& member : site.members) {
      const Image::Buffer& b = image.buffers[member.buffer];
      if (b.space != Image::Buffer::Space::Row) steps.members.push_back({b.name, member.position});
    }
  }
  return out;
}

std::vector<RunningSteps> running_steps(const core::Module& m,
                                        const std::vector<FamilyId>& wanted) {
  std::vector<RunningSteps> out;
  for (const core::EvalGroup& group : core::eval_order(m, wanted)) {
    if (!group.cyclic || group.walks.empty()) continue;
    RunningSteps& steps =
        out.emplace_back(RunningSteps{text(m[group.walks[0].family].name), group.downward, {}});
    for (const auto& w : group.walks) steps.members.push_back({text(m[w.family].name), w.position});
  }
  return out;
}

// ---- values -------------------------------------------------------------------------------------

namespace {

// Turns families that are not needed into inputs that nothing needs, so that their derivatives are
// not computed either.
void drop_unreached(core::Module& m, const std::vector<FamilyId>& wanted) {
  std::set<FamilyId> needed = reached(m, wanted);
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    Family& f = m.families[FamilyId(i)];
    if (needed.contains(FamilyId(i)) || f.kind == Family::Kind::Input) continue;
    f.kind = Family::Kind::Input;
    f.clauses.clear();
    f.cells.clear();
    f.with.clear();
    f.generated = true;
  }
}

std::vector<FamilyId> families(const core::Module& m, const std::vector<std::string>& names) {
  std::vector<FamilyId> out;
  for (const std::string& name : names) out.push_back(m.find(intern(name)));
  return out;
}

// Values that are the same at every step but are read by values that are not: they are computed
// once.
std::vector<FamilyId> unchanging(const core::Module& m, const std::vector<FamilyId>& wanted,
                                 const std::set<std::string>& changing) {
  std::map<FamilyId, std::set<FamilyId>> reads;
  std::set<FamilyId> changes;
  const std::set<FamilyId> all = reached(m, wanted);
  for (FamilyId id : all) {
    if (changing.contains(text(m[id].name))) changes.insert(id);
    core::for_each_body(m, id, [&](core::ExprId body) {
      core::for_each_node(m, body, [&](core::ExprId e) {
        if (const auto* a = core::get_if<core::Access>(m, e)) reads[id].insert(a->family);
        const auto* p = core::get_if<core::ParamRef>(m, e);
        if (p && changing.contains(text(m.params[p->param].name))) changes.insert(id);
      });
    });
  }
  for (bool more = true; more;) {
    more = false;
    for (const auto& [reader, read] : reads) {
      bool some =
          std::any_of(read.begin(), read.end(), [&](FamilyId f) { return changes.contains(f); });
      if (some) more |= changes.insert(reader).second;
    }
  }
  std::set<FamilyId> out;
  for (FamilyId id : changes) {
    for (FamilyId read : reads[id]) {
      if (!changes.contains(read) && m[read].kind != Family::Kind::Input) out.insert(read);
    }
  }
  for (FamilyId id : wanted) {
    if (!changes.contains(id)) out.erase(id);
  }
  return {out.begin(), out.end()};
}

}  // namespace

struct Observer::Running {
  // A value to show: a member itself, or a result of the separate program.
  struct Shown {
    std::string name, member, result;
    // The steps at which it has a value: a local has none where its equation does not apply.
    std::vector<core::Range> at;
  };
  RunningSteps steps;
  std::vector<Shown> shown;
  std::unique_ptr<StepProgram> program;
  core::Module module;  // the separate program, ready to run
  std::vector<FamilyId> wanted;
  core::Inputs inputs;
  std::shared_ptr<Native> code;
  bool failed = false;
  std::optional<std::map<std::string, Tensor>> values;  // the values computed last
  std::chrono::steady_clock::time_point next = {};      // do not compute again before this time

  void add(const core::Module& asked, const Watched& what, bool scalars,
           const std::map<std::string, RowFile>& streamed);
  bool prepare(const core::Inputs& given, const RunOptions& options);
  std::optional<std::map<std::string, Tensor>> compute(const Moment& now);
};

namespace {

// Runs `m` on the same back end as the program.
std::optional<std::map<std::string, Tensor>> values_of(core::Module& m,
                                                       const std::vector<FamilyId>& wanted,
                                                       const core::Inputs& inputs, Native* code) {
  std::unordered_map<FamilyId, Tensor> values;
  std::optional<RuntimeError> error;
  if (code) {
    NativeResult result = run(*code, inputs);
    error = std::move(result.error);
    values = std::move(result.values);
  } else {
    core::EvalResult result = core::evaluate(m, inputs, wanted);
    error = std::move(result.error);
    values = std::move(result.values);
  }
  if (error) return std::nullopt;
  std::map<std::string, Tensor> out;
  for (FamilyId f : wanted) out[text(m[f].name)] = values.at(f);
  return out;
}

std::shared_ptr<Native> code_of(core::Module& m, const std::vector<FamilyId>& wanted,
                                const RunOptions& options) {
  if (options.backend != Backend::Native) return nullptr;
  NativeOptions how = native_options(options);
  how.trace = nullptr;
  auto made = compile_native(m, wanted, how);
  auto* code = std::get_if<std::shared_ptr<Native>>(&made);
  return code ? *code : nullptr;
}

// Whether sema added this clause to a local, for steps at which the local's block does not run.
bool is_filler(const core::Module& m, const Family& f, const core::Clause& c) {
  bool literal = core::get_if<core::FloatLit>(m, c.body) || core::get_if<core::IntLit>(m, c.body) ||
                 core::get_if<core::BoolLit>(m, c.body);
  return f.generated && c.span == f.span && literal;
}

// A program that runs beside the main one must not read a streamed file a second time. Throws
// CannotWatch.
void refuse_streamed(const core::Module& m, const std::string& result,
                     const std::map<std::string, RowFile>& streamed) {
  for (FamilyId id : reached(m, families(m, {result}))) {
    if (!streamed.contains(text(m[id].name))) continue;
    throw CannotWatch{fmt::format(
        "it reads `{}`, which comes from its file step by step; make it a part of the state, as in "
        "`{{ p: …, loss: … }}`",
        m[id].spelled())};
  }
}

std::vector<core::Range> steps_of(const core::Module& m, const Family& f, uint32_t position) {
  std::vector<core::Range> out;
  for (const core::Clause& c : f.clauses) {
    if (!is_filler(m, f, c)) out.push_back(c.box[position]);
  }
  return out;
}

bool holds_at(const core::Module& m, const std::vector<core::Range>& ranges,
              const std::vector<int64_t>& params, int64_t step) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const core::Range& r) {
    return core::eval_extent(m, r.lo, params) <= step && step < core::eval_extent(m, r.hi, params);
  });
}

// The extents of the program, as far as the inputs of this run determine them.
std::vector<int64_t> extents_of(const core::Module& m, const core::Inputs& inputs) {
  std::vector<FamilyId> there;
  for (const auto& [name, value] : inputs) there.push_back(m.find(intern(name)));
  std::erase_if(there, [](FamilyId f) { return !f; });
  auto bound = core::bind_params(m, inputs, there);
  auto* params = std::get_if<std::vector<int64_t>>(&bound);
  return params ? *params : std::vector<int64_t>(m.params.size(), 0);
}

}  // namespace

// Throws CannotWatch.
void Observer::Running::add(const core::Module& asked, const Watched& what, bool scalars,
                            const std::map<std::string, RowFile>& streamed) {
  std::optional<CannotWatch> why;
  for (FamilyId id : what.meant) {
    const Family& f = asked[id];
    auto member = std::find_if(steps.members.begin(), steps.members.end(),
                               [&](const auto& s) { return s.family == text(f.name); });
    if (member != steps.members.end()) {
      if (f.rank() != 1 && scalars) {
        why = {"it is an array at each step, and a log or a plot takes numbers"};
        continue;
      }
      shown.push_back({what.name, member->family, "", steps_of(asked, f, member->position)});
      return;
    }
    if (f.kind != Family::Kind::Defined || f.rank() != 1) {
      if (!why && f.rank() > 1)
        why = {"it is an array at each step; only a scalar, or the state itself, can be watched"};
      continue;
    }
    try {
      StepProgram attempt = program ? *program : [&] {
        std::map<std::string, uint32_t> members;
        for (const auto& s : steps.members) members[s.family] = s.position;
        return StepProgram(asked, std::move(members), steps.downward);
      }();
      size_t had = attempt.inputs.size();
      std::string result = attempt.add(id);
      if (attempt.inputs.empty() || (attempt.inputs.size() == had && !program)) {
        why = {"it does not depend on the steps of a recurrence"};
        continue;
      }
      refuse_streamed(attempt.module, result, streamed);
      program = std::make_unique<StepProgram>(std::move(attempt));
      shown.push_back({what.name, "", std::move(result), steps_of(asked, f, 0)});
      return;
    } catch (const CannotWatch& because) {
      if (!why) why = because;
    }
  }
  throw why.value_or(CannotWatch{});
}

// Compiles the separate program, and computes what does not change.
bool Observer::Running::prepare(const core::Inputs& given, const RunOptions& options) {
  std::vector<std::string> results;
  std::set<std::string> changing{program->step};
  for (const Shown& s : shown) {
    if (!s.result.empty()) results.push_back(s.result);
  }
  for (const StepInput& s : program->inputs) changing.insert(s.name);
  module = program->module;
  drop_unreached(module, families(module, results));
  if (!autodiff::requests_left(module).empty()) {
    Diagnostics diags;
    module = derive(std::move(module), autodiff::Direction::Auto, diags);
    if (diags.has_errors()) return false;
  }
  wanted = families(module, results);
  inputs = given;
  std::vector<FamilyId> once = unchanging(module, wanted, changing);
  if (read_loaded(module, wanted, inputs)) return false;
  if (!once.empty()) {
    std::shared_ptr<Native> before = code_of(module, once, options);
    auto made = values_of(module, once, inputs, before.get());
    if (!made) return false;
    for (FamilyId id : once) {
      Family& f = module.families[id];
      inputs[text(f.name)] = made->at(text(f.name));
      f.kind = Family::Kind::Input;
      f.clauses.clear();
      f.cells.clear();
    }
  }
  code = code_of(module, wanted, options);
  return true;
}

std::optional<std::map<std::string, Tensor>> Observer::Running::compute(const Moment& now) {
  int64_t last = now.last();
  for (const StepInput& input : program->inputs) {
    auto value = now.step_of(input.family, last + input.offset);
    if (!value) {
      // Before the first step there is no value, and nothing that is computed there reads it.
      value = now.step_of(input.family, last);
      if (!value || (last + input.offset >= 0 && last + input.offset < now.steps)) return {};
    }
    inputs[input.name] = std::move(*value);
  }
  Tensor step(DType::I64, {});
  step.set_int(0, last);
  inputs[program->step] = step;
  return values_of(module, wanted, inputs, code.get());
}

Observer::Observer(const std::vector<RunningSteps>& recurrences, const core::Inputs& inputs,
                   const std::map<std::string, RowFile>& streamed, const RunOptions& options)
    : inputs_(inputs), streamed_(streamed), options_(options) {
  EIN_CHECK(options.asked || options.watch.empty(), "the program before autodiff is missing");
  if (options.asked) params_ = extents_of(*options.asked, inputs);
  for (const RunningSteps& steps : recurrences) {
    running_.push_back(std::make_unique<Running>());
    running_.back()->steps = steps;
  }
  for (const Watched& what : options.watch) {
    std::string why;
    bool shown = false;
    for (auto& running : running_) {
      try {
        running->add(*options.asked, what, options.scalars || !what.asked, streamed_);
        shown = true;
      } catch (const CannotWatch& because) {
        if (why.empty()) why = because.why;
      }
    }
    if (shown || !what.asked || !refused_.empty()) continue;
    if (running_.empty()) why = "this run has no recurrence, so there are no steps to watch";
    if (why.empty()) {
      why = "it is not a recurrence that this run computes, and not computed from the steps of one";
    }
    refused_ = fmt::format("`{}` cannot be watched: {}", what.name, why);
  }
}

Observer::~Observer() = default;

void Observer::look(Moment& now) {
  if (now.done == 0 || now.by_rows) return;
  for (auto& running : running_) {
    Running& r = *running;
    if (r.steps.family != now.family || r.shown.empty()) continue;
    int64_t last = now.last();
    auto begin = std::chrono::steady_clock::now();
    // If steps are only displayed, this may take a tenth of the time at most.
    bool needed = std::any_of(r.shown.begin(), r.shown.end(), [&](const Running::Shown& s) {
      return !s.result.empty() && holds_at(*options_.asked, s.at, params_, last);
    });
    if (needed && !r.failed && (options_.scalars || begin >= r.next)) {
      if (r.wanted.empty()) r.failed = !r.prepare(inputs_, options_);
      if (!r.failed) {
        begin = std::chrono::steady_clock::now();
        r.values = r.compute(now);
        auto end = std::chrono::steady_clock::now();
        r.next = end + 9 * (end - begin);
      }
    }
    if (needed && !r.values) failed_ = true;
    for (const Running::Shown& s : r.shown) {
      if (!holds_at(*options_.asked, s.at, params_, last)) continue;
      if (!s.member.empty()) {
        if (auto value = now.step_of(s.member, last)) now.watched.push_back({s.name, *value});
      } else if (r.values) {
        now.watched.push_back({s.name, r.values->at(s.result)});
      }
    }
    return;
  }
}

}  // namespace ein

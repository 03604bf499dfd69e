#include "driver/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/platform.h"
#include "codegen/native.h"
#include "core/eval_cell.h"
#include "core/groups.h"
#include "core/print.h"
#include "core/rewrite.h"
#include "driver/compile.h"
#include "driver/files.h"
#include "driver/observe.h"
#include "driver/pipeline.h"
#include "driver/ranks.h"
#include "driver/state.h"
#include "driver/streams.h"
#include "optimise/precision.h"
#include "runtime/device_run.h"
#include "runtime/native_abi.h"
#include "runtime/pool.h"
#include "runtime/streams.h"

namespace ein {
namespace {

using core::FamilyId;
using Values = std::unordered_map<FamilyId, Tensor>;

// Lets an error point at its expression if it is certain that the expression belongs to a clause
// that was computed. Otherwise (it is in a function, or an equal expression occurs first in a
// clause that was not computed) the error points at the statement that was being computed.
void locate(const core::Module& m, const std::vector<FamilyId>& wanted, RuntimeError& error) {
  if (error.statement.valid() && !is_certain(m, wanted, error.at)) error.at = error.statement;
}

// Refuses a file that the program may not write.
std::optional<RuntimeError> refuse_effect(const FileAccess* access, const core::Effect& e) {
  bool writes = e.kind == core::Effect::Kind::Save || e.kind == core::Effect::Kind::Write;
  if (!access || !writes) return std::nullopt;
  auto refused = refuse_write(*access, e.path);
  if (refused) refused->at = e.span;
  return refused;
}

// The values that nothing else reads.
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

// Keeps those files that the program was compiled to stream.
void keep_streamed(const Image& image, std::map<std::string, RowFile>& files) {
  std::erase_if(files, [&](const auto& file) {
    return std::none_of(image.inputs.begin(), image.inputs.end(), [&](const Image::Input& input) {
      return input.name == file.first && input.window > 0;
    });
  });
}

// Reports a non-finite input itself, instead of the first value computed from it.
std::optional<RuntimeError> not_finite_input(const core::Module& m,
                                             const std::vector<FamilyId>& wanted,
                                             const core::Inputs& inputs) {
  for (FamilyId id : reached(m, wanted)) {
    auto it = inputs.find(text(m[id].name));
    if (m[id].kind != core::Family::Kind::Input || it == inputs.end()) continue;
    const Tensor& t = it->second;
    for (int64_t i = 0; i < t.size() && is_float(t.dtype()); ++i) {
      if (std::isfinite(t.get_float(i))) continue;
      std::vector<int64_t> at = t.shape();
      int64_t rest = i;
      for (size_t k = at.size(); k-- > 0; rest /= t.shape()[k]) at[k] = rest % t.shape()[k];
      return RuntimeError{Code::E0812, core::not_finite_text(m, id, at, t.get_float(i), {}, {}),
                          m[id].span};
    }
  }
  return std::nullopt;
}

// The values that effects show, each once.
std::vector<FamilyId> values_of(const std::vector<const core::Effect*>& effects) {
  std::vector<FamilyId> out;
  std::set<FamilyId> seen;
  auto want = [&](FamilyId f) {
    if (f && seen.insert(f).second) out.push_back(f);
  };
  for (const core::Effect* e : effects) {
    want(e->cond);
    for (const core::Piece& p : e->pieces) want(p.value);
  }
  return out;
}

// All effects except reports.
std::vector<const core::Effect*> main_effects(const core::Module& m) {
  std::vector<const core::Effect*> out;
  for (const core::Effect& e : m.effects) {
    if (e.users.empty()) out.push_back(&e);
  }
  return out;
}

std::vector<FamilyId> asked_families(const core::Module& m, const RunOptions& options) {
  std::vector<FamilyId> out;
  for (const std::string& name : options.show) {
    if (FamilyId id = m.find(intern(name))) out.push_back(id);
  }
  return out;
}

// The reports of `dbg` that are needed because their values are computed anyway, or used by another
// report.
std::vector<const core::Effect*> active_reports(const core::Module& m, const RunOptions& options) {
  std::vector<const core::Effect*> waiting, out;
  for (const core::Effect& e : m.effects) {
    if (!e.users.empty()) waiting.push_back(&e);
  }
  if (waiting.empty()) return {};
  std::vector<FamilyId> wanted = wanted_families(m, options);
  for (bool more = true; more;) {
    more = false;
    const std::set<FamilyId> used = reached(m, wanted);
    for (const core::Effect*& e : waiting) {
      if (!e) continue;
      const std::vector<FamilyId> own = values_of({e});
      bool now = std::any_of(e->users.begin(), e->users.end(), [&](FamilyId f) {
        return used.contains(f) || std::find(own.begin(), own.end(), f) != own.end();
      });
      if (!now) continue;
      wanted.insert(wanted.end(), own.begin(), own.end());
      out.push_back(std::exchange(e, nullptr));
      more = true;
    }
  }
  std::sort(out.begin(), out.end());  // in the order of the module
  return out;
}

double seconds_now() { return static_cast<double>(clock_nanoseconds()) * 1e-9; }

}  // namespace

// What effects and `show` need; nothing else is computed (decisions.md, 30).
std::vector<FamilyId> wanted_families(const core::Module& m, const RunOptions& options,
                                      Else otherwise) {
  std::vector<FamilyId> wanted = values_of(main_effects(m));
  std::set<FamilyId> seen(wanted.begin(), wanted.end());
  for (FamilyId id : asked_families(m, options)) {
    if (seen.insert(id).second) wanted.push_back(id);
  }
  if (wanted.empty() && otherwise == Else::Unread) return unread_families(m);
  return wanted;
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
  out.error = e.error;
  out.end = e.end;
  out.span = e.span;
  return out;
}

std::vector<KernelTime> kernel_times(Native& native, const std::vector<int64_t>& params,
                                     const std::vector<int64_t>& nanoseconds) {
  Lowered* lowered = lowered_of(native);
  EIN_CHECK(lowered, "a program from the cache has no plan");
  std::vector<KernelTime> out;
  for (Work& work : work_of(lowered->plan, lowered->program, params)) {
    out.push_back({std::move(work), static_cast<double>(nanoseconds[out.size()]) * 1e-9});
  }
  return out;
}

std::optional<std::vector<optimise::SegmentPlan>> plan_checkpoints(core::Module& m,
                                                                   const RunOptions& options) {
  if (m.params.size() > 0) return std::nullopt;
  return checkpoint_of(m, wanted_families(m, options, Else::Unread), {}, options.grad_memory).plans;
}

std::variant<Prepared, RuntimeError> prepare(core::Module& m, std::vector<FamilyId> wanted,
                                             const core::Inputs& inputs, const RunOptions& options,
                                             const std::map<std::string, RowFile>& streamed) {
  Prepared out{std::move(wanted), inputs, {}, {}};
  if (auto error = read_others(m, out.wanted, options, streamed, out.inputs)) return *error;
  std::vector<int64_t> params;
  // Only then, because finding the extents takes time.
  if (optimise::wants_segments(m, options.grad_memory)) {
    auto bound =
        core::bind_params(m, out.inputs, core::families_of(core::schedule(m, out.wanted).steps));
    if (auto* e = std::get_if<RuntimeError>(&bound)) return *e;
    params = std::move(std::get<std::vector<int64_t>>(bound));
  }
  optimise::Checkpointed planned =
      checkpoint_of(m, out.wanted, params, options.grad_memory, options.trace);
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
  out.choices.device = options.device;
  // Steps are watched, not rows. What nobody asked for does not change how the program runs.
  out.choices.rows = !options.trap && std::none_of(options.watch.begin(), options.watch.end(),
                                                   [](const Watched& w) { return w.asked; });
  out.choices.resumable = options.keeps_state || options.resume.has_value();
  if (options.trap) {  // every family is stored by itself, and looked at when it is
    out.choices.trap = true;
    out.choices.diagonals = false;
    out.choices.inlines = [](FamilyId) { return false; };
    out.choices.joins = [](FamilyId) { return false; };
  }
  return out;
}

namespace {

bool has_steps(const Image& image) {
  return std::any_of(image.sites.begin(), image.sites.end(), [](const Image::Site& s) {
    return s.kind == Image::Site::Kind::Step || s.kind == Image::Site::Kind::Rows;
  });
}

// One run: what is computed, from what, and where results go.
struct Task {
  core::Module& m;
  const std::vector<FamilyId>& wanted;
  core::Inputs& inputs;
  std::map<std::string, RowFile>& streamed;
  const RunOptions& options;
  Values& values;
  RunResult& out;
  core::Watch watch = {options.monitor, {}};
  std::unique_ptr<Observer> observer = {};
  RunIdentity identity = {};
  std::optional<KeptRun> from = {};  // where it goes on

  bool keeps() const {
    return kMakesMachineCode && (options.keeps_state || options.resume.has_value());
  }
  bool refused(const std::string& why);
  bool observe(const std::vector<RunningSteps>& recurrences);
  bool go_on();
  void look(Moment& now);
  void compute();
};

// Whether a run cannot go on from what was kept.
bool Task::refused(const std::string& why) {
  if (!why.empty()) out.refused = "cannot continue from the saved state: " + why;
  return !why.empty();
}

// False when something that was asked for cannot be watched.
bool Task::observe(const std::vector<RunningSteps>& recurrences) {
  if (!kMakesMachineCode || options.watch.empty()) return true;
  observer = std::make_unique<Observer>(recurrences, inputs, streamed, options);
  out.refused = observer->refused();
  return out.refused.empty();
}

// Finds out which run this is, and where it goes on. False when it cannot.
bool Task::go_on() {
  watch.observe = [this](Moment& now) { look(now); };
  if (!keeps()) return true;
  identity = identity_of(m, wanted, inputs, streamed, options);
  if (!options.resume) return true;
  auto read = unpack_run(*options.resume);
  if (auto* why = std::get_if<std::string>(&read)) return !refused(*why);
  from = std::get<KeptRun>(std::move(read));
  watch.resume = &from->state;
  return !refused(difference(*from, m, identity));
}

void Task::look(Moment& now) {
  if (kMakesMachineCode && observer) observer->look(now);
  // A recurrence over records runs part by part; people know it by the name of the record.
  if (FamilyId id = m.find(intern(now.family))) {
    now.family = m[id].spelled().substr(0, m[id].spelled().find('.'));
  }
  if (!keeps() || !now.state) return;
  now.state = [this, state = now.state] { return pack_run(identity, state()); };
}

// False when there is no native code for the program; then everything is in `inputs`.
bool run_native(Task& t) {
  set_threads(t.options.threads);
  NativeOptions how = native_options(t.options);
  how.choices.streams = families_of(t.m, t.streamed);
  auto compiled = compile_native(t.m, t.wanted, how);
  const auto* code = std::get_if<std::shared_ptr<Native>>(&compiled);
  if (code) {
    keep_streamed(image_of(**code), t.streamed);
  } else {
    t.out.fallback = std::get<std::string>(compiled);
    t.streamed.clear();
  }
  t.out.error = read_others(t.m, t.wanted, t.options, t.streamed, t.inputs);
  if (!code || t.out.error) return code || t.out.error;
  if (!t.observe(running_steps(image_of(**code))) || !t.go_on()) return true;
  if (t.options.keeps_state && !has_steps(image_of(**code))) {
    t.out.refused = "this run has no recurrence whose state could be saved";
    return true;
  }
  std::vector<int64_t> times;
  double begin = seconds_now();
  NativeResult result =
      run(**code, t.inputs, t.watch, t.options.time ? &times : nullptr, t.streamed);
  double spent = seconds_now() - begin;
  t.values = std::move(result.values);
  t.out.error = result.error;
  t.out.stopped = result.stopped;
  if (!t.refused(result.refused) && !times.empty()) {
    t.out.timing = Timing{compile_times(**code), kernel_times(**code, result.params, times), spent};
  }
  return true;
}

void run_reference(Task& t) {
  if (t.keeps()) {
    t.out.refused = "the reference evaluator cannot save the state of a run";
    if (!t.out.fallback.empty()) {
      t.out.refused += ", and native code cannot run this: " + t.out.fallback;
    }
    return;
  }
  core::Module rounded = rounded_for_reference(t.m, t.options.operands);
  if (!t.observe(running_steps(rounded, t.wanted)) || !t.go_on()) return;
  core::EvalResult result = core::evaluate(rounded, t.inputs, t.wanted, t.watch,
                                           {t.options.check_overflow, t.options.trap});
  t.values = std::move(result.values);
  t.out.error = result.error;
  t.out.stopped = result.stopped;
  t.out.operations = result.operations;
}

// Leaves in `out` what went wrong, where it was stopped, and what it took.
void Task::compute() {
  if (options.ranks) {
    RankRun run = run_on_ranks(m, wanted, inputs, options);
    values = std::move(run.values);
    out.error = std::move(run.error);
    out.fallback = std::move(run.fallback);
    out.elsewhere = run.elsewhere;
    return;
  }
  if (options.trap) out.error = not_finite_input(m, wanted, inputs);
  if (out.error) return;
  if (wanted.empty()) {
    observe({});
    return;
  }
  bool native = kMakesMachineCode && options.backend == Backend::Native;
  if (!native || !run_native(*this)) run_reference(*this);
}

// Writes the reports. What they show is computed by itself, so that a program with reports has the
// same bits as one without, and they are there when the program fails. True: it was stopped.
bool report(core::Module& original, const std::vector<const core::Effect*>& reports,
            const core::Inputs& supplied, RunOptions options, bool failed) {
  options.time = options.trap = false;
  options.watch.clear();
  std::vector<FamilyId> wanted = values_of(reports);
  options.keeps_state = false;
  options.resume.reset();
  auto ready = prepare(original, wanted, supplied, options);
  RunResult ran;
  if (auto* e = std::get_if<RuntimeError>(&ready)) ran.error = *e;
  Values values;
  if (auto* prepared = std::get_if<Prepared>(&ready)) {
    core::Module& m = prepared->cut ? *prepared->cut : original;
    std::map<std::string, RowFile> streamed;  // none: reports look at whole values
    Task{m, wanted, prepared->inputs, streamed, options, values, ran}.compute();
  }
  if (ran.stopped) return true;
  if (ran.error && reports.size() > 1) {  // another one may be possible
    for (const core::Effect* e : reports) {
      if (report(original, {e}, supplied, options, failed)) return true;
    }
  } else if (ran.error && !failed) {  // the program itself did not: never silently
    auto words = std::find_if(reports[0]->pieces.begin(), reports[0]->pieces.end(),
                              [](const core::Piece& p) { return !p.text.empty(); });
    std::string what = words == reports[0]->pieces.end() ? "dbg" : words->text;
    put_error(fmt::format("{} cannot be reported: {}\n", what, ran.error->message));
  }
  if (ran.error) return false;
  auto value_of = [&](uint32_t id) -> const Tensor& { return values.at(FamilyId(id)); };
  for (const core::Effect* e : reports) perform(plain_effect(original, *e), value_of, {});
  return false;
}

}  // namespace

RunResult run(core::Module& original, const core::Inputs& supplied, const RunOptions& given,
              const std::function<void(const std::string&)>& write) {
  RunResult out;
  Trace trace;
  RunOptions options = given;
  if (!options.trace) options.trace = &trace;
  // Before anything is computed: a long run that cannot save its result is of no use.
  for (const core::Effect& e : original.effects) {
    out.error = refuse_effect(options.access, e);
    if (out.error) return out;
  }
  if (options.ranks) {
    out.error = refuse_on_ranks(original, options);
    if (out.error) return out;
    options.streams = false;
  }
  bool idle = original.effects.empty() && options.show.empty();
  if (options.device == Device::Gpu && !idle) {
    if (std::string why = gpu_missing(); !why.empty()) {
      out.error = RuntimeError{Code::E0813, "no GPU can be used: " + why};
      return out;
    }
  }
  bool native = kMakesMachineCode && options.backend == Backend::Native;
  std::vector<const core::Effect*> reports = active_reports(original, options);
  std::vector<FamilyId> asked = wanted_families(original, options);
  std::map<std::string, RowFile> streamed;
  if (native && !options.trap) streamed = streamable(original, asked, options);
  auto ready = prepare(original, std::move(asked), supplied, options, streamed);
  if (auto* e = std::get_if<RuntimeError>(&ready)) {
    out.error = *e;
    return out;
  }
  auto& [wanted, inputs, checkpoints, cut] = std::get<Prepared>(ready);
  out.checkpoints = std::move(checkpoints);
  core::Module& m = cut ? *cut : original;
  Values values;
  Task task{m, wanted, inputs, streamed, options, values, out};
  task.compute();
  out.unwatched = kMakesMachineCode && task.observer && task.observer->failed();
  if (!out.refused.empty() || out.elsewhere) return out;
  auto keep_shown = [&] {
    for (const std::string& name : options.show) {
      auto it = values.find(m.find(intern(name)));
      if (it != values.end()) out.values[name] = it->second;
    }
  };
  if (out.error) locate(m, wanted, *out.error);
  if (!out.stopped && !reports.empty())
    report(original, reports, supplied, options, out.error.has_value());
  if (out.error) return out;
  if (out.stopped) {
    keep_shown();
    return out;
  }
  auto value_of = [&](uint32_t id) -> const Tensor& { return values.at(FamilyId(id)); };
  for (const core::Effect& e : m.effects) {
    if (!e.users.empty()) continue;
    out.error = refuse_effect(options.access, e);  // links may have changed since
    if (!out.error) out.error = perform(plain_effect(m, e), value_of, write);
    if (out.error) return out;
  }
  keep_shown();
  return out;
}

namespace {

// What native code is made of: the module, cut into segments if that is wanted and extents are
// known.
struct ToCompile {
  std::vector<FamilyId> wanted;
  std::optional<core::Module> cut;
};

std::variant<ToCompile, RuntimeError> source_of(core::Module& m, const core::Inputs& inputs,
                                                const RunOptions& options) {
  ToCompile out{wanted_families(m, options, Else::Unread), {}};
  if (options.ranks) {
    auto made = for_ranks(m, out.wanted, *options.ranks, options.trace);
    if (auto* e = std::get_if<RuntimeError>(&made)) return *e;
    out.cut = std::move(std::get<shard::Sharded>(made).module);
    return out;
  }
  if (options.trace) {
    Pipeline(*options.trace).pass_if(false, "shard", &m, [](core::Module* in) { return in; });
  }
  if (optimise::wants_segments(m, options.grad_memory)) {
    auto ready = prepare(m, out.wanted, inputs, options);
    if (auto* prepared = std::get_if<Prepared>(&ready)) {
      out.cut = std::move(prepared->cut);
      return out;
    }
  }
  checkpoint_of(m, out.wanted, {}, {}, options.trace);
  return out;
}

}  // namespace

std::variant<std::string, RuntimeError> native_dump(core::Module& m, const core::Inputs& inputs,
                                                    const std::string& pass, RunOptions options) {
  Trace before{pass};  // of `checkpoint`, which comes before the passes to native code
  options.trace = &before;
  auto source_or = source_of(m, inputs, options);
  if (auto* e = std::get_if<RuntimeError>(&source_or)) return *e;
  auto& [wanted, cut] = std::get<ToCompile>(source_or);
  if (!before.dump.empty()) return before.dump;
  core::Module& source = cut ? *cut : m;
  std::string why;
  NativeOptions how = native_options(options);
  how.choices.streams = families_of(source, streamable(source, wanted, options));
  std::string text = dump_native_pass(source, wanted, how, pass, why);
  if (!why.empty()) return RuntimeError{Code::E0701, why};
  return text;
}

std::variant<std::string, RuntimeError> emit(core::Module& m, const core::Inputs& inputs,
                                             RunOptions options, const std::string& stage) {
  if (stage == "plan") return native_dump(m, inputs, "plan", options);
  if (stage == "loops") return native_dump(m, inputs, "cut-kernels", options);
  if (stage == "ptx") options.device = Device::Gpu;
  auto source_or = source_of(m, inputs, options);
  if (auto* e = std::get_if<RuntimeError>(&source_or)) return *e;
  auto& [wanted, cut] = std::get<ToCompile>(source_or);
  core::Module& source = cut ? *cut : m;
  NativeOptions how = native_options(options);
  how.choices.streams = families_of(source, streamable(source, wanted, options));
  auto made = lower_native(source, wanted, how);
  if (auto* why = std::get_if<std::string>(&made)) return RuntimeError{Code::E0701, *why};
  const loops::Program& program = std::get<Lowered>(made).program;
  if (stage == "ptx") return std::get<Lowered>(made).image.ptx;
  return stage == "llvm" ? codegen::llvm_text(program, jit_options(how))
                         : codegen::assembly_text(program, jit_options(how));
}

}  // namespace ein

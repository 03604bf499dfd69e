#include "codegen/native.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <new>
#include <set>

#include "base/check.h"
#include "base/match.h"
#include "codegen/jit.h"
#include "codegen/memory.h"
#include "core/eval_call.h"
#include "core/normal.h"
#include "core/rewrite.h"
#include "core/scalar.h"
#include "lower/lower.h"
#include "runtime/block.h"
#include "runtime/pool.h"

namespace ein {

class Native {
 public:
  plan::Plan plan;
  loops::Program program;
  std::vector<core::FamilyId> inputs;    // the families that must be supplied
  std::vector<Tensor> constants;         // by buffer; empty tensors elsewhere
  std::vector<codegen::Lifetime> lives;  // by buffer
  NativeOptions options;
  std::unique_ptr<codegen::Code> code;
  std::vector<std::pair<std::string, double>> times;
};

namespace {

double now_ms() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

bool supported(DType t) { return t != DType::Str; }

// The first reason why a planned module cannot become machine code; empty when there is none.
std::string limitation(const plan::Plan& plan) {
  const core::Module& m = plan.module;
  std::string why;
  std::set<core::FunctionId> seen;
  std::function<void(core::FamilyId, core::ExprId)> look = [&](core::FamilyId id, core::ExprId e) {
    core::for_each_node(m, e, [&](core::ExprId x) {
      if (const auto* call = core::get_if<core::Call>(m, x)) {
        if (seen.insert(call->function).second) look(id, m.functions[call->function].body);
      }
      if (!supported(m[x].type) && why.empty()) {
        why = fmt::format("`{}` uses {}, which native code does not support yet", text(m[id].name),
                          name_of(m[x].type));
      }
    });
  };
  for (const auto& [id, how] : plan.families) {
    const core::Family& f = m[id];
    if (!supported(f.dtype) && why.empty()) {
      why = fmt::format("`{}` is {}, which native code does not support yet", text(f.name),
                        name_of(f.dtype));
    }
    for (const core::Clause& c : f.clauses) look(id, c.body);
    for (core::ExprId cell : f.cells) look(id, cell);
  }
  return why;
}

Tensor constant_table(const core::Module& m, const core::Family& f) {
  std::vector<int64_t> shape;
  for (const core::Coord& c : f.coords) shape.push_back(core::eval_extent(m, c.extent, {}));
  Tensor out(f.dtype, std::move(shape));
  for (size_t i = 0; i < f.cells.size(); ++i) {
    auto at = static_cast<int64_t>(i);
    if (const auto* x = core::get_if<core::FloatLit>(m, f.cells[i])) out.set_float(at, x->value);
    if (const auto* x = core::get_if<core::IntLit>(m, f.cells[i])) out.set_int(at, x->value);
    if (const auto* x = core::get_if<core::BoolLit>(m, f.cells[i])) out.set_int(at, x->value);
  }
  return out;
}

RuntimeError why_stopped(const Native& n, const NativeFailure& failure,
                         const std::vector<int64_t>& params) {
  const loops::Site& site = n.program.sites[loops::SiteId(static_cast<uint32_t>(failure.site))];
  switch (site.kind) {
    case loops::Site::Kind::DivideByZero:
      return {Code::E0806, "integer division by zero", site.span, site.statement};
    case loops::Site::Kind::Overflow:
      return {Code::E0809,
              core::overflow_text(site.op, site.type, failure.values[0], failure.values[1]),
              site.span, site.statement};
    case loops::Site::Kind::TooDeep:
      return {Code::E0810, core::too_deep_text(site.name), site.span, {}};
    case loops::Site::Kind::Call:
    case loops::Site::Kind::Step: EIN_UNREACHABLE("a stop is no failure");
    case loops::Site::Kind::Bounds: break;
  }
  const core::Module& m = n.plan.module;
  std::vector<int64_t> extents;  // of the family, of which a buffer may keep a part
  for (const core::Coord& c : m[m.find(intern(site.name))].coords) {
    extents.push_back(std::max<int64_t>(0, core::eval_extent(m, c.extent, params)));
  }
  std::vector<int64_t> at(failure.values, failure.values + extents.size());
  return {Code::E0803,
          fmt::format("`{}` has no cell at [{}]: its extents are [{}]", site.name,
                      fmt::join(at, ", "), fmt::join(extents, ", ")),
          site.span, site.statement};
}

RuntimeError error_of(const Native& n, const NativeFailure& failure,
                      const std::vector<int64_t>& params) {
  RuntimeError out = why_stopped(n, failure, params);
  if (failure.caller >= 0) {
    out.statement = n.program.sites[loops::SiteId(static_cast<uint32_t>(failure.caller))].statement;
  }
  return out;
}

size_t bytes_of(const std::vector<int64_t>& shape, DType type) {
  size_t bytes = size_of(type);
  for (int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(extent), &bytes) ||
        bytes > SIZE_MAX / 4) {
      throw std::bad_alloc();
    }
  }
  return bytes;
}

// What a poll needs to know of the run, and what it leaves when it stops it.
struct Polled {
  const Native& n;
  const core::Watch& watch;
  const std::vector<void*>& pointers;
  const std::vector<std::vector<int64_t>>& shapes;
  std::optional<Stopped> stopped = {};
};

const loops::Site& site_at(const Native& n, int64_t site) {
  return n.program.sites[loops::SiteId(static_cast<uint32_t>(site))];
}

int32_t poll(void* state, int64_t number, int64_t next, int64_t steps) {
  auto& run = *static_cast<Polled*>(state);
  const loops::Site& site = site_at(run.n, number);
  const core::Module& m = run.n.plan.module;
  const auto& q = std::get<core::Sequence>(run.n.plan.schedule.steps[site.part]);
  const core::Coord& c = m[q.members[0].family].coords[site.axis];
  int64_t done = q.downward ? steps - 1 - next : next, last = q.downward ? next + 1 : next - 1;
  Moment now{site.name, text(c.name), done, steps, next, {}};
  for (uint32_t i = 0; i < run.n.program.buffers.size() && done > 0; ++i) {
    const loops::Buffer& b = run.n.program.buffers[loops::BufferId(i)];
    for (const auto& member : q.members) {
      bool watched = std::count(run.watch.families.begin(), run.watch.families.end(), b.family) > 0;
      if (member.family != b.family || !watched) continue;
      if (last >= run.shapes[i][member.position]) continue;
      now.watched.push_back(
          {b.name, slice(run.pointers[i], b.dtype, run.shapes[i], member.position, last)});
    }
  }
  if (!run.watch.monitor->poll(now)) return 0;
  run.stopped = std::move(now);
  return 1;
}

// Only what was computed before the part that was stopped.
void keep_finished(const Native& n, uint32_t part, NativeResult& out) {
  std::vector<core::FamilyId> finished;
  for (uint32_t i = 0; i < part; ++i) {
    for (core::FamilyId f : core::families_of({n.plan.schedule.steps[i]})) finished.push_back(f);
  }
  std::erase_if(out.values, [&](const auto& value) {
    return std::find(finished.begin(), finished.end(), value.first) == finished.end();
  });
}

// The buffers of one run.
struct Buffers {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<int64_t> dims;
  std::vector<void*> at;  // rows: those of the first thread
  Block block;
  std::vector<std::vector<void*>> by_worker;  // `at` with rows of its own for every further thread
};

// Temporary buffers share memory where they may; a row is there once for every thread.
void place(const Native& n, int workers, const std::vector<size_t>& bytes, Buffers& out) {
  using Space = loops::Buffer::Space;
  std::vector<size_t> items;
  std::vector<codegen::Lifetime> lives;
  std::vector<std::pair<uint32_t, int>> which;  // buffer, worker
  for (uint32_t i = 0; i < bytes.size(); ++i) {
    Space space = n.program.buffers[loops::BufferId(i)].space;
    if (space != Space::Temp && space != Space::Row) continue;
    for (int w = 0; w < (space == Space::Row ? workers : 1); ++w) {
      items.push_back(bytes[i]);
      lives.push_back(n.lives[i]);
      which.push_back({i, w});
    }
  }
  codegen::Layout layout = codegen::lay_out(items, lives);
  out.block = Block(layout.bytes);
  for (size_t k = 0; k < items.size(); ++k) {
    void* at = out.block.at() + layout.at[k];
    if (which[k].second == 0) out.at[which[k].first] = at;
  }
  out.by_worker.assign(static_cast<size_t>(workers), out.at);
  for (size_t k = 0; k < items.size(); ++k) {
    auto [buffer, worker] = which[k];
    void* at = out.block.at() + layout.at[k];
    if (n.program.buffers[loops::BufferId(buffer)].space == Space::Row) {
      out.by_worker[static_cast<size_t>(worker)][buffer] = at;
    }
  }
}

RuntimeError out_of_memory(const Native& n, const Buffers& buffers, uint32_t i) {
  const loops::Buffer& b = n.program.buffers[loops::BufferId(i)];
  return {Code::E0807,
          fmt::format("out of memory: `{}` has the extents [{}]", b.name,
                      fmt::join(buffers.shapes[i], ", ")),
          n.plan.module[b.family].span};
}

Buffers allocate(Native& n, const core::Inputs& inputs, const std::vector<int64_t>& params,
                 int workers, NativeResult& out) {
  Buffers buffers;
  std::vector<size_t> bytes;
  uint32_t largest = 0;
  for (uint32_t i = 0; i < n.program.buffers.size(); ++i) {
    const loops::Buffer& buffer = n.program.buffers[loops::BufferId(i)];
    std::vector<int64_t> shape;
    for (core::ExprId d : buffer.dims) {
      shape.push_back(std::max<int64_t>(0, core::eval_extent(n.plan.module, d, params)));
    }
    buffers.dims.insert(buffers.dims.end(), shape.begin(), shape.end());
    buffers.shapes.push_back(shape);
    buffers.at.push_back(nullptr);
    bytes.push_back(0);
    auto wanted = [&](const Tensor& t) {
      buffers.at.back() = const_cast<void*>(t.data());
      if (n.plan.families.at(buffer.family).wanted) out.values[buffer.family] = t;
    };
    try {
      switch (buffer.space) {
        case loops::Buffer::Space::Input: wanted(inputs.at(buffer.name)); break;
        case loops::Buffer::Space::Constant: wanted(n.constants[i]); break;
        case loops::Buffer::Space::Output: wanted(Tensor::uncleared(buffer.dtype, shape)); break;
        case loops::Buffer::Space::Row:
        case loops::Buffer::Space::Temp: bytes.back() = bytes_of(shape, buffer.dtype); break;
      }
    } catch (const std::bad_alloc&) { throw out_of_memory(n, buffers, i); }
    if (bytes[i] > bytes[largest]) largest = i;
  }
  try {
    place(n, workers, bytes, buffers);
  } catch (const std::bad_alloc&) { throw out_of_memory(n, buffers, largest); }
  return buffers;
}

void execute(Native& n, const core::Inputs& inputs, const std::vector<int64_t>& params,
             const core::Watch& watch, NativeResult& out) {
  int workers = threads();
  Buffers buffers = allocate(n, inputs, params, workers, out);
  NativeFailure failure;
  static const int32_t asleep = 0;
  Polled polled{n, watch, buffers.at, buffers.shapes};
  static_assert(sizeof(watch.monitor->wake) == sizeof(int32_t));
  const auto* wake =
      watch.monitor ? reinterpret_cast<const int32_t*>(&watch.monitor->wake) : &asleep;
  const void* const* functions = native_functions(level_of(n.options.processor));
  NativeContext context{buffers.at.data(),
                        buffers.dims.data(),
                        params.data(),
                        &failure,
                        functions,
                        wake,
                        poll,
                        &polled};
  std::vector<NativeFailure> failures(static_cast<size_t>(workers));
  std::vector<NativeContext> contexts(static_cast<size_t>(workers), context);
  for (size_t w = 0; w < contexts.size(); ++w) {
    contexts[w].buffers = buffers.by_worker[w].data();
    contexts[w].failure = &failures[w];
  }
  if (workers > 1) context.workers = contexts.data();
  if (n.code->entry(&context) == 0) return;
  if (polled.stopped) {
    out.stopped = std::move(polled.stopped);
    keep_finished(n, site_at(n, failure.site).part, out);
  } else {
    out.error = error_of(n, failure, params);
  }
}

}  // namespace

std::variant<std::shared_ptr<Native>, std::string> compile_native(
    const core::Module& m, const std::vector<core::FamilyId>& wanted,
    const NativeOptions& options) {
  auto out = std::make_shared<Native>();
  Native& n = *out;
  n.options = options;
  double t0 = now_ms();
  core::Module isolated = m;
  core::isolate_routes(isolated);
  n.plan = plan::make_plan(isolated, wanted, options.choices);
  if (std::string why = limitation(n.plan); !why.empty()) return why;
  double t1 = now_ms();
  n.program = lower::lower(n.plan);
  std::vector<std::string> broken = loops::verify(n.program);
  EIN_CHECK(broken.empty(), "ill-formed loops: " + broken[0]);
  double t2 = now_ms();
  for (uint32_t i = 0; i < n.program.buffers.size(); ++i) {
    const loops::Buffer& b = n.program.buffers[loops::BufferId(i)];
    if (b.space == loops::Buffer::Space::Input) n.inputs.push_back(b.family);
    n.constants.push_back(b.space == loops::Buffer::Space::Constant
                              ? constant_table(n.plan.module, n.plan.module[b.family])
                              : Tensor());
  }
  n.lives = codegen::lifetimes(n.program);
  codegen::JitTimes times;
  n.code = codegen::jit(n.program, {options.opt_level, options.processor}, &times);
  n.times = {{"plan", t1 - t0},    {"lower", t2 - t1},           {"target", times.target},
             {"emit", times.emit}, {"optimise", times.optimise}, {"machine", times.machine},
             {"link", times.link}, {"total", now_ms() - t0}};
  return out;
}

NativeResult run(Native& native, const core::Inputs& inputs, const core::Watch& watch) {
  NativeResult out;
  auto params = core::bind_params(native.plan.module, inputs, native.inputs);
  if (auto* e = std::get_if<RuntimeError>(&params)) {
    out.error = *e;
    return out;
  }
  try {
    execute(native, inputs, std::get<std::vector<int64_t>>(params), watch, out);
  } catch (const RuntimeError& e) { out.error = e; } catch (const std::bad_alloc&) {
    out.error = RuntimeError{Code::E0807, "out of memory"};
  }
  if (out.error) out.values.clear();
  return out;
}

std::string emit(Native& native, Emit what) {
  switch (what) {
    case Emit::Plan: return plan::print(native.plan);
    case Emit::Loops: return loops::print(native.program);
    case Emit::Llvm:
      return codegen::llvm_text(native.program,
                                {native.options.opt_level, native.options.processor});
    case Emit::Assembly:
      return codegen::assembly_text(native.program,
                                    {native.options.opt_level, native.options.processor});
  }
  EIN_UNREACHABLE("emit");
}

std::vector<std::pair<std::string, double>> compile_times(const Native& native) {
  return native.times;
}

uint64_t native_compile_count() { return codegen::jit_count(); }

}  // namespace ein

#include "launches.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <stdexcept>
#include <unordered_map>

#include "base/match.h"
#include "core/build.h"
#include "core/scalar.h"
#include "loops/walk.h"

namespace ein::fuzz {
namespace {

using core::Op;
using core::ReduceOp;
using core::Scalar;
using loops::Axis;
using loops::BufferId;
using loops::ExprId;
using loops::VarId;

// Who accessed a cell, and when: the launch, its block, how many barriers of the block and of the
// warp came before, the warp, and the thread. Thread −1: the whole warp, or the whole block if the
// warp is −1.
struct Who {
  int64_t launch = -1, block = 0, block_phase = 0, lane_phase = 0, warp = -1, thread = -1;

  bool meets(const Who& o) const {
    if (launch < 0 || launch != o.launch) return false;
    if (block != o.block) return true;
    if (block_phase != o.block_phase) return false;
    bool same_warp = warp == o.warp && warp >= 0;
    if (same_warp && lane_phase != o.lane_phase) return false;
    return thread != o.thread || warp != o.warp;
  }
};

struct Memory {
  std::vector<int64_t> shape;
  std::vector<Scalar> cells;
  struct Marks {
    Who wrote;
    std::vector<Who> read;
  };
  std::vector<Marks> marks;
};

struct Stopped {};
struct Refused {
  std::string why;
};

struct Run {
  const loops::Program& p;
  const std::vector<int64_t>& params;
  Watched& out;
  std::vector<Memory> memory = {};
  std::unordered_map<VarId, Scalar> vars = {};
  Who who = {};
  const loops::Launch* launch = nullptr;
  int64_t launches = 0;
  std::map<std::pair<BufferId, int64_t>, Memory> own = {};  // private memory of blocks and threads

  Memory& memory_of(BufferId id) {
    auto space = p.buffers[id].space;
    bool local = space == loops::Buffer::Space::Local;
    if (!local && space != loops::Buffer::Space::Shared) return memory[id.v];
    Memory& m = own[{id, local ? who.thread : -1}];
    if (m.cells.empty()) {
      m.shape = memory[id.v].shape;
      m.cells.resize(memory[id.v].cells.size());
      m.marks.resize(m.cells.size());
    }
    return m;
  }

  size_t place(const Memory& m, BufferId id, const std::vector<ExprId>& at) {
    int64_t offset = 0;
    for (size_t k = 0; k < at.size(); ++k) { offset = offset * m.shape[k] + expr(at[k]).i; }
    if (offset < 0 || static_cast<size_t>(offset) >= m.cells.size()) {
      throw std::logic_error(fmt::format("an address outside of {}", p.buffers[id].name));
    }
    return static_cast<size_t>(offset);
  }

  void note(BufferId id, size_t cell, bool writes) {
    Memory& m = memory_of(id);
    Memory::Marks& marks = m.marks[cell];
    auto race = [&](const Who& other, const char* what) {
      if (!out.race.empty()) return;
      out.race = fmt::format("{}: thread {} of block {} {} cell {} that thread {} of block {} {}",
                             launch ? launch->name : "", who.thread, who.block,
                             writes ? "writes" : "reads", cell, other.thread, other.block, what) +
                 " (" + p.buffers[id].name + ")";
    };
    if (marks.wrote.meets(who)) race(marks.wrote, "writes");
    if (!writes) {
      marks.read.push_back(who);
      return;
    }
    for (const Who& reader : marks.read) {
      if (reader.meets(who)) race(reader, "reads");
    }
    marks.read.clear();
    marks.wrote = who;
  }

  Scalar expr(ExprId id) {
    const loops::Expr& e = p.exprs[id];
    return match(
        e.node, [](const loops::FloatConst& n) { return Scalar{.f = n.value}; },
        [](const loops::IntConst& n) { return Scalar{.i = n.value}; },
        [&](const loops::Param& n) { return Scalar{.i = params[n.index]}; },
        [&](const loops::Get& n) { return vars.at(n.var); },
        [&](const loops::Apply& n) { return apply(n, e.type); },
        [](const loops::Overflows&) -> Scalar { throw Refused{"checked integers"}; },
        [&](const loops::Load& n) {
          Memory& m = memory_of(n.buffer);
          size_t cell = place(m, n.buffer, n.at);
          note(n.buffer, cell, false);
          return m.cells[cell];
        });
  }

  Scalar apply(const loops::Apply& n, DType type) {
    std::vector<Scalar> args;
    for (ExprId a : n.args) args.push_back(expr(a));
    if (n.op == Op::Select) return args[0].i ? args[1] : args[2];
    if (n.op == Op::And) return {.i = args[0].i && args[1].i};
    if (n.op == Op::Or) return {.i = args[0].i || args[1].i};
    auto value = core::apply_scalar(n.op, p.exprs[n.args[0]].type, type, args[0],
                                    args.size() > 1 ? args[1] : Scalar{.i = 0});
    if (!value) throw Refused{"an operation that fails"};
    return *value;
  }

  bool beats(bool max, Scalar challenger, Scalar holder, DType type) const {
    if (!is_float(type)) return max ? challenger.i > holder.i : challenger.i < holder.i;
    if (std::isnan(holder.f)) return false;
    return std::isnan(challenger.f) || (max ? challenger.f > holder.f : challenger.f < holder.f);
  }

  Scalar folded(ReduceOp op, Scalar acc, Scalar v, DType type) {
    switch (op) {
      case ReduceOp::Sum: return *core::apply_scalar(Op::Add, type, type, acc, v);
      case ReduceOp::Prod: return *core::apply_scalar(Op::Mul, type, type, acc, v);
      case ReduceOp::Max: return beats(true, v, acc, type) ? v : acc;
      case ReduceOp::Min: return beats(false, v, acc, type) ? v : acc;
      case ReduceOp::All: return {.i = acc.i && v.i};
      case ReduceOp::Any: return {.i = acc.i || v.i};
      default: throw Refused{"a fold without an order"};
    }
  }

  void fold(const loops::Fold& n) {
    DType type = p.vars[n.acc].type;
    Scalar v = expr(n.value), acc = vars.at(n.acc);
    if (!n.arg) {
      vars[n.acc] = folded(n.op, acc, v, type);
      return;
    }
    Scalar index = expr(n.index);
    bool wins = vars.at(n.arg).i < 0 || beats(n.op == ReduceOp::ArgMax, v, acc, type);
    if (wins) vars[n.acc] = v, vars[n.arg] = index;
  }

  void store(BufferId id, const std::vector<ExprId>& at, ExprId value, bool adds) {
    Memory& m = memory_of(id);
    size_t cell = place(m, id, at);
    Scalar v = expr(value);
    DType type = p.buffers[id].dtype;
    if (adds) {
      note(id, cell, false);
      v = *core::apply_scalar(Op::Add, type, type, m.cells[cell], v);
    }
    note(id, cell, true);
    m.cells[cell] = v;
  }

  void loop(const loops::Loop& n) {
    int64_t lo = expr(n.lo).i, hi = expr(n.hi).i;
    Who around = who;
    bool by_block = n.axis.kind == Axis::Kind::Thread, by_lane = n.axis.kind == Axis::Kind::Lane;
    for (int64_t k = lo; k < hi; ++k) {
      int64_t i = n.downward ? lo + hi - 1 - k : k;
      if (by_block && launch->warps) {
        who.warp = i;
        who.lane_phase = 0;
      } else if (by_block || by_lane) {
        who.warp = by_lane ? around.warp : i / loops::kLanes;
        who.thread = by_lane ? around.warp * loops::kLanes + i : i;
      }
      vars[n.var] = {.i = i};
      block(n.body);
      if (by_block || by_lane) who = around;
      if (n.leave && expr(n.leave).i) break;
    }
  }

  // Combines the threads' parts as trees: first those of each warp, then those of the warps.
  void combine(const loops::Combine& n) {
    DType type = p.vars[n.acc].type;
    auto part = [&](int64_t thread) { return own.at({n.parts, thread}).cells[0]; };
    auto tree = [&](std::vector<Scalar> all) {
      for (size_t half = all.size() / 2; half > 0; half /= 2) {
        for (size_t i = 0; i < half; ++i) all[i] = folded(n.op, all[i], all[i + half], type);
      }
      return all[0];
    };
    auto of_warp = [&](int64_t warp) {
      std::vector<Scalar> all;
      for (int64_t i = 0; i < loops::kLanes; ++i) all.push_back(part(warp * loops::kLanes + i));
      return tree(std::move(all));
    };
    std::vector<Scalar> warps;
    if (n.scope == loops::Scope::Lane) {
      warps.push_back(of_warp(who.warp));
    } else {
      for (int64_t w = 0; w < launch->threads / loops::kLanes; ++w) warps.push_back(of_warp(w));
    }
    vars[n.acc] = folded(n.op, vars.at(n.acc), tree(std::move(warps)), type);
  }

  void run(const loops::Launch& n) {
    launch = &n;
    int64_t blocks = expr(n.blocks).i;
    ++launches;
    for (int64_t i = 0; i < blocks; ++i) {
      own.clear();
      who = {launches, i, 0, 0, -1, -1};
      vars[n.index] = {.i = i};
      block(n.body);
    }
    who = {};
    launch = nullptr;
  }

  void block(const loops::Block& body) {
    for (const loops::Stmt& s : body) {
      match(
          s.node, [&](const loops::Let& n) { vars[n.var] = expr(n.value); },
          [&](const loops::Declare& n) { vars[n.var] = expr(n.init); },
          [&](const loops::Assign& n) { vars[n.var] = expr(n.value); },
          [&](const loops::Store& n) { store(n.buffer, n.at, n.value, false); },
          [&](const loops::Update& n) { store(n.buffer, n.at, n.value, true); },
          [&](const loops::Fold& n) { fold(n); },
          [&](const loops::If& n) { block(expr(n.cond).i ? n.then : n.otherwise); },
          [&](const loops::Loop& n) {
            loop(n);
            if (!n.state.empty()) throw Refused{"state that steps leave"};
          },
          [&](const loops::Check& n) {
            if (!expr(n.ok).i) throw Stopped{};
          },
          [](const loops::Contract&) { throw Refused{"a product"}; },
          [](const loops::Invoke&) { throw Refused{"a call"}; },
          [](const loops::Fetch&) { throw Refused{"a file"}; },
          [&](const loops::Launch& n) { run(n); },
          [&](const loops::Barrier& n) {
            ++(n.scope == loops::Scope::Lane ? who.lane_phase : who.block_phase);
          },
          [&](const loops::Combine& n) { combine(n); }, [](const loops::Touch&) {});
    }
  }
};

}  // namespace

Watched watch_launches(const plan::Plan& plan, const loops::Program& p, const core::Inputs& inputs,
                       const std::vector<int64_t>& params) {
  Watched out;
  Run run{p, params, out};
  for (const loops::Buffer& b : p.buffers) {
    Memory m;
    size_t cells = 1;
    for (size_t k = 0; k < b.dims.size(); ++k) {
      int64_t extent = b.known[k] ? *b.known[k] : core::eval_extent(plan.module, b.dims[k], params);
      m.shape.push_back(std::max<int64_t>(0, extent));
      cells *= static_cast<size_t>(m.shape.back());
    }
    m.cells.resize(cells);
    m.marks.resize(cells);
    auto set = [&](size_t i, const Tensor& from) {
      auto at = static_cast<int64_t>(i);
      m.cells[i] =
          is_float(b.dtype) ? Scalar{.f = from.get_float(at)} : Scalar{.i = from.get_int(at)};
    };
    if (b.space == loops::Buffer::Space::Input) {
      const Tensor& from = inputs.at(b.name);
      for (size_t i = 0; i < cells; ++i) set(i, from);
    }
    if (b.space == loops::Buffer::Space::Constant) {
      const core::Family& f = plan.module[b.family];
      for (size_t i = 0; i < cells; ++i) {
        if (const auto* x = core::get_if<core::FloatLit>(plan.module, f.cells[i]))
          m.cells[i] = {.f = x->value};
        if (const auto* x = core::get_if<core::IntLit>(plan.module, f.cells[i]))
          m.cells[i] = {.i = x->value};
        if (const auto* x = core::get_if<core::BoolLit>(plan.module, f.cells[i]))
          m.cells[i] = {.i = x->value};
      }
    }
    run.memory.push_back(std::move(m));
  }
  try {
    for (const loops::Kernel& k : p.kernels) run.block(k.body);
  } catch (const Stopped&) {
    out.stopped = true;
    return out;
  } catch (const Refused& r) {
    out.refused = r.why;
    return out;
  }
  for (uint32_t i = 0; i < p.buffers.size(); ++i) {
    const loops::Buffer& b = p.buffers[BufferId(i)];
    if (b.space != loops::Buffer::Space::Output) continue;
    Tensor t(b.dtype, run.memory[i].shape);
    for (size_t k = 0; k < run.memory[i].cells.size(); ++k) {
      auto at = static_cast<int64_t>(k);
      if (is_float(b.dtype)) {
        t.set_float(at, run.memory[i].cells[k].f);
      } else {
        t.set_int(at, run.memory[i].cells[k].i);
      }
    }
    out.outputs.emplace(b.name, std::move(t));
  }
  return out;
}

}  // namespace ein::fuzz

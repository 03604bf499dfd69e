#include "driver/work.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/match.h"
#include "core/bound.h"
#include "core/build.h"
#include "core/eval.h"
#include "core/rewrite.h"
#include "loops/walk.h"

namespace ein {
namespace {

using core::ExprId;
using core::FamilyId;
using core::Op;

// The buffers that a block writes, in order.
void written(const loops::Block& block, std::vector<loops::BufferId>& out) {
  auto note = [&](loops::BufferId b) {
    if (std::find(out.begin(), out.end(), b) == out.end()) out.push_back(b);
  };
  loops::for_each_stmt(block, [&](const loops::Stmt& s) {
    if (const auto* store = std::get_if<loops::Store>(&s.node)) note(store->buffer);
    if (const auto* update = std::get_if<loops::Update>(&s.node)) note(update->buffer);
    if (const auto* contract = std::get_if<loops::Contract>(&s.node)) note(contract->out.buffer);
  });
}

// Counts the operations of clauses, and the cells of each family that they touch.
struct Counter {
  core::Module& m;
  const std::vector<int64_t>& params;
  double operations = 0;
  std::map<FamilyId, double> touched = {};

  struct Extent {
    double middle = 0, length = 1;
  };
  std::vector<Extent> slots = std::vector<Extent>(core::kMaxSlots);
  std::set<ExprId> seen = {};
  std::vector<ExprId> trail = {};  // of `seen`, in order

  // An index expression with every index in the middle of its range; NaN when it depends on data.
  double value(ExprId e) {
    return match(
        m[e].node, [&](const core::IntLit& n) { return static_cast<double>(n.value); },
        [&](const core::ParamRef& n) { return static_cast<double>(params[n.param.v]); },
        [&](const core::Slot& n) { return slots[n.n].middle; },
        [&](const core::Affine& n) {
          auto sum = static_cast<double>(n.constant);
          for (const auto& t : n.terms) sum += static_cast<double>(t.coef) * value(t.atom);
          return sum;
        },
        [&](const core::Apply& n) { return applied(n); },
        [&](const core::Access& n) { return extent_input(n.family); },
        [](const auto&) -> double { return NAN; });
  }

  // The value of a scalar input that is an extent somewhere.
  double extent_input(FamilyId id) {
    for (uint32_t p = 0; p < m.params.size(); ++p) {
      const core::Param& param = m.params[core::ParamId(p)];
      if (param.source == id && param.position == core::Param::kItself) {
        return static_cast<double>(params[p]);
      }
    }
    return NAN;
  }

  double applied(const core::Apply& n) {
    if (n.args.size() == 1) return n.op == Op::Cast ? value(n.args[0]) : NAN;
    if (n.args.size() != 2) return NAN;
    double a = value(n.args[0]), b = value(n.args[1]);
    if (std::isnan(a) || std::isnan(b)) return NAN;
    switch (n.op) {
      case Op::Min: return std::min(a, b);
      case Op::Max: return std::max(a, b);
      case Op::Mul: return a * b;
      case Op::Div: return b == 0 ? NAN : std::trunc(a / b);
      case Op::Mod: return b == 0 ? NAN : std::fmod(a, b);
      case Op::Shl: return std::ldexp(a, static_cast<int>(b));
      case Op::Shr: return std::floor(std::ldexp(a, -static_cast<int>(b)));
      case Op::BitAnd: return std::min(a, b);
      default: return NAN;
    }
  }

  void set_slot(uint32_t slot, double lo, double hi) {
    double length = hi - lo;
    slots[slot] =
        std::isnan(length) ? Extent{NAN, 1} : Extent{lo + (length - 1) / 2, std::max(0.0, length)};
  }

  double cells(uint64_t free) const {
    double out = 1;
    for (uint32_t s = 0; s < core::kMaxSlots; ++s) {
      if (free >> s & 1) out *= slots[s].length;
    }
    return out;
  }

  // `without`: coordinates that do not run, because the sum is one pass that adds to addresses.
  void reduce(const core::Reduce& r, uint64_t free, uint64_t without) {
    std::vector<ExprId> conds;
    core::conjuncts(m, r.gate, conds);
    size_t before = trail.size();
    uint64_t cell = free & ~without;
    for (size_t i = 0; i < r.over.size(); ++i) {
      auto slot = r.first + static_cast<uint32_t>(i);
      double lo = value(r.over[i].lo), hi = value(r.over[i].hi);
      for (ExprId c : conds) {
        auto bound = core::bound_on(m, c, slot);
        if (bound && bound->lo) lo = std::fmax(lo, value(bound->lo));
        if (bound && bound->hi) hi = std::fmin(hi, value(bound->hi));
      }
      set_slot(slot, lo, hi);
      cell |= uint64_t{1} << slot;
      visit(r.over[i].lo);
      visit(r.over[i].hi);
    }
    if (is_float(m[r.body].type)) operations += cells(cell);
    if (r.gate) visit(r.gate);
    for (const core::Route& route : r.routes) visit(route.to);
    visit(r.body);
    // The same node under another reduction has other binders.
    while (trail.size() > before) {
      if (m[trail.back()].free >> r.first) seen.erase(trail.back());
      trail.pop_back();
    }
  }

  void visit(ExprId e, uint64_t without = 0) {
    if (!seen.insert(e).second) return;
    trail.push_back(e);
    const core::Expr node = m[e];
    if (const auto* r = std::get_if<core::Reduce>(&node.node)) {
      reduce(*r, node.free, without);
      return;
    }
    if (const auto* a = std::get_if<core::Access>(&node.node)) {
      double& most = touched[a->family];
      most = std::max(most, cells(node.free));
    }
    bool counts = std::holds_alternative<core::Call>(node.node);
    if (const auto* a = std::get_if<core::Apply>(&node.node)) {
      core::OpClass cls = core::info(a->op).cls;
      counts =
          cls == core::OpClass::Arith || cls == core::OpClass::Real || cls == core::OpClass::Whole;
      if (a->op == Op::Neg || a->op == Op::Stop) counts = false;
    }
    if (counts && is_float(node.type)) operations += cells(node.free);
    core::for_each_child(m, e, [&](ExprId child) { visit(child); });
  }

  void clause(FamilyId id, const core::Clause& c, bool scatters) {
    seen.clear();
    trail.clear();
    uint64_t all = 0;
    for (uint32_t k = 0; k < c.box.size(); ++k) {
      set_slot(k, value(c.box[k].lo), value(c.box[k].hi));
      all |= uint64_t{1} << k;
    }
    touched[id] += cells(all);
    uint64_t routed = 0;
    if (const auto* r = core::get_if<core::Reduce>(m, c.body); r && scatters) {
      for (const core::Route& route : r->routes) routed |= uint64_t{1} << route.slot;
    }
    visit(c.body, routed);
  }
};

}  // namespace

std::vector<Work> work_of(plan::Plan& plan, const loops::Program& p,
                          const std::vector<int64_t>& params) {
  core::Module& m = plan.module;
  std::map<FamilyId, double> bytes;  // of the buffers
  for (const loops::Buffer& b : p.buffers) {
    auto size = static_cast<double>(size_of(b.dtype));
    for (size_t k = 0; k < b.dims.size(); ++k) {
      int64_t extent = b.known[k] ? *b.known[k] : core::eval_extent(m, b.dims[k], params);
      size *= static_cast<double>(std::max<int64_t>(0, extent));
    }
    bytes[b.family] = size;
  }
  std::set<FamilyId> in_steps;
  for (const core::Step& s : plan.schedule.steps) {
    if (!std::holds_alternative<core::Sequence>(s)) continue;
    for (FamilyId id : core::families_of({s})) in_steps.insert(id);
  }
  std::vector<Work> out;
  for (size_t i = 0; i < p.kernels.size();) {
    Work work;
    work.name = p.kernels[i].name;
    std::vector<loops::BufferId> buffers;
    do {
      written(p.kernels[i].body, buffers);
    } while (++i < p.kernels.size() && p.kernels[i].continues);
    Counter counter{m, params};
    for (loops::BufferId b : buffers) {
      FamilyId id = p.buffers[b].family;
      const core::Family f = m[id];
      work.computes.push_back(text(f.name));
      work.steps |= in_steps.contains(id);
      if (f.dtype == DType::F64) work.type = DType::F64;
      for (size_t c = 0; c < f.clauses.size(); ++c) {
        counter.clause(id, f.clauses[c], plan.families.at(id).clauses[c].scatters);
      }
      for (ExprId cell : f.cells) counter.clause(id, {{}, cell, {}}, false);
    }
    work.operations = counter.operations;
    for (const auto& [id, cells] : counter.touched) {
      auto whole = bytes.find(id);
      if (whole == bytes.end()) continue;
      work.bytes += std::min(whole->second, cells * static_cast<double>(size_of(m[id].dtype)));
    }
    out.push_back(std::move(work));
  }
  return out;
}

}  // namespace ein

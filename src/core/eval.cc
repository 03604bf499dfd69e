#include "core/eval.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <new>

#include "base/check.h"
#include "base/match.h"
#include "core/bound.h"
#include "core/build.h"
#include "core/eval_call.h"
#include "core/groups.h"
#include "core/rewrite.h"
#include "core/scalar.h"
#include "core/steps.h"

namespace ein::core {
namespace {

struct Fault {
  RuntimeError error;
};
struct Stop {
  Stopped where;
};

// A sum of floats in f64 that also adds up its rounding errors: nearly exact, rounded
// once at the end.
class FloatSum {
 public:
  void add(double x) {
    double both = total_ + x;
    lost_ += std::fabs(total_) >= std::fabs(x) ? (total_ - both) + x : (x - both) + total_;
    total_ = both;
  }
  double value() const { return std::isfinite(lost_) ? total_ + lost_ : total_; }

 private:
  double total_ = 0, lost_ = 0;  // `lost_` is NaN once the total is not finite
};

class Evaluator {
 public:
  using Rings = std::unordered_map<FamilyId, Ring>;
  using Bounds = std::unordered_map<const Reduce*, std::vector<std::vector<Bound>>>;  // by binder

  Evaluator(Module& m, EvalResult& out, const Rings& rings, const Bounds& bounds,
            const Watch& watch, const EvalOptions& options)
      : m_(m),
        out_(out),
        rings_(rings),
        bounds_(bounds),
        watch_(watch),
        options_(options),
        memo_(m.arena->size()),
        stamp_(m.arena->size(), 0),
        calls_(m, options.check_overflow) {}

  void allocate(FamilyId id, const Inputs& inputs) {
    const Family& f = m_[id];
    if (f.kind == Family::Kind::Input) {
      const Tensor& value = out_.values[id] = inputs.at(text(f.name));
      extents_[id] = value.shape();
      return;
    }
    std::vector<int64_t> shape;
    for (const Coord& c : f.coords) {
      shape.push_back(std::max<int64_t>(0, eval_extent(m_, c.extent, out_.params)));
    }
    extents_[id] = shape;
    if (auto ring = rings_.find(id); ring != rings_.end()) {
      shape[ring->second.position] = std::min(shape[ring->second.position], ring->second.kept);
    }
    try {
      out_.values[id] = Tensor(f.dtype, shape);
    } catch (const std::bad_alloc&) {
      throw RuntimeError{Code::E0807,
                         fmt::format("out of memory: `{}` has the extents [{}]", text(f.name),
                                     fmt::join(shape, ", ")),
                         f.span};
    }
  }

  void run(const std::vector<Step>& steps) {
    for (const Step& s : steps) {
      match(
          s, [&](const Compute& c) { compute(c.family); }, [&](const Sequence& q) { sequence(q); });
    }
  }

 private:
  void sequence(const Sequence& q) {
    int64_t steps = 0;
    for (const auto& member : q.members) {
      steps = std::max(steps, extents_.at(member.family)[member.position]);
    }
    bool outermost = !running_;
    running_ = true;
    for (int64_t k = 0; k < steps; ++k) {
      int64_t t = q.downward ? steps - 1 - k : k;
      if (outermost) look(q, k, t, steps);
      for (const auto& member : q.members) fixed_[member.family][member.position] = t;
      run(q.body);
    }
    if (outermost) running_ = false;
    for (const auto& member : q.members) fixed_[member.family].erase(member.position);
  }

  // Tells the monitor where the program is, when it asks.
  void look(const Sequence& q, int64_t done, int64_t next, int64_t steps) {
    Monitor* monitor = watch_.monitor;
    if (!monitor || monitor->wake.load(std::memory_order_relaxed) == 0) return;
    const Coord& c = m_[q.members[0].family].coords[q.members[0].position];
    Moment now{text(m_[q.members[0].family].name), text(c.name), done, steps, next, {}};
    int64_t last = q.downward ? next + 1 : next - 1;
    for (FamilyId id : watch_.families) {
      for (const auto& member : q.members) {
        const Tensor& value = out_.values.at(member.family);
        if (member.family != id || done == 0 || last >= value.shape()[member.position]) continue;
        now.watched.push_back({text(m_[id].name), slice(value.data(), value.dtype(), value.shape(),
                                                        member.position, last)});
      }
    }
    if (monitor->poll(now)) throw Stop{std::move(now)};
  }

  void compute(FamilyId id) {
    const Family& f = m_[id];
    if (f.kind == Family::Kind::Input) return;
    Tensor& value = out_.values.at(id);
    if (f.kind == Family::Kind::Table) {
      statement_ = f.span;
      forget(0);
      for (size_t i = 0; i < f.cells.size(); ++i) {
        store(value, static_cast<int64_t>(i), eval(f.cells[i]));
      }
      return;
    }
    for (const Clause& c : f.clauses) {
      statement_ = c.span;
      clause(id, c, value);
    }
  }

  void clause(FamilyId id, const Clause& c, Tensor& value) {
    std::vector<int64_t> lo, hi;
    for (size_t k = 0; k < c.box.size(); ++k) {
      lo.push_back(std::max<int64_t>(0, eval_extent(m_, c.box[k].lo, out_.params)));
      hi.push_back(std::min(extents_.at(id)[k], eval_extent(m_, c.box[k].hi, out_.params)));
    }
    for (auto [position, t] : fixed_[id]) {
      lo[position] = std::max(lo[position], t);
      hi[position] = std::min(hi[position], t + 1);
    }
    const auto* r = get_if<Reduce>(m_, c.body);
    if (r && !r->routes.empty()) {
      routed(id, *r, value, lo, hi);
      return;
    }
    forget(0);
    cells(lo, hi, 0, {}, [&] { store(value, address(id, value), eval(c.body)); });
  }

  // Sets slots `k`… to every address of the box in turn; slots in `skip` are left alone.
  void cells(const std::vector<int64_t>& lo, const std::vector<int64_t>& hi, uint32_t k,
             const std::vector<bool>& skip, const std::function<void()>& body) {
    if (k == lo.size()) return body();
    if (k < skip.size() && skip[k]) return cells(lo, hi, k + 1, skip, body);
    for (int64_t i = lo[k]; i < hi[k]; ++i) {
      set(k, i);
      cells(lo, hi, k + 1, skip, body);
    }
  }

  // Where along coordinate k the cell at `index` is stored.
  static int64_t stored(const Ring* ring, size_t k, int64_t index) {
    return ring && ring->position == k ? index % ring->kept : index;
  }
  const Ring* ring_of(FamilyId id) const {
    if (rings_.empty()) return nullptr;
    auto it = rings_.find(id);
    return it == rings_.end() ? nullptr : &it->second;
  }

  int64_t address(FamilyId id, const Tensor& value) const {
    const Ring* ring = ring_of(id);
    int64_t at = 0;
    for (size_t k = 0; k < value.shape().size(); ++k) {
      at = at * value.shape()[k] + stored(ring, k, slots_[k]);
    }
    return at;
  }

  // One pass over the binders; each body is added to the address its routes name.
  void routed(FamilyId id, const Reduce& r, Tensor& value, const std::vector<int64_t>& lo,
              const std::vector<int64_t>& hi) {
    forget(0);
    bool real = is_float(value.dtype());
    std::vector<FloatSum> sums(real ? static_cast<size_t>(value.size()) : 0);
    cells(lo, hi, 0, {}, [&] { store(value, address(id, value), {.i = 0}); });
    std::vector<bool> skip(lo.size(), false);
    for (const Route& route : r.routes) skip[route.slot] = true;
    cells(lo, hi, 0, skip, [&] {
      binders(r, 0, [&] {
        std::vector<int64_t> target;
        for (const Route& route : r.routes) {
          int64_t t = eval(route.to).i;
          if (t < lo[route.slot] || t >= hi[route.slot]) return true;
          target.push_back(t);
        }
        Scalar body = eval(r.body);
        for (size_t k = 0; k < target.size(); ++k) slots_[r.routes[k].slot] = target[k];
        int64_t at = address(id, value);
        if (real) {
          sums[static_cast<size_t>(at)].add(body.f);
        } else {
          store(value, at, combine(ReduceOp::Sum, value.dtype(), load(value, at), body));
        }
        return true;
      });
    });
    if (!real) return;
    cells(lo, hi, 0, {}, [&] {
      int64_t at = address(id, value);
      store(value, at, {.f = sums[static_cast<size_t>(at)].value()});
    });
  }

  // Visits the cells where the gate holds; `body` returns false to stop early. Conditions on a
  // binder alone bound its loop, as in native code.
  bool binders(const Reduce& r, size_t k, const std::function<bool()>& body) {
    if (k == r.over.size()) {
      ++out_.operations;
      if (r.gate && eval(r.gate).i == 0) return true;
      return body();
    }
    int64_t lo = eval(r.over[k].lo).i, hi = eval(r.over[k].hi).i;
    if (auto known = bounds_.find(&r); known != bounds_.end()) {
      for (const Bound& b : known->second[k]) {
        if (b.lo) lo = std::max(lo, eval(b.lo).i);
        if (b.hi) hi = std::min(hi, eval(b.hi).i);
      }
    }
    for (int64_t i = lo; i < hi; ++i) {
      set(r.first + static_cast<uint32_t>(k), i);
      if (!binders(r, k + 1, body)) return false;
    }
    return true;
  }

  Scalar eval(ExprId e) {
    const Expr& x = m_[e];
    uint64_t now = version(x.level());
    if (stamp_[e.v] == now) return memo_[e.v];
    Scalar v = match(
        x.node, [](const FloatLit& n) { return Scalar{.f = n.value}; },
        [](const IntLit& n) { return Scalar{.i = n.value}; },
        [](const BoolLit& n) { return Scalar{.i = n.value}; },
        [&](const Slot& n) { return Scalar{.i = slots_[n.n]}; },
        [&](const ParamRef& n) { return Scalar{.i = out_.params[n.param.v]}; },
        [&](const Affine& n) { return affine_node(n, x); },
        [&](const Apply& n) { return apply_node(n, x); },
        [&](const Access& n) { return read(n, x); },
        [&](const Reduce& n) { return reduce_node(n, x); },
        [](const Request&) -> Scalar { EIN_UNREACHABLE("a request reached the evaluator"); },
        [&](const Call& n) { return call_node(n, x); },
        [](const Arg&) -> Scalar { EIN_UNREACHABLE("a parameter outside of its function"); });
    // Binders may have changed slots above this node's level, never those at or below it.
    stamp_[e.v] = now;
    memo_[e.v] = v;
    return v;
  }

  Scalar apply_node(const Apply& n, const Expr& x) {
    Scalar a = eval(n.args[0]);
    switch (n.op) {
      case Op::Select: return eval(n.args[a.i ? 1 : 2]);
      case Op::And: return a.i ? eval(n.args[1]) : a;
      case Op::Or: return a.i ? a : eval(n.args[1]);
      default: break;
    }
    Scalar b = n.args.size() > 1 ? eval(n.args[1]) : Scalar{.i = 0};
    DType type = m_[n.args[0]].type;
    if (type != DType::I64 && type != DType::Bool && n.op != Op::Cast) ++out_.operations;
    if (is_int(type)) check_overflow(n.op, type, a, b, x.span);
    auto v = apply_scalar(n.op, type, x.type, a, b);
    if (!v) throw Fault{{Code::E0806, "integer division by zero", x.span, statement_}};
    return *v;
  }

  void check_overflow(Op op, DType type, Scalar a, Scalar b, Span at) {
    if (!options_.check_overflow || !overflows(op, type, a.i, b.i)) return;
    throw Fault{{Code::E0809, overflow_text(op, type, a.i, b.i), at, statement_}};
  }

  Scalar affine_node(const Affine& n, const Expr& x) {
    Scalar sum{.i = n.constant};
    for (const auto& t : n.terms) {
      Scalar coef{.i = t.coef}, v = eval(t.atom);
      check_overflow(Op::Mul, DType::I64, coef, v, x.span);
      Scalar term = *apply_scalar(Op::Mul, DType::I64, DType::I64, coef, v);
      check_overflow(Op::Add, DType::I64, sum, term, x.span);
      sum = *apply_scalar(Op::Add, DType::I64, DType::I64, sum, term);
    }
    return sum;
  }

  Scalar call_node(const Call& n, const Expr& x) {
    std::vector<Scalar> args;
    for (ExprId a : n.args) args.push_back(eval(a));
    try {
      return calls_.call(n.function, args);
    } catch (const Calls::Fault& fault) {
      throw Fault{{fault.code, fault.message, fault.at.valid() ? fault.at : x.span, statement_}};
    }
  }

  Scalar read(const Access& n, const Expr& x) {
    const Tensor& t = out_.values.at(n.family);
    const std::vector<int64_t>& extents = extents_.at(n.family);
    const Ring* ring = ring_of(n.family);
    int64_t at = 0;
    for (size_t k = 0; k < n.at.size(); ++k) {
      int64_t i = eval(n.at[k]).i;
      if (i < 0 || i >= extents[k]) out_of_bounds(n, x.span);
      at = at * t.shape()[k] + stored(ring, k, i);
    }
    return load(t, at);
  }

  [[noreturn]] void out_of_bounds(const Access& n, Span at_span) {
    std::vector<int64_t> at;
    for (ExprId e : n.at) at.push_back(eval(e).i);
    throw Fault{
        {Code::E0803,
         fmt::format("`{}` has no cell at [{}]: its extents are [{}]", text(m_[n.family].name),
                     fmt::join(at, ", "), fmt::join(extents_.at(n.family), ", ")),
         at_span, statement_}};
  }

  Scalar reduce_node(const Reduce& r, const Expr& x) {
    DType type = m_[r.body].type;
    if (r.op == ReduceOp::ArgMax || r.op == ReduceOp::ArgMin) return select_index(r, type);
    // Products of f16 and bf16 are taken in f32 and rounded once.
    bool half = type == DType::F16 || type == DType::BF16;
    bool sums = is_float(type) && r.op == ReduceOp::Sum;
    DType within = half ? DType::F32 : type;
    FloatSum sum;
    Scalar acc = eval(identity(m_, r.op, x.type));
    bool first = true;
    binders(r, 0, [&] {
      for (const Route& route : r.routes) {
        if (eval(route.to).i != slots_[route.slot]) return true;
      }
      Scalar v = eval(r.body);
      if (sums) {
        sum.add(v.f);
        return true;
      }
      bool selects = r.op == ReduceOp::Max || r.op == ReduceOp::Min;
      acc = first && selects ? v : combine(r.op, within, acc, v);
      first = false;
      return r.op == ReduceOp::All ? acc.i != 0 : r.op == ReduceOp::Any ? acc.i == 0 : true;
    });
    if (sums || half) acc.f = round_to(type, sums ? sum.value() : acc.f);
    return acc;
  }

  // Ties go to the first cell; NaN beats numbers; −1 when no cell is visited.
  Scalar select_index(const Reduce& r, DType type) {
    int64_t best = -1;  // may also be a real index: ranges may start below 0
    bool first = true;
    Scalar value{.i = 0};
    binders(r, 0, [&] {
      Scalar v = eval(r.body);
      if (first || beats(r.op == ReduceOp::ArgMax, type, v, value)) {
        best = slots_[r.first];
        value = v;
        first = false;
      }
      return true;
    });
    return {.i = best};
  }

  static bool beats(bool max, DType type, Scalar challenger, Scalar holder) {
    if (!is_float(type)) return max ? challenger.i > holder.i : challenger.i < holder.i;
    if (std::isnan(holder.f)) return false;
    if (std::isnan(challenger.f)) return true;
    return max ? challenger.f > holder.f : challenger.f < holder.f;
  }

  Scalar combine(ReduceOp op, DType type, Scalar a, Scalar b) {
    if (is_int(type) && op == ReduceOp::Sum) check_overflow(Op::Add, type, a, b, statement_);
    if (is_int(type) && op == ReduceOp::Prod) check_overflow(Op::Mul, type, a, b, statement_);
    switch (op) {
      case ReduceOp::Sum: return *apply_scalar(Op::Add, type, type, a, b);
      case ReduceOp::Prod: return *apply_scalar(Op::Mul, type, type, a, b);
      case ReduceOp::Max: return beats(true, type, b, a) ? b : a;
      case ReduceOp::Min: return beats(false, type, b, a) ? b : a;
      case ReduceOp::All: return {.i = a.i && b.i};
      case ReduceOp::Any: return {.i = a.i || b.i};
      case ReduceOp::ArgMax:
      case ReduceOp::ArgMin: break;
    }
    EIN_UNREACHABLE("argmax has no combination");
  }

  static Scalar load(const Tensor& t, int64_t at) {
    if (is_float(t.dtype())) return {.f = t.get_float(at)};
    return {.i = t.get_int(at)};
  }
  static void store(Tensor& t, int64_t at, Scalar v) {
    if (is_float(t.dtype())) {
      t.set_float(at, v.f);
    } else {
      t.set_int(at, v.i);
    }
  }

  void set(uint32_t slot, int64_t value) {
    slots_[slot] = value;
    versions_[slot + 1] = ++clock_;
  }
  // Invalidates every value that mentions a slot ≥ `from`, and closed ones when `from` is 0.
  void forget(uint32_t from) {
    for (uint32_t s = from; s <= kMaxSlots; ++s) versions_[s] = ++clock_;
  }
  uint64_t version(int32_t level) const { return versions_[static_cast<size_t>(level + 1)]; }

  Module& m_;
  EvalResult& out_;
  const Rings& rings_;
  const Bounds& bounds_;
  std::unordered_map<FamilyId, std::vector<int64_t>> extents_;
  const Watch& watch_;
  const EvalOptions& options_;
  bool running_ = false;  // inside a Sequence
  Span statement_;        // being computed
  std::vector<Scalar> memo_;
  std::vector<uint64_t> stamp_;
  Calls calls_;
  uint64_t clock_ = 0;
  uint64_t versions_[kMaxSlots + 1] = {};
  int64_t slots_[kMaxSlots] = {};
  std::unordered_map<FamilyId, std::map<uint32_t, int64_t>> fixed_;
};

// Conditions over indices and extents alone: they cannot fail, whenever they are evaluated.
bool is_pure(const Module& m, ExprId e) {
  bool pure = true;
  for_each_node(m, e, [&](ExprId x) {
    const Node& n = m[x].node;
    pure &= std::holds_alternative<Slot>(n) || std::holds_alternative<IntLit>(n) ||
            std::holds_alternative<ParamRef>(n) || std::holds_alternative<Affine>(n);
  });
  return pure;
}

void find_bounds(Module& m, ExprId body, Evaluator::Bounds& out) {
  std::vector<ExprId> gated;
  for_each_node(m, body, [&](ExprId e) {
    const auto* r = get_if<Reduce>(m, e);
    if (r && r->gate && !out.contains(r)) gated.push_back(e);
  });
  for (ExprId e : gated) {
    const auto* r = get_if<Reduce>(m, e);
    std::vector<ExprId> parts;
    conjuncts(m, r->gate, parts);
    auto& bounds = out[r];
    bounds.resize(r->over.size());
    for (ExprId part : parts) {
      const auto* compares = get_if<Apply>(m, part);
      if (!compares || compares->args.size() != 2) continue;
      if (!is_pure(m, compares->args[0]) || !is_pure(m, compares->args[1])) continue;
      for (uint32_t k = 0; k < r->over.size(); ++k) {
        if (auto b = bound_on(m, part, r->first + k)) bounds[k].push_back(*b);
      }
    }
  }
}

}  // namespace

EvalResult evaluate(Module& m, const Inputs& inputs, const std::vector<FamilyId>& wanted,
                    const Watch& watch, const EvalOptions& options) {
  EvalResult out;
  Schedule order = schedule(m, wanted);
  EIN_CHECK(!order.cycle, "a module without a legal order reached the evaluator");
  std::vector<FamilyId> needed = families_of(order.steps);
  // All identities are made now: the evaluator's tables have the size of the arena.
  for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min}) {
    for (DType t : {DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::F16,
                    DType::BF16, DType::F32, DType::F64}) {
      identity(m, op, t);
    }
  }
  identity(m, ReduceOp::All, DType::Bool);
  identity(m, ReduceOp::Any, DType::Bool);
  Evaluator::Bounds bounds;
  for (FamilyId f : needed) {
    for_each_body(m, f, [&](ExprId body) { find_bounds(m, body, bounds); });
  }
  auto params = bind_params(m, inputs, needed);
  if (auto* e = std::get_if<RuntimeError>(&params)) {
    out.error = *e;
    return out;
  }
  out.params = std::get<std::vector<int64_t>>(params);
  std::unordered_map<FamilyId, Ring> rings = find_rings(m, order, wanted);
  std::vector<FamilyId> finished;
  try {
    Evaluator evaluator(m, out, rings, bounds, watch, options);
    for (FamilyId f : needed) evaluator.allocate(f, inputs);
    for (const Step& s : order.steps) {
      evaluator.run({s});
      for (FamilyId f : families_of({s})) finished.push_back(f);
    }
  } catch (const Stop& stop) {
    out.stopped = stop.where;
    std::unordered_map<FamilyId, Tensor> kept;
    for (FamilyId f : finished) kept[f] = out.values.at(f);
    out.values = std::move(kept);
  } catch (const Fault& fault) { out.error = fault.error; } catch (const RuntimeError& e) {
    out.error = e;
  } catch (const std::bad_alloc&) { out.error = RuntimeError{Code::E0807, "out of memory"}; }
  for (const auto& [family, ring] : rings) out.values.erase(family);
  return out;
}

}  // namespace ein::core

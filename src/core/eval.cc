#include "core/eval.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>
#include <new>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/match.h"
#include "core/build.h"
#include "core/eval_call.h"
#include "core/eval_cell.h"
#include "core/eval_order.h"
#include "core/rewrite.h"
#include "core/scalar.h"
#include "runtime/factor.h"

namespace ein::core {
namespace {

struct Fault {
  RuntimeError error;
};
struct Stop {
  Stopped where;
};
// A cell that is being computed was read.
struct ReadsItself {};
// Cells that wait for each other are nested too deeply; this one is to be computed first.
struct TooDeep {
  FamilyId family;
  int64_t cell;
};
constexpr int kMostNested = 64;

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
  // What a gate says about indices and extents alone, by the binder after which it is known.
  using Tests = std::unordered_map<const Reduce*, std::vector<std::vector<ExprId>>>;

  Evaluator(Module& m, EvalResult& out, const Tests& tests, const Watch& watch,
            const EvalOptions& options)
      : m_(m),
        out_(out),
        tests_(tests),
        watch_(watch),
        options_(options),
        memo_(m.arena->size()),
        stamp_(m.arena->size(), 0),
        calls_(m, options.check_overflow) {
    forget();
  }

  void allocate(FamilyId id, const Inputs& inputs) {
    const Family& f = m_[id];
    if (f.kind == Family::Kind::Input) {
      out_.values[id] = inputs.at(text(f.name));
      return;
    }
    std::vector<int64_t> shape;
    for (const Coord& c : f.coords) shape.push_back(std::max<int64_t>(0, extent(c.extent)));
    try {
      out_.values[id] = Tensor(f.dtype, shape);
    } catch (const std::bad_alloc&) {
      throw RuntimeError{Code::E0807,
                         fmt::format("out of memory: `{}` has the extents [{}]", text(f.name),
                                     fmt::join(shape, ", ")),
                         f.span};
    }
  }

  void run(const EvalGroup& group) {
    if (!group.cyclic) return compute(group.members[0]);
    try {
      cycle(group);
    } catch (const ReadsItself&) {
      EIN_UNREACHABLE("a module in which a cell reads itself reached the evaluator");
    }
  }

 private:
  enum State : uint8_t { kUnknown, kBegun, kKnown };
  using States = std::vector<uint8_t>;  // by cell

  // Families that read each other: step by step where the order is a guess that helps, then
  // whatever is left. A cell that is read before it is known is computed then.
  void cycle(const EvalGroup& group) {
    int64_t steps = 0;
    for (FamilyId id : group.members) {
      states_[id].assign(static_cast<size_t>(out_.values.at(id).size()), kUnknown);
    }
    for (const auto& w : group.walks) steps = std::max(steps, shape_of(w.family)[w.position]);
    for (int64_t k = 0; k < steps; ++k) {
      int64_t t = group.downward ? steps - 1 - k : k;
      look(group, k, t, steps);
      for (const auto& w : group.walks) walk(w.family, &w.position, t);
    }
    if (steps > 0) look(group, steps, group.downward ? -1 : steps, steps);
    for (FamilyId id : group.members) walk(id, nullptr, 0);
    states_.clear();
    out_.operations += std::exchange(finished_operations_, 0);
  }

  void walk(FamilyId id, const uint32_t* position, int64_t t) {
    for (;;) {
      try {
        return compute(id, position, t);
      } catch (const TooDeep& deep) { settle(deep); }
    }
  }

  // Computes a cell that others wait for, after those that it waits for itself.
  void settle(TooDeep first) {
    std::vector<TooDeep> waiting = {first};
    while (!waiting.empty()) {
      EIN_CHECK(waiting.size() <= states_.at(first.family).size() * states_.size(),
                "cells wait for each other");
      TooDeep next = waiting.back();
      try {
        if (states_.at(next.family)[static_cast<size_t>(next.cell)] == kUnknown) {
          demand(next.family, next.cell);
        }
        waiting.pop_back();
      } catch (const TooDeep& deeper) { waiting.push_back(deeper); }
    }
  }

  // Tells the monitor where the program is, when it asks.
  void look(const EvalGroup& group, int64_t done, int64_t next, int64_t steps) {
    Monitor* monitor = watch_.monitor;
    if (!monitor || monitor->wake.load(std::memory_order_relaxed) == 0) return;
    const auto& [first, along] = group.walks[0];
    Moment now{text(m_[first].name), text(m_[first].coords[along].name), done, steps, next, {}};
    now.downward = group.downward;
    if (!monitor->cares(now)) return;
    now.step_of = [&](const std::string& family, int64_t at) -> std::optional<Tensor> {
      int64_t last = now.last();
      for (const auto& w : group.walks) {
        const Tensor& value = out_.values.at(w.family);
        bool there = at >= 0 && at < value.shape()[w.position];
        if (text(m_[w.family].name) != family || !there) continue;
        if (group.downward ? at < last : at > last) continue;  // not yet computed
        return slice(value.data(), value.dtype(), value.shape(), w.position, at);
      }
      return std::nullopt;
    };
    if (watch_.observe) watch_.observe(now);
    bool stops = monitor->poll(now);
    now.step_of = nullptr;
    if (stops) throw Stop{std::move(now)};
  }

  // All cells of a family, or those with coordinate `position` at `t`.
  void compute(FamilyId id, const uint32_t* position = nullptr, int64_t t = 0) {
    const Family& f = m_[id];
    if (f.kind == Family::Kind::Input) return;
    Tensor& value = out_.values.at(id);
    States* states = states_of(id);
    if (f.kind == Family::Kind::Table) {
      statement_ = f.span;
      forget();
      for (size_t i = 0; i < f.cells.size(); ++i) {
        one(id, states, static_cast<int64_t>(i), f.cells[i]);
      }
      return;
    }
    for (const Clause& c : f.clauses) {
      Box box = box_of(id, c);
      if (position) {
        box.lo[*position] = std::max(box.lo[*position], t);
        box.hi[*position] = std::min(box.hi[*position], t + 1);
      }
      statement_ = c.span;
      forget();
      const Reduce* r = routed_sum(c);
      if (r && routed(id, *r, states, box)) continue;
      cells(box.lo, box.hi, 0, {}, [&] { one(id, states, address(value), c.body); });
    }
  }

  // One cell, unless it is known.
  void one(FamilyId id, States* states, int64_t at, ExprId body) {
    if (!states) return keep(id, at, eval(body));
    if ((*states)[static_cast<size_t>(at)] == kKnown) return;
    Begun begun(*this, *states, std::span(&at, 1));
    keep(id, at, eval(body));
    begun.done();
  }
  void keep(FamilyId id, int64_t at, Scalar v) {
    Tensor& value = out_.values.at(id);
    store(value, at, v);
    if (options_.trap && is_float(value.dtype()) && !std::isfinite(value.get_float(at))) {
      not_finite(id, at);
    }
  }
  [[noreturn]] void not_finite(FamilyId id, int64_t cell) {
    ReadCell read = [&](FamilyId family, const std::vector<int64_t>& at) -> std::optional<Scalar> {
      const Tensor& t = out_.values.at(family);
      int64_t offset = 0;
      for (size_t k = 0; k < at.size(); ++k) {
        if (at[k] < 0 || at[k] >= t.shape()[k]) return std::nullopt;
        offset = offset * t.shape()[k] + at[k];
      }
      return load(t, offset);
    };
    double value = out_.values.at(id).get_float(cell);
    throw Fault{{Code::E0812, not_finite_text(m_, id, index_of(id, cell), value, out_.params, read),
                 statement_}};
  }
  std::vector<int64_t> index_of(FamilyId id, int64_t cell) const {
    const std::vector<int64_t>& shape = shape_of(id);
    std::vector<int64_t> index = shape;
    for (size_t k = index.size(); k-- > 0;) {
      index[k] = cell % shape[k];
      cell /= shape[k];
    }
    return index;
  }

  // A cell that another one reads, in the middle of that.
  void demand(FamilyId id, int64_t at) {
    if (depth_ == kMostNested) throw TooDeep{id, at};
    Nested nested(*this);
    const Family& f = m_[id];
    States* states = &states_.at(id);
    if (f.kind == Family::Kind::Table) {
      statement_ = f.span;
      return one(id, states, at, f.cells[static_cast<size_t>(at)]);
    }
    std::vector<int64_t> index = index_of(id, at);
    for (const Clause& c : f.clauses) {
      Box box = box_of(id, c);
      if (!box.contains(index)) continue;
      statement_ = c.span;
      if (const Reduce* r = routed_sum(c)) {  // all cells that one pass over the binders gives
        std::vector<bool> free(index.size(), false);
        for (const Route& route : r->routes) free[route.slot] = true;
        for (size_t k = 0; k < index.size(); ++k) {
          if (!free[k]) box.lo[k] = index[k], box.hi[k] = index[k] + 1;
        }
        if (routed(id, *r, states, box)) return;
      }
      for (uint32_t k = 0; k < index.size(); ++k) set(k, index[k]);
      return one(id, states, at, c.body);
    }
    (*states)[static_cast<size_t>(at)] = kKnown;  // no clause has it
  }

  // Slots and what is known of them, to go on with after a nested cell.
  class Nested {
   public:
    explicit Nested(Evaluator& e) : e_(e), statement_(e.statement_) {
      std::copy(std::begin(e.slots_), std::end(e.slots_), slots_);
      std::copy(std::begin(e.versions_), std::end(e.versions_), versions_);
      ++e_.depth_;
    }
    Nested(const Nested&) = delete;
    ~Nested() {
      std::copy(std::begin(slots_), std::end(slots_), e_.slots_);
      std::copy(std::begin(versions_), std::end(versions_), e_.versions_);
      e_.statement_ = statement_;
      --e_.depth_;
    }

   private:
    Evaluator& e_;
    Span statement_;
    int64_t slots_[kMaxSlots];
    uint64_t versions_[kMaxSlots + 1];
  };

  // Cells that are being computed. Unless they are done, they are unknown again, and the operations
  // for them do not count.
  class Begun {
   public:
    Begun(Evaluator& e, States& states, std::span<const int64_t> cells)
        : e_(e), states_(states), cells_(cells), before_(std::exchange(e.out_.operations, 0)) {
      for (int64_t at : cells_) states_[static_cast<size_t>(at)] = kBegun;
    }
    Begun(const Begun&) = delete;
    ~Begun() {
      for (int64_t at : cells_) states_[static_cast<size_t>(at)] = done_ ? kKnown : kUnknown;
      if (done_) e_.finished_operations_ += e_.out_.operations;
      e_.out_.operations = before_;
    }
    void done() { done_ = true; }

   private:
    Evaluator& e_;
    States& states_;
    std::span<const int64_t> cells_;
    uint64_t before_;
    bool done_ = false;
  };

  struct Box {
    std::vector<int64_t> lo, hi;
    bool contains(const std::vector<int64_t>& at) const {
      for (size_t k = 0; k < at.size(); ++k) {
        if (at[k] < lo[k] || at[k] >= hi[k]) return false;
      }
      return true;
    }
    // Of a cell, in order.
    size_t number(const int64_t* at) const {
      int64_t out = 0;
      for (size_t k = 0; k < lo.size(); ++k) out = out * (hi[k] - lo[k]) + at[k] - lo[k];
      return static_cast<size_t>(out);
    }
  };
  Box box_of(FamilyId id, const Clause& c) const {
    Box out;
    for (size_t k = 0; k < c.box.size(); ++k) {
      out.lo.push_back(std::max<int64_t>(0, extent(c.box[k].lo)));
      out.hi.push_back(std::min(shape_of(id)[k], extent(c.box[k].hi)));
    }
    return out;
  }
  int64_t extent(ExprId e) const { return eval_extent(m_, e, out_.params); }
  const std::vector<int64_t>& shape_of(FamilyId id) const { return out_.values.at(id).shape(); }
  States* states_of(FamilyId id) {
    if (states_.empty()) return nullptr;
    auto it = states_.find(id);
    return it == states_.end() ? nullptr : &it->second;
  }
  const Reduce* routed_sum(const Clause& c) const {
    const auto* r = get_if<Reduce>(m_, c.body);
    return r && !r->routes.empty() ? r : nullptr;
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

  int64_t address(const Tensor& value) const {
    int64_t at = 0;
    for (size_t k = 0; k < value.shape().size(); ++k) at = at * value.shape()[k] + slots_[k];
    return at;
  }

  // One pass over the binders; each body is added to the address its routes name. False: some of
  // the cells are computed already, or by now, so each has to be computed alone.
  bool routed(FamilyId id, const Reduce& r, States* states, const Box& box) {
    const Tensor& value = out_.values.at(id);
    std::vector<int64_t> at;
    cells(box.lo, box.hi, 0, {}, [&] { at.push_back(address(value)); });
    if (!states) {
      add_up(id, r, box, at);
      return true;
    }
    for (int64_t cell : at) {
      if ((*states)[static_cast<size_t>(cell)] != kUnknown) return false;
    }
    try {
      Begun begun(*this, *states, at);
      add_up(id, r, box, at);
      begun.done();
    } catch (const ReadsItself&) { return false; }
    return true;
  }

  // `at`: the addresses of the box's cells, in order.
  void add_up(FamilyId id, const Reduce& r, const Box& box, const std::vector<int64_t>& at) {
    Tensor& value = out_.values.at(id);
    bool real = is_float(value.dtype());
    std::vector<FloatSum> sums(real ? at.size() : 0);
    for (int64_t cell : at) store(value, cell, {.i = 0});
    std::vector<bool> skip(box.lo.size(), false);
    for (const Route& route : r.routes) skip[route.slot] = true;
    cells(box.lo, box.hi, 0, skip, [&] {
      binders(r, 0, [&] {
        std::vector<int64_t> target;
        for (const Route& route : r.routes) {
          int64_t t = eval(route.to).i;
          if (t < box.lo[route.slot] || t >= box.hi[route.slot]) return true;
          target.push_back(t);
        }
        Scalar body = eval(r.body);
        for (size_t k = 0; k < target.size(); ++k) slots_[r.routes[k].slot] = target[k];
        int64_t cell = address(value);
        if (real) {
          sums[box.number(slots_)].add(body.f);
        } else {
          store(value, cell, combine(ReduceOp::Sum, value.dtype(), load(value, cell), body));
        }
        return true;
      });
    });
    for (size_t i = 0; i < sums.size(); ++i) keep(id, at[i], {.f = sums[i].value()});
  }

  // Visits the cells where the gate holds; `body` returns false to stop early. What the gate says
  // about indices alone is asked as soon as they are known.
  bool binders(const Reduce& r, size_t k, const std::function<bool()>& body) {
    if (auto known = tests_.find(&r); known != tests_.end()) {
      for (ExprId test : known->second[k]) {
        if (eval(test).i == 0) return true;
      }
    }
    if (k == r.over.size()) {
      ++out_.operations;
      if (r.gate && eval(r.gate).i == 0) return true;
      return body();
    }
    int64_t lo = eval(r.over[k].lo).i, hi = eval(r.over[k].hi).i;
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
    if (n.op == Op::Factor) return factor_node(n, x);
    EIN_CHECK(n.op != Op::Moved, "the ranks of a module are evaluated as one (shard/joint.h)");
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
    if (!v) throw Fault{{Code::E0806, failure_text(n.op, type, b.i), x.span, statement_}};
    return *v;
  }

  // Each matrix is computed once for the indices that its operands depend on.
  Scalar factor_node(const Apply& n, const Expr& x) {
    std::vector<int64_t> key = {n.args[0].v, n.args[3].v, n.args[4].v};
    for (uint32_t k = 0; k < kMaxSlots; ++k) {
      if ((m_[n.args[3]].free | m_[n.args[4]].free) >> k & 1) key.push_back(slots_[k]);
    }
    auto which = static_cast<Factor>(get_if<IntLit>(m_, n.args[0])->value);
    int64_t i = eval(n.args[1]).i, j = eval(n.args[2]).i;
    auto it = matrices_.find(key);
    if (it == matrices_.end()) {
      constexpr size_t kMostKept = 4096;
      if (matrices_.size() > kMostKept) matrices_.clear();
      bool twice = m_[n.args[3]].type == DType::F64;
      it = matrices_
               .emplace(std::move(key), twice ? factor<double>(which, n) : factor<float>(which, n))
               .first;
    }
    const Matrix& made = it->second;
    EIN_CHECK(i >= 0 && i < made.rows && j >= 0 && j < made.cols, "a cell outside of a matrix");
    return {.f = round_to(x.type, made.cells[static_cast<size_t>(i * made.cols + j)])};
  }
  struct Matrix {
    int64_t rows, cols;
    std::vector<double> cells;
  };
  template <class T>
  Matrix factor(Factor which, const Apply& n) {
    int64_t rows = 0, cols = 0, height = 0;
    std::vector<T> a = collect<T>(n.args[3], rows, cols), out;
    if (is_solve(which)) out = collect<T>(n.args[4], height, height);
    FactorShape shape = factor_shape(which, rows, cols);
    out.resize(static_cast<size_t>(shape.rows * shape.cols));
    factor_plain(which, rows, cols, a.data(), 1, out.data());
    return {shape.rows, shape.cols, std::vector<double>(out.begin(), out.end())};
  }
  template <class T>
  std::vector<T> collect(ExprId e, int64_t& rows, int64_t& cols) {
    const Reduce& r = *get_if<Reduce>(m_, e);
    std::vector<T> cells;
    rows = std::max<int64_t>(0, eval(r.over[0].hi).i);
    if (r.over.size() > 1) cols = std::max<int64_t>(0, eval(r.over[1].hi).i);
    binders(r, 0, [&] {
      cells.push_back(static_cast<T>(eval(r.body).f));
      return true;
    });
    return cells;
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
    int64_t at = 0;
    for (size_t k = 0; k < n.at.size(); ++k) {
      int64_t i = eval(n.at[k]).i;
      if (i < 0 || i >= t.shape()[k]) out_of_bounds(n, x.span);
      at = at * t.shape()[k] + i;
    }
    if (const States* states = states_of(n.family)) {
      uint8_t state = (*states)[static_cast<size_t>(at)];
      if (state == kBegun) throw ReadsItself{};
      if (state == kUnknown) demand(n.family, at);
    }
    return load(t, at);
  }

  [[noreturn]] void out_of_bounds(const Access& n, Span at_span) {
    std::vector<int64_t> at;
    for (ExprId e : n.at) at.push_back(eval(e).i);
    throw Fault{
        {Code::E0803,
         fmt::format("`{}` has no cell at [{}]: its extents are [{}]", text(m_[n.family].name),
                     fmt::join(at, ", "), fmt::join(shape_of(n.family), ", ")),
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
      case ReduceOp::ArgMin:
      case ReduceOp::Collect: break;
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
  // Everything is computed anew.
  void forget() {
    for (uint64_t& v : versions_) v = ++clock_;
  }
  uint64_t version(int32_t level) const { return versions_[static_cast<size_t>(level + 1)]; }

  Module& m_;
  EvalResult& out_;
  const Tests& tests_;
  const Watch& watch_;
  const EvalOptions& options_;
  Span statement_;  // being computed
  std::vector<Scalar> memo_;
  std::vector<uint64_t> stamp_;
  Calls calls_;
  uint64_t clock_ = 0;
  uint64_t versions_[kMaxSlots + 1] = {};
  int64_t slots_[kMaxSlots] = {};
  std::unordered_map<FamilyId, States> states_;  // of the group that is computed, if it is cyclic
  std::map<std::vector<int64_t>, Matrix> matrices_;  // of Op::Factor
  int depth_ = 0;                                    // of cells computed because another reads them
  uint64_t finished_operations_ = 0;                 // of finished cells of cyclic groups
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

void find_tests(const Module& m, ExprId body, Evaluator::Tests& out) {
  for_each_node(m, body, [&](ExprId e) {
    const auto* r = get_if<Reduce>(m, e);
    if (!r || !r->gate || out.contains(r)) return;
    auto& tests = out[r];
    tests.resize(r->over.size() + 1);
    std::vector<ExprId> parts;
    conjuncts(m, r->gate, parts);
    for (ExprId part : parts) {
      const auto* compares = get_if<Apply>(m, part);
      if (!compares || compares->args.size() != 2) continue;
      if (!is_pure(m, compares->args[0]) || !is_pure(m, compares->args[1])) continue;
      int32_t known_after = m[part].level() - static_cast<int32_t>(r->first) + 1;
      if (known_after > 0) tests[static_cast<size_t>(known_after)].push_back(part);
    }
  });
}

}  // namespace

EvalResult evaluate(Module& m, const Inputs& inputs, const std::vector<FamilyId>& wanted,
                    const Watch& watch, const EvalOptions& options) {
  EvalResult out;
  std::vector<EvalGroup> order = eval_order(m, wanted);
  std::vector<FamilyId> needed;
  for (const EvalGroup& group : order) {
    needed.insert(needed.end(), group.members.begin(), group.members.end());
  }
  // Identities are made now: the evaluator's tables are as large as the arena.
  for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min}) {
    for (DType t : {DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::F16,
                    DType::BF16, DType::F32, DType::F64}) {
      identity(m, op, t);
    }
  }
  identity(m, ReduceOp::All, DType::Bool);
  identity(m, ReduceOp::Any, DType::Bool);
  Evaluator::Tests tests;
  for (FamilyId f : needed) {
    if (options.check_overflow) break;  // asked in the order in which they are written
    for_each_body(m, f, [&](ExprId body) { find_tests(m, body, tests); });
  }
  auto params = bind_params(m, inputs, needed);
  if (auto* e = std::get_if<RuntimeError>(&params)) {
    out.error = *e;
    return out;
  }
  out.params = std::get<std::vector<int64_t>>(params);
  std::vector<FamilyId> finished;
  try {
    Evaluator evaluator(m, out, tests, watch, options);
    for (FamilyId f : needed) evaluator.allocate(f, inputs);
    for (const EvalGroup& group : order) {
      evaluator.run(group);
      finished.insert(finished.end(), group.members.begin(), group.members.end());
    }
  } catch (const Stop& stop) {
    out.stopped = stop.where;
    std::unordered_map<FamilyId, Tensor> kept;
    for (FamilyId f : finished) kept[f] = out.values.at(f);
    out.values = std::move(kept);
  } catch (const Fault& fault) { out.error = fault.error; } catch (const RuntimeError& e) {
    out.error = e;
  } catch (const std::bad_alloc&) { out.error = RuntimeError{Code::E0807, "out of memory"}; }
  return out;
}

}  // namespace ein::core

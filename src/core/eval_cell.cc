#include "core/eval_cell.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/match.h"
#include "core/eval.h"
#include "core/eval_call.h"

namespace ein::core {
namespace {

constexpr size_t kMostOperands = 8;

std::string number_text(DType type, Scalar v) {
  if (type == DType::Bool) return v.i ? "true" : "false";
  if (!is_float(type)) return std::to_string(v.i);
  if (std::isnan(v.f)) return "NaN";
  if (std::isinf(v.f)) return v.f > 0 ? "infinite" : "minus infinite";
  return type == DType::F64 ? fmt::format("{}", v.f) : fmt::format("{}", static_cast<float>(v.f));
}

// A cell that is not kept any more, or a call that fails.
struct Unknown {};

// Evaluates the formula of a cell and notes what it reads.
class Formula {
 public:
  Formula(const Module& m, const std::vector<int64_t>& params, const ReadCell& read)
      : m_(m), params_(params), read_(read), calls_(m, false) {}

  std::vector<std::string> operands(ExprId body, const std::vector<int64_t>& at) {
    std::copy(at.begin(), at.end(), slots_);
    try {
      eval(body);
    } catch (const Unknown&) {}
    return std::move(noted_);
  }

 private:
  void note(std::string words) {
    bool known = std::find(noted_.begin(), noted_.end(), words) != noted_.end();
    if (notes_ && !known && noted_.size() < kMostOperands) noted_.push_back(std::move(words));
  }

  // As in the evaluator: a value holds until a slot that it depends on changes.
  Scalar eval(ExprId e) {
    const Expr& x = m_[e];
    uint64_t now = versions_[static_cast<size_t>(x.level() + 1)];
    if (auto it = known_.find(e); it != known_.end() && it->second.first == now) {
      return it->second.second;
    }
    Scalar v = compute(x);
    known_[e] = {now, v};
    return v;
  }
  void set(uint32_t slot, int64_t value) {
    slots_[slot] = value;
    versions_[slot + 1] = ++clock_;
  }
  void forget() {
    for (uint64_t& v : versions_) v = ++clock_;
  }

  Scalar compute(const Expr& x) {
    return match(
        x.node, [](const FloatLit& n) { return Scalar{.f = n.value}; },
        [](const IntLit& n) { return Scalar{.i = n.value}; },
        [](const BoolLit& n) { return Scalar{.i = n.value}; },
        [&](const Slot& n) { return Scalar{.i = slots_[n.n]}; },
        [&](const ParamRef& n) { return Scalar{.i = params_[n.param.v]}; },
        [&](const Affine& n) {
          int64_t sum = n.constant;
          for (const auto& t : n.terms) sum += t.coef * eval(t.atom).i;
          return Scalar{.i = sum};
        },
        [&](const Apply& n) { return apply(n, x); }, [&](const Access& n) { return access(n, x); },
        [&](const Reduce& n) { return reduce(n, x); },
        [](const Request&) -> Scalar { throw Unknown{}; }, [&](const Call& n) { return call(n); },
        [](const Arg&) -> Scalar { throw Unknown{}; });
  }

  Scalar apply(const Apply& n, const Expr& x) {
    Scalar a = eval(n.args[0]);
    if (n.op == Op::Select) return eval(n.args[a.i ? 1 : 2]);
    if (n.op == Op::And) return a.i ? eval(n.args[1]) : a;
    if (n.op == Op::Or) return a.i ? a : eval(n.args[1]);
    Scalar b = n.args.size() > 1 ? eval(n.args[1]) : Scalar{.i = 0};
    auto v = apply_scalar(n.op, m_[n.args[0]].type, x.type, a, b);
    if (!v) throw Unknown{};
    return *v;
  }

  Scalar access(const Access& n, const Expr& x) {
    std::vector<int64_t> at;
    bool notes = std::exchange(notes_, false);  // addresses are no operands
    for (ExprId e : n.at) at.push_back(eval(e).i);
    notes_ = notes;
    auto v = read_(n.family, at);
    std::string cell = m_[n.family].spelled();
    if (!at.empty()) cell += fmt::format("[{}]", fmt::join(at, ", "));
    if (!v) {
      note(fmt::format("`{}` is not kept", cell));
      throw Unknown{};
    }
    note(fmt::format("`{}` is {}", cell, number_text(x.type, *v)));
    return *v;
  }

  Scalar call(const Call& n) {
    std::vector<Scalar> args;
    for (ExprId a : n.args) args.push_back(eval(a));
    try {
      return calls_.call(n.function, args);
    } catch (const Calls::Fault&) { throw Unknown{}; }
  }

  // The operands of the first term that is not finite; if there is none, the result itself.
  Scalar reduce(const Reduce& r, const Expr& x) {
    bool notes = std::exchange(notes_, false), found = false, first = true;
    Scalar acc = is_float(x.type) ? Scalar{.f = r.op == ReduceOp::Prod ? 1.0 : 0.0}
                                  : Scalar{.i = r.op == ReduceOp::Prod || r.op == ReduceOp::All};
    if (r.op == ReduceOp::ArgMax || r.op == ReduceOp::ArgMin) acc.i = -1;
    Scalar best{.i = 0};
    binders(r, 0, [&] {
      Scalar v = eval(r.body);
      if (notes && !found && is_float(m_[r.body].type) && !std::isfinite(v.f)) {
        found = notes_ = true;
        forget();
        eval(r.body);
        notes_ = false;
        note_place(r, notes);
      }
      combine(r, v, acc, best, first);
      first = false;
    });
    notes_ = notes;
    if (is_float(x.type)) acc.f = round_to(x.type, acc.f);
    if (!found) note(fmt::format("its `{}` is {}", name_of(r.op), number_text(x.type, acc)));
    return acc;
  }
  void note_place(const Reduce& r, bool notes) {
    std::vector<std::string> at;
    for (size_t k = 0; k < r.over.size(); ++k) {
      at.push_back(
          fmt::format("{} = {}", r.names[k] ? text(r.names[k]) : "_", slots_[r.first + k]));
    }
    notes_ = notes;
    note(fmt::format("in its `{}` at {}", name_of(r.op), fmt::join(at, ", ")));
    notes_ = false;
  }
  void combine(const Reduce& r, Scalar v, Scalar& acc, Scalar& best, bool first) {
    DType type = m_[r.body].type;
    auto beats = [&](bool max, Scalar a, Scalar b) {
      if (!is_float(type)) return max ? a.i > b.i : a.i < b.i;
      return !std::isnan(b.f) && (std::isnan(a.f) || (max ? a.f > b.f : a.f < b.f));
    };
    bool max = r.op == ReduceOp::Max || r.op == ReduceOp::ArgMax;
    switch (r.op) {
      case ReduceOp::Sum: is_float(type) ? void(acc.f += v.f) : void(acc.i += v.i); break;
      case ReduceOp::Prod: is_float(type) ? void(acc.f *= v.f) : void(acc.i *= v.i); break;
      case ReduceOp::All: acc.i = acc.i && v.i; break;
      case ReduceOp::Any: acc.i = acc.i || v.i; break;
      case ReduceOp::Max:
      case ReduceOp::Min:
        if (first || beats(max, v, acc)) acc = v;
        break;
      case ReduceOp::ArgMax:
      case ReduceOp::ArgMin:
        if (first || beats(max, v, best)) best = v, acc.i = slots_[r.first];
        break;
      case ReduceOp::Collect: throw Unknown{};
    }
  }

  void binders(const Reduce& r, size_t k, const std::function<void()>& body) {
    if (k == r.over.size()) {
      if (r.gate && eval(r.gate).i == 0) return;
      for (const Route& route : r.routes) {
        if (eval(route.to).i != slots_[route.slot]) return;
      }
      return body();
    }
    int64_t lo = eval(r.over[k].lo).i, hi = eval(r.over[k].hi).i;
    for (int64_t i = lo; i < hi; ++i) {
      set(r.first + static_cast<uint32_t>(k), i);
      binders(r, k + 1, body);
    }
  }

  const Module& m_;
  const std::vector<int64_t>& params_;
  const ReadCell& read_;
  Calls calls_;
  bool notes_ = true;
  std::vector<std::string> noted_;
  int64_t slots_[kMaxSlots] = {};
  uint64_t clock_ = 0;
  uint64_t versions_[kMaxSlots + 1] = {};
  std::unordered_map<ExprId, std::pair<uint64_t, Scalar>> known_;
};

// The formula of a cell; invalid when no clause has it.
ExprId formula_of(const Module& m, FamilyId id, const std::vector<int64_t>& at,
                  const std::vector<int64_t>& params) {
  const Family& f = m[id];
  if (f.kind == Family::Kind::Table) {
    int64_t cell = 0;
    for (size_t k = 0; k < at.size(); ++k) {
      cell = cell * eval_extent(m, f.coords[k].extent, params) + at[k];
    }
    return f.cells[static_cast<size_t>(cell)];
  }
  for (const Clause& c : f.clauses) {
    bool inside = true;
    for (size_t k = 0; k < at.size(); ++k) {
      inside &= eval_extent(m, c.box[k].lo, params) <= at[k];
      inside &= at[k] < eval_extent(m, c.box[k].hi, params);
    }
    if (inside) return c.body;
  }
  return {};
}

}  // namespace

std::string address_text(const Family& f, const std::vector<int64_t>& at) {
  std::vector<std::string> out;
  for (size_t k = 0; k < at.size(); ++k) {
    out.push_back(fmt::format("{} = {}", f.coords[k].name ? text(f.coords[k].name) : "_", at[k]));
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

std::string not_finite_text(const Module& m, FamilyId family, const std::vector<int64_t>& at,
                            double value, const std::vector<int64_t>& params,
                            const ReadCell& read) {
  const Family& f = m[family];
  std::string where = at.empty() ? "" : " at " + address_text(f, at);
  std::string out =
      fmt::format("`{}` is {}{}", f.spelled(), number_text(DType::F64, Scalar{.f = value}), where);
  if (f.kind == Family::Kind::Input) return "input " + out;
  ExprId body = formula_of(m, family, at, params);
  std::vector<std::string> operands;
  if (body) operands = Formula(m, params, read).operands(body, at);
  return operands.empty() ? out : fmt::format("{}; {}", out, fmt::join(operands, ", "));
}

}  // namespace ein::core

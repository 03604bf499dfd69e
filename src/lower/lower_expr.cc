// Scalar expressions.
#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "base/match.h"
#include "core/cost.h"
#include "core/rewrite.h"
#include "core/total.h"
#include "lower/lowering.h"

namespace ein::lower {

using core::ExprId;
using core::Op;

namespace {

// Collects what is evaluated whenever `e` is: everything except lazy sides and the insides of
// loops.
void evaluated(const core::Module& m, ExprId e, std::unordered_set<ExprId>& out,
               std::vector<ExprId>& order) {
  if (!out.insert(e).second) return;
  match(
      m[e].node, [](const core::FloatLit&) {}, [](const core::IntLit&) {},
      [](const core::BoolLit&) {}, [](const core::Slot&) {}, [](const core::ParamRef&) {},
      [&](const core::Affine& n) {
        for (const auto& t : n.terms) evaluated(m, t.atom, out, order);
      },
      [&](const core::Apply& n) {
        bool lazy = n.op == Op::Select || n.op == Op::And || n.op == Op::Or;
        for (size_t i = 0; i < (lazy ? 1 : n.args.size()); ++i) evaluated(m, n.args[i], out, order);
      },
      [&](const core::Access& n) {
        for (ExprId a : n.at) evaluated(m, a, out, order);
      },
      [&](const core::Reduce& n) {
        evaluated(m, n.over[0].lo, out, order);
        evaluated(m, n.over[0].hi, out, order);
      },
      [](const core::Request&) { EIN_UNREACHABLE("a request reached lowering"); },
      [&](const core::Call& n) {
        for (ExprId a : n.args) evaluated(m, a, out, order);
      },
      [](const core::Arg&) {});
  order.push_back(e);
}

}  // namespace

void Lowering::count_uses(ExprId body) {
  uses.clear();
  core::for_each_node(
      m, body, [&](ExprId e) { core::for_each_child(m, e, [&](ExprId child) { ++uses[child]; }); });
}

Value Lowering::zero(DType type) {
  if (is_float(type)) return {make(loops::FloatConst{0}, type), 0};
  return integer(0, type);
}

Value Lowering::lower(ExprId e) {
  if (const Value* v = known(e)) return *v;
  const core::Expr expr = m[e];  // a copy, because lowering adds nodes to the arena
  Value v = match(
      expr.node,
      [&](const core::FloatLit& n) {
        return Value{make(loops::FloatConst{n.value}, expr.type), 0};
      },
      [&](const core::IntLit& n) { return integer(n.value, expr.type); },
      [&](const core::BoolLit& n) { return integer(n.value ? 1 : 0, DType::Bool); },
      [&](const core::Slot& n) {
        EIN_CHECK(n.n < slots.size() && slots[n.n].expr, "a slot is not bound");
        return slots[n.n];
      },
      [&](const core::ParamRef& n) {
        return Value{make(loops::Param{n.param.v}, DType::I64), 0};
      },
      [&](const core::Affine& n) {
        bool checked = plan.overflow == core::Overflow::Stops && core::may_overflow(m, n);
        return checked ? checked_affine(n, expr.span) : affine(n);
      },
      [&](const core::Apply& n) { return apply(e, n, expr.type); },
      [&](const core::Access& n) { return access(e, n, expr.type); },
      [&](const core::Reduce& n) { return reduce(e, n); },
      [](const core::Request&) -> Value { EIN_UNREACHABLE("a request reached lowering"); },
      [&](const core::Call& n) { return call(n, expr.type); },
      [&](const core::Arg& n) { return params.at(n.n); });
  if (std::holds_alternative<core::Slot>(expr.node) || std::holds_alternative<core::Arg>(expr.node))
    return v;
  if (uses[e] > 1) v = bind(v);
  scopes[v.depth]->known[e] = v;
  return v;
}

Value Lowering::affine(const core::Affine& n) {
  struct Term {
    Value v;
    int64_t coef;
  };
  std::vector<Term> terms;
  for (const auto& t : n.terms) terms.push_back({lower(t.atom), t.coef});
  // Terms of outer scopes first, so that what does not change in an inner loop is added up outside
  // of it.
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Term& a, const Term& b) { return a.v.depth < b.v.depth; });
  std::optional<Value> sum;
  if (n.constant != 0) sum = integer(n.constant);
  for (const Term& t : terms) {
    if (t.coef == -1 && sum) {
      sum = op(Op::Sub, {*sum, t.v}, DType::I64);
      continue;
    }
    Value v = t.coef == 1 ? t.v : op(Op::Mul, {t.v, integer(t.coef)}, DType::I64);
    sum = sum ? op(Op::Add, {*sum, v}, DType::I64) : v;
  }
  return *sum;
}

// One operation after the other as in the reference, because each may stop the program.
Value Lowering::checked_affine(const core::Affine& n, Span at) {
  auto step = [&](Op o, std::vector<Value> operands) {
    uint32_t depth = fits(o, DType::I64, operands, at);
    Value out = op(o, std::move(operands), DType::I64);
    out.depth = std::max(out.depth, depth);
    return bind(out);
  };
  std::optional<Value> sum;
  if (n.constant != 0) sum = integer(n.constant);
  for (const auto& t : n.terms) {
    Value v = lower(t.atom);
    if (t.coef != 1) v = step(Op::Mul, {integer(t.coef), v});
    sum = sum ? step(Op::Add, {*sum, v}) : v;
  }
  return *sum;
}

// Stops the program unless the result fits its type. Binds the operands, and returns the scope of
// the check.
uint32_t Lowering::fits(Op o, DType type, std::vector<Value>& operands, Span at) {
  uint32_t depth = 0;
  std::vector<Value> values;
  for (Value& a : operands) {
    a = bind(a);
    depth = std::max(depth, a.depth);
    values.push_back(type == DType::I64 ? a : op(Op::Cast, {a}, DType::I64));
  }
  Value bad{make(loops::Overflows{o, exprs_of(operands)}, DType::Bool), depth};
  loops::Site site{loops::Site::Kind::Overflow, {}, 0, at};
  site.op = o;
  site.type = type;
  return check(op(Op::Not, {bad}, DType::Bool), std::move(site), values);
}

Value Lowering::apply(ExprId e, const core::Apply& n, DType type) {
  switch (n.op) {
    case Op::Select:
    case Op::And:
    case Op::Or: return choose(e, n, type);
    case Op::Div:
    case Op::Mod:
    case Op::Shl:
    case Op::Shr:
      if (is_int(type)) return divide_or_shift(e, n, type);
      break;
    default: break;
  }
  std::vector<Value> args;
  for (ExprId a : n.args) args.push_back(lower(a));
  uint32_t depth = 0;
  if (plan.overflow == core::Overflow::Stops && core::may_overflow(m, n)) {
    depth = fits(n.op, type, args, m[e].span);
  }
  Value out = op(n.op, std::move(args), type);
  out.depth = std::max(out.depth, depth);
  return out;
}

Value Lowering::divide_or_shift(ExprId e, const core::Apply& n, DType type) {
  Value a = lower(n.args[0]), b = lower(n.args[1]);
  uint32_t depth = std::max(a.depth, b.depth);
  auto safe = outermost(depth, [&](const core::Facts& f) { return core::succeeds(m, n, f); });
  if (!safe) {
    b = bind(b);
    if (n.op == Op::Shl || n.op == Op::Shr) {
      loops::Site site{loops::Site::Kind::Shift, {}, 0, m[e].span};
      site.type = type;
      Value by = bind(type == DType::I64 ? b : op(Op::Cast, {b}, DType::I64));
      Value low = compare(Op::Ge, by, integer(0));
      Value high = compare(Op::Lt, by, integer(8 * static_cast<int64_t>(size_of(type))));
      safe = check(op(Op::And, {low, high}, DType::Bool), std::move(site), {by});
    } else {
      loops::Site site{loops::Site::Kind::DivideByZero, {}, 0, m[e].span};
      safe = check(compare(Op::Ne, b, integer(0, type)), std::move(site), {});
    }
  }
  std::vector<Value> operands{bind(a), bind(b)};
  if (plan.overflow == core::Overflow::Stops && core::may_overflow(m, n)) {
    safe = std::max(*safe, fits(n.op, type, operands, m[e].span));
  }
  Value out = op(n.op, std::move(operands), type);
  out.depth = std::max(out.depth, *safe);
  return out;
}

bool Lowering::cheap(ExprId e, const core::Facts& facts) {
  return core::cost(m, e) <= static_cast<uint64_t>(plan.tuning.branch_cost) &&
         core::total(m, e, facts, plan.overflow);
}

// The side of `n` that is always taken at this place, if the ranges of loops and the conditions
// around decide that.
std::optional<Value> Lowering::only_side(const core::Apply& n) {
  auto take = [&](ExprId side, auto asks) -> std::optional<Value> {
    auto holds = [&](const core::Facts& f) { return asks(m, n.args[0], f); };
    if (!holds(scopes.back()->facts)) return {};
    Value v = lower(side);
    v.depth = std::max(v.depth, *outermost(v.depth, holds));
    return v;
  };
  ExprId yes = n.op == Op::Or ? core::bool_lit(m, true) : n.args[1];
  ExprId no = n.op == Op::And ? core::bool_lit(m, false) : n.args.back();
  if (auto v = take(yes, core::proves)) return v;
  return take(no, core::refutes);
}

namespace {

// A long `else if` or `match`: conditions and values alternate, and the last `else` comes at the
// end.
std::vector<ExprId> chain_of(const core::Module& m, const core::Apply& first) {
  std::vector<ExprId> out;
  for (const core::Apply* n = &first; n && n->op == Op::Select;) {
    out.insert(out.end(), {n->args[0], n->args[1]});
    ExprId rest = n->args[2];
    n = core::get_if<core::Apply>(m, rest);
    if (!n || n->op != Op::Select) out.push_back(rest);
  }
  return out;
}

}  // namespace

Value Lowering::choose(ExprId e, const core::Apply& n, DType type) {
  if (auto only = only_side(n)) return *only;
  const core::Facts& here = scopes.back()->facts;
  // With thousands of nested branches, LLVM's time grows faster than their number. If every part is
  // cheap and cannot fail, they become selections one after the other.
  if (n.op == Op::Select) {
    const std::vector<ExprId> chain = chain_of(m, n);
    if (chain.size() > 2 * static_cast<size_t>(plan.tuning.chain_length) &&
        std::all_of(chain.begin(), chain.end(), [&](ExprId x) { return cheap(x, here); })) {
      Value out = lower(chain.back());
      for (size_t i = chain.size() - 1; i >= 2; i -= 2) {
        Value cond = lower(chain[i - 2]), value = lower(chain[i - 1]);
        out = bind(op(Op::Select, {cond, value, out}, type));
      }
      return out;
    }
  }
  bool strict = true;
  for (size_t i = 1; i < n.args.size(); ++i) strict = strict && cheap(n.args[i], here);
  if (strict) {
    std::vector<Value> args;
    for (ExprId a : n.args) args.push_back(lower(a));
    return op(n.op, std::move(args), type);
  }
  return at_scope(home(e), [&] {
    switch (n.op) {
      case Op::And: return branch(n.args[0], n.args[1], core::bool_lit(m, false), type);
      case Op::Or: return branch(n.args[0], core::bool_lit(m, true), n.args[1], type);
      default: return branch(n.args[0], n.args[1], n.args[2], type);
    }
  });
}

// Computes what both sides evaluate once, before the branch. Otherwise code that the sides of
// nested selections share would double at every level.
void Lowering::share(ExprId then, ExprId otherwise) {
  std::unordered_set<ExprId> in_then, in_otherwise;
  std::vector<ExprId> order, ignored;
  evaluated(m, then, in_then, order);
  evaluated(m, otherwise, in_otherwise, ignored);
  for (ExprId e : order) {
    const core::Node& n = m[e].node;
    bool work = std::holds_alternative<core::Apply>(n) || std::holds_alternative<core::Access>(n) ||
                std::holds_alternative<core::Reduce>(n) || std::holds_alternative<core::Call>(n);
    if (work && in_otherwise.contains(e)) {
      uses[e] = std::max(uses[e], 2u);
      lower(e);
    }
  }
}

Value Lowering::branch(ExprId cond, ExprId then, ExprId otherwise, DType type) {
  Value c = lower(cond);
  if (c.depth < top()) c = bind(c);
  share(then, otherwise);
  loops::VarId result = variable("s", type);
  emit(top(), {loops::Declare{result, zero(type).expr}});
  auto side = [&](ExprId fact, ExprId value) {
    core::assume(m, fact, push(Scope::Kind::Branch).facts);
    Value v = lower(value);
    emit(top(), {loops::Assign{result, v.expr}});
    return std::move(pop()->block);
  };
  loops::If out{c.expr, {}, {}};
  out.then = side(cond, then);
  out.otherwise = side(core::negate(m, cond), otherwise);
  emit(top(), {std::move(out)});
  return get(result, top());
}

// A call may stop the program and may take long, so it stays at its place.
Value Lowering::call(const core::Call& n, DType type) {
  std::vector<Value> with;
  for (ExprId a : n.args) with.push_back(bind(lower(a)));
  auto number = std::find(functions.begin(), functions.end(), n.function) - functions.begin();
  if (number == static_cast<ptrdiff_t>(functions.size())) functions.push_back(n.function);
  loops::VarId result = variable("c", type);
  loops::Site site{loops::Site::Kind::Call, text(m.functions[n.function].name), 0, {}};
  site.statement = statement;
  emit(top(), {loops::Invoke{result, static_cast<uint32_t>(number), exprs_of(with),
                             params.empty() ? p.sites.add(std::move(site)) : loops::SiteId{}}});
  return get(result, top());
}

void Lowering::function(core::FunctionId id) {
  const core::Function f = m.functions[id];
  loops::Function out;
  out.name = text(f.name);
  push(Scope::Kind::Kernel);
  slots.clear();
  statement = {};
  for (const auto& param : f.params) {
    out.params.push_back(variable(text(param.name), param.type));
    params.push_back(get(out.params.back(), 0));
  }
  count_uses(f.body);
  out.result = lower(f.body).expr;
  out.body = std::move(pop()->block);
  params.clear();
  out.too_deep = p.sites.add({loops::Site::Kind::TooDeep, out.name, 0, f.span});
  p.functions.push_back(std::move(out));
}

// The value of an access to the cell that this iteration has just computed.
const Value* Lowering::staged_cell(const core::Access& n) const {
  auto it = staged.find(n.family);
  if (it == staged.end()) return nullptr;
  auto variable_of = [&](loops::ExprId e) {
    const auto* get = e ? std::get_if<loops::Get>(&p.exprs[e].node) : nullptr;
    return get ? get->var : loops::VarId{};
  };
  for (size_t k = 0; k < n.at.size(); ++k) {
    uint32_t slot = core::slot_of(m, n.at[k]);
    if (slot >= slots.size()) return nullptr;
    loops::VarId here = variable_of(slots[slot].expr);
    if (!here || here != variable_of(it->second.at[k])) return nullptr;
  }
  return &it->second.value;
}

Value Lowering::access(ExprId e, const core::Access& n, DType type) {
  if (const Value* cell = staged_cell(n)) return *cell;
  std::vector<Value> at;
  uint32_t depth = running.contains(n.family) ? clause_depth : 0;
  for (ExprId a : n.at) {
    at.push_back(lower(a));
    depth = std::max(depth, at.back().depth);
  }
  for (uint32_t k = 0; k < n.at.size(); ++k) {
    ExprId extent = m[n.family].coords[k].extent;
    auto proven = outermost(at[k].depth, [&](const core::Facts& f) {
      return core::proves_in_bounds(m, n.at[k], extent, f);
    });
    if (!proven) {
      for (Value& v : at) v = bind(v, "i");
      // A negative extent counts as zero: then no index is in bounds.
      Value ok =
          op(Op::And, {compare(Op::Ge, at[k], integer(0)), compare(Op::Lt, at[k], lower(extent))},
             DType::Bool);
      loops::Site site{loops::Site::Kind::Bounds, text(m[n.family].name), k, m[e].span};
      proven = check(ok, std::move(site), at);
    }
    depth = std::max(depth, *proven);
  }
  to_window(e, n.family, at);
  to_stored(n.family, at);
  for (Value& v : at) {
    if (v.depth < depth) v = bind(v, "i");
  }
  return {make(loops::Load{buffers.at(n.family), exprs_of(at)}, type), depth};
}

}  // namespace ein::lower

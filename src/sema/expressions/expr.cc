// Expressions: the dispatch over trees, and everything small.
#include <fmt/format.h>

#include "base/match.h"
#include "sema/builtins.h"
#include "sema/expressions/expressions.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/state/meanings.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

core::Op op_of(ast::BinaryOp op) {
  switch (op) {
    case ast::BinaryOp::Add: return core::Op::Add;
    case ast::BinaryOp::Sub: return core::Op::Sub;
    case ast::BinaryOp::Mul: return core::Op::Mul;
    case ast::BinaryOp::Div: return core::Op::Div;
    case ast::BinaryOp::Mod: return core::Op::Mod;
    case ast::BinaryOp::Pow: return core::Op::Pow;
    case ast::BinaryOp::BitAnd: return core::Op::BitAnd;
    case ast::BinaryOp::BitOr: return core::Op::BitOr;
    case ast::BinaryOp::BitXor: return core::Op::BitXor;
    case ast::BinaryOp::Shl: return core::Op::Shl;
    case ast::BinaryOp::Shr: return core::Op::Shr;
    case ast::BinaryOp::Lt: return core::Op::Lt;
    case ast::BinaryOp::Le: return core::Op::Le;
    case ast::BinaryOp::Gt: return core::Op::Gt;
    case ast::BinaryOp::Ge: return core::Op::Ge;
    case ast::BinaryOp::Eq: return core::Op::Eq;
    case ast::BinaryOp::Ne: return core::Op::Ne;
    case ast::BinaryOp::In: return core::Op::Eq;  // of a cell of the set; a comparison too
    case ast::BinaryOp::And: return core::Op::And;
    case ast::BinaryOp::Or: return core::Op::Or;
  }
  return core::Op::Add;
}

Value elaborate_path(Sema& s, Env& env, const ast::Path& path, Span span) {
  if (path.parts.size() != 1) {
    if (const Function* f = function_at(s, env, path, false)) {
      note_definition(s, path.parts.back(), f->fn->name.span);
      return function_value(*f, env, span);
    }
    if (Symbol name = primitive_at(s, env, path)) {
      return primitive_value(*primitive_named(name), env, path.parts.back());
    }
    Definition* d = value_at(s, env, path);
    if (!d) return {};
    note_definition(s, path.parts.back(), d->name.span);
    Value v = read_definition(s, env, *d, span);
    note_value(s, path.parts.back(), v);
    return v;
  }
  Found found = lookup(s, env, path.parts[0]);
  if (found.kind == Found::Kind::None) {
    if (auto f = named_function(s, env, path.parts[0])) return *f;
    report_unknown(s, env, path.parts[0]);
  }
  return found.value;
}

// `b` with its left side known.
Value elaborate_right(Sema& s, Env& env, const ast::Binary& b, Value lhs, Span span) {
  if (b.op == ast::BinaryOp::In) return elaborate_in(s, env, std::move(lhs), b.rhs, span);
  core::Op op = op_of(b.op);
  core::OpClass cls = core::info(op).cls;
  // The right side of && and || is reached only when the left side does not decide.
  size_t conds = env.conds.size();
  if (cls == core::OpClass::Logic && !lhs.poison() && lhs.scalar() && lhs.type == DType::Bool) {
    env.conds.push_back(op == core::Op::And ? lhs.body : core::negate(s.m, lhs.body));
  }
  Value rhs = elaborate(s, env, b.rhs);
  env.conds.resize(conds);
  return apply_binary(s, env, op, std::move(lhs), std::move(rhs), span, b.op_span);
}

// A chain of arithmetic or of `&&` and `||` nests to the left as deep as it is long, so it is
// handled by a loop and not by recursion.
Value elaborate_binary(Sema& s, Env& env, const ast::Binary& b, Span span) {
  core::OpClass cls = core::info(op_of(b.op)).cls;
  bool shadow = env.shadow_ok;
  if (cls == core::OpClass::Compare) env.shadow_ok = true;
  std::vector<TreeId> chain;  // from the outermost left side in
  TreeId first = b.lhs;
  while (cls != core::OpClass::Compare && first) {
    const auto* inner = std::get_if<ast::Binary>(&s[first].node);
    if (!inner || core::info(op_of(inner->op)).cls != cls) break;
    chain.push_back(first);
    first = inner->lhs;
  }
  Value lhs = elaborate(s, env, first);
  for (size_t i = chain.size(); i-- > 0;) {
    Span inner = s[chain[i]].span;
    lhs = elaborate_right(s, env, std::get<ast::Binary>(s[chain[i]].node), std::move(lhs), inner);
    if (!lhs.poison()) lhs.span = inner;
  }
  Value out = elaborate_right(s, env, b, std::move(lhs), span);
  env.shadow_ok = shadow;
  return out;
}

// Whether a condition is made of `given(x)`, so that every call decides it when it is compiled.
bool asks_given(Sema& s, const Env& env, TreeId cond) {
  bool asks = false;
  for_each_tree(s.ast, cond, [&](TreeId e) {
    const auto* call = std::get_if<ast::Call>(&s[e].node);
    asks |= call && spells(s.ast, *call, Builtin::Id::Given) && !find_callee(s, env, call->callee);
  });
  return asks;
}

Value elaborate_if(Sema& s, Env& env, const ast::If& n, Span span) {
  Value cond = condition(s, env, n.cond);
  if (!n.else_block) {
    s.diags.error(Code::E0502, "`if` without `else` has no value")
        .primary(span, "")
        .help("add `else { … }`");
    return {};
  }
  // The other arm may use what was not given.
  const auto* known = cond.poison() ? nullptr : core::get_if<core::BoolLit>(s.m, cond.body);
  if (known && asks_given(s, env, n.cond)) {
    return elaborate(s, env, known->value ? n.then_block : n.else_block);
  }
  size_t conds = env.conds.size();
  bool scalar = !cond.poison() && cond.scalar();
  if (scalar) env.conds.push_back(cond.body);
  Value yes = elaborate(s, env, n.then_block);
  env.conds.resize(conds);
  if (scalar) env.conds.push_back(core::negate(s.m, cond.body));
  Value no = elaborate(s, env, n.else_block);
  env.conds.resize(conds);
  return select(s, env, std::move(cond), std::move(yes), std::move(no), span);
}

// Calls, fields, accesses and requests: what tools ask for. Names are noted where they are looked up.
void note_expression(Sema& s, TreeId id, const Value& v) {
  const ast::ExprNode& n = s[id].node;
  bool asked = std::holds_alternative<ast::Call>(n) || std::holds_alternative<ast::Field>(n) ||
               std::holds_alternative<ast::Index>(n) || std::holds_alternative<ast::Request>(n);
  if (asked) note_tree(s, id, v);
}

}  // namespace

Value elaborate(Sema& s, Env& env, TreeId id) {
  if (!id) return {};
  const ast::Expr& e = s[id];
  Span span = e.span;
  // These flags mark the inside of an index slot or a comparison. Only arithmetic passes them on to
  // its operands.
  Value v = match(
      e.node,
      [&](const ast::IntLit& n) {
        if (n.value > static_cast<uint64_t>(INT64_MAX)) {
          s.diags.error(Code::E0503, "integer literal is too large").primary(span, "");
          return Value{};
        }
        return untyped_int(env, core::int_lit(s.m, static_cast<int64_t>(n.value)), span);
      },
      [&](const ast::FloatLit& n) {
        Value lit = data(env, DType::F64, core::float_lit(s.m, n.value, DType::F64), span);
        lit.typing = Typing::Float;
        return lit;
      },
      [&](const ast::BoolLit& n) {
        return data(env, DType::Bool, core::bool_lit(s.m, n.value), span);
      },
      [&](const ast::StrLit& n) { return elaborate_text(s, env, n, span); },
      [&](const ast::Path& n) { return elaborate_path(s, env, n, span); },
      [&](const ast::PackRef& n) {
        s.diags
            .error(Code::E0313,
                   fmt::format("a pack such as `..{}` is not a value", text(n.name.symbol)))
            .primary(
                span,
                "packs can be used in index lists, in brackets, and as arguments of `uniform` and "
                "`normal`")
            .help(fmt::format("pass the value that has its coordinates, as in `x[..{}]`",
                              text(n.name.symbol)));
        return Value{};
      },
      [&](const ast::Index& n) { return elaborate_access(s, env, n, span); },
      [&](const ast::Call& n) { return elaborate_call(s, env, n, span); },
      [&](const ast::Unary& n) {
        if (n.op == ast::UnaryOp::Plus) return unary_plus(s, elaborate(s, env, n.arg), span);
        core::Op op = n.op == ast::UnaryOp::Neg   ? core::Op::Neg
                      : n.op == ast::UnaryOp::Not ? core::Op::Not
                                                  : core::Op::BitNot;
        const auto* lit = std::get_if<ast::IntLit>(&s[n.arg].node);
        if (lit && op == core::Op::Neg && lit->value == uint64_t{1} << 63) {  // the least i64
          return untyped_int(env, core::int_lit(s.m, INT64_MIN), span);
        }
        return apply_unary(s, env, op, elaborate(s, env, n.arg), span);
      },
      [&](const ast::Binary& n) { return elaborate_binary(s, env, n, span); },
      [&](const ast::Cast& n) { return elaborate_cast(s, env, n, span); },
      [&](const ast::Range&) {
        s.diags.error(Code::E0502, "a range is not a value")
            .primary(span, "")
            .help(env.in_slot ? "there are no slices: write `let y[i in 0..2] = x[i + 1];`"
                              : "a range follows `in`, as in `sum[k in 0..n](…)`");
        return Value{};
      },
      [&](const ast::If& n) { return elaborate_if(s, env, n, span); },
      [&](const ast::Block& n) { return elaborate_block(s, env, n, span); },
      [&](const ast::Tuple& n) { return elaborate_tuple(s, env, n, span); },
      [&](const ast::Array&) { return elaborate_array(s, env, id); },
      [&](const ast::Comprehension& n) { return elaborate_comprehension(s, env, n, span); },
      [&](const ast::Field& n) { return elaborate_field(s, env, n, span); },
      [&](const ast::Record& n) { return elaborate_record(s, env, n, span); },
      [&](const ast::Lambda& n) { return lambda_value(s, env, n, span); },
      [&](const ast::Alternatives&) { return Value{}; },  // patterns: match.cc
      [&](const ast::NamedPattern&) { return Value{}; },
      [&](const ast::Match& n) { return elaborate_match(s, env, n, span); },
      [&](const ast::Where&) { return elaborate_where(s, env, id); },
      [&](const ast::Request& n) { return elaborate_request(s, env, n, span); },
      [&](const ast::Error&) { return Value{}; });
  if (!v.poison()) v.span = span;
  if (s.meanings) note_expression(s, id, v);
  return v;
}

Value elaborate_in_slot(Sema& s, Env& env, TreeId e) {
  bool shadow = env.shadow_ok, slot = env.in_slot;
  env.shadow_ok = env.in_slot = true;
  Value v = elaborate(s, env, e);
  env.shadow_ok = shadow;
  env.in_slot = slot;
  return v;
}

CoreId elaborate_index(Sema& s, Env& env, TreeId e) {
  // A shape name alone in a slot must be a forgotten index: the extent itself is out of bounds.
  if (const ast::Path* path = as_path(s.ast, e)) {
    Symbol name = path->parts[0].symbol;
    if (!find_index(env, name) && !value_exists(env, name) && find_extent(s, env, name)) {
      bool slot = env.in_slot;
      env.in_slot = true;
      report_unknown(s, env, path->parts[0]);
      env.in_slot = slot;
      return {};
    }
  }
  Value v = elaborate_in_slot(s, env, e);
  return v.poison() ? CoreId{} : as_index(s, env, v, e);
}

bool elaborate_range(Sema& s, Env& env, TreeId e, core::Range& out) {
  const auto* r = std::get_if<ast::Range>(&s[e].node);
  if (!r) {
    s.diags.error(Code::E0502, "expected a range, as in `0..n`").primary(s[e].span, "");
    return false;
  }
  if (!r->lo || !r->hi) {
    s.diags.error(Code::E0502, "a range needs both ends").primary(s[e].span, "");
    return false;
  }
  // The ends are numbers, not accesses: a name in them is looked up like in a comparison.
  bool shadow = env.shadow_ok;
  env.shadow_ok = true;
  Value lo = elaborate(s, env, r->lo), hi = elaborate(s, env, r->hi);
  env.shadow_ok = shadow;
  if (lo.poison() || hi.poison()) return false;
  out.lo = as_index(s, env, lo, r->lo);
  out.hi = as_index(s, env, hi, r->hi);
  if (!out.lo || !out.hi) return false;
  out.lo = as_extent(s, out.lo);
  out.hi = as_extent(s, out.hi);
  if (r->inclusive) out.hi = core::add(s.m, out.hi, core::int_lit(s.m, 1));
  auto a = core::const_int(s.m, out.lo), b = core::const_int(s.m, out.hi);
  if (a && b && *a > *b) {
    s.diags
        .error(Code::E0307, fmt::format("the range runs backwards: {} is greater than {}", *a, *b))
        .primary(s[e].span, "");
    return false;
  }
  return true;
}

Value condition(Sema& s, Env& env, TreeId e) {
  Value v = elaborate(s, env, e);
  if (v.poison() || reject_non_data(s, v)) return {};
  if (v.typing != Typing::Fixed || v.type != DType::Bool) {
    s.diags.error(Code::E0504, "the condition is not `bool`")
        .primary(s[e].span, "this is " + show_value(s, v));
    return {};
  }
  return as_data(s, env, std::move(v));
}

}  // namespace ein::sema

// Integers as indices and as extents: both are i64, with the constants that names stand for.
#include <algorithm>

#include "sema/state/definition_state.h"
#include "sema/state/report.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

// Whether an i64 is assumed to fit into an i32: indices, extents and their arithmetic are, data and
// bits are not.
bool fits(const core::Module& m, CoreId e) {
  const auto* a = core::get_if<core::Apply>(m, e);
  if (!a) return !core::get_if<core::Access>(m, e);
  if (core::info(a->op).cls != core::OpClass::Arith) return false;
  return std::all_of(a->args.begin(), a->args.end(), [&](CoreId x) { return fits(m, x); });
}

// Whether a cast to an integer type keeps every value that the expression may have.
bool keeps(const core::Module& m, CoreId from, DType to) {
  DType type = m[from].type;
  if (!is_int(type)) return false;
  if (type == DType::I64) return to == DType::I32 && fits(m, from);
  return size_of(type) < size_of(to);
}

// An integer expression as i64, with the constants that scalar definitions stand for.
CoreId index_form(Sema& s, CoreId e) {
  const core::Expr x = s.m[e];
  if (x.type == DType::I64) return e;
  if (const auto* i = std::get_if<core::IntLit>(&x.node)) return core::int_lit(s.m, i->value);
  if (const auto* a = std::get_if<core::Access>(&x.node)) {
    auto owner = s.definitions.owner.find(a->family);
    if (owner != s.definitions.owner.end() && owner->second->constant)
      return owner->second->constant;
  }
  if (const auto* a = std::get_if<core::Apply>(&x.node)) {
    switch (a->op) {
      case core::Op::Add:
      case core::Op::Sub:
      case core::Op::Mul:
      case core::Op::Div:
      case core::Op::Mod:
      case core::Op::Min:
      case core::Op::Max:
      case core::Op::BitAnd:
      case core::Op::BitOr:
      case core::Op::BitXor:
      case core::Op::Shl:
      case core::Op::Shr:
        return core::apply(s.m, a->op, {index_form(s, a->args[0]), index_form(s, a->args[1])});
      case core::Op::Neg: return core::neg(s.m, index_form(s, a->args[0]));
      case core::Op::BitNot:
        if (x.type == DType::U8) break;  // more bits would be set
        return core::apply(s.m, a->op, {index_form(s, a->args[0])});
      case core::Op::BitLength: return core::apply(s.m, a->op, {index_form(s, a->args[0])});
      case core::Op::Cast:
        if (keeps(s.m, a->args[0], x.type)) return index_form(s, a->args[0]);
        break;
      default: break;
    }
  }
  return core::cast(s.m, e, DType::I64, x.span);
}

// Which inputs become params: all, or those that are params already.
enum class Inputs : uint8_t { All, Known };

CoreId with_params(Sema& s, CoreId e, Inputs which) {
  const core::Expr x = s.m[e];
  if (x.type != DType::I64) return e;
  // What is i64 itself needs no cast to be an index.
  const auto* applied = std::get_if<core::Apply>(&x.node);
  bool casts = applied && applied->op == core::Op::Cast;
  if (casts || std::holds_alternative<core::Access>(x.node)) {
    const core::Expr arg = casts ? s.m[applied->args[0]] : x;
    const auto* a = std::get_if<core::Access>(&arg.node);
    auto owner =
        a && a->at.empty() ? s.definitions.owner.find(a->family) : s.definitions.owner.end();
    if (owner == s.definitions.owner.end() || !is_int(arg.type)) return e;
    Definition& d = *owner->second;
    if (d.input && s.m[a->family].kind == core::Family::Kind::Input) {
      for (uint32_t p = 0; p < s.m.params.size(); ++p) {
        const core::Param& known = s.m.params[ParamId(p)];
        bool same = known.source == a->family && known.position == core::Param::kItself;
        if (same) return core::param(s.m, ParamId(p));
      }
      if (which == Inputs::Known) return e;
      return core::param(s.m, s.m.params.add({d.name.symbol, a->family, core::Param::kItself}));
    }
    // `let m = n + 1;` is replaced by `n + 1`. A reduction is not: it is computed once.
    if (d.recurrent || d.outs.size() != 1 || !d.outs[0] || d.outs[0]->gate) return e;
    const Value& v = d.outs[0]->body;
    if (v.kind != Value::Kind::Data || !d.outs[0]->box.empty()) return e;
    CoreId index = as_index(s, d.scope->env, v, {});
    if (!index || core::has_reduce(s.m, index)) return e;
    CoreId known = with_params(s, index, which);
    return which == Inputs::All || closed(s.m, known) ? known : e;
  }
  bool arithmetic = std::holds_alternative<core::Affine>(x.node);
  if (applied) {
    core::OpClass cls = core::info(applied->op).cls;
    arithmetic = cls == core::OpClass::Arith || cls == core::OpClass::Whole;
  }
  if (!arithmetic) return e;
  return core::map_children(s.m, e, [&](CoreId child) { return with_params(s, child, which); });
}

}  // namespace

CoreId as_index(Sema& s, const Env&, const Value& v, TreeId tree) {
  if (reject_non_data(s, v)) return {};
  Span span = tree ? s[tree].span : v.span;
  bool integer = v.typing == Typing::Int || (v.typing == Typing::Fixed && is_int(v.type));
  if (!integer) {
    s.diags.error(Code::E0505, "the index is not an integer")
        .primary(span, "this is " + show_value(s, v));
    return {};
  }
  if (!v.scalar() || v.kind == Value::Kind::Table) {
    s.diags.error(Code::E0505, "the index is a whole array")
        .primary(span, "this is " + show_value(s, v))
        .help("use one of its cells as the index, as in `x[idx[k]]`");
    return {};
  }
  // An input that bounds a range is the same number here as there: `y[n - 1 - i]` stays within `0..n`.
  return with_params(s, v.type == DType::I64 ? v.body : index_form(s, v.body), Inputs::Known);
}

CoreId as_extent(Sema& s, CoreId e) { return with_params(s, e, Inputs::All); }

}  // namespace ein::sema

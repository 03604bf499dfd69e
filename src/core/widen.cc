#include "core/widen.h"

#include "core/build.h"
#include "core/rewrite.h"

namespace ein::core {
namespace {

bool narrow(DType t) { return is_float(t) && t != DType::F64; }

// A node whose children are wide already. Reads, calls and requests are made again even where no
// child changed: their type comes from what they name.
ExprId widened(Module& m, ExprId e) {
  const Expr x = m[e];
  if (const auto* a = std::get_if<Access>(&x.node)) return access(m, a->family, a->at, x.span);
  if (const auto* c = std::get_if<Call>(&x.node)) return call(m, c->function, c->args, x.span);
  if (!narrow(x.type)) return e;
  if (const auto* lit = std::get_if<FloatLit>(&x.node)) {
    return float_lit(m, lit->written, DType::F64, x.span);
  }
  const auto* a = std::get_if<Apply>(&x.node);
  if (a && a->op == Op::Cast) return cast(m, a->args[0], DType::F64, x.span);
  if (a && info(a->op).cls == OpClass::Draw) return cast(m, e, DType::F64, x.span);
  return e;
}

}  // namespace

Module widen(Module m) {
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    Family& f = m.families[FamilyId(i)];
    if (narrow(f.dtype)) f.dtype = DType::F64;
  }
  for (uint32_t i = 0; i < m.functions.size(); ++i) {
    Function& f = m.functions[FunctionId(i)];
    for (Function::Parameter& p : f.params) {
      if (narrow(p.type)) p.type = DType::F64;
    }
    if (narrow(f.result)) f.result = DType::F64;
    f.along.clear();
    f.partials.clear();  // made again, wide, when a derivative asks
  }
  for (uint32_t i = 0; i < m.functions.size(); ++i) {
    FunctionId id(i);
    if (!m.functions[id].body) continue;
    m.functions[id].body = rewrite(m, m.functions[id].body, [&](ExprId e) {
      const auto* arg = get_if<Arg>(m, e);
      if (!arg) return widened(m, e);
      return argument(m, arg->n, m.functions[id].params[arg->n].type, m[e].span);
    });
  }
  rewrite_all(m, [&](ExprId e) { return rewrite(m, e, [&](ExprId x) { return widened(m, x); }); });
  return m;
}

Inputs widen(const Inputs& inputs) {
  Inputs out;
  for (const auto& [name, t] : inputs) {
    if (!narrow(t.dtype())) {
      out[name] = t;
      continue;
    }
    Tensor wide(DType::F64, t.shape());
    for (int64_t i = 0; i < t.size(); ++i) wide.set_float(i, t.get_float(i));
    out[name] = wide;
  }
  return out;
}

}  // namespace ein::core

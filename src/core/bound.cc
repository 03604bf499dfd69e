#include "core/bound.h"

#include <algorithm>

#include "core/build.h"

namespace ein::core {

std::optional<Bound> bound_on(Module& m, ExprId cond, uint32_t number) {
  const auto* found = get_if<Apply>(m, cond);
  if (!found || found->args.size() != 2 || m[found->args[0]].type != DType::I64) return {};
  const Apply a = *found;
  ExprId difference = sub(m, a.args[0], a.args[1]);  // cond is difference (op) 0
  AffineForm form = affine_form(m, difference);
  ExprId here = slot(m, number);
  int64_t c = coefficient(form, here);
  if (c != 1 && c != -1) return {};
  std::erase_if(form.terms, [&](const auto& t) { return t.atom == here; });
  ExprId rest = from_form(m, form);
  if ((m[rest].free >> number) != 0) return {};
  // c·slot + rest (op) 0, so slot (op) value or, turned round, value (op) slot.
  ExprId value = c == 1 ? neg(m, rest) : rest;
  ExprId next = add(m, value, int_lit(m, 1));
  bool turned = c == -1;
  switch (a.op) {
    case Op::Lt: return turned ? Bound{next, {}} : Bound{{}, value};
    case Op::Le: return turned ? Bound{value, {}} : Bound{{}, next};
    case Op::Gt: return turned ? Bound{{}, value} : Bound{next, {}};
    case Op::Ge: return turned ? Bound{{}, next} : Bound{value, {}};
    case Op::Eq: return Bound{value, next};
    default: return {};
  }
}

}  // namespace ein::core

// uniform(seed, i, j, …) and normal(seed, ..b, i): numbers that depend on the seed and the
// addresses alone.
#include "sema/builtins.h"
#include "sema/expressions/expressions.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {

Value elaborate_random(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span) {
  const core::Op op = b.id == Builtin::Id::Uniform ? core::Op::Uniform : core::Op::Normal;
  if (!b.takes(call.args.size())) {
    s.diags.error(Code::E0205, std::string("`") + core::info(op).spelling + "` needs a seed")
        .primary(span, "")
        .help(std::string("give the seed, then the indices of the cell: `") +
              core::info(op).spelling + "(1, i, j)`");
    return {};
  }
  bool shadow = env.shadow_ok;
  env.shadow_ok = true;  // an index may stand alone here, as in brackets
  CoreId bits;
  std::vector<IndexItem> addresses;  // a pack is the addresses of its coordinates
  if (!expand_indices(s, env, call.args, addresses)) {
    env.shadow_ok = shadow;
    return {};
  }
  for (const IndexItem& item : addresses) {
    CoreId next = item_index(s, env, item);
    if (!next) {
      env.shadow_ok = shadow;
      return {};
    }
    bits = bits ? core::apply(s.m, core::Op::Philox, {bits, next}) : next;
  }
  env.shadow_ok = shadow;
  // A seed alone is an address too: uniform(1) and uniform(2) are unrelated.
  if (addresses.size() == 1)
    bits = core::apply(s.m, core::Op::Philox, {bits, core::int_lit(s.m, 0)});
  return data(env, DType::F32, core::apply(s.m, op, {bits}, span), span);
}

}  // namespace ein::sema

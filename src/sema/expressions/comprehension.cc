// `[e | i in 0..n]`. Without a filter it is the block that the parser made of it, and its
// coordinates have no names. With a filter the length depends on which cells pass: what is made of
// constants is chosen now, anything else is an error.
#include <fmt/format.h>

#include "core/scalar.h"
#include "sema/expressions/expressions.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

constexpr size_t kMostCells = 100'000;

// The value of a closed expression over literals; nothing for any other.
std::optional<core::Scalar> constant_of(const Sema& s, CoreId e) {
  const core::Expr& x = s.m[e];
  core::Scalar out{};
  if (const auto* i = std::get_if<core::IntLit>(&x.node)) {
    out.i = i->value;
    return out;
  }
  if (const auto* b = std::get_if<core::BoolLit>(&x.node)) {
    out.i = b->value;
    return out;
  }
  if (const auto* f = std::get_if<core::FloatLit>(&x.node)) {
    out.f = f->value;
    return out;
  }
  const auto* a = std::get_if<core::Apply>(&x.node);
  if (!a || a->args.empty() || a->args.size() > 2) return std::nullopt;
  auto first = constant_of(s, a->args[0]);
  if (!first) return std::nullopt;
  if (a->op == core::Op::And || a->op == core::Op::Or) {
    if ((first->i != 0) == (a->op == core::Op::Or)) return first;
    return constant_of(s, a->args[1]);
  }
  auto second = a->args.size() == 2 ? constant_of(s, a->args[1]) : core::Scalar{};
  if (!second || core::info(a->op).cls == core::OpClass::Draw) return std::nullopt;
  return core::apply_scalar(a->op, s.m[a->args[0]].type, x.type, *first, *second);
}

struct Filtering {
  Sema& s;
  const ast::Comprehension& n;
  Span span;
  std::vector<Value> cells = {};

  bool depends_on_data(TreeId e) {
    s.diags.error(Code::E0409, "the length of this array would depend on values")
        .primary(s[e].span, "not known when compiling")
        .label(span, "an array has a fixed length")
        .help(
            "to add up the cells that pass, write `sum[i](x[i] where x[i] > 0)`; to keep the "
            "places, "
            "`let y[i] = x[i] where x[i] > 0;`, with 0 elsewhere; to stop early, a recurrence "
            "`until` "
            "a condition");
    return false;
  }

  // The values that a generator runs over.
  bool values_of(Env& env, TreeId e, std::vector<Value>& out) {
    if (std::holds_alternative<ast::Range>(s[e].node)) {
      core::Range r;
      if (!elaborate_range(s, env, e, r)) return false;
      auto lo = core::const_int(s.m, r.lo), hi = core::const_int(s.m, r.hi);
      if (!lo || !hi) return depends_on_data(e);
      if (*hi - *lo > static_cast<int64_t>(kMostCells)) return too_many(e);
      for (int64_t k = *lo; k < *hi; ++k) {
        out.push_back(untyped_int(env, core::int_lit(s.m, k), s[e].span));
      }
      return true;
    }
    Value v = elaborate(s, env, e);
    if (v.poison()) return false;
    if (v.kind == Value::Kind::Texts) {
      out = v.items;
      return true;
    }
    FamilyId family = whole_family(s.m, v);
    bool table = v.kind == Value::Kind::Table;
    if (!table && !(family && s.m[family].kind == core::Family::Kind::Table)) {
      return depends_on_data(e);
    }
    if (v.coords.size() != 1) {
      s.diags.error(Code::E0502, "a filter runs over arrays along one coordinate")
          .primary(s[e].span, "this is " + show_value(s, v));
      return false;
    }
    std::vector<CoreId> all = table ? v.cells : s.m[family].cells;
    for (CoreId c : all) {
      out.push_back(data(env, v.type, c, s[e].span));
      out.back().typing = v.typing;
    }
    return true;
  }

  bool too_many(TreeId e) {
    unsupported(s, s[e].span, fmt::format("filters over more than {} cells", kMostCells));
    return false;
  }

  // Everything from the generator `k` on.
  bool run(Env& env, size_t k) {
    if (k == n.generators.size()) {
      Value v = without_tables(s, env, elaborate(s, env, n.body));
      if (v.poison()) return false;
      if (cells.size() >= kMostCells) return too_many(n.body);
      cells.push_back(std::move(v));
      return true;
    }
    const ast::Generator& g = n.generators[k];
    if (!g.name.symbol) {
      Value holds = condition(s, env, g.value);
      if (holds.poison()) return false;
      auto known = holds.scalar() ? constant_of(s, holds.body) : std::nullopt;
      if (!known) return depends_on_data(g.value);
      return known->i == 0 || run(env, k + 1);
    }
    std::vector<Value> values;
    if (!values_of(env, g.value, values)) return false;
    Frame frame;
    frame.up = env.frame;
    Env inside = env;
    inside.frame = &frame;
    for (Value& v : values) {
      frame.values.assign(1, {g.name, std::move(v)});
      if (!run(inside, k + 1)) return false;
    }
    return true;
  }
};

}  // namespace

Value elaborate_comprehension(Sema& s, Env& env, const ast::Comprehension& n, Span span) {
  if (n.block) {
    Value v = elaborate(s, env, n.block);
    if (v.poison()) return v;
    for (size_t i = 0; i < n.generators.size() && i < v.coords.size(); ++i) v.coords[i].name = {};
    return v;
  }
  Filtering filter{s, n, span};
  Env inside = env;
  inside.shadow_ok = inside.in_slot = false;
  if (!filter.run(inside, 0)) return {};
  auto count = static_cast<int64_t>(filter.cells.size());
  return array_of(s, env, {count}, std::move(filter.cells), span);
}

}  // namespace ein::sema

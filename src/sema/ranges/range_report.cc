// The outcome of range inference: errors that show both places, entry constraints, the solution.
#include <fmt/format.h>

#include "sema/names/names.h"
#include "sema/ranges/problem.h"
#include "sema/ranges/ranges.h"
#include "sema/state/range_state.h"
#include "sema/state/report.h"

namespace ein::sema {
namespace {

std::string coordinate(const Sema& s, FamilyId family, size_t position) {
  if (!family) return "the right side";
  const core::Family& f = s.m[family];
  const core::Coord& c = f.coords[position];
  std::string which = c.name ? quoted(c.name) : std::to_string(position);
  return fmt::format("coordinate {} of `{}`", which, text(f.name));
}

// All bare slots of an index must agree, except weak ones: an error when they cannot, a condition
// at entry when that is not known (decisions.md, 13).
bool check_agreement(Problem& p, const Variable& v) {
  Sema& s = p.s;
  const Bare* first = nullptr;
  for (const Bare& b : v.bares) {
    if (b.weak) continue;
    if (!first) {
      first = &b;
      continue;
    }
    Truth t = equal(s, first->extent, b.extent);
    if (t == Truth::Yes) continue;
    Span here = place_of(s, p.clause.site, b.family, b.position, b.access);
    Span there = place_of(s, p.clause.site, first->family, first->position, first->access);
    if (t == Truth::No) {
      s.diags
          .error(Code::E0301,
                 fmt::format("index {} has two different extents", quoted(v.unknown.name)))
          .primary(here, fmt::format("here it is {}: extent {}",
                                     coordinate(s, b.family, b.position), show(s, b.extent)))
          .label(there, fmt::format("here it is {}: extent {}",
                                    coordinate(s, first->family, first->position),
                                    show(s, first->extent)));
      return false;
    }
    constrain(s, core::apply(s.m, core::Op::Eq, {first->extent, b.extent}),
              fmt::format("index {} is {} (extent {}) and {} (extent {})", quoted(v.unknown.name),
                          coordinate(s, first->family, first->position), show(s, first->extent),
                          coordinate(s, b.family, b.position), show(s, b.extent)),
              there, here);
  }
  return true;
}

// `let y[t] = x[extent(t) - 1 - t];`: what bounds t is made of its own range.
bool computed_from_itself(Sema& s, const Variable& v) {
  bool found = false;
  for (CoreId end : {v.now.lo, v.now.hi}) {
    if (!end || v.narrowed_by.empty()) continue;
    core::for_each_node(s.m, resolve(s, end), [&](CoreId e) {
      const auto* p = core::get_if<core::ParamRef>(s.m, e);
      found |= p && (p->param == v.unknown.lo || p->param == v.unknown.hi);
    });
  }
  return found;
}

void report_no_range(Problem& p, const Variable& v) {  // once per cause
  Sema& s = p.s;
  Site* site = p.clause.site;
  if (!site->reported.insert(v.unknown.name).second) return;
  auto& d =
      s.diags.error(Code::E0302, fmt::format("index {} has no range", quoted(v.unknown.name)));
  const Need* circular = computed_from_itself(s, v) ? v.narrowed_by.back() : nullptr;
  d.primary(v.unknown.span, "no range is written and none can be inferred");
  if (circular) {
    d.label(place_of(s, site, circular->family, circular->position, circular->access),
            "this would bound it by its own extent");
  } else if (p.ambiguous) {
    d.label(place_of(s, site, p.ambiguous->family, p.ambiguous->position, p.ambiguous->access),
            "several indices without a range are used together here");
    // One cause: writing a range for any of these would be enough.
    for (uint32_t n : p.ambiguous->slots) {
      if (const Variable* other = p.variable(p.ambiguous->facts, n)) {
        site->reported.insert(other->unknown.name);
      }
    }
  }
  const std::string& name = text(v.unknown.name);
  d.help(v.left ? fmt::format("give one, as in `[{} in 0..n]`", name)
                : fmt::format("give one, as in `sum[{} in 0..n](…)`", name));
  // `let x[T] = 0.0;` looks like a first clause for the value T.
  const Definition* owner = site->definition;
  if (v.left && owner && value_exists(owner->scope->env, v.unknown.name)) {
    d.help(fmt::format(
        "a name alone is a new index here; for the cell at the value {}, write `[({})]`",
        quoted(v.unknown.name), name));
  }
}

bool check_order(Problem& p, const Variable& v) {
  Sema& s = p.s;
  core::Facts facts = facts_at_entry(s.m);
  if (core::proves_le(s.m, v.now.lo, v.now.hi, facts)) return true;
  const Need* need = v.narrowed_by.empty() ? nullptr : v.narrowed_by.back();
  Span at = need ? place_of(s, p.clause.site, need->family, need->position, need->access)
                 : v.unknown.span;
  if (core::proves_lt(s.m, v.now.hi, v.now.lo, facts)) {
    auto& d = s.diags.error(Code::E0307, fmt::format("no value of {} keeps every access in bounds",
                                                     quoted(v.unknown.name)));
    d.primary(v.unknown.span,
              fmt::format("its range would be {}..{}", show(s, v.now.lo), show(s, v.now.hi)));
    std::set<uint32_t> labelled;
    auto extent = [&](FamilyId family, size_t position, CoreId access) {
      Span span = place_of(s, p.clause.site, family, position, access);
      if (!family || !labelled.insert(span.begin).second) return;
      d.label(span, fmt::format("{} has extent {}", coordinate(s, family, position),
                                show(s, resolve(s, s.m[family].coords[position].extent))));
    };
    for (const Need* n : v.narrowed_by) {
      extent(n->family, n->position, n->access);
      for (uint32_t slot : n->slots) {
        const Variable* other = p.variable(n->facts, slot);
        if (!other || other == &v) continue;
        for (const Bare& b : other->bares) extent(b.family, b.position, b.access);
      }
    }
    return false;
  }
  // Where data bounds a range, it is empty instead, as one that is written.
  if (core::reads_values(s.m, v.now.lo) || core::reads_values(s.m, v.now.hi)) return true;
  constrain(s, core::apply(s.m, core::Op::Le, {v.now.lo, v.now.hi}),
            fmt::format("index {} runs over {}..{}, whose length must not be negative",
                        quoted(v.unknown.name), show(s, v.now.lo), show(s, v.now.hi)),
            v.unknown.span, at);
  return true;
}

// `sum[k](x[k+1])` never reads x[0].
void warn_unread(Problem& p, const Variable& v) {
  if (v.bared() || v.narrowed_by.empty()) return;
  Sema& s = p.s;
  const Need* need = v.narrowed_by[0];
  for (const Need* n : v.narrowed_by) {
    if (n->access != need->access || n->position != need->position) return;
  }
  const auto* a = core::get_if<core::Access>(s.m, need->access);
  if (!a || need->slots.size() != 1) return;
  core::AffineForm form = core::affine_form(s.m, a->at[need->position]);
  if (form.terms.size() != 1 || form.terms[0].coef != 1 || form.constant <= 0) return;
  Span at = place_of(s, p.clause.site, need->family, need->position, need->access);
  s.diags
      .warning(Code::W0302, fmt::format("the first cells along {} are never read",
                                        coordinate(s, a->family, need->position)))
      .primary(at, fmt::format("{} starts at 0 here", quoted(v.unknown.name)))
      .help("give the index a range if this is intended");
}

}  // namespace

Span place_of(const Sema& s, const Site* site, FamilyId family, size_t position, CoreId access) {
  CoreId index;
  if (const auto* a = core::get_if<core::Access>(s.m, access)) index = a->at[position];
  Span near;
  for (; site; site = site->outer) {
    for (const Use& use : site->uses) {
      // A lifted local has its enclosing slots in front, which are not written.
      size_t rank = s.m[use.family].coords.size();
      if (use.family != family || position + use.at.size() < rank) continue;
      size_t prefix = rank - use.at.size();
      if (position < prefix) continue;
      Span span = s[use.at[position - prefix]].span;
      if (use.indices[position - prefix] == index) return span;
      near = span;
    }
  }
  return near.valid() ? near : s.m[access].span;
}

void report_and_record(Problem& p) {
  Sema& s = p.s;
  for (auto& [id, v] : p.variables) {
    if (!v.present) continue;
    bool ok = check_agreement(p, v);
    if (ok && (!v.now.hi || computed_from_itself(s, v))) {
      report_no_range(p, v);
      ok = false;
    }
    if (ok) {
      ok = check_order(p, v);
      warn_unread(p, v);
    }
    if (!ok) p.clause.bad = true;
    CoreId zero = core::int_lit(s.m, 0);
    s.ranges.solved[v.unknown.lo] = ok ? v.now.lo : zero;
    s.ranges.solved[v.unknown.hi] = ok ? v.now.hi : zero;
  }
}

}  // namespace ein::sema

#include "sema/finish.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "core/groups.h"
#include "sema/calls/calls.h"
#include "sema/effects/reports.h"
#include "sema/ranges/ranges.h"
#include "sema/state/definition_state.h"
#include "sema/state/report.h"
#include "sema/state/values.h"

namespace ein::sema {
namespace {

void add_zero_clauses(Sema& s, const Lifted& l) {
  core::Family& f = s.m.families[l.family];
  Box all, made;
  for (size_t i = 0; i < l.prefix.size(); ++i) {
    all.push_back({core::int_lit(s.m, 0), f.coords[i].extent});
    made.push_back(resolve(s, l.prefix[i]));
  }
  for (Box& rest : subtract(s.m, all, made)) {
    core::Clause c;
    c.box = std::move(rest);
    for (size_t i = l.prefix.size(); i < f.coords.size(); ++i) {
      c.box.push_back({core::int_lit(s.m, 0), f.coords[i].extent});
    }
    c.body = zero(s.m, f.dtype);
    c.span = f.span;
    f.clauses.push_back(std::move(c));
  }
}

void check_constraints(Sema& s) {
  core::Constraints kept;
  for (const core::Constraint& c : s.m.constraints) {
    const auto* b = core::get_if<core::BoolLit>(s.m, c.cond);
    if (!b) {
      kept.push_back(c);
    } else if (!b->value) {
      auto& d = s.diags.error(Code::E0404, c.message);
      d.primary(c.first, "");
      if (c.second.valid() && !(c.second == c.first)) d.label(c.second, "and here");
    }
  }
  s.m.constraints = std::move(kept);
}

// The least and greatest value of an index expression over the ranges around it, when affine.
std::optional<CoreId> extreme(Sema& s, CoreId e, const core::Facts& facts, bool greatest) {
  core::AffineForm form = core::affine_form(s.m, e);
  for (;;) {
    IndexTerm deepest;
    for (const auto& t : form.terms) {
      uint32_t n = core::slot_of(s.m, t.atom);
      if (n == ~0u && s.m[t.atom].free != 0) return std::nullopt;
      if (n != ~0u && (!deepest.atom || n > deepest.slot)) deepest = {t.atom, n};
    }
    if (!deepest.atom) break;
    if (deepest.slot >= facts.slots.size()) return std::nullopt;
    const core::Range& r = facts.slots[deepest.slot];
    // An empty range reads nothing.
    if (!core::proves_lt(s.m, r.lo, r.hi, facts) && core::const_int(s.m, r.lo) &&
        core::const_int(s.m, r.hi)) {
      return std::nullopt;
    }
    int64_t c = core::coefficient(form, deepest.atom);
    CoreId coef = core::int_lit(s.m, c);
    CoreId end = (c > 0) == greatest ? core::sub(s.m, r.hi, core::int_lit(s.m, 1)) : r.lo;
    CoreId rest = core::sub(s.m, core::from_form(s.m, form), core::mul(s.m, coef, deepest.atom));
    form = core::affine_form(s.m, core::add(s.m, rest, core::mul(s.m, coef, end)));
  }
  CoreId out = core::from_form(s.m, form);
  return closed(s.m, out) ? std::optional(out) : std::nullopt;
}

bool divides(const Sema& s, CoreId e) {
  bool found = false;
  core::for_each_node(s.m, e, [&](CoreId x) {
    const auto* a = core::get_if<core::Apply>(s.m, x);
    bool divides = a && (a->op == core::Op::Div || a->op == core::Op::Mod ||
                         core::info(a->op).cls == core::OpClass::Whole);
    found |= divides && s.m[x].type == DType::I64;
  });
  return found;
}

// Whether a condition fails once named numbers are replaced by their values, as in `if n >= 0`
// after `let n = -1;`.
bool cannot_hold(Sema& s, CoreId cond) {
  auto number = [&](CoreId e) {
    const auto* read = core::get_if<core::Access>(s.m, e);
    if (!read || !read->at.empty() || s.m[read->family].clauses.size() != 1) return e;
    CoreId value = s.m[read->family].clauses[0].body;
    return core::get_if<core::IntLit>(s.m, value) ? value : e;
  };
  return core::refutes(s.m, core::rewrite(s.m, cond, number), {});
}

// Whether all that holds at a place is that the steps of a recurrence with `until` have not ended:
// that keeps no address in bounds.
bool only_until(const Sema& s, const core::Facts& facts) {
  auto is_flag = [&](FamilyId id) {
    return std::any_of(s.definitions.endings.begin(), s.definitions.endings.end(),
                       [&](const Ending& e) { return e.flag && e.flag->family == id; });
  };
  return !facts.holds.empty() &&
         std::all_of(facts.holds.begin(), facts.holds.end(), [&](CoreId cond) {
           const auto* no = core::get_if<core::Apply>(s.m, cond);
           if (no && no->op == core::Op::Not) cond = no->args[0];
           const auto* read = core::get_if<core::Access>(s.m, cond);
           return read && is_flag(read->family);
         });
}

// Whether one clause is the first cell along the coordinate alone: `let h[0] = …;`.
bool begins_below(const Sema& s, const core::Family& f, size_t position) {
  return std::any_of(f.clauses.begin(), f.clauses.end(), [&](const core::Clause& c) {
    return core::const_int(s.m, c.box[position].lo) == 0 &&
           core::const_int(s.m, c.box[position].hi) == 1;
  });
}

void check_slot(Sema& s, const Site* site, FamilyId reader, FamilyId family, size_t position,
                CoreId e, CoreId access, const core::Facts& facts,
                std::set<std::pair<uint32_t, uint32_t>>& reported) {
  CoreId extent = s.m[family].coords[position].extent;
  if (core::proves_in_bounds(s.m, e, extent, facts)) return;
  CoreId zero = core::int_lit(s.m, 0);
  std::string why;
  bool below = false;
  if (facts.guarded && !only_until(s, facts)) {
    // Under a condition a read is an error only if it is out of bounds for all addresses. Where a
    // division (`t / 2 >= 1`), bits (`t & 1 == 0`) or a range whose ends are data decides whether
    // it is reached at all, proofs say nothing, so there is no error.
    auto of_data = [&](const core::Range& r) {
      return r.lo && r.hi && (core::reads_values(s.m, r.lo) || core::reads_values(s.m, r.hi));
    };
    if (std::any_of(facts.holds.begin(), facts.holds.end(),
                    [&](CoreId cond) { return divides(s, cond); }) ||
        std::any_of(facts.slots.begin(), facts.slots.end(), of_data)) {
      return;
    }
    below = core::proves_lt(s.m, e, zero, facts);
    if (below) why = "always less than 0";
    if (core::proves_le(s.m, extent, e, facts)) why = "always past the end";
  } else {
    auto low = extreme(s, e, facts, false), high = extreme(s, e, facts, true);
    if (low && core::proves_lt(s.m, *low, zero, facts)) {
      why = "goes down to " + show(s, *low);
      below = true;
    } else if (high && core::proves_le(s.m, extent, *high, facts)) {
      why = "goes up to " + show(s, *high);
    }
  }
  if (why.empty() || core::proves_unreachable(s.m, facts)) return;
  auto fails = [&](CoreId cond) { return cannot_hold(s, cond); };
  if (std::any_of(facts.holds.begin(), facts.holds.end(), fails)) return;
  const core::Family& f = s.m[family];
  Span at = place_of(s, site, family, position, access);
  if (!reported.insert({at.begin, at.end}).second) return;
  std::string which =
      f.coords[position].name ? quoted(f.coords[position].name) : std::to_string(position);
  // The user gave no name to an array literal that is passed to a function.
  std::string what = f.generated ? "access" : fmt::format("access to `{}`", text(f.name));
  auto& d = s.diags.error(Code::E0306, what + " is out of bounds");
  auto constant = core::const_int(s.m, e);
  if (constant) why = fmt::format("there is no cell {}", *constant);
  d.primary(at, why);
  if (f.span.valid()) {
    d.label(f.span, fmt::format("coordinate {} has extent {}", which, show(s, extent)));
  }
  if (constant && *constant < 0) {
    d.help("cells are numbered from 0; the last one is `x[len(x) - 1]`");
  } else if (below && reader == family && s.definitions.owner.count(family)) {
    std::string slots;
    for (size_t p = s.definitions.owner.at(family)->carries.size(); p < f.coords.size(); ++p) {
      if (!slots.empty()) slots += ", ";
      slots += p == position ? "0" : f.coords[p].name ? text(f.coords[p].name) : "_";
    }
    d.help(
        fmt::format("the recurrence has no first cell: add `let {}[{}] = …;` and begin this "
                    "clause after it",
                    text(f.name), slots));
  } else if (reader == family && s.definitions.owner.count(family) &&
             begins_below(s, f, position)) {
    d.help(fmt::format(
        "the steps go up from the first cell, so a step reads earlier ones: `{0} - 1` "
        "instead of `{0} + 1`; to go down, define the last cell and end this clause before it",
        f.coords[position].name ? text(f.coords[position].name) : "t"));
  } else {
    d.help("narrow the range, or guard the access with `where` or `if`");
  }
}

void check_bounds(Sema& s) {
  auto wanted = [](const core::Node& n) {
    return std::holds_alternative<core::Access>(n) || std::holds_alternative<core::Request>(n);
  };
  std::set<std::pair<uint32_t, uint32_t>> reported;
  for (uint32_t i = 0; i < s.m.families.size(); ++i) {
    static const std::vector<const Site*> nowhere;
    auto made = s.definitions.made_at.find(FamilyId(i));
    const std::vector<const Site*>& sites =
        made == s.definitions.made_at.end() ? nowhere : made->second;
    std::map<std::pair<uint32_t, uint32_t>, const Site*> by_statement;
    for (const Site* site : sites) {
      if (sites.size() > 1) by_statement[{site->statement.begin, site->statement.end}] = site;
    }
    for (const core::Clause& c : s.m[FamilyId(i)].clauses) {
      if (provably_empty(s.m, c.box)) continue;
      const Site* site = sites.empty() ? nullptr : sites[0];
      auto own = by_statement.find({c.span.begin, c.span.end});
      if (own != by_statement.end()) site = own->second;
      core::for_each_with_facts(s.m, c, wanted, [&](CoreId e, const core::Facts& facts) {
        const core::Node& node = s.m[e].node;
        auto each = [&](FamilyId family, const std::vector<CoreId>& at) {
          for (size_t p = 0; p < at.size(); ++p) {
            check_slot(s, site, FamilyId(i), family, p, at[p], e, facts, reported);
          }
        };
        if (const auto* a = std::get_if<core::Access>(&node)) each(a->family, a->at);
        if (const auto* r = std::get_if<core::Request>(&node)) {
          each(r->num, r->num_at);
          each(r->den, r->den_at);
        }
      });
    }
  }
}

// An index or extent that adapts to an integer type must fit it wherever that can be seen
// (decisions.md, 19). What `as` converts from `i64` wraps like any other value.
void check_adapted(Sema& s) {
  // All casts of the source, collected when the first question about them comes.
  std::optional<std::set<std::pair<uint32_t, uint32_t>>> casts;
  auto written = [&](Span span) {
    if (!casts) {
      casts.emplace();
      for (const ast::Expr& e : s.ast.exprs) {
        if (std::holds_alternative<ast::Cast>(e.node)) casts->insert({e.span.begin, e.span.end});
      }
    }
    return casts->count({span.begin, span.end}) > 0;
  };
  auto wanted = [](const core::Node& n) {
    const auto* a = std::get_if<core::Apply>(&n);
    return a && a->op == core::Op::Cast;
  };
  auto limit = [&](DType type, core::ReduceOp op) {
    return *core::const_int(s.m, core::identity(s.m, op, type));
  };
  std::set<std::pair<uint32_t, uint32_t>> reported;
  for (uint32_t i = 0; i < s.m.families.size(); ++i) {
    const std::vector<core::Clause> clauses = s.m[FamilyId(i)].clauses;
    for (const core::Clause& c : clauses) {
      if (provably_empty(s.m, c.box)) continue;
      core::for_each_with_facts(s.m, c, wanted, [&](CoreId e, const core::Facts& facts) {
        const core::Expr x = s.m[e];
        CoreId from = std::get<core::Apply>(x.node).args[0];
        if (facts.guarded || !is_int(x.type) || x.type == DType::I64) return;
        if (s.m[from].type != DType::I64 || written(x.span)) return;
        auto low = extreme(s, from, facts, false), high = extreme(s, from, facts, true);
        // The identity of `max` is the least value of a type.
        int64_t least = limit(x.type, core::ReduceOp::Max);
        int64_t greatest = limit(x.type, core::ReduceOp::Min);
        // An end that is not known here is not reported.
        int64_t lo = low ? core::const_int(s.m, *low).value_or(least) : least;
        int64_t hi = high ? core::const_int(s.m, *high).value_or(greatest) : greatest;
        bool below = lo < least;
        bool above = hi > greatest;
        Span at = x.span.valid() ? x.span : c.span;
        if ((!below && !above) || !reported.insert({at.begin, at.end}).second) return;
        s.diags
            .error(Code::E0503,
                   fmt::format("an index that goes {} {} does not fit in `{}`",
                               above ? "up to" : "down to", above ? hi : lo, name_of(x.type)))
            .primary(at, fmt::format("`{}` holds {} to {}", name_of(x.type), least, greatest))
            .help("use a wider type, or narrow the range");
      });
    }
  }
}

void check_order(Sema& s) {
  core::Schedule schedule = core::schedule(s.m, {});
  if (!schedule.cycle) return;
  const core::Cycle& c = *schedule.cycle;
  if (c.families.empty()) return;
  std::string name = quoted(s.m[c.families[0]].name);
  if (auto it = s.definitions.owner.find(c.families[0]); it != s.definitions.owner.end()) {
    name = quoted(it->second->name.symbol);
  }
  auto& d = s.diags.error(Code::E0402, "there is no order in which to compute " + name);
  bool first = true;
  auto called = [&](FamilyId f) {  // as the user calls it
    auto it = s.definitions.owner.find(f);
    return it == s.definitions.owner.end() ? text(s.m[f].name) : text(it->second->name.symbol);
  };
  std::set<std::pair<uint32_t, uint32_t>> seen;
  for (CoreId read : c.reads) {
    Span span = s.m[read].span;
    if (!span.valid() || !seen.insert({span.begin, span.end}).second) continue;
    if (first)
      d.primary(span, "this read");
    else
      d.label(span, "conflicts with this one");
    first = false;
  }
  if (first) d.primary(s.m[c.families[0]].span, "");
  for (FamilyId f : c.families) {
    if (s.m[f].span.valid()) d.label(s.m[f].span, quoted(called(f)) + " is defined here");
  }
  std::string cycle;
  for (FamilyId f : c.families) cycle += quoted(called(f)) + " → ";
  d.note("the cycle: " + cycle + quoted(called(c.families[0])));
  d.note(
      "a cell may only read cells of earlier steps: all reads must go in one direction along one "
      "coordinate");
}

}  // namespace

void finish(Sema& s) {
  check_contracts(s);
  auto known = [&](CoreId e) { return resolve(s, e); };
  core::rewrite_all(s.m, known);
  check_constraints(s);
  for (const Lifted& l : s.definitions.lifted) {
    if (s.m[l.family].kind == core::Family::Kind::Defined) add_zero_clauses(s, l);
  }
  if (s.diags.has_errors()) return;
  for (const core::Family& f : s.m.families) {
    for (const core::Coord& c : f.coords) {
      EIN_CHECK(!has_unsolved(s, c.extent), "extent of `" + text(f.name) + "` was never found");
    }
    for (const core::Clause& c : f.clauses) {
      EIN_CHECK(!has_unsolved(s, c.body), "a range in `" + text(f.name) + "` was never found");
    }
  }
  const std::vector<Marked> marked = take_marks(s);
  if (s.diags.has_errors()) return;
  check_bounds(s);
  check_adapted(s);
  if (!s.diags.has_errors()) check_order(s);
  if (!s.diags.has_errors()) make_reports(s, marked);
}

}  // namespace ein::sema

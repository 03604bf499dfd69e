// The header of a definition: type, coordinate names and extents, as its clauses give them.
#include <fmt/format.h>

#include <algorithm>

#include "sema/definitions/definitions.h"
#include "sema/expressions/expressions.h"
#include "sema/names/trees.h"
#include "sema/ranges/ranges.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {

const ast::Let* let_of(const ast::Ast& ast, ast::StmtId id) {
  return std::get_if<ast::Let>(&ast[id].node);
}

namespace {

// Written on any of the clauses.
ast::TypeId find_type(const ast::Ast& ast, const Definition& d) {
  for (ast::StmtId id : d.clauses) {
    const ast::Let* l = let_of(ast, id);
    if (l && l->type && l->tuple) {
      const ast::TupleType* t = tuple_type(ast, l->type);
      for (size_t i = 0; t && i < l->names.size() && i < t->items.size(); ++i) {
        if (!l->record && l->names[i].symbol == d.name.symbol) return t->items[i];
      }
      for (size_t i = 0; l->record && t && i < t->names.size(); ++i) {
        if (t->names[i].symbol == d.name.symbol) return t->items[i];
      }
      continue;  // reported when it was declared
    }
    if (l && l->type) return l->type;
    if (!l && std::get<ast::Const>(ast[id].node).type)
      return std::get<ast::Const>(ast[id].node).type;
  }
  return {};
}

}  // namespace

ast::TypeId type_of(const ast::Ast& ast, const Definition& d) {
  if (d.whole) return leaf_type(ast, type_of(ast, *d.whole), d.leaf);
  if (d.written.clauses != d.clauses.size()) d.written = {find_type(ast, d), d.clauses.size()};
  return d.written.type;
}

ast::TypeId record_type(const ast::Ast& ast, const Definition& d) {
  const ast::Let* let = let_of(ast, d.clauses[0]);
  if (let && let->has_slots) return {};  // the type is that of one cell
  if (ast::TypeId type = type_of(ast, d)) return type;
  const auto* cast = let && let->value ? std::get_if<ast::Cast>(&ast[let->value].node) : nullptr;
  return cast ? cast->type : ast::TypeId{};
}

size_t spelled_slots(Sema& s, const Definition& d) {
  size_t most = 0;
  for (ast::StmtId id : d.clauses) {
    if (let_of(s.ast, id)) most = std::max(most, left_side(s, d, id).slots.size());
  }
  return most;
}

std::optional<DType> decide_type(Sema& s, Definition& d) {
  if (ast::TypeId type = type_of(s.ast, d)) return element_type(s, type);
  const ClauseOut* fixed = nullptr;
  bool any_float = false, any = false;
  for (const auto& out : d.outs) {
    if (!out || out->bad) continue;
    any = true;
    any_float |= out->body.typing == Typing::Float;
    if (out->body.typing == Typing::Fixed && !fixed) fixed = &*out;
  }
  if (fixed) return fixed->body.type;
  for (const auto& out : d.outs) {
    if (out && !out->bad && reject_untyped_empty(s, out->body)) return std::nullopt;
  }
  std::optional<Guess> guess;
  for (size_t i = 0; i < d.clauses.size() && !guess; ++i) {
    const ast::Let* l = let_of(s.ast, d.clauses[i]);
    if (!d.outs[i] && l) guess = guess_type(s, d.scope->env, *l, &d);
    if (guess && guess->typing != Typing::Fixed) {
      any_float |= guess->typing == Typing::Float;
      any = true;
      guess.reset();
    }
  }
  if (guess) return guess->type;
  if (!any) return std::nullopt;
  return any_float ? DType::F32 : DType::I32;
}

// A clause whose value carries coordinates in another order than the family's: they are matched by
// position, but the names disagree.
void warn_transposed(Sema& s, const Definition& d, const ClauseOut& out,
                     const std::vector<core::Coord>& coords) {
  for (size_t p = out.left.size(); p < std::min(out.coords.size(), coords.size()); ++p) {
    Symbol name = out.coords[p].name;
    if (!name || name == coords[p].name) continue;
    for (size_t q = 0; q < coords.size(); ++q) {
      if (coords[q].name != name) continue;
      Span place = out.site->span;
      if (!s.warned.insert({place.begin, place.end}).second) return;
      s.diags
          .warning(Code::W0301,
                   fmt::format("{} of the value becomes coordinate {} of {}, but {} is "
                               "coordinate {}",
                               quoted(name), p, quoted(d.name.symbol), quoted(name), q))
          .primary(place, "this clause has coordinates " + show_coords(s, out.coords))
          .help(fmt::format(
              "{} has coordinates {}; write the coordinates on the left, or rename them if "
              "this is intended",
              quoted(d.name.symbol), show_coords(s, coords)));
      return;
    }
  }
}

bool merge_coords(Sema& s, Definition& d, std::vector<core::Coord>& coords) {
  size_t rank = spelled_slots(s, d);
  for (const auto& out : d.outs) {
    if (out && !out->bad) rank = std::max(rank, out->coords.size());
  }
  coords.resize(rank);
  for (size_t p = 0; p < rank; ++p) {  // a spelled name wins over one that a value brought along
    const ast::Slot* first = nullptr;
    for (ast::StmtId id : d.clauses) {
      if (!let_of(s.ast, id)) continue;
      const std::vector<LeftSlot>& slots = left_side(s, d, id).slots;
      if (p >= slots.size() || !slots[p].name) continue;
      if (!first) {
        first = slots[p].slot;
        coords[p].name = slots[p].name;
      } else if (coords[p].name != slots[p].name) {
        s.diags
            .error(Code::E0403, fmt::format("clauses of {} name coordinate {} differently",
                                            quoted(d.name.symbol), p))
            .primary(slots[p].slot->span, "here it is " + quoted(slots[p].name))
            .label(first->span, "here it is " + quoted(coords[p].name))
            .help("a coordinate has the same name in every clause of an array");
        return false;
      }
    }
    const ClauseOut* named = nullptr;
    for (const auto& out : d.outs) {
      if (!out || out->bad || p < out->left.size() || p >= out->coords.size()) continue;
      Symbol name = out->coords[p].name;
      if (!name) continue;
      if (named && named->coords[p].name != name) {
        s.diags
            .error(Code::E0403, fmt::format("clauses of {} disagree about coordinate {}",
                                            quoted(d.name.symbol), p))
            .primary(out->site->span, "here it is " + quoted(name))
            .label(named->site->span, "here it is " + quoted(named->coords[p].name));
        return false;
      }
      named = &*out;
      if (!coords[p].name) coords[p].name = name;
    }
  }
  for (const auto& out : d.outs) {
    if (out && !out->bad) warn_transposed(s, d, *out, coords);
  }
  return true;
}

bool decide_extent(Sema& s, Definition& d, size_t p, bool ranges_only, CoreId& extent) {
  struct End {
    CoreId hi;
    bool literal;
    Span span;
  };
  std::vector<End> ends;
  for (const auto& out : d.outs) {
    if (!out || out->bad || p >= out->box.size()) continue;
    bool literal = p < out->left.size() && !out->left[p].index;
    if (literal && ranges_only) continue;
    End end{resolve(s, out->box[p].hi), literal, out->site->span};
    if (!has_unsolved(s, end.hi)) ends.push_back(end);
  }
  if (ends.empty()) return true;
  const core::Facts facts = facts_at_entry(s.m);
  // An end that is provably the last decides, even if others cannot be compared with each other.
  auto at_most = [&](const End& a, const End& b) {
    return core::proves_le(s.m, a.hi, b.hi, facts);
  };
  const End* last = &ends[0];
  for (const End& end : ends) {
    if (at_most(*last, end)) last = &end;
  }
  if (std::all_of(ends.begin(), ends.end(), [&](const End& end) { return at_most(end, *last); })) {
    extent = last->hi;
    return true;
  }
  End best = ends[0];
  for (End end : ends) {
    if (at_most(end, best)) continue;
    if (at_most(best, end)) {
      best = end;
      continue;
    }
    auto constant = [&](const End& e) {
      return e.literal || core::const_int(s.m, e.hi).has_value();
    };
    if (!constant(end) && !constant(best)) {
      s.diags
          .error(Code::E0403,
                 fmt::format("clauses of {} end at {} and {}, and it is not known which is larger",
                             quoted(d.name.symbol), show(s, best.hi), show(s, end.hi)))
          .primary(end.span, "ends at " + show(s, end.hi))
          .label(best.span, "ends at " + show(s, best.hi))
          .help(
              fmt::format("write the same range in both clauses, as in `0..{}`", show(s, best.hi)));
      return false;
    }
    if (constant(best)) std::swap(best, end);
    constrain(
        s, core::apply(s.m, core::Op::Le, {end.hi, best.hi}),
        fmt::format("{} has a clause that extends to {}, so {} must be at least {}",
                    quoted(d.name.symbol), show(s, core::sub(s.m, end.hi, core::int_lit(s.m, 1))),
                    show(s, best.hi), show(s, end.hi)),
        end.span, best.span);
  }
  extent = best.hi;
  return true;
}

namespace {

// Whether a range on the left can be read before its clause: it names no other index of the left
// side, which is reported with the clause, and nothing that is still being defined.
bool readable_early(Sema& s, const Definition& d, const LeftSide& left, TreeId range) {
  for (Symbol name : free_names(s.ast, range)) {
    for (const LeftSlot& other : left.slots) {
      if (other.name == name) return false;
    }
    auto it = d.scope->values.find(name);
    if (it != d.scope->values.end() && it->second->group == d.group) return false;
  }
  return true;
}

}  // namespace

bool written_extent(Sema& s, Definition& d, size_t p, CoreId& extent) {
  CoreId end = extent;
  const core::Facts facts = facts_at_entry(s.m);
  for (size_t i = 0; i < d.clauses.size(); ++i) {
    if (d.outs[i]) continue;
    if (!let_of(s.ast, d.clauses[i])) return true;
    const LeftSide& left = left_side(s, d, d.clauses[i]);
    if (left.bad || p >= left.slots.size()) return true;
    const ast::Slot& slot = *left.slots[p].slot;
    if (slot.kind == ast::Slot::Kind::Literal) continue;
    if (!slot.range || !readable_early(s, d, left, slot.range)) return true;
    core::Range range;
    Env env = d.scope->env;
    if (!elaborate_range(s, env, slot.range, range)) return false;
    if (!closed(s.m, range.hi)) return true;
    CoreId hi = resolve(s, range.hi);
    if (!end || core::proves_le(s.m, end, hi, facts)) {
      end = hi;
    } else if (!core::proves_le(s.m, hi, end, facts)) {
      return true;
    }
  }
  if (end && !has_unsolved(s, end)) extent = end;
  return true;
}

}  // namespace ein::sema

#include "driver/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "core/build.h"
#include "core/normal.h"
#include "core/print.h"
#include "core/rewrite.h"

namespace ein {
namespace {

using core::Access;
using core::Clause;
using core::Coord;
using core::ExprId;
using core::Family;
using core::FamilyId;
using core::Module;
using core::Reduce;

struct Scoped {
  std::vector<Symbol> names;    // by slot
  std::vector<ExprId> extents;  // upper ends, where known
};

// Calls `f` on every read in `e`, with the slots in scope there.
void reads_of(const Module& m, ExprId e, Scoped& scope, std::set<std::pair<ExprId, size_t>>& seen,
              const std::function<void(ExprId, const Scoped&)>& f) {
  if (!seen.insert({e, scope.names.size()}).second) return;
  if (const auto* r = get_if<Reduce>(m, e)) {
    size_t outer = scope.names.size();
    for (size_t k = 0; k < r->over.size(); ++k) {
      scope.names.push_back(r->names[k]);
      scope.extents.push_back(r->over[k].hi);
    }
    if (r->gate) reads_of(m, r->gate, scope, seen, f);
    reads_of(m, r->body, scope, seen, f);
    scope.names.resize(outer);
    scope.extents.resize(outer);
    return;
  }
  if (get_if<Access>(m, e)) f(e, scope);
  for_each_child(m, e, [&](ExprId c) { reads_of(m, c, scope, seen, f); });
}

std::string name_of_slot(const Scoped& scope, uint32_t n) {
  return scope.names[n] ? text(scope.names[n]) : "i";
}

uint64_t used_slots(const Module& m, const Access& a) {
  uint64_t used = 0;
  for (ExprId e : a.at) used |= m[e].free;
  return used;
}

// A suspicion in words: the operand has the missing coordinate by name but is read along another
// index there, or another index in scope has the same extent and would fit as well. Empty: neither.
std::string swapped(const Module& m, const Access& a, const Scoped& scope) {
  const Family& f = m[a.family];
  uint64_t used = used_slots(m, a);
  for (uint32_t n = 0; n < scope.names.size(); ++n) {
    if ((used >> n) & 1 || !scope.names[n]) continue;
    for (size_t k = 0; k < a.at.size(); ++k) {
      uint32_t at = slot_of(m, a.at[k]);
      if (at == ~0u || at >= scope.names.size() || scope.names[at] == f.coords[k].name) continue;
      std::string here = name_of_slot(scope, at), other = name_of_slot(scope, n);
      if (f.coords[k].name == scope.names[n]) {
        return fmt::format(
            "`{}` has a coordinate `{}`, but `{}` is used for it and the value is repeated "
            "along `{}`",
            text(f.name), other, here, other);
      }
      if (scope.extents[n] == scope.extents[at]) {
        return fmt::format("`{}` and `{}` have the same extent, so `{}` along `{}` would fit too",
                           here, other, text(f.name), other);
      }
    }
  }
  return "";
}

// A value that `id` is computed from and that has a coordinate `name`, although nothing on the way
// runs over it: one fixed cell of it is used. Invalid when there is none.
FamilyId picks_from(const Module& m, FamilyId id, Symbol name) {
  FamilyId found;
  bool runs_over = false;
  std::set<FamilyId> seen;
  std::function<void(FamilyId)> visit = [&](FamilyId f) {
    if (!seen.insert(f).second) return;
    for_each_body(m, f, [&](ExprId body) {
      for_each_node(m, body, [&](ExprId e) {
        if (const auto* r = get_if<Reduce>(m, e)) {
          runs_over |= std::find(r->names.begin(), r->names.end(), name) != r->names.end();
        }
        const auto* a = get_if<Access>(m, e);
        if (!a) return;
        for (const Coord& c : m[a->family].coords) {
          if (c.name == name && !found && is_float(m[a->family].dtype)) found = a->family;
        }
        visit(a->family);
      });
    });
  };
  visit(id);
  return runs_over ? FamilyId{} : found;
}

}  // namespace

std::vector<Repeated> audit(Module& m) {
  std::vector<Repeated> out;
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    FamilyId id(i);
    const Family reader = m[id];
    if (reader.generated) continue;
    for (const Clause& clause : reader.clauses) {
      struct Found {
        ExprId node;
        Scoped scope;
      };
      std::vector<Found> all;
      Scoped scope;
      for (const Coord& c : reader.coords) {
        scope.names.push_back(c.name);
        scope.extents.push_back(c.extent);
      }
      std::set<std::pair<ExprId, size_t>> seen;
      reads_of(m, clause.body, scope, seen, [&](ExprId e, const Scoped& s) {
        const auto* a = get_if<Access>(m, e);
        if (!m[a->family].generated && is_float(m[a->family].dtype)) all.push_back({e, s});
      });
      for (const Found& x : all) {
        const Access a = *get_if<Access>(m, x.node);
        uint64_t used = used_slots(m, a);
        Repeated r{id, a.family, print(m, x.scope.names, x.node), {}, {}, m[x.node].span};
        for (uint32_t n = 0; n < x.scope.names.size(); ++n) {
          if (!((used >> n) & 1)) r.along.push_back(name_of_slot(x.scope, n));
        }
        if (r.along.empty() || a.family == id) continue;
        r.suspicion = swapped(m, a, x.scope);
        // A computed value that alone lacks a coordinate, and lost it on the way.
        for (uint32_t n = 0; n < reader.rank() && r.suspicion.empty(); ++n) {
          if ((used >> n) & 1 || a.at.empty() || m[a.family].kind != Family::Kind::Defined)
            continue;
          std::set<FamilyId> others;
          bool all_have = true;
          for (const Found& y : all) {
            const auto* b = get_if<Access>(m, y.node);
            if (b->family == a.family) continue;
            others.insert(b->family);
            all_have &= static_cast<bool>((used_slots(m, *b) >> n) & 1);
          }
          FamilyId from = picks_from(m, a.family, reader.coords[n].name);
          if (others.empty() || !all_have || !from) continue;
          r.suspicion = fmt::format(
              "every other operand has `{0}`, and `{1}` is computed from `{2}`, "
              "which has it, but without running over it",
              name_of_slot(x.scope, n), text(m[a.family].name), text(m[from].name));
        }
        bool again = std::any_of(out.begin(), out.end(), [&](const Repeated& o) {
          return o.reader == r.reader && o.operand == r.operand && o.along == r.along &&
                 o.read == r.read;
        });
        if (!again) out.push_back(std::move(r));
      }
    }
  }
  return out;
}

}  // namespace ein

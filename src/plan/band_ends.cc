// What only its band reads, and how far the loops of a band run.
#include <algorithm>

#include "core/build.h"
#include "core/reads.h"
#include "core/rewrite.h"
#include "plan/band_forms.h"
#include "plan/bands.h"

namespace ein::plan {
namespace {

using namespace core;

// Decides which loops may stop at the last row of the band.
struct BandEnds {
  Plan& plan;
  Band& band;
  Module& m = plan.module;

  bool member(FamilyId id) const {
    return std::count(band.members.begin(), band.members.end(), id) > 0;
  }
  bool is_cut(FamilyId id, uint32_t slot) const { return band.cut.contains({id, slot}); }

  // The slot that is the row in a member's clause; ~0 if none is.
  uint32_t row_slot(FamilyId id) const {
    if (auto part = band.parts.find(id); part != band.parts.end()) return part->second;
    if (auto total = band.totals.find(id); total != band.totals.end()) return total->second;
    return band.outer;
  }

  // Whether a condition makes the member 0 wherever its coordinate j is larger than its row.
  bool zero_behind(FamilyId id, uint32_t j) {
    const Family& f = m[id];
    if (!band.is_row(id) || f.clauses.size() != 1) return false;
    const Clause c = f.clauses[0];
    const auto* choice = get_if<core::Apply>(m, c.body);
    if (!choice || choice->op != Op::Select) return false;
    const auto* other = get_if<FloatLit>(m, choice->args[2]);
    if (!other || other->value != 0) return false;
    ExprId cond = choice->args[0];
    Facts facts = clause_facts(m, c);
    assume(m, cond, facts);
    return proves_le(m, slot(m, j), slot(m, band.outer), facts);
  }

  // Whether everything that reads the product checks that it is finite and otherwise computes it as
  // written.
  bool checked(FamilyId id) const {
    bool any = false, all = true;
    for (FamilyId reader : families_of(plan.schedule.steps)) {
      for (const CellRead& r : reads_of(m, reader)) {
        if (r.family != id) continue;
        auto form = repaired(m, reader);
        all &= form && form->product->family == id;
        any = true;
      }
    }
    return any && all;
  }

  // Finds indices of a product along which one operand is 0 beyond the row.
  void cut_product(FamilyId id, const Contraction& x) {
    const uint32_t row = row_slot(id);
    for (auto [one, other] : {std::pair(x.a, x.b), std::pair(x.b, x.a)}) {
      const Access z = std::get<Access>(m[one].node);
      if (!member(z.family) || !band.is_row(z.family)) continue;
      if (slot_of(m, z.at[band.outer]) != row) continue;
      for (uint32_t j = band.outer + 1; j < z.at.size(); ++j) {
        uint32_t v = slot_of(m, z.at[j]);
        if (v == ~0u || v == row) continue;
        bool summed = std::count(x.k.begin(), x.k.end(), v) > 0;
        // If the result has rows of its own, its cells beyond the row must be computed, zeros or
        // not; a part only adds to what is there.
        if (!summed && band.is_row(id)) continue;
        if (!zero_behind(z.family, j)) continue;
        if (!checked(id)) {
          const auto& y = std::get<Access>(m[other].node);
          bool plain =
              std::all_of(y.at.begin(), y.at.end(), [&](ExprId e) { return slot_of(m, e) != ~0u; });
          if (member(y.family) || !plain) continue;
          band.finite.push_back({id, other});
        }
        band.cut.insert({id, v});
      }
    }
  }

  // Whether every reader of a member reads coordinate j only up to its own row, or itself stops at
  // the end of the band.
  bool read_in_front(FamilyId id, uint32_t j) {
    bool ok = true;
    for (FamilyId reader : band.members) {
      const uint32_t row = row_slot(reader);
      const Family f = m[reader];
      for (const Clause& c : f.clauses) {
        auto reads_it = [&](const Node& n) {
          const auto* a = std::get_if<Access>(&n);
          return a && a->family == id;
        };
        for_each_with_facts(m, c, reads_it, [&](ExprId e, const Facts& facts) {
          ExprId at = std::get<Access>(m[e].node).at[j];
          uint32_t v = slot_of(m, at);
          if (v != ~0u && is_cut(reader, v) && (v < f.rank() || product_of(plan, reader))) return;
          ok = ok && row != ~0u && proves_le(m, at, slot(m, row), facts);
        });
      }
    }
    return ok;
  }

  bool never_fails(FamilyId id) {
    const Family f = m[id];
    return std::all_of(f.clauses.begin(), f.clauses.end(), [&](const Clause& c) {
      return total(m, c.body, clause_facts(m, c), plan.overflow);
    });
  }

  void run(const std::set<FamilyId>& inside) {
    for (auto it = band.members.rbegin(); it != band.members.rend(); ++it) {
      if (const Contraction* x = product_of(plan, *it)) cut_product(*it, Contraction(*x));
      if (!inside.contains(*it) || !band.is_row(*it) || !never_fails(*it)) continue;
      for (uint32_t j = band.outer + 1; j < m[*it].rank(); ++j) {
        if (read_in_front(*it, j)) band.cut.insert({*it, j});
      }
    }
    // A total needs to add only those cells that its parts compute.
    for (const auto& [id, binder] : band.totals) {
      for (const CellRead& r : reads_of(m, id)) {
        if (!band.parts.contains(r.family)) continue;
        for (uint32_t k = band.outer; k < m[id].rank(); ++k) {
          if (is_cut(r.family, k)) band.cut.insert({id, k});
        }
      }
    }
  }
};

}  // namespace

void finish_bands(Plan& plan) {
  for (const core::Step& s : plan.schedule.steps) {
    const auto* c = std::get_if<Compute>(&s);
    auto it = c ? plan.band_of.find(c->family) : plan.band_of.end();
    if (it != plan.band_of.end()) plan.bands[it->second].members.push_back(c->family);
  }
  if (plan.bands.empty()) return;
  // By which bands; ~0: by something outside of bands.
  std::map<FamilyId, std::set<uint32_t>> read_by;
  for (FamilyId f : plan.wanted) read_by[f].insert(~0u);
  for (FamilyId reader : families_of(plan.schedule.steps)) {
    auto own = plan.band_of.find(reader);
    for (const CellRead& r : reads_of(plan.module, reader)) {
      read_by[r.family].insert(own == plan.band_of.end() ? ~0u : own->second);
    }
  }
  for (uint32_t i = 0; i < plan.bands.size(); ++i) {
    std::set<FamilyId> inside;
    for (FamilyId id : plan.bands[i].members) {
      if (read_by[id] != std::set<uint32_t>{i} || plan.bands[i].totals.contains(id)) continue;
      inside.insert(id);
      Storage& storage = plan.families[id].storage;
      if (storage == Storage::Full) storage = Storage::Band;
    }
    BandEnds{plan, plan.bands[i]}.run(inside);
  }
}

}  // namespace ein::plan

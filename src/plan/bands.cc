#include "plan/bands.h"

#include <algorithm>

#include "base/check.h"
#include "core/build.h"
#include "core/reads.h"
#include "core/rewrite.h"
#include "plan/arrange.h"
#include "plan/band_forms.h"

namespace ein::plan {
namespace {

using namespace core;

struct BandFinder {
  Plan& plan;
  Module& m = plan.module;
  std::vector<core::Step>& steps = plan.schedule.steps;
  std::map<FamilyId, uint32_t> step_of = {};
  std::vector<std::set<uint32_t>> before = {};  // for each step, the steps it reads
  std::map<FamilyId, std::set<FamilyId>> readers = {};

  void look() {
    step_of.clear();
    before.assign(steps.size(), {});
    readers.clear();
    for (uint32_t s = 0; s < steps.size(); ++s) {
      for (FamilyId f : families_of({steps[s]})) step_of[f] = s;
    }
    for (uint32_t s = 0; s < steps.size(); ++s) {
      for (FamilyId reader : families_of({steps[s]})) {
        auto note = [&](FamilyId read) {
          readers[read].insert(reader);
          auto it = step_of.find(read);
          if (it != step_of.end() && it->second < s) before[s].insert(it->second);
        };
        for (FamilyId with : m[reader].with) note(with);
        for (const CellRead& r : reads_of(m, reader)) note(r.family);
      }
    }
  }

  // The family that a step computes, if that family may be in a band.
  std::optional<FamilyId> candidate(uint32_t step) const {
    const auto* c = std::get_if<Compute>(&steps[step]);
    if (!c || plan.band_of.contains(c->family)) return std::nullopt;
    const Family& f = m[c->family];
    if (f.kind != Family::Kind::Defined || !f.with.empty()) return std::nullopt;
    for (const ClausePlan& how : plan.families.at(c->family).clauses) {
      if (how.scatters || (how.contraction && !how.contraction->is_product())) return std::nullopt;
    }
    return c->family;
  }

  // How many coordinates precede the row of a product that may be the first member of a band; 0 if
  // it may not be. For each address of those coordinates the product has rows and columns of its
  // own.
  uint32_t starts(FamilyId id) const {
    const Contraction* x = product_of(plan, id);
    if (!x) return 0;
    auto outer = static_cast<uint32_t>(x->batch.size());
    if (m[id].rank() < outer + 2) return 0;
    for (uint32_t k = 0; k < outer; ++k) {
      if (std::count(x->batch.begin(), x->batch.end(), k) == 0) return 0;
    }
    for (uint32_t k = 0; k <= outer; ++k) {
      if (!whole(m, id, k)) return 0;
    }
    return outer;
  }

  struct Draft {
    Band band;
    std::set<FamilyId> members = {};
    std::vector<ExprId> extents = {};  // of the coordinates in front and of the row

    bool has(FamilyId id) const { return members.contains(id); }
  };

  bool same_front(const Draft& d, FamilyId id, uint32_t count) const {
    if (m[id].rank() < count) return false;
    for (uint32_t k = 0; k < count; ++k) {
      if (m[id].coords[k].extent != d.extents[k] || !whole(m, id, k)) return false;
    }
    return true;
  }

  // Whether a read of a member uses the reader's own front coordinates, and slot `row` as the row.
  bool at_row(const Draft& d, const CellRead& r, uint32_t row) const {
    for (uint32_t k = 0; k < d.band.outer; ++k) {
      if (slot_of(m, r.at[k]) != k) return false;
    }
    return slot_of(m, r.at[d.band.outer]) == row;
  }

  bool is_row(const Draft& d, FamilyId id, const std::vector<CellRead>& reads) const {
    if (!same_front(d, id, d.band.outer + 1)) return false;
    bool any = false;
    for (const CellRead& r : reads) {
      if (!d.has(r.family)) continue;
      if (!d.band.is_row(r.family) || !at_row(d, r, d.band.outer)) return false;
      any = true;
    }
    return any || starts(id) == d.band.outer;
  }

  // The binder that is the row in every read of a member, provided that it runs over all rows.
  std::optional<uint32_t> row_binder(const Draft& d, const Reduce& r,
                                     const std::vector<CellRead>& reads) const {
    std::optional<uint32_t> out;
    for (const CellRead& read : reads) {
      if (!d.has(read.family)) continue;
      if (!d.band.is_row(read.family)) return std::nullopt;
      uint32_t row = slot_of(m, read.at[d.band.outer]);
      if (!at_row(d, read, row) || (out && *out != row)) return std::nullopt;
      if (row < r.first || row >= r.first + r.over.size()) return std::nullopt;
      out = row;
    }
    if (!out) return std::nullopt;
    const Range& range = r.over[*out - r.first];
    bool all = const_int(m, range.lo) == 0 && range.hi == d.extents.back();
    return all ? out : std::nullopt;
  }

  std::optional<uint32_t> part_binder(const Draft& d, FamilyId id,
                                      const std::vector<CellRead>& reads) const {
    const Contraction* x = product_of(plan, id);
    if (!x || !same_front(d, id, d.band.outer)) return std::nullopt;
    return row_binder(d, std::get<Reduce>(m[x->reduce].node), reads);
  }

  std::optional<uint32_t> total_binder(const Draft& d, FamilyId id) const {
    auto form = repaired(m, id);
    if (!form || !d.band.parts.contains(form->product->family)) return std::nullopt;
    FamilyId part = form->product->family;
    bool wanted = std::count(plan.wanted.begin(), plan.wanted.end(), part) > 0;
    if (wanted || readers.at(part).size() != 1 || !same_front(d, id, d.band.outer))
      return std::nullopt;
    if (!form->sum->routes.empty()) return std::nullopt;
    std::vector<CellRead> reads;
    note_reads(m, form->sum->body, reads);
    if (form->sum->gate) note_reads(m, form->sum->gate, reads);
    return row_binder(d, *form->sum, reads);
  }

  // The band that begins with the product of step `start`, with everything that can run along.
  Draft gather(uint32_t start) const {
    FamilyId first = *candidate(start);
    Draft d;
    d.band.outer = starts(first);
    for (uint32_t k = 0; k <= d.band.outer; ++k) d.extents.push_back(m[first].coords[k].extent);
    d.band.rows = d.extents.back();
    std::set<uint32_t> after;  // steps outside of the band that need a member
    for (uint32_t s = start; s < steps.size(); ++s) {
      bool late = std::any_of(before[s].begin(), before[s].end(),
                              [&](uint32_t b) { return after.contains(b); });
      auto id = late ? std::nullopt : candidate(s);
      if (id && joins(d, *id)) continue;
      bool needs = late || std::any_of(before[s].begin(), before[s].end(), [&](uint32_t b) {
                     const auto* c = std::get_if<Compute>(&steps[b]);
                     return c && d.has(c->family);
                   });
      if (needs) after.insert(s);
    }
    return d;
  }

  bool joins(Draft& d, FamilyId id) const {
    std::vector<CellRead> reads = reads_of(m, id);
    if (auto binder = total_binder(d, id)) {
      d.band.totals[id] = *binder;
    } else if (auto part = part_binder(d, id, reads)) {
      d.band.parts[id] = *part;
    } else if (!is_row(d, id, reads)) {
      return false;
    }
    d.members.insert(id);
    return true;
  }

  // Whether only members of the band read it.
  bool stays(const Draft& d, FamilyId id) const {
    if (std::count(plan.wanted.begin(), plan.wanted.end(), id) > 0) return false;
    auto it = readers.find(id);
    return it == readers.end() ||
           std::all_of(it->second.begin(), it->second.end(), [&](FamilyId r) { return d.has(r); });
  }

  // Drops members that need not be there: those that read no other member, unless only the band
  // reads their cells.
  void prune(Draft& d) const {
    for (bool again = true; again;) {
      again = false;
      for (FamilyId id : std::set<FamilyId>(d.members)) {
        std::vector<CellRead> reads = reads_of(m, id);
        bool needs = std::any_of(reads.begin(), reads.end(),
                                 [&](const CellRead& r) { return d.has(r.family); });
        if (needs || (starts(id) == d.band.outer && stays(d, id))) continue;
        d.members.erase(id);
        d.band.parts.erase(id);
        d.band.totals.erase(id);
        again = true;
      }
    }
  }

  // A band is worthwhile if one of its products reads the results of another, so that the
  // intermediate array is never needed whole.
  bool worthwhile(const Draft& d) const {
    bool made = false, used = false;
    for (FamilyId id : d.members) {
      if (!product_of(plan, id)) continue;
      std::vector<CellRead> reads = reads_of(m, id);
      bool needs = std::any_of(reads.begin(), reads.end(),
                               [&](const CellRead& r) { return d.has(r.family); });
      (needs ? used : made) = true;
    }
    return made && used;
  }

  // The schedule with the members of each band adjacent. Nothing if two bands need results of each
  // other.
  std::optional<std::vector<core::Step>> arranged(const Draft& d) const {
    std::vector<uint32_t> node(steps.size());
    std::map<uint32_t, uint32_t> first;  // by band: its first step
    auto count = static_cast<uint32_t>(plan.bands.size());
    for (uint32_t s = 0; s < steps.size(); ++s) {
      node[s] = s;
      const auto* c = std::get_if<Compute>(&steps[s]);
      if (!c) continue;
      auto it = plan.band_of.find(c->family);
      if (it != plan.band_of.end()) node[s] = first.emplace(it->second, s).first->second;
      if (d.has(c->family)) node[s] = first.emplace(count, s).first->second;
    }
    return arrange(steps, before, node);
  }

  // Splits a part that nothing totals yet: the partial sums become a family of their own, and the
  // product's own family becomes the total.
  void split_part(Draft& d, FamilyId id) {
    Family f = m[id];
    f.name = fresh_name(m, text(f.name) + "_part");
    f.path.clear();
    f.member.clear();
    f.generated = true;
    FamilyId part = m.families.add(std::move(f));
    FamilyPlan& whole = plan.families[id];
    FamilyPlan& mine = plan.families[part];
    mine = whole;
    mine.wanted = false;
    m.families[id].clauses[0].body = access(m, part, slots_from(m, 0, m[id].rank()));
    ClausePlan& how = whole.clauses[0];
    how.contraction.reset();
    for (auto at = steps.begin(); at != steps.end(); ++at) {
      const auto* c = std::get_if<Compute>(&*at);
      if (!c || c->family != id) continue;
      steps.insert(at, Compute{part});
      break;
    }
    d.members.insert(part);
    d.band.totals[id] = ~0u;
    d.band.parts[part] = d.band.parts.at(id);
    d.band.parts.erase(id);
  }

  // The front coordinates become loops around the products, so the products lose them.
  void fix_front(const Draft& d) {
    for (FamilyId id : d.members) {
      for (ClausePlan& how : plan.families.at(id).clauses) {
        if (!how.contraction) continue;
        for (auto* set : {&how.contraction->batch, &how.contraction->m, &how.contraction->n}) {
          std::erase_if(*set, [&](uint32_t s) { return s < d.band.outer; });
        }
      }
    }
  }

  ExprId height_of(const Draft& d) {
    ExprId height = int_lit(m, plan.tuning.band_rows);
    if (d.band.totals.empty()) return height;
    // A total adds the parts one after the other. With at most this many parts it loses little
    // precision.
    const int64_t most = plan.tuning.band_parts;
    ExprId more =
        core::apply(m, Op::Div, {add(m, d.band.rows, int_lit(m, most - 1)), int_lit(m, most)});
    return core::apply(m, Op::Max, {height, more});
  }

  // The band that begins with this step, if there is one.
  std::optional<Draft> begin(uint32_t s) {
    auto id = candidate(s);
    if (!id || starts(*id) == 0) return std::nullopt;
    Draft d = gather(s);
    prune(d);
    if (!d.has(*id) || !worthwhile(d)) return std::nullopt;
    auto order = arranged(d);
    if (!order) return std::nullopt;
    steps = std::move(*order);
    return d;
  }

  bool same_columns(const Draft& d, FamilyId one, FamilyId other) const {
    if (m[one].rank() != m[other].rank()) return false;
    for (uint32_t k = d.band.outer + 1; k < m[one].rank(); ++k) {
      if (m[one].coords[k].extent != m[other].coords[k].extent) return false;
    }
    return true;
  }

  // The products that a band begins with, and other members with the same columns that are computed
  // from them.
  std::set<FamilyId> wide_members(const Draft& d) const {
    std::set<FamilyId> out;
    for (FamilyId id : families_of(steps)) {
      if (!d.has(id) || !d.band.is_row(id)) continue;
      bool wide = starts(id) == d.band.outer && stays(d, id);
      if (!wide && !product_of(plan, id)) {
        std::vector<CellRead> reads = reads_of(m, id);
        wide = std::any_of(reads.begin(), reads.end(), [&](const CellRead& r) {
          return out.contains(r.family) && same_columns(d, id, r.family);
        });
      }
      if (wide) out.insert(id);
    }
    return out;
  }

  // Wide members that something outside of the band reads, and the wide members they are computed
  // from. For example, a derivative reads the exponentials of a softmax long after the softmax.
  std::set<FamilyId> read_later(const Draft& d) const {
    const std::set<FamilyId> wide = wide_members(d);
    std::set<FamilyId> out;
    std::vector<FamilyId> open;
    for (FamilyId id : wide) {
      bool wanted = std::count(plan.wanted.begin(), plan.wanted.end(), id) > 0;
      if (!wanted && !stays(d, id)) open.push_back(id);
    }
    while (!open.empty()) {
      FamilyId id = open.back();
      open.pop_back();
      if (!out.insert(id).second) continue;
      for (const CellRead& r : reads_of(m, id)) {
        if (wide.contains(r.family)) open.push_back(r.family);
      }
    }
    return out;
  }

  // Replaces reads of some families by reads of others.
  struct Redirect {
    Plan& plan;
    const std::map<FamilyId, FamilyId>& to;
    std::unordered_map<ExprId, ExprId> memo = {};

    ExprId operator()(ExprId e) {
      Module& m = plan.module;
      if (auto it = memo.find(e); it != memo.end()) return it->second;
      ExprId out = map_children(m, e, [&](ExprId x) { return (*this)(x); });
      if (const auto* read = get_if<Access>(m, out); read && to.contains(read->family)) {
        const Access old = *read;
        out = access(m, to.at(old.family), old.at, m[e].span);
      }
      memo[e] = out;
      if (out == e) return out;
      if (auto it = plan.reduce_widths.find(e); it != plan.reduce_widths.end())
        plan.reduce_widths[out] = uint32_t{it->second};
      if (plan.stops.contains(e)) plan.stops.insert(out);
      return out;
    }
  };

  void redirect(FamilyId id, const std::map<FamilyId, FamilyId>& to) {
    Redirect r{plan, to};
    rewrite_family(m, id, [&](ExprId e) { return r(e); });
    for (ClausePlan& how : plan.families.at(id).clauses) {
      if (!how.contraction || !how.contraction->is_product()) continue;
      for (ExprId* e : {&how.contraction->reduce, &how.contraction->a, &how.contraction->b}) {
        *e = r(*e);
      }
    }
  }

  // Adds copies of these members that are computed again for the readers outside of the band, so
  // that the members need not be stored whole. Returns the copies.
  std::set<FamilyId> compute_again(const Draft& d, const std::set<FamilyId>& these) {
    std::map<FamilyId, FamilyId> again;
    std::vector<core::Step> made;
    for (const core::Step& s : steps) {
      const auto* c = std::get_if<Compute>(&s);
      if (!c || !these.contains(c->family)) continue;
      Family f = m[c->family];
      f.name = fresh_name(m, text(f.name) + "_again");
      f.path.clear();
      f.member.clear();
      f.generated = true;
      FamilyId copy = m.families.add(std::move(f));
      FamilyPlan how = plan.families.at(c->family);
      for (ClausePlan& clause : how.clauses) {  // undo fix_front
        if (!clause.contraction) continue;
        auto& batch = clause.contraction->batch;
        for (uint32_t k = d.band.outer; k-- > 0;) batch.insert(batch.begin(), k);
      }
      plan.families[copy] = std::move(how);
      redirect(copy, again);
      again[c->family] = copy;
      made.push_back(Compute{copy});
    }
    auto first = steps.end();
    for (auto at = steps.begin(); at != steps.end(); ++at) {
      for (FamilyId reader : families_of({*at})) {
        if (d.has(reader)) continue;
        std::vector<CellRead> reads = reads_of(m, reader);
        bool reads_it = std::any_of(reads.begin(), reads.end(),
                                    [&](const CellRead& r) { return again.contains(r.family); });
        if (!reads_it) continue;
        redirect(reader, again);
        if (first == steps.end()) first = at;
      }
    }
    steps.insert(first, made.begin(), made.end());
    std::set<FamilyId> out;
    for (const auto& [old, copy] : again) out.insert(copy);
    return out;
  }

  // Adds a second band for the members that are read later, provided that all of them fit into it.
  void repeat(const Draft& d, const std::set<FamilyId>& these) {
    if (these.empty()) return;
    Plan before_it = plan;
    std::set<FamilyId> copies = compute_again(d, these);
    look();
    for (uint32_t s = 0; s < steps.size(); ++s) {
      auto second = begin(s);
      bool all = second && std::all_of(copies.begin(), copies.end(), [&](FamilyId copy) {
                   return second->has(copy) && stays(*second, copy);
                 });
      if (!all) continue;
      settle(std::move(*second));
      return;
    }
    plan = std::move(before_it);
    look();
  }

  // Adds a band to the plan.
  void settle(Draft d) {
    std::map<FamilyId, uint32_t> parts = d.band.parts;
    for (const auto& [part, binder] : parts) {
      auto it = readers.find(part);
      bool totalled = it != readers.end() && it->second.size() == 1 &&
                      d.band.totals.contains(*it->second.begin());
      if (!totalled) split_part(d, part);
    }
    const std::set<FamilyId> later = read_later(d);
    fix_front(d);
    d.band.height = height_of(d);
    for (FamilyId member : d.members) {
      plan.band_of[member] = static_cast<uint32_t>(plan.bands.size());
    }
    plan.bands.push_back(d.band);
    look();
    repeat(d, later);
  }

  void run() {
    look();
    for (uint32_t s = 0; s < steps.size();) {
      auto d = begin(s++);
      if (!d) continue;
      settle(std::move(*d));
      s = 0;  // the schedule has changed
    }
  }
};

}  // namespace

void form_bands(Plan& plan) { BandFinder{plan}.run(); }

}  // namespace ein::plan

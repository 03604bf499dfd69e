#include "optimise/strip_mine.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "core/build.h"
#include "core/normal.h"
#include "core/prove.h"
#include "core/rewrite.h"

namespace ein::optimise {
namespace {

using namespace core;
using Role = Region::Member::Role;

// Cells (s, r) whose step s·K + r lies in an interval, as boxes. `beyond`: the first and the last
// segment have what lies outside of all of them.
struct Piece {
  int64_t s0, s1, r0, r1;
};
std::vector<Piece> pieces(int64_t lo, int64_t hi, int64_t segment, int64_t segments, int64_t width,
                          bool beyond = false) {
  std::vector<Piece> out;
  for (int64_t s = 0; s < segments; ++s) {
    int64_t r0 = lo - s * segment, r1 = hi - s * segment;
    if (!beyond || s > 0) r0 = std::max<int64_t>(0, r0);
    if (!beyond || s + 1 < segments) r1 = std::min(width, r1);
    if (r0 >= r1) continue;
    if (!out.empty() && out.back().s1 == s && out.back().r0 == r0 && out.back().r1 == r1) {
      out.back().s1 = s + 1;
    } else {
      out.push_back({s, s + 1, r0, r1});
    }
  }
  return out;
}

class StripMiner {
 public:
  StripMiner(Module& m, const Region& region, int64_t segment)
      : m_(m), region_(region), k_(segment), segments_((region.steps + segment - 1) / segment) {}

  void run(const std::vector<FamilyId>& reached) {
    for (const auto& [id, member] : region_.members) declare(id, member);
    // The old definitions, which several new families need.
    std::map<FamilyId, Family> before;
    for (const auto& [id, member] : region_.members) before.emplace(id, m_[id]);
    std::vector<FamilyId> outside;
    for (FamilyId id : reached) {
      if (!region_.members.contains(id)) outside.push_back(id);
    }
    for (FamilyId id : outside) accumulate(id);
    for (const auto& [id, member] : region_.members) {
      const Family& f = before.at(id);
      switch (member.role) {
        case Role::Forward:
          define(run_.at(id), id, f, member, false);
          define(again_.at(id), id, f, member, true);
          define_start(id, f, member);
          break;
        case Role::ForwardLocal: define(run_.at(id), id, f, member, false); break;
        case Role::Backward:
        case Role::BackwardLocal: define(run_.at(id), id, f, member, true); break;
      }
    }
    for (FamilyId id : outside) {
      rewrite_family(m_, id, [&](ExprId e) { return place(e, {}); });
    }
    for (const auto& [id, member] : region_.members) define_whole(id);
    m_.locksteps.push_back(std::move(up_));
    m_.locksteps.push_back(std::move(down_));
  }

 private:
  // The place of a cell: its run, and its step.
  struct Here {
    ExprId step;  // invalid: outside of the runs
    ExprId s, r;  // step = s·K + r
    bool backward = false;
  };

  ExprId lit(int64_t v) { return int_lit(m_, v); }
  Range range(int64_t lo, int64_t hi) { return {lit(lo), lit(hi)}; }
  ExprId zero_of(const Family& f) {
    return f.dtype == DType::Bool ? bool_lit(m_, false) : number(m_, 0, f.dtype);
  }

  Family generated(const Family& of, const std::string& suffix) {
    Family f;
    f.name = fresh_name(m_, text(of.name) + suffix);
    f.dtype = of.dtype;
    f.generated = true;
    f.span = of.span;
    return f;
  }
  // The family's coordinates with (segment, step within it) instead of the step.
  std::vector<Coord> cut_coords(const Family& f, uint32_t position, int64_t width) {
    std::vector<Coord> out{{intern("segment"), lit(segments_)},
                           {f.coords[position].name, lit(width)}};
    for (uint32_t k = 0; k < f.rank(); ++k) {
      if (k != position) out.push_back(f.coords[k]);
    }
    return out;
  }
  // How many steps before its first one a segment also holds.
  int64_t halo(Role role) const { return role == Role::Forward ? region_.before : 0; }
  int64_t width(Role role, bool again) const {
    switch (role) {
      case Role::Forward: return region_.before + k_ + (again ? region_.after : 0);
      case Role::Backward: return k_ + region_.ahead;
      case Role::ForwardLocal:
      case Role::BackwardLocal: return k_;
    }
    return k_;
  }

  void declare(FamilyId id, const Region::Member& member) {
    const Family f = m_[id];
    auto add = [&](const char* suffix, int64_t wide, Lockstep& in) {
      Family made = generated(f, suffix);
      made.coords = cut_coords(f, member.position, wide);
      FamilyId out = m_.families.add(std::move(made));
      in.members.push_back({out, 0});
      return out;
    };
    run_[id] = add("_run", width(member.role, false), backward_role(member.role) ? down_ : up_);
    if (member.role == Role::Forward) {
      again_[id] = add("_again", width(member.role, true), down_);
      start_[id] = add("_start", region_.before, up_);
    }
  }

  // The cell of a member at step `at`, as it is read from `here`.
  ExprId read(const Access& a, const Here& here) {
    const Region::Member& member = region_.members.at(a.family);
    ExprId at = a.at[member.position], s, r;
    FamilyId from = run_.at(a.family);
    std::optional<int64_t> by;
    if (here.step) by = const_int(m_, sub(m_, at, here.step));
    bool same_run = here.backward == backward_role(member.role) || member.role == Role::Forward;
    if (by && same_run && carried(member.role, here.backward, *by)) {
      s = here.s;
      r = add(m_, here.r, lit(*by));
      if (here.backward && member.role == Role::Forward) from = again_.at(a.family);
    } else if (auto known = const_int(m_, at)) {
      s = lit(*known / k_);
      r = lit(*known % k_);
    } else {
      s = apply(m_, Op::Div, {at, lit(k_)});
      r = apply(m_, Op::Mod, {at, lit(k_)});
    }
    std::vector<ExprId> to{s, add(m_, r, lit(halo(member.role)))};
    for (uint32_t k = 0; k < a.at.size(); ++k) {
      if (k != member.position) to.push_back(a.at[k]);
    }
    return access(m_, from, std::move(to));
  }
  // Whether every segment of that run has the step that is `by` away from each of its own steps.
  bool carried(Role role, bool from_backward, int64_t by) const {
    switch (role) {
      case Role::Forward: return by >= -region_.before && by <= (from_backward ? region_.after : 0);
      case Role::Backward: return by >= 0 && by <= region_.ahead;
      case Role::ForwardLocal:
      case Role::BackwardLocal: return by == 0;
    }
    return false;
  }

  ExprId place(ExprId e, const Here& here) {
    return rewrite(m_, e, [&](ExprId x) {
      const auto* a = get_if<Access>(m_, x);
      if (!a || !region_.members.contains(a->family)) return x;
      return read(Access(*a), here);
    });
  }

  // Defines a family by the clauses of member `of`, which were those of `f`, cut into segments.
  // `in_backward`: it is computed in the backward run.
  void define(FamilyId id, FamilyId of, const Family& f, const Region::Member& member,
              bool in_backward) {
    uint32_t p = member.position;
    int64_t before = halo(member.role), wide = width(member.role, in_backward);
    // In a backward recurrence, the steps after a segment are the first steps of the next one.
    int64_t own = member.role == Role::Backward ? k_ : wide - before;
    Here here{{}, slot(m_, 0), sub(m_, slot(m_, 1), lit(before)), in_backward};
    here.step = add(m_, mul(m_, here.s, lit(k_)), here.r);
    std::vector<ExprId> with(f.rank());
    for (uint32_t k = 0; k < f.rank(); ++k) {
      with[k] = k == p ? here.step : slot(m_, k < p ? k + 2 : k + 1);
    }
    std::vector<Clause> clauses;
    auto add_clause = [&](int64_t s0, int64_t s1, int64_t r0, int64_t r1,
                          const std::vector<Range>& rest, ExprId body, Span span) {
      if (s0 >= s1 || r0 >= r1) return;
      std::vector<Range> box{range(s0, s1), range(r0, r1)};
      for (uint32_t k = 0; k < rest.size(); ++k) {
        if (k != p) box.push_back(rest[k]);
      }
      clauses.push_back({std::move(box), body, span});
    };
    std::vector<Range> all;
    for (const Coord& c : f.coords) all.push_back({lit(0), c.extent});
    for (const Clause& c : f.clauses) {
      ExprId body = place(substitute(m_, c.body, with, f.rank() + 1), here);
      for (const Piece& x : pieces(constant(c.box[p].lo), constant(c.box[p].hi), own)) {
        add_clause(x.s0, x.s1, before + x.r0, before + x.r1, c.box, body, c.span);
      }
    }
    ExprId zero = zero_of(f);
    for (const Piece& x : pieces(constant(f.coords[p].extent), segments_ * k_ + own, own)) {
      add_clause(x.s0, x.s1, before + x.r0, before + x.r1, all, zero, f.span);
    }
    auto cell = [&](FamilyId from, ExprId s, ExprId r) {
      std::vector<ExprId> at{s, r};
      for (uint32_t k = 2; k <= f.rank(); ++k) at.push_back(slot(m_, k));
      return access(m_, from, std::move(at));
    };
    if (before > 0) {
      add_clause(0, segments_, 0, before, all, cell(start_.at(of), slot(m_, 0), slot(m_, 1)),
                 f.span);
    }
    if (own < wide - before) {
      ExprId next = cell(id, add(m_, slot(m_, 0), lit(1)), sub(m_, slot(m_, 1), lit(k_)));
      add_clause(0, segments_ - 1, own, wide, all, next, f.span);
      add_clause(segments_ - 1, segments_, own, wide, all, zero, f.span);
    }
    m_.families[id].clauses = std::move(clauses);
  }

  // The state that a segment starts from: the last steps of the previous segment.
  void define_start(FamilyId id, const Family& f, const Region::Member& member) {
    std::vector<ExprId> last{sub(m_, slot(m_, 0), lit(1)), add(m_, slot(m_, 1), lit(k_))};
    std::vector<Range> first{range(0, 1), range(0, region_.before)}, later = first;
    later[0] = range(1, segments_);
    for (uint32_t k = 0; k < f.rank(); ++k) {
      if (k == member.position) continue;
      for (auto* box : {&first, &later}) box->push_back({lit(0), f.coords[k].extent});
      last.push_back(slot(m_, static_cast<uint32_t>(last.size())));
    }
    ExprId zero = zero_of(f);
    std::vector<Clause>& clauses = m_.families[start_.at(id)].clauses;
    clauses.push_back({first, zero, f.span});
    if (segments_ > 1) clauses.push_back({later, access(m_, run_.at(id), last), f.span});
  }

  // Keeps the family under its own name, for readers that read all steps.
  void define_whole(FamilyId id) {
    Family& f = m_.families[id];
    Access a{id, {}};
    std::vector<Range> box;
    for (uint32_t k = 0; k < f.rank(); ++k) {
      a.at.push_back(slot(m_, k));
      box.push_back({lit(0), f.coords[k].extent});
    }
    ExprId body = read(a, {});
    f.clauses = {{std::move(box), body, f.span}};
  }

  // Turns sums over all steps in `id` into running sums over the segments.
  void accumulate(FamilyId id) {
    if (m_[id].kind != Family::Kind::Defined) return;
    for (size_t c = 0; c < m_[id].clauses.size(); ++c) {
      std::set<ExprId> two_ranges;  // what stands where indices have other ranges, too
      for (bool again = true; again;) {
        again = false;
        const Family family = m_[id];
        const Clause clause = family.clauses[c];
        ExprId found, cond;  // `cond`: the condition under which it is evaluated
        bool always = false;
        Facts where;
        for_each_with_facts(
            m_, clause, [](const Node& n) { return std::holds_alternative<Reduce>(n); },
            [&](ExprId e, const Facts& facts) {
              if (found ? e != found : two_ranges.contains(e) || !binder_of(e)) return;
              if (!found) where = facts;
              if (!same_ranges(m_, e, where.slots, facts.slots)) two_ranges.insert(e);
              found = e;
              ExprId here = all_of(m_, facts.holds);
              always |= !here;
              if (!always) cond = cond ? apply(m_, Op::Or, {cond, here}) : here;
            });
        if (!found) continue;
        again = two_ranges.contains(found);
        if (again) continue;
        ExprId by = running_sum(family, found, always ? ExprId{} : cond, where);
        if (!by) break;
        m_.families[id].clauses[c].body =
            rewrite(m_, clause.body, [&](ExprId x) { return x == found ? by : x; });
        again = true;
      }
    }
  }

  struct Binder {
    uint32_t number = 0;  // its number among the binders of the reduction
    bool backward = false;
  };
  // The binder of a sum that runs over the steps, if every read of a member is at a constant
  // distance from it; and the run in which those steps are available.
  std::optional<Binder> binder_of(ExprId e) {
    const Reduce r = std::get<Reduce>(m_[e].node);
    if (r.op != ReduceOp::Sum || !r.routes.empty()) return std::nullopt;
    for (uint32_t b = 0; b < r.over.size(); ++b) {
      ExprId here = slot(m_, r.first + b);
      std::vector<ExprId> parts{r.body};
      if (r.gate) parts.push_back(r.gate);
      auto reads = offsets(m_, region_, parts, here, false);
      if (!reads || reads->empty()) continue;
      if (!const_int(m_, r.over[b].lo) || !const_int(m_, r.over[b].hi)) continue;
      bool later = std::any_of(r.over.begin(), r.over.end(), [&](const Range& x) {
        return mentions_slot(m_, x.lo, r.first + b) || mentions_slot(m_, x.hi, r.first + b);
      });
      if (later) continue;
      Binder out{b, false};
      for (const Offset& o : *reads) {
        Role role = region_.members.at(o.member).role;
        out.backward |= backward_role(role) || (role == Role::Forward && o.by > 0);
      }
      bool ok = std::all_of(reads->begin(), reads->end(), [&](const Offset& o) {
        Role role = region_.members.at(o.member).role;
        return (role != Role::ForwardLocal || !out.backward) && carried(role, out.backward, o.by);
      });
      if (ok) return out;
    }
    return std::nullopt;
  }

  // The running sum that replaces the reduction `e` of `family`, evaluated only where `cond` holds.
  // Invalid if its coordinates have no closed bounds.
  ExprId running_sum(const Family& family, ExprId e, ExprId cond, const Facts& facts) {
    // The sum first becomes a family whose coordinates are what it depends on.
    ExprId stands =
        hoist(m_, text(family.name) + "_sum", e, cond, facts, coordinate_names(family), m_[e].span);
    if (!stands) return {};
    FamilyId id = std::get<Access>(m_[stands].node).family;
    const Family f = m_[id];
    if (f.clauses.size() != 1) return {};
    auto found = binder_of(f.clauses[0].body);
    if (!found) return {};
    Lockstep& in = found->backward ? down_ : up_;
    FamilyId part = m_.families.add(with_segment(f, "_part"));
    FamilyId total = m_.families.add(with_segment(f, "_running"));
    in.members.push_back({part, 0});
    in.members.push_back({total, 0});
    define_part(part, f, *found);
    define_total(total, part, f, found->backward);
    std::vector<ExprId> last{lit(found->backward ? 0 : segments_ - 1)};
    for (uint32_t k = 0; k < f.rank(); ++k) last.push_back(slot(m_, k));
    m_.families[id].clauses[0].body = access(m_, total, std::move(last));
    return stands;
  }

  Family with_segment(const Family& f, const char* suffix) {
    Family out = generated(f, suffix);
    out.coords = {{intern("segment"), lit(segments_)}};
    out.coords.insert(out.coords.end(), f.coords.begin(), f.coords.end());
    return out;
  }
  std::vector<Range> segment_box(const Family& f, int64_t s0, int64_t s1) {
    std::vector<Range> box{range(s0, s1)};
    box.insert(box.end(), f.clauses[0].box.begin(), f.clauses[0].box.end());
    return box;
  }

  void define_part(FamilyId id, const Family& f, const Binder& binder) {
    std::vector<ExprId> with;
    for (uint32_t k = 0; k < f.rank(); ++k) with.push_back(slot(m_, k + 1));
    ExprId moved = substitute(m_, f.clauses[0].body, with, f.rank() + 1);
    const Reduce r = std::get<Reduce>(m_[moved].node);
    uint32_t b = r.first + binder.number;
    Here here{{}, slot(m_, 0), slot(m_, b), binder.backward};
    here.step = add(m_, mul(m_, here.s, lit(k_)), here.r);
    auto at_step = [&](ExprId e) {
      return e ? place(substitute_slot(m_, e, b, here.step), here) : e;
    };
    std::vector<Clause> clauses;
    int64_t next = 0;
    ExprId zero = number(m_, 0, f.dtype);
    auto empty = [&](int64_t s0, int64_t s1) {
      if (s0 < s1) clauses.push_back({segment_box(f, s0, s1), zero, f.span});
    };
    int64_t lo = constant(r.over[binder.number].lo), hi = constant(r.over[binder.number].hi);
    // `sum[t in 1..=n](x[t - 1])` goes on where there are no more steps.
    for (const Piece& x : optimise::pieces(lo, hi, k_, segments_, k_, true)) {
      Reduce cut = r;
      cut.over[binder.number] = range(x.r0, x.r1);
      cut.gate = at_step(r.gate);
      cut.body = at_step(r.body);
      empty(next, x.s0);
      clauses.push_back({segment_box(f, x.s0, x.s1), reduce(m_, std::move(cut), f.span), f.span});
      next = x.s1;
    }
    empty(next, segments_);
    m_.families[id].clauses = std::move(clauses);
  }

  void define_total(FamilyId id, FamilyId part, const Family& f, bool downward) {
    auto cell = [&](FamilyId from, int64_t by) {
      std::vector<ExprId> at{add(m_, slot(m_, 0), lit(by))};
      for (uint32_t k = 0; k < f.rank(); ++k) at.push_back(slot(m_, k + 1));
      return access(m_, from, std::move(at));
    };
    int64_t first = downward ? segments_ - 1 : 0;
    ExprId so_far = cell(id, downward ? 1 : -1);
    std::vector<Clause>& clauses = m_.families[id].clauses;
    clauses.push_back({segment_box(f, first, first + 1), cell(part, 0), f.span});
    if (segments_ == 1) return;
    std::vector<Range> rest = downward ? segment_box(f, 0, first) : segment_box(f, 1, segments_);
    clauses.push_back({std::move(rest), add(m_, so_far, cell(part, 0)), f.span});
  }

  std::vector<Piece> pieces(int64_t lo, int64_t hi, int64_t wide) const {
    return optimise::pieces(lo, hi, k_, segments_, wide);
  }
  int64_t constant(ExprId e) const {
    std::optional<int64_t> v = const_int(m_, e);
    EIN_CHECK(v, "a number of steps is not known");
    return *v;
  }
  Module& m_;
  const Region& region_;
  int64_t k_, segments_;
  std::map<FamilyId, FamilyId> run_, again_, start_;
  Lockstep up_, down_{{}, true};
};

}  // namespace

void strip_mine(Module& m, const Region& region, int64_t segment,
                const std::vector<FamilyId>& reached) {
  StripMiner(m, region, segment).run(reached);
}

}  // namespace ein::optimise

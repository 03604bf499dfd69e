#include "shard/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/check.h"
#include "core/build.h"
#include "core/groups.h"
#include "core/prove.h"
#include "core/rewrite.h"
#include "shard/layout.h"
#include "shard/reductions.h"

namespace ein::shard {
namespace {

using namespace core;

// How an index is split: a coordinate of the clause's family, or the index of a cut reduction.
struct SlotPart {
  Axes along = 0;
  ExprId extent;
};
using SlotParts = std::vector<SlotPart>;  // by slot; slots beyond the end are not split

// Which cells a read needs along one split coordinate.
struct Need {
  bool whole = false;
  int64_t below = 0, above = 0;
  auto operator<=>(const Need&) const = default;
};
using Needs = std::vector<Need>;  // by coordinate of the family that is read

// A clause before it is split. Its box covers the split coordinates completely; if the program's
// clauses differ along them, a condition in the body tells them apart.
struct Piece {
  Clause clause;
  std::optional<size_t> cut;  // the number of the program's clause that was cut
};

class Sharder {
 public:
  // `global`: the program after cut_reductions; `made`: the result.
  Sharder(Module& global, const Layout& layout, const std::map<FamilyId, Cut>& cuts, Sharded& made)
      : g_(global), layout_(layout), cuts_(cuts), out_(made), m_(made.module) {}

  // False if the clauses of some families cannot be split as the layout says; `stuck` lists those.
  bool run(const std::vector<FamilyId>& all) {
    for (FamilyId id : all) {
      for (uint32_t k = 0; k < g_[id].rank(); ++k) {
        m_.families[id].coords[k].extent = local_extent(id, k);
      }
    }
    for (FamilyId id : all) {
      if (g_[id].kind == Family::Kind::Defined) defined(id);
      if (g_[id].kind == Family::Kind::Table) table(id);
    }
    bind_extents();
    return stuck.empty();
  }

  std::set<FamilyId> stuck;
  // For moved cells and partial results: the family they belong to.
  std::map<FamilyId, FamilyId> source;

 private:
  // ---- parts

  const Part& part(Axes along, ExprId extent) {
    for (const Part& p : out_.parts) {
      if (p.along == along && p.extent == extent) return p;
    }
    Part made{along, extent, number("lo_" + label(along)), number("count_" + label(along))};
    ExprId end = add(m_, param(m_, made.lo), param(m_, made.count));
    m_.constraints.push_back(
        {apply(m_, Op::Le, {end, extent}), "a rank's part of an extent lies within it", {}, {}});
    out_.parts.push_back(made);
    return out_.parts.back();
  }
  std::string label(Axes along) const {
    std::string s = out_.mesh.names(along);
    std::replace(s.begin(), s.end(), '+', '_');
    return s;
  }
  // A param that takes its value from a scalar input.
  ParamId number(const std::string& base) {
    Family f;
    f.name = fresh_name(m_, base);
    f.kind = Family::Kind::Input;
    f.dtype = DType::I64;
    f.generated = true;
    FamilyId id = m_.families.add(std::move(f));
    return m_.params.add({fresh_name(m_, base), id, Param::kItself});
  }
  ExprId lo(const SlotPart& p) { return param(m_, part(p.along, p.extent).lo); }
  ExprId count(const SlotPart& p) { return param(m_, part(p.along, p.extent).count); }
  SlotPart part_of(FamilyId id, uint32_t k) const {
    return {layout_.axes[id.v][k], g_[id].coords[k].extent};
  }
  ExprId local_extent(FamilyId id, uint32_t k) {
    SlotPart p = part_of(id, k);
    return p.along ? count(p) : p.extent;
  }

  // Extents of split inputs can no longer be read off the inputs' shapes, so they become inputs
  // themselves.
  void bind_extents() {
    for (uint32_t i = 0; i < g_.params.size(); ++i) {
      const Param& p = g_.params[ParamId(i)];
      if (p.position == Param::kItself || !layout_.axes[p.source.v][p.position]) continue;
      Family f;
      f.name = fresh_name(m_, "n_" + text(p.name));
      f.kind = Family::Kind::Input;
      f.dtype = DType::I64;
      f.generated = true;
      m_.params[ParamId(i)].source = m_.families.add(std::move(f));
      m_.params[ParamId(i)].position = Param::kItself;
      out_.globals.push_back(ParamId(i));
    }
  }

  // ---- clauses

  SlotParts coordinates(const std::vector<Axes>& axes, FamilyId id) const {
    SlotParts out(axes.size());
    for (uint32_t k = 0; k < axes.size(); ++k) out[k] = {axes[k], g_[id].coords[k].extent};
    return out;
  }

  bool is_full(const Range& r, ExprId extent) const {
    return const_int(g_, r.lo) == 0 && r.hi == extent;
  }

  // The clauses of a family, merged where they differ only along split coordinates.
  std::optional<std::vector<Piece>> pieces_of(FamilyId id, const std::vector<Axes>& axes) {
    const Family f = g_[id];
    auto full = [&](const Clause& c, uint32_t k) { return is_full(c.box[k], f.coords[k].extent); };
    bool plain = true;
    for (const Clause& c : f.clauses) {
      for (uint32_t k = 0; k < f.rank(); ++k) plain &= !axes[k] || full(c, k);
    }
    std::vector<Piece> out;
    if (plain) {
      for (size_t c = 0; c < f.clauses.size(); ++c) out.push_back({f.clauses[c], c});
      return out;
    }
    auto outside = [&](const Clause& c) {  // its box without the split coordinates
      std::vector<Range> box = c.box;
      for (uint32_t k = 0; k < f.rank(); ++k) {
        if (axes[k]) box[k] = {int_lit(m_, 0), f.coords[k].extent};
      }
      return box;
    };
    std::vector<std::vector<Range>> boxes;
    std::vector<std::vector<size_t>> members;
    auto same = [](const std::vector<Range>& a, const std::vector<Range>& b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Range& x, const Range& y) {
        return x.lo == y.lo && x.hi == y.hi;
      });
    };
    for (size_t c = 0; c < f.clauses.size(); ++c) {
      std::vector<Range> box = outside(f.clauses[c]);
      size_t at = 0;
      while (at < boxes.size() && !same(boxes[at], box)) ++at;
      if (at == boxes.size()) {
        boxes.push_back(box);
        members.emplace_back();
      }
      members[at].push_back(c);
    }
    Facts facts;
    facts.entry = entry_facts(g_);
    auto apart = [&](const std::vector<Range>& a, const std::vector<Range>& b) {
      for (uint32_t k = 0; k < f.rank(); ++k) {
        if (axes[k]) continue;
        if (proves_le(g_, a[k].hi, b[k].lo, facts) || proves_le(g_, b[k].hi, a[k].lo, facts))
          return true;
      }
      return false;
    };
    for (size_t a = 0; a < boxes.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        if (!apart(boxes[a], boxes[b])) return std::nullopt;
      }
    }
    for (size_t at = 0; at < boxes.size(); ++at) {
      ExprId body = f.clauses[members[at].back()].body;
      for (size_t j = members[at].size() - 1; j-- > 0;) {
        const Clause& c = f.clauses[members[at][j]];
        std::vector<ExprId> inside;
        for (uint32_t k = 0; k < f.rank(); ++k) {
          if (!axes[k] || full(c, k)) continue;
          inside.push_back(apply(g_, Op::Ge, {slot(g_, k), c.box[k].lo}));
          inside.push_back(apply(g_, Op::Lt, {slot(g_, k), c.box[k].hi}));
        }
        ExprId here = all_of(g_, inside);
        body = here ? apply(g_, Op::Select, {here, c.body, body}) : c.body;
      }
      out.push_back({{boxes[at], body, f.clauses[members[at][0]].span}, std::nullopt});
    }
    return out;
  }

  void defined(FamilyId id) {
    auto cut = cuts_.find(id);
    if (cut != cuts_.end()) {
      const FamilyId partial = m_.families.add(Family{});
      Family p = m_[id];
      p.path.clear();
      p.with.clear();
      p.checkpoint = 0;
      p.name = fresh_name(m_, text(p.name) + "_part");
      p.generated = true;
      m_.families[partial] = p;
      source[partial] = id;
      for (uint32_t k = 0; k < p.rank(); ++k) {
        SlotPart own{cut->second.coords[k], g_[id].coords[k].extent};
        m_.families[partial].coords[k].extent = own.along ? count(own) : own.extent;
      }
      clauses(id, partial, cut->second.coords, &cut->second);
      Move move;
      move.kind = Move::Kind::Combine;
      move.op = get_if<Reduce>(g_, g_[id].clauses[cut->second.clause].body)->op;
      move.over = cut->second.over();
      std::vector<Need> own(p.rank());
      become_move(id, partial, id, cut->second.coords, own, move, {});
    } else {
      clauses(id, id, layout_.axes[id.v], nullptr);
    }
  }

  void clauses(FamilyId id, FamilyId to, const std::vector<Axes>& axes, const Cut* cut) {
    auto pieces = pieces_of(id, axes);
    if (!pieces) {
      stuck.insert(id);
      return;
    }
    std::vector<Clause> made;
    for (const Piece& piece : *pieces) {
      SlotParts parts = coordinates(axes, id);
      const Cut* here = cut && piece.cut == cut->clause ? cut : nullptr;
      if (here) {
        const Reduce& r = *get_if<Reduce>(g_, piece.clause.body);
        parts.resize(r.first + r.over.size());
        for (const Cut::Binder& b : here->binders) parts[r.first + b.number] = {b.along, b.extent};
      }
      Clause c = piece.clause;
      for (uint32_t k = 0; k < axes.size(); ++k) {
        if (axes[k]) c.box[k] = {int_lit(m_, 0), count({axes[k], g_[id].coords[k].extent})};
      }
      c.body = Body(*this, piece.clause, parts, here != nullptr).local();
      made.push_back(std::move(c));
    }
    m_.families[to].clauses = std::move(made);
  }

  void table(FamilyId id) {
    std::vector<ExprId> cells = g_[id].cells;
    for (ExprId& e : cells) e = Body(*this, Clause{{}, e, {}}, {}, false).local();
    m_.families[id].cells = std::move(cells);
  }

  // Rewrites a clause's body for the addresses of one rank.
  class Body {
   public:
    Body(Sharder& s, const Clause& global, const SlotParts& parts, bool cut)
        : s_(s), global_(global), parts_(parts), cut_(cut) {
      auto reads = [](const Node& n) { return std::holds_alternative<Access>(n); };
      for_each_with_facts(s_.g_, global, reads, [&](ExprId e, const Facts& facts) {
        Needs needs = needs_of(std::get<Access>(s_.g_[e].node), facts);
        auto [it, fresh] = needs_.try_emplace(e, needs);
        for (size_t k = 0; k < needs.size() && !fresh; ++k) {
          Need& n = it->second[k];
          n = {n.whole || needs[k].whole, std::max(n.below, needs[k].below),
               std::max(n.above, needs[k].above)};
        }
      });
    }

    ExprId local() { return visit(global_.body); }

   private:
    const SlotPart* part(uint32_t slot) const {
      return slot < parts_.size() && parts_[slot].along ? &parts_[slot] : nullptr;
    }

    Needs needs_of(const Access& a, const Facts& facts) {
      Needs out(a.at.size());
      for (uint32_t k = 0; k < a.at.size(); ++k) {
        SlotPart want = s_.part_of(a.family, k);
        if (want.along) out[k] = need_of(a.at[k], want, facts);
      }
      return out;
    }

    Need need_of(ExprId at, const SlotPart& want, const Facts& facts) {
      Module& g = s_.g_;
      for (const auto& t : affine_form(g, at).terms) {
        uint32_t n = slot_of(g, t.atom);
        const SlotPart* own = n == ~0u ? nullptr : part(n);
        if (!own || t.coef != 1 || own->along != want.along || own->extent != want.extent) continue;
        ExprId off = sub(g, at, t.atom);
        if (const_int(g, off) == 0) return {};
        ExprId low = closed_lower(g, off, facts), high = closed_upper(g, off, facts);
        auto least = low ? const_int(g, low) : std::nullopt;
        auto most = high ? const_int(g, high) : std::nullopt;
        if (!least || !most || *least > *most) return {true, 0, 0};
        if (!proves_in_bounds(g, at, want.extent, facts)) return {true, 0, 0};
        return {false, std::max<int64_t>(0, -*least), std::max<int64_t>(0, *most)};
      }
      return {true, 0, 0};
    }

    ExprId visit(ExprId e) {
      if (auto it = memo_.find(e); it != memo_.end()) return it->second;
      Module& m = s_.m_;
      const Node node = m[e].node;
      ExprId out;
      if (const auto* s = std::get_if<Slot>(&node)) {
        const SlotPart* own = part(s->n);
        out = own ? add(m, e, s_.lo(*own)) : e;
      } else if (const auto* a = std::get_if<Access>(&node)) {
        out = read(e, *a);
      } else if (const auto* r = std::get_if<Reduce>(&node)) {
        out = reduction(e, *r);
      } else {
        out = map_children(m, e, [&](ExprId x) { return visit(x); });
      }
      memo_.emplace(e, out);
      return out;
    }

    ExprId read(ExprId e, const Access& a) {
      Module& m = s_.m_;
      std::vector<ExprId> at;
      for (ExprId x : a.at) at.push_back(visit(x));
      auto it = needs_.find(e);
      EIN_CHECK(it != needs_.end(), "a read that no context has");
      Moved from = s_.cells_for(a, it->second);
      std::vector<ExprId> own;
      for (uint32_t k = 0; k < at.size(); ++k) {
        if (k == from.dropped) continue;
        SlotPart p = s_.part_of(a.family, k);
        ExprId base = int_lit(m, 0);
        if (p.along && !it->second[k].whole)
          base = sub(m, s_.lo(p), int_lit(m, it->second[k].below));
        own.push_back(sub(m, at[k], base));
      }
      return access(m, from.family, own, m[e].span);
    }

    ExprId reduction(ExprId e, const Reduce& original) {
      Module& m = s_.m_;
      Reduce r = original;
      bool top = cut_ && e == global_.body;
      std::vector<ExprId> within;
      for (size_t b = 0; b < r.over.size(); ++b) {
        const uint32_t n = r.first + static_cast<uint32_t>(b);
        const SlotPart* own = top ? part(n) : nullptr;
        Range range{visit(r.over[b].lo), visit(r.over[b].hi)};
        if (own) {
          ExprId here = add(m, slot(m, n), s_.lo(*own));
          if (const_int(m, original.over[b].lo) != 0)
            within.push_back(apply(m, Op::Ge, {here, range.lo}));
          if (original.over[b].hi != own->extent)
            within.push_back(apply(m, Op::Lt, {here, range.hi}));
          range = {int_lit(m, 0), s_.count(*own)};
        }
        r.over[b] = range;
      }
      if (r.gate) within.push_back(visit(r.gate));
      r.gate = all_of(m, within);
      for (Route& route : r.routes) {
        const SlotPart* own = part(route.slot);
        route.to = visit(route.to);
        if (own) route.to = sub(m, route.to, s_.lo(*own));
      }
      r.body = visit(r.body);
      return reduce(m, std::move(r), m[e].span);
    }

    Sharder& s_;
    const Clause& global_;
    const SlotParts& parts_;
    bool cut_;
    std::map<ExprId, Needs> needs_;
    std::map<ExprId, ExprId> memo_;
  };

  // ---- moves

  struct Moved {
    FamilyId family;
    // The coordinate that the moved family lacks, because it has one step of the family only.
    uint32_t dropped = ~0u;
  };

  // The coordinate of the family's steps, if a move happens at each step.
  uint32_t step_of(FamilyId id) const {
    const auto& steps = layout_.steps[id.v];
    return steps.size() == 1 ? steps[0] : ~0u;
  }

  Moved cells_for(const Access& a, const Needs& needs) {
    const FamilyId id = a.family;
    bool local = std::all_of(needs.begin(), needs.end(), [](const Need& n) { return n == Need{}; });
    if (local) return {id};
    uint32_t step = step_of(id);
    ExprId only;  // the step, if only one is read
    if (step != ~0u && g_[a.at[step]].free == 0 && !reads_values(g_, a.at[step])) {
      Facts facts;
      facts.entry = entry_facts(g_);
      if (proves_in_bounds(g_, a.at[step], g_[id].coords[step].extent, facts)) only = a.at[step];
    }
    auto key = std::tuple(id, needs, only);
    if (auto it = moved_.find(key); it != moved_.end()) return it->second;
    const Family f = m_[id];
    Family to;
    to.name = fresh_name(m_, text(f.name) + "_here");
    to.dtype = f.dtype;
    to.generated = true;
    to.span = f.span;
    for (uint32_t k = 0; k < f.rank(); ++k) {
      if (only && k == step) continue;
      Coord c = f.coords[k];
      if (needs[k].whole) c.extent = g_[id].coords[k].extent;
      c.extent = add(m_, c.extent, int_lit(m_, needs[k].below + needs[k].above));
      to.coords.push_back(c);
    }
    const FamilyId made = m_.families.add(std::move(to));
    source[made] = id;
    Move move;
    move.kind = Move::Kind::Fetch;
    become_move(made, id, id, layout_.axes[id.v], needs, move, only);
    Moved out{made, only ? step : ~0u};
    moved_.emplace(key, out);
    return out;
  }

  // Turns `to` into the move of `from`. `global`: the family of the program that both belong to;
  // `only`: the step that `to` holds.
  void become_move(FamilyId to, FamilyId from, FamilyId global, const std::vector<Axes>& have,
                   const Needs& needs, Move move, ExprId only) {
    const uint32_t step = step_of(global);
    const uint32_t rank = m_[to].rank();
    Reduce cells{ReduceOp::Collect, rank, {}, {}, {}, {}, {}};
    std::vector<ExprId> at;
    ExprId number = int_lit(m_, 0);
    uint32_t own = 0;  // a coordinate of `to`
    for (uint32_t k = 0; k < m_[from].rank(); ++k) {
      if (k == step) {
        if (!only) move.steps = m_[from].coords[k].extent;
        at.push_back(only ? only : slot(m_, own++));
        continue;
      }
      at.push_back(slot(m_, rank + static_cast<uint32_t>(cells.over.size())));
      cells.over.push_back({int_lit(m_, 0), m_[from].coords[k].extent});
      cells.names.push_back(m_[from].coords[k].name);
      number = add(m_, mul(m_, number, m_[to].coords[own].extent), slot(m_, own));
      ++own;
      Move::Coord c{g_[global].coords[k].extent, have[k], 0, needs[k].below, needs[k].above};
      c.want = needs[k].whole ? 0 : layout_.axes[global.v][k];
      move.coords.push_back(c);
    }
    cells.body = access(m_, from, at);
    ExprId given = reduce(m_, std::move(cells));
    ExprId which = int_lit(m_, static_cast<int64_t>(out_.moves.size()));
    move.from = from;
    move.to = to;
    std::vector<Range> box;
    for (const Coord& c : m_[to].coords) box.push_back({int_lit(m_, 0), c.extent});
    m_.families[to].clauses = {{box, apply(m_, Op::Moved, {which, number, given}), m_[to].span}};
    out_.moves.push_back(std::move(move));
  }

  Module& g_;
  const Layout& layout_;
  const std::map<FamilyId, Cut>& cuts_;
  Sharded& out_;
  Module& m_;
  std::map<std::tuple<FamilyId, Needs, ExprId>, Moved> moved_;
};

}  // namespace

std::variant<Sharded, RuntimeError> shard(const Module& original,
                                          const std::vector<FamilyId>& wanted, const Spec& spec) {
  // Families that cannot be split, because no order of steps would allow it.
  std::set<FamilyId> whole;
  for (;;) {
    Module global = original;
    auto found = find_layout(global, wanted, spec, whole);
    if (auto* e = std::get_if<RuntimeError>(&found)) return *e;
    Layout layout = std::get<Layout>(std::move(found));
    std::map<FamilyId, FamilyId> origin;
    std::vector<FamilyId> all = families_of(schedule(global, wanted).steps);
    std::map<FamilyId, Cut> cuts = cut_reductions(global, all, whole, layout, origin);
    all = families_of(schedule(global, wanted).steps);
    Sharded out{global, spec.mesh, {}, {}, {}, layout.axes};
    Sharder sharder(global, layout, cuts, out);
    bool split = sharder.run(all);
    std::set<FamilyId> back = sharder.stuck;
    if (split) {
      auto cycle = schedule(out.module, wanted).cycle;
      if (!cycle) return out;
      back.insert(cycle->families.begin(), cycle->families.end());
    }
    size_t before = whole.size();
    for (FamilyId id : back) {
      if (auto it = sharder.source.find(id); it != sharder.source.end()) id = it->second;
      if (auto it = origin.find(id); it != origin.end()) id = it->second;
      if (id.v < original.families.size()) whole.insert(id);
    }
    EIN_CHECK(whole.size() > before, "ranks have no order of steps");
  }
}

std::string name_of(const Move& move) {
  bool halo = false, gathers = false, narrows = false;
  for (const Move::Coord& c : move.coords) {
    halo |= c.below + c.above > 0;
    gathers |= c.have != 0 && c.want == 0;
    narrows |= c.have == 0 && c.want != 0;
  }
  if (move.kind == Move::Kind::Combine) return narrows ? "reduce-scatter" : "all-reduce";
  return !gathers ? "halo" : halo ? "halo and all-gather" : "all-gather";
}

}  // namespace ein::shard

// Boxes of clauses: later clauses win, the rest is made disjoint, and together they must cover the
// family (decisions.md, 11).
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <list>
#include <map>
#include <set>

#include "sema/ranges/ranges.h"
#include "sema/state/report.h"
#include "sema/state/values.h"

namespace ein::sema {
namespace {

// A part of the family and the clauses that cover it, the last one on top.
struct Piece {
  Box box;
  std::vector<const ClauseOut*> layers;
};

struct Interval {
  int64_t lo, hi;
};

// The addresses that a box covers along its first coordinate, if they are known and there are any.
std::optional<Interval> interval(const core::Module& m, const Box& box) {
  if (box.empty()) return std::nullopt;
  auto lo = core::const_int(m, box[0].lo), hi = core::const_int(m, box[0].hi);
  return lo && hi && *lo < *hi && *lo >= 0 ? std::optional(Interval{*lo, *hi}) : std::nullopt;
}

bool empty_range(core::Module& m, const core::Range& r, const core::Facts& facts) {
  return core::proves_le(m, r.hi, r.lo, facts);
}

Box intersect(core::Module& m, const Box& a, const Box& b) {
  Box out;
  for (size_t i = 0; i < a.size(); ++i) {
    out.push_back({greatest(m, a[i].lo, b[i].lo), least(m, a[i].hi, b[i].hi)});
  }
  return out;
}

std::string show_box(const Sema& s, const Box& box, const std::vector<core::Coord>& coords) {
  std::string out;
  for (size_t i = 0; i < box.size(); ++i) {
    out += out.empty() ? "[" : ", ";
    auto lo = core::const_int(s.m, box[i].lo), hi = core::const_int(s.m, box[i].hi);
    if (lo && hi && *hi == *lo + 1) {
      out += std::to_string(*lo);
    } else {
      if (coords[i].name) out += text(coords[i].name) + " in ";
      out += show(s, box[i].lo) + ".." + show(s, box[i].hi);
    }
  }
  return out + "]";
}

// The expression of one piece: the topmost clause whose gate holds; else the topmost `else`, or 0.
CoreId layered(Sema& s, const std::vector<const ClauseOut*>& layers, DType type) {
  const ClauseOut* top = layers.back();
  CoreId out;
  if (top->gate) {
    for (auto it = layers.rbegin(); it != layers.rend() && !out; ++it) {
      if (!(*it)->gate) out = (*it)->body.body;  // a clause without a gate defines all the rest
    }
    if (!out) out = top->otherwise ? top->otherwise->body : zero(s.m, type);
  }
  size_t first = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i]->gate) first = i;
  }
  for (size_t i = first; i < layers.size(); ++i) {
    const ClauseOut& c = *layers[i];
    out = c.gate ? core::apply(s.m, core::Op::Select, {c.gate, c.body.body, out}) : c.body.body;
  }
  return out;
}

bool covers_all(const core::Module& m, const Box& box, const std::vector<core::Coord>& coords) {
  for (size_t i = 0; i < box.size(); ++i) {
    if (core::const_int(m, box[i].lo) != 0 || box[i].hi != coords[i].extent) return false;
  }
  return true;
}

// The pieces in order, with an index by their addresses along the first coordinate, because a
// family may have thousands of clauses. Pieces of similar width are kept in one list sorted by
// where they begin: those that overlap an interval are then neighbours.
class Pieces {
 public:
  using Place = std::list<Piece>::iterator;

  explicit Pieces(const core::Module& m) : m_(m) {}
  const std::list<Piece>& all() const { return pieces_; }

  void add(Piece p) { index(pieces_.insert(pieces_.end(), std::move(p))); }
  void replace(Place at, std::vector<Piece> by) {
    forget(at);
    for (Piece& p : by) index(pieces_.insert(at, std::move(p)));
    pieces_.erase(at);
  }
  // The pieces that a box may overlap. `in_order`: in the order of all().
  std::vector<Place> near(const Box& box, bool in_order) {
    std::vector<Place> out = unknown_;
    auto wanted = interval(m_, box);
    if (!wanted || (in_order && wanted->hi - wanted->lo > 1)) {
      out.clear();
      for (auto it = pieces_.begin(); it != pieces_.end(); ++it) out.push_back(it);
      return out;
    }
    for (auto& [width, list] : by_width_) {  // at least half of `width` wide, at most all of it
      for (auto it = list.lower_bound(std::max<int64_t>(wanted->lo - width, 0));
           it != list.end() && it->first < wanted->hi; ++it) {
        if (interval(m_, it->second->box)->hi > wanted->lo) out.push_back(it->second);
      }
    }
    return out;
  }

 private:
  using Starts = std::multimap<int64_t, Place>;

  static int64_t width_of(const Interval& i) {
    auto width = static_cast<uint64_t>(i.hi - i.lo);
    return static_cast<int64_t>(std::min(std::bit_ceil(width), uint64_t{1} << 62));
  }
  void index(Place p) {
    auto known = interval(m_, p->box);
    if (known) {
      by_width_[width_of(*known)].emplace(known->lo, p);
    } else {
      unknown_.push_back(p);
    }
  }
  void forget(Place p) {
    auto known = interval(m_, p->box);
    if (!known) {
      unknown_.erase(std::find(unknown_.begin(), unknown_.end(), p));
      return;
    }
    Starts& list = by_width_[width_of(*known)];
    auto [from, to] = list.equal_range(known->lo);
    list.erase(std::find_if(from, to, [&](const auto& x) { return x.second == p; }));
  }

  const core::Module& m_;
  std::list<Piece> pieces_;
  std::map<int64_t, Starts> by_width_;
  std::vector<Place> unknown_;
};

// A hole that exists only for small extents: `1..n` and `0..n - 1` leave one for n = 1. Such an
// extent is refused at entry, like every condition between extents (decisions.md, 13).
bool closes_when_large(Sema& s, const Box& box) {
  constexpr int64_t kLarge = 64;
  core::Facts facts = facts_at_entry(s.m);
  std::set<CoreId> extents;
  for (const core::Range& r : box) {
    for (CoreId end : {r.lo, r.hi}) {
      core::for_each_node(s.m, end, [&](CoreId e) {
        if (core::get_if<core::ParamRef>(s.m, e)) extents.insert(e);
      });
    }
  }
  for (CoreId e : extents) {
    core::assume(s.m, core::apply(s.m, core::Op::Ge, {e, core::int_lit(s.m, kLarge)}), facts);
  }
  return std::any_of(box.begin(), box.end(),
                     [&](const core::Range& r) { return empty_range(s.m, r, facts); });
}

void demand_empty(Sema& s, const Definition& d, const Box& box,
                  const std::vector<core::Coord>& coords) {
  CoreId empty;
  for (const core::Range& r : box) {
    CoreId none = core::apply(s.m, core::Op::Le, {r.hi, r.lo});
    empty = empty ? core::apply(s.m, core::Op::Or, {empty, none}) : none;
  }
  constrain(s, empty,
            fmt::format("{} has a hole: nothing defines {}{}", quoted(d.name.symbol),
                        text(d.name.symbol), show_box(s, box, coords)),
            d.name.span, {});
}

void check_cover(Sema& s, const Definition& d, const std::list<Piece>& pieces,
                 const std::vector<core::Coord>& coords) {
  std::vector<Box> left(1);
  for (const core::Coord& c : coords) left[0].push_back({core::int_lit(s.m, 0), c.extent});
  std::vector<const Piece*> sorted;
  for (const Piece& p : pieces) sorted.push_back(&p);
  // From the last address down: each is cut off the end of what is left, so that stays a few boxes.
  auto starts = [&](const Piece* p) {
    std::vector<int64_t> out;
    if (!interval(s.m, p->box)) return out;  // last of all
    for (const core::Range& r : p->box) out.push_back(core::const_int(s.m, r.lo).value_or(-1));
    return out;
  };
  std::vector<std::pair<std::vector<int64_t>, const Piece*>> keyed;
  for (const Piece* p : sorted) keyed.emplace_back(starts(p), p);
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t i = 0; i < keyed.size(); ++i) sorted[i] = keyed[i].second;
  for (const Piece* p : sorted) {
    std::vector<Box> next;
    for (const Box& b : left) {
      for (Box& rest : subtract(s.m, b, p->box)) next.push_back(std::move(rest));
    }
    left = std::move(next);
  }
  std::erase_if(left, [&](const Box& box) {
    bool closes = closes_when_large(s, box);
    if (closes) demand_empty(s, d, box, coords);
    return closes;
  });
  if (left.empty()) return;
  auto& e = s.diags.error(Code::E0401,
                          fmt::format("{} has a hole: nothing defines {}{}", quoted(d.name.symbol),
                                      text(d.name.symbol), show_box(s, left[0], coords)));
  bool first = true;
  constexpr size_t kMaxShown = 8;
  for (const auto& out : d.outs) {
    if (e.labels.size() == kMaxShown) {
      e.note(fmt::format("and {} more clauses", d.outs.size() - kMaxShown));
      break;
    }
    std::string says = "defines " + text(d.name.symbol) + show_box(s, out->box, coords);
    if (first) {
      e.primary(out->site->span, says);
    } else {
      e.label(out->site->span, says);
    }
    first = false;
  }
  e.help(
      "add a clause for the missing cells, or guard the access with `where` instead of narrowing "
      "the range");
}

}  // namespace

bool provably_empty(core::Module& m, const Box& box) {
  core::Facts facts = facts_at_entry(m);
  for (const core::Range& r : box) {
    if (empty_range(m, r, facts)) return true;
  }
  return false;
}

std::vector<Box> subtract(core::Module& m, const Box& a, const Box& b) {
  if (provably_empty(m, a)) return {};
  if (provably_empty(m, intersect(m, a, b))) return {a};
  std::vector<Box> out;
  Box rest = a;
  for (size_t i = 0; i < a.size(); ++i) {
    Box below = rest, above = rest;
    below[i].hi = least(m, rest[i].hi, b[i].lo);
    // A range that may be empty, such as 1..n - 1, may end before it starts.
    above[i].lo = greatest(m, rest[i].lo, greatest(m, b[i].lo, b[i].hi));
    for (Box& part : {std::ref(below), std::ref(above)}) {
      if (!provably_empty(m, part)) out.push_back(part);
    }
    rest[i] = {greatest(m, rest[i].lo, b[i].lo), least(m, rest[i].hi, b[i].hi)};
  }
  return out;
}

std::vector<core::Clause> disjoint(Sema& s, const Definition& d,
                                   const std::vector<core::Coord>& coords, DType type) {
  if (d.outs.size() == 1 && covers_all(s.m, d.outs[0]->box, coords)) {
    const ClauseOut& only = *d.outs[0];
    return {{only.box, layered(s, {&only}, type), only.span}};
  }
  Pieces made(s.m);
  for (const auto& out : d.outs) {
    std::vector<Box> fresh{out->box};  // where no earlier clause lies under this one
    for (auto it : made.near(out->box, out->gate.valid())) {
      const Piece& p = *it;
      std::vector<Piece> next;
      for (Box& rest : subtract(s.m, p.box, out->box)) next.push_back({std::move(rest), p.layers});
      Box both = intersect(s.m, p.box, out->box);
      if (out->gate && !provably_empty(s.m, both)) {
        Piece over{both, p.layers};
        over.layers.push_back(&*out);
        next.push_back(std::move(over));
        std::vector<Box> less;
        for (const Box& b : fresh) {
          for (Box& rest : subtract(s.m, b, p.box)) less.push_back(std::move(rest));
        }
        fresh = std::move(less);
      }
      made.replace(it, std::move(next));
    }
    for (Box& b : fresh) made.add({std::move(b), {&*out}});
  }
  const std::list<Piece>& pieces = made.all();
  check_cover(s, d, pieces, coords);
  std::vector<core::Clause> clauses;
  for (const Piece& p : pieces) {
    core::Clause c;
    c.box = p.box;
    c.body = layered(s, p.layers, type);
    c.span = p.layers.back()->span;
    clauses.push_back(std::move(c));
  }
  return clauses;
}

}  // namespace ein::sema

#include "core/tidy.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "core/build.h"
#include "core/prove.h"
#include "core/rewrite.h"
#include "core/simplify.h"
#include "core/solve_gates.h"

namespace ein::core {
namespace {

struct Site {
  FamilyId reader;
  size_t clause;
  ExprId node;     // the Access
  uint32_t depth;  // slots in scope
  // How many nodes there refer to it: what replaces it is printed that often.
  uint32_t times = 1;
};

using Sites = std::map<FamilyId, std::vector<Site>>;

// Calls `f` with every access, the number of slots in scope where it stands and the number of nodes
// that refer to it there; once per (node, depth).
void sites_in(const Module& m, ExprId body, uint32_t rank,
              const std::function<void(ExprId, uint32_t, uint32_t)>& f) {
  std::map<std::pair<ExprId, uint32_t>, uint32_t> times;
  std::vector<std::pair<ExprId, uint32_t>> found;
  std::function<void(ExprId, uint32_t)> visit = [&](ExprId e, uint32_t depth) {
    if (++times[{e, depth}] > 1) return;
    if (const auto* r = get_if<Reduce>(m, e)) {
      for (const Range& range : r->over) {
        visit(range.lo, depth);
        visit(range.hi, depth);
      }
      uint32_t inside = r->first + static_cast<uint32_t>(r->over.size());
      if (r->gate) visit(r->gate, inside);
      for (const Route& route : r->routes) visit(route.to, inside);
      visit(r->body, inside);
      return;
    }
    if (get_if<Access>(m, e)) found.push_back({e, depth});
    for_each_child(m, e, [&](ExprId child) { visit(child, depth); });
  };
  visit(body, rank);
  for (const auto& key : found) f(key.first, key.second, times.at(key));
}

Sites find_sites(const Module& m, const std::set<FamilyId>& readers) {
  Sites out;
  for (FamilyId id : readers) {
    const Family& f = m[id];
    for (size_t c = 0; c < f.clauses.size(); ++c) {
      sites_in(m, f.clauses[c].body, f.rank(), [&](ExprId e, uint32_t depth, uint32_t times) {
        out[get_if<Access>(m, e)->family].push_back({id, c, e, depth, times});
      });
    }
    for (ExprId cell : f.cells) {
      sites_in(m, cell, 0, [&](ExprId e, uint32_t depth, uint32_t times) {
        out[get_if<Access>(m, e)->family].push_back({id, ~size_t{0}, e, depth, times});
      });
    }
  }
  return out;
}

struct Shape {
  bool reads = false, reduces = false, routed = false, requests = false;
  size_t work = 0;  // operations on values
};

Shape shape_of(const Module& m, ExprId body) {
  Shape s;
  for_each_node(m, body, [&](ExprId e) {
    if (const auto* r = get_if<Reduce>(m, e)) {
      s.reduces = true;
      s.routed |= !r->routes.empty();
    }
    s.requests |= get_if<Request>(m, e) != nullptr;
    s.reads |= get_if<Access>(m, e) != nullptr;
    s.work += get_if<Call>(m, e) != nullptr;
    if (const auto* a = get_if<Apply>(m, e))
      s.work += a->op != Op::Cast && a->op != Op::Tangent && m[e].type != DType::I64;
  });
  return s;
}

bool is_whole(const Module& m, const Family& f) {
  if (f.kind != Family::Kind::Defined || f.clauses.size() != 1) return false;
  for (size_t k = 0; k < f.coords.size(); ++k) {
    const Range& r = f.clauses[0].box[k];
    if (const_int(m, r.lo) != 0 || r.hi != f.coords[k].extent) return false;
  }
  return true;
}

// What is known about reads, worked out on demand for all reads of a clause together: a sum may
// read thousands. For each read of a generated family that has several clauses: the clause that
// defines every cell read there; null when that is not known to be one clause.
class ReadClauses {
 public:
  explicit ReadClauses(Module& m) : m_(m) {}

  const Clause* at(const Site& s) {
    auto [it, fresh] = found_.try_emplace({s.reader, s.clause});
    if (fresh) look(m_[s.reader].clauses[s.clause], it->second);
    auto read = it->second.find(s.node);
    return read == it->second.end() ? nullptr : read->second;
  }

  // Is the read proven in bounds along coordinate k, everywhere in its clause?
  bool inside(const Site& s, uint32_t k) {
    auto [it, fresh] = inside_.try_emplace({s.reader, s.clause});
    if (fresh) look_inside(m_[s.reader].clauses[s.clause], it->second);
    auto read = it->second.find(s.node);
    return read == it->second.end() || read->second.at(k);
  }

  // Operations on values in the clause that a read stands in.
  size_t work(const Site& s) {
    auto [it, fresh] = work_.try_emplace({s.reader, s.clause}, 0);
    if (fresh) it->second = shape_of(m_, m_[s.reader].clauses[s.clause].body).work;
    return it->second;
  }

 private:
  using Found = std::map<ExprId, const Clause*>;
  using Inside = std::map<ExprId, std::vector<bool>>;  // by coordinate

  void look(const Clause& reader, Found& out) {
    auto wanted = [&](const Node& n) {
      const auto* a = std::get_if<Access>(&n);
      if (!a) return false;
      const Family& f = m_[a->family];
      return f.generated && f.kind == Family::Kind::Defined && !is_whole(m_, f);
    };
    for_each_with_facts(m_, reader, wanted, [&](ExprId e, const Facts& facts) {
      const Clause* here = clause_at(e, facts);
      auto [it, fresh] = out.try_emplace(e, here);
      if (!fresh && it->second != here) it->second = nullptr;
    });
  }

  // Only reads of families that may be inlined are asked for.
  void look_inside(const Clause& reader, Inside& out) {
    auto wanted = [&](const Node& n) {
      const auto* a = std::get_if<Access>(&n);
      return a && m_[a->family].generated && is_whole(m_, m_[a->family]);
    };
    for_each_with_facts(m_, reader, wanted, [&](ExprId e, const Facts& facts) {
      const Access a = *get_if<Access>(m_, e);
      std::vector<bool>& known = out.try_emplace(e, a.at.size(), true).first->second;
      for (size_t k = 0; k < a.at.size(); ++k) {
        known[k] = known[k] && proves_le(m_, int_lit(m_, 0), a.at[k], facts) &&
                   proves_lt(m_, a.at[k], m_[a.family].coords[k].extent, facts);
      }
    });
  }

  const Clause* clause_at(ExprId e, const Facts& facts) {
    const Access a = *get_if<Access>(m_, e);
    const Clause* here = nullptr;
    for (const Clause& c : m_[a.family].clauses) {
      bool inside = true;
      for (size_t k = 0; k < c.box.size() && inside; ++k) {
        inside = proves_le(m_, c.box[k].lo, a.at[k], facts) &&
                 proves_lt(m_, a.at[k], c.box[k].hi, facts);
      }
      if (inside) here = &c;
    }
    return here;
  }

  Module& m_;
  std::map<std::pair<FamilyId, size_t>, Found> found_;
  std::map<std::pair<FamilyId, size_t>, Inside> inside_;
  std::map<std::pair<FamilyId, size_t>, size_t> work_;
};

// The read mentions every slot up to its deepest one. So it meets each tuple of the slots it
// depends on once, and inlining computes nothing twice. `whole`: it mentions every slot in scope,
// so that not even a value that is invariant along the reader's inner coordinates moves into them.
bool repeats_no_work(const Module& m, const Site& s, bool whole) {
  uint64_t used = 0;
  for (ExprId e : get_if<Access>(m, s.node)->at) used |= m[e].free;
  if (whole && used + 1 != uint64_t{1} << s.depth) return false;
  return (used & (used + 1)) == 0;
}

// A definition with reductions that is read at an index with reductions: inlined, those of
// the index would be computed over and over inside the definition's, with binders numbered
// for another depth.
bool nests(const Module& m, ExprId definition, const std::vector<ExprId>& at) {
  auto deep = [&](ExprId e) { return has_reduce(m, e); };
  return std::any_of(at.begin(), at.end(), deep) && has_reduce(m, definition);
}

bool may_inline(const Module& m, const Family& f, const Clause& clause,
                const std::vector<Site>& sites, ReadClauses& read) {
  Shape shape = shape_of(m, clause.body);
  if (shape.requests) return false;
  bool constant = !shape.reads && m[clause.body].free == 0;
  if (!shape.reduces && (shape.work == 0 || constant)) return true;
  // The winner of a max is an address that is read in several places, and gates say things about
  // it: it keeps its name.
  if (shape.reduces && is_int(f.dtype)) return false;
  if (sites.size() != 1) return false;
  const Site& s = sites[0];
  // What is read in several places of one expression is one node there, but printed at each of
  // them: the adjoints of `x3 = x2 * x1`, `x4 = x3 * x2`, … would double at every step.
  constexpr size_t kRepeated = 24, kLongest = 1024;
  if (shape.work > kLongest) return false;
  if (s.times > 1 && s.clause != ~size_t{0} && shape.work + read.work(s) > kRepeated) return false;
  const Access& a = *get_if<Access>(m, s.node);
  if (s.clause == ~size_t{0} || !repeats_no_work(m, s, shape.reduces)) return false;
  if (nests(m, clause.body, a.at)) return false;
  const Family& reader = m[s.reader];
  // A routed sum runs as one pass only as the whole body, read coordinate by coordinate.
  if (shape.routed) {
    if (reader.clauses[s.clause].body != s.node || !is_whole(m, reader)) return false;
    for (uint32_t k = 0; k < a.at.size(); ++k) {
      if (slot_of(m, a.at[k]) != k) return false;
    }
    return reader.rank() == f.rank();
  }
  return !shape.reduces || s.depth == reader.rank();
}

// Does computing `body` always read, at slot `k`, a coordinate of that extent?
bool reads_at(const Module& m, ExprId body, uint32_t k, ExprId extent) {
  const Expr& x = m[body];
  if (const auto* a = std::get_if<Access>(&x.node)) {
    for (size_t j = 0; j < a->at.size(); ++j) {
      if (slot_of(m, a->at[j]) == k && m[a->family].coords[j].extent == extent) return true;
    }
    return false;
  }
  const auto* a = std::get_if<Apply>(&x.node);
  if (!a) return false;
  size_t always = a->op == Op::Select || a->op == Op::And || a->op == Op::Or ? 1 : a->args.size();
  return std::any_of(a->args.begin(), a->args.begin() + static_cast<ptrdiff_t>(always),
                     [&](ExprId e) { return reads_at(m, e, k, extent); });
}

// A read out of bounds is an error that must not disappear with the family. Either the address is
// proven to be inside, or what replaces the read looks there too.
bool keeps_checks(const Module& m, const Family& f, const Site& s, ReadClauses& read) {
  const Access& a = *get_if<Access>(m, s.node);
  const bool cell = s.clause == ~size_t{0};  // of a table
  const std::vector<Range> box = cell ? std::vector<Range>() : m[s.reader].clauses[s.clause].box;
  auto same_range = [&](uint32_t slot, ExprId extent) {  // the common case
    return slot < box.size() && const_int(m, box[slot].lo).value_or(-1) >= 0 &&
           box[slot].hi == extent;
  };
  for (uint32_t k = 0; k < a.at.size(); ++k) {
    ExprId extent = f.coords[k].extent;
    if (same_range(slot_of(m, a.at[k]), extent)) continue;
    if (reads_at(m, f.clauses[0].body, k, extent)) continue;
    if (cell || !read.inside(s, k)) return false;
  }
  return true;
}

// The clause to put in place of each read of `id`; null when the family stays.
const Clause* inlined(Module& m, FamilyId id, const std::vector<Site>& sites, ReadClauses& read) {
  const Family& f = m[id];
  if (!f.generated || sites.empty()) return nullptr;
  for (const Site& s : sites) {
    if (s.reader == id) return nullptr;
  }
  const Clause* clause = nullptr;
  if (is_whole(m, f)) {
    for (const Site& s : sites) {
      if (!keeps_checks(m, f, s, read)) return nullptr;
    }
    clause = &f.clauses[0];
  } else {
    for (const Site& s : sites) {
      if (s.clause == ~size_t{0}) return nullptr;
      const Clause* here = read.at(s);
      if (!here || (clause && clause != here)) return nullptr;
      clause = here;
    }
  }
  return clause && may_inline(m, f, *clause, sites, read) ? clause : nullptr;
}

// The gate and the value of a whole family that is zero elsewhere.
const Apply* gated_value(const Module& m, const Family& f) {
  if (!is_whole(m, f)) return nullptr;
  const auto* a = get_if<Apply>(m, f.clauses[0].body);
  if (!a || a->op != Op::Select) return nullptr;
  const auto* zero = get_if<FloatLit>(m, a->args[2]);
  return zero && zero->value == 0 ? a : nullptr;
}

// A copy of a gated family under the same gate is the family itself: elsewhere both are zero.
void drop_repeated_gates(Module& m) {
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    Family& f = m.families[FamilyId(i)];
    const Apply* copy = f.generated ? gated_value(m, f) : nullptr;
    const auto* read = copy ? get_if<Access>(m, copy->args[1]) : nullptr;
    if (!read || read->family == FamilyId(i) || m[read->family].rank() != f.rank()) continue;
    bool same_cell = true;
    for (uint32_t k = 0; k < f.rank(); ++k) same_cell &= slot_of(m, read->at[k]) == k;
    const Apply* original = same_cell ? gated_value(m, m[read->family]) : nullptr;
    if (!original) continue;
    std::vector<ExprId> here, there;
    conjuncts(m, copy->args[0], here);
    conjuncts(m, original->args[0], there);
    bool implied = std::all_of(here.begin(), here.end(), [&](ExprId c) {
      return std::find(there.begin(), there.end(), c) != there.end();
    });
    if (implied) f.clauses[0].body = copy->args[1];
  }
}

using Definitions = std::map<FamilyId, ExprId>;

ExprId inline_in(Module& m, ExprId body, uint32_t rank, const Definitions& definitions) {
  std::map<std::pair<ExprId, uint32_t>, ExprId> memo;
  std::function<ExprId(ExprId, uint32_t)> visit = [&](ExprId e, uint32_t depth) -> ExprId {
    if (auto it = memo.find({e, depth}); it != memo.end()) return it->second;
    ExprId out;
    const Expr expr = m[e];
    if (const auto* r = std::get_if<Reduce>(&expr.node)) {
      Reduce copy = *r;
      uint32_t inside = r->first + static_cast<uint32_t>(r->over.size());
      for (Range& range : copy.over) range = {visit(range.lo, depth), visit(range.hi, depth)};
      if (copy.gate) copy.gate = visit(copy.gate, inside);
      for (Route& route : copy.routes) route.to = visit(route.to, inside);
      copy.body = visit(copy.body, inside);
      out = reduce(m, std::move(copy), expr.span);
    } else {
      out = map_children(m, e, [&](ExprId child) { return visit(child, depth); });
      if (const auto* a = get_if<Access>(m, out)) {
        auto it = definitions.find(a->family);
        std::vector<ExprId> at = a->at;
        // Inlining may have put a reduction into the index just now.
        if (it != definitions.end() && !nests(m, it->second, at)) {
          bool tangent = m[a->family].tangent;
          out = substitute(m, it->second, at, depth);
          if (tangent) out = mark_tangent(m, out);
        }
      }
    }
    memo[{e, depth}] = out;
    return out;
  };
  return visit(body, rank);
}

// A clause that is a tangent as a whole needs no mark: its family becomes a tangent.
void unmark_whole(Module& m, Family& f) {
  auto marked = [&](const Clause& c) { return unmarked(m, c.body) != c.body; };
  bool all = f.tangent || std::all_of(f.clauses.begin(), f.clauses.end(), marked);
  for (Clause& c : f.clauses) {
    const auto* r = get_if<Reduce>(m, unmarked(m, c.body));
    // A routed sum runs as one pass only as the whole body.
    if (all || (r && !r->routes.empty())) c.body = unmarked(m, c.body);
  }
  f.tangent |= all && !f.clauses.empty();
}

// The module with only the families in `keep`, renumbered.
void compact(Module& m, const std::set<FamilyId>& keep) {
  Module out;
  out.arena = m.arena;
  out.params = m.params;
  out.functions = m.functions;  // their bodies name no family
  out.constraints = m.constraints;
  out.effects = m.effects;
  std::map<FamilyId, FamilyId> to;
  for (FamilyId id : keep) to[id] = out.families.add(m[id]);
  std::map<ExprId, ExprId> memo;
  std::function<ExprId(ExprId)> visit = [&](ExprId e) -> ExprId {
    if (auto it = memo.find(e); it != memo.end()) return it->second;
    const Expr& expr = m[e];
    ExprId moved;
    auto list = [&](const std::vector<ExprId>& in) {
      std::vector<ExprId> at;
      for (ExprId x : in) at.push_back(visit(x));
      return at;
    };
    if (const auto* a = std::get_if<Access>(&expr.node)) {
      moved = access(out, to.at(a->family), list(a->at), expr.span);
    } else if (const auto* r = std::get_if<Request>(&expr.node)) {
      moved =
          request(out, {to.at(r->num), list(r->num_at), to.at(r->den), list(r->den_at)}, expr.span);
    } else {
      moved = map_children(out, e, visit);
    }
    memo[e] = moved;
    return moved;
  };
  rewrite_all(out, visit);
  for (Family& f : out.families) {
    for (FamilyId& other : f.with) other = to.at(other);
  }
  for (uint32_t p = 0; p < out.params.size(); ++p) {
    FamilyId& source = out.params[ParamId(p)].source;
    if (source) source = to.at(source);
  }
  for (Effect& e : out.effects) {
    if (e.cond) e.cond = to.at(e.cond);
    for (FamilyId& user : e.users) user = to.at(user);
    for (Piece& p : e.pieces) {
      if (p.value) p.value = to.at(p.value);
    }
  }
  m = std::move(out);
}

std::set<FamilyId> needed(const Module& m) {
  std::vector<FamilyId> work;
  std::set<FamilyId> seen;
  auto need = [&](FamilyId f) {
    if (f && seen.insert(f).second) work.push_back(f);
  };
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    if (!m[FamilyId(i)].generated) need(FamilyId(i));
  }
  for (uint32_t p = 0; p < m.params.size(); ++p) need(m.params[ParamId(p)].source);
  for (const Effect& e : m.effects) {
    for (FamilyId user : e.users) need(user);
    need(e.cond);
    for (const Piece& p : e.pieces) need(p.value);
  }
  for (size_t i = 0; i < work.size(); ++i) {
    auto visit = [&](ExprId e) {
      for_each_node(m, e, [&](ExprId x) {
        if (const auto* a = get_if<Access>(m, x)) need(a->family);
        if (const auto* r = get_if<Request>(m, x)) {
          need(r->num);
          need(r->den);
        }
      });
    };
    for_each_body(m, work[i], visit);
    for (FamilyId other : m[work[i]].with) need(other);
  }
  return seen;
}

// Families that can be inlined together: no chosen one reads another, so that each decision was
// made about the place where the definition ends up.
Definitions choose(Module& m, const Sites& sites, std::set<FamilyId>& readers) {
  std::set<FamilyId> named;  // used by effects, so they stay
  for (const Effect& e : m.effects) {
    named.insert(e.cond);
    for (const Piece& p : e.pieces) named.insert(p.value);
  }
  Definitions chosen;
  ReadClauses read(m);
  for (const auto& [id, list] : sites) {
    if (named.contains(id) || readers.contains(id)) continue;
    bool apart = std::none_of(list.begin(), list.end(),
                              [&](const Site& s) { return chosen.contains(s.reader); });
    const Clause* clause = apart ? inlined(m, id, list, read) : nullptr;
    if (!clause || !m[id].with.empty()) continue;
    chosen[id] = clause->body;
    for (const Site& s : list) readers.insert(s.reader);
  }
  return chosen;
}

}  // namespace

void tidy(Module& m) {
  std::set<FamilyId> alive = needed(m);
  for (;;) {
    drop_repeated_gates(m);
    std::set<FamilyId> readers;
    Definitions chosen = choose(m, find_sites(m, alive), readers);
    if (chosen.empty()) break;
    for (FamilyId reader : readers) {
      Family& f = m.families[reader];
      for (Clause& c : f.clauses) c.body = inline_in(m, c.body, f.rank(), chosen);
      unmark_whole(m, f);
      for (ExprId& c : f.cells) c = inline_in(m, c, 0, chosen);
      solve_gates(m, reader);
    }
    alive = needed(m);
  }
  if (alive.size() != m.families.size()) compact(m, alive);
}

}  // namespace ein::core

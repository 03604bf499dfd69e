#include "autodiff/contract.h"

#include <algorithm>
#include <bit>
#include <set>

#include "core/build.h"
#include "core/normal.h"
#include "core/product.h"
#include "core/prove.h"
#include "core/rewrite.h"

namespace ein::autodiff {

using namespace core;

namespace {

uint64_t bit(uint32_t slot) { return uint64_t{1} << slot; }

// A sum and where it stands.
struct Place {
  FamilyId in;
  ExprId node;
  Reduce sum;
  Facts facts;  // inside the sum
};

class Contractor {
 public:
  Contractor(Module& m, Contractions& out, bool directions, bool seeds)
      : m_(m), out_(out), directions_(directions), seeds_(seeds) {
    for (const Effect& e : m.effects) {
      for (const Piece& p : e.pieces) observed_.insert(p.value);
    }
  }

  void run() {
    auto families = static_cast<uint32_t>(m_.families.size());
    for (uint32_t i = 0; i < families; ++i) {
      for (size_t c = 0; c < m_[FamilyId(i)].clauses.size(); ++c) {
        while (push_one(FamilyId(i), c)) {}
        pick_cells(FamilyId(i), c);
      }
    }
  }

 private:
  bool push_one(FamilyId id, size_t index) {
    const Clause clause = m_[id].clauses[index];
    if (!mentions_request(clause.body)) return false;
    std::vector<Place> places;
    // Evaluated under a condition that a direction would have to repeat, or in places where indices
    // have other ranges.
    std::set<ExprId> guarded;
    std::map<ExprId, std::vector<Range>> first;
    auto is_sum = [](const Node& n) {
      const auto* r = std::get_if<Reduce>(&n);
      return r && r->op == ReduceOp::Sum && r->routes.empty();
    };
    for_each_with_facts(m_, clause, is_sum, [&](ExprId e, const Facts& facts) {
      auto [known, fresh] = first.try_emplace(e, facts.slots);
      if (facts.guarded || !same_ranges(m_, e, known->second, facts.slots)) guarded.insert(e);
      places.push_back({id, e, *get_if<Reduce>(m_, e), facts});
    });
    for (Place& p : places) {
      if (guarded.contains(p.node) || !is_float(m_[p.node].type)) continue;
      enter(m_, p.sum, p.facts);
      ExprId pushed = push(p);
      if (!pushed) continue;
      m_.families[id].clauses[index].body =
          rewrite(m_, clause.body, [&](ExprId x) { return x == p.node ? pushed : x; });
      return true;
    }
    return false;
  }

  // Requests about one cell: `@h[9] / @W`, `@y / @x[0]`.
  void pick_cells(FamilyId id, size_t index) {
    const Clause clause = m_[id].clauses[index];
    std::map<ExprId, ExprId> with;
    for_each_node(m_, clause.body, [&](ExprId e) {
      const auto* in = get_if<Request>(m_, e);
      if (!in || out_.along.contains(in->den)) return;
      Request r = *in;
      bool vectors = m_[r.num].rank() > 0 && m_[r.den].rank() > 0;
      if (seeds_ && is_cell(r.num, r.num_at) && !depends(r.num, id)) {
        r = {cell(r.num, r.num_at), {}, r.den, r.den_at};
      } else if (directions_ && vectors && r.num != r.den && is_cell(r.den, r.den_at) &&
                 !depends(r.num, id)) {
        r = {r.num, r.num_at, unit_direction(r.den, r.den_at), {}};
      } else {
        return;
      }
      with[e] = request(m_, std::move(r), m_[e].span);
    });
    if (with.empty()) return;
    m_.families[id].clauses[index].body = rewrite(m_, clause.body, [&](ExprId x) {
      auto it = with.find(x);
      return it == with.end() ? x : it->second;
    });
  }

  // Whether `at` is one cell that is known to exist, whatever the indices around are.
  bool is_cell(FamilyId family, const std::vector<ExprId>& at) {
    Facts facts;
    facts.entry = entry_facts(m_);
    for (size_t k = 0; k < at.size(); ++k) {
      if (m_[at[k]].free != 0 || get_if<Access>(m_, at[k])) return false;
      if (!proves_in_bounds(m_, at[k], m_[family].coords[k].extent, facts)) return false;
    }
    return !at.empty();
  }

  // `h[9]` is h_9.
  std::string cell_name(FamilyId family, const std::vector<ExprId>& at) {
    std::string out = text(m_[family].name);
    for (ExprId e : at) {
      auto n = const_int(m_, e);
      if (!n) return text(m_[family].name) + "_cell";
      out += "_" + std::to_string(*n);
    }
    return out;
  }

  FamilyId cell(FamilyId family, const std::vector<ExprId>& at) {
    FamilyId& out = cells_[{family, at}];
    if (!out) {
      const Family& f = m_[family];
      out = declare(cell_name(family, at), f.dtype, {}, access(m_, family, at));
    }
    return out;
  }

  FamilyId unit_direction(FamilyId den, const std::vector<ExprId>& at) {
    FamilyId& out = units_[{den, at}];
    if (out) return out;
    DType type = m_[den].dtype;
    const std::string name = cell_name(den, at);
    out = declare(name, type, {}, float_lit(m_, 0, type));
    std::vector<ExprId> same;
    for (uint32_t k = 0; k < at.size(); ++k)
      same.push_back(apply(m_, Op::Eq, {slot(m_, k), at[k]}));
    out_.along[out] = {den, {}, float_lit(m_, 1, type), all_of(m_, same), name};
    return out;
  }

  bool mentions_request(ExprId body) {
    bool found = false;
    for_each_node(m_, body, [&](ExprId e) { found |= as_request(e, 0).has_value(); });
    return found;
  }

  // `e` as a request: it is one, or it reads a family that is nothing else. Binders from
  // `depth` are free.
  std::optional<Request> as_request(ExprId e, uint32_t depth) {
    if (const auto* r = get_if<Request>(m_, e)) return *r;
    const auto* a = get_if<Access>(m_, e);
    if (!a || observed_.contains(a->family)) return std::nullopt;
    const Family& f = m_[a->family];
    if (f.kind != Family::Kind::Defined || f.clauses.size() != 1) return std::nullopt;
    const Clause& c = f.clauses[0];
    const auto* r = get_if<Request>(m_, c.body);
    if (!r || m_[c.body].type != f.dtype) return std::nullopt;
    for (size_t k = 0; k < f.coords.size(); ++k) {
      if (const_int(m_, c.box[k].lo) != 0 || c.box[k].hi != f.coords[k].extent) return std::nullopt;
    }
    std::vector<ExprId> at = a->at;
    ExprId put = substitute(m_, c.body, at, depth);
    return *get_if<Request>(m_, put);
  }

  // The binders that `at` consists of, each once and over its whole coordinate; 0: it is
  // not of that form.
  uint64_t covered(const Place& p, FamilyId family, const std::vector<ExprId>& at) {
    uint64_t out = 0;
    for (size_t k = 0; k < at.size(); ++k) {
      uint32_t n = slot_of(m_, at[k]);
      if (n < p.sum.first || n >= p.sum.first + p.sum.over.size() || (out & bit(n))) return 0;
      const Range& r = p.sum.over[n - p.sum.first];
      if (const_int(m_, r.lo) != 0 || r.hi != m_[family].coords[k].extent) return 0;
      out |= bit(n);
    }
    return out;
  }

  uint64_t free_of(const std::vector<ExprId>& list) {
    uint64_t out = 0;
    for (ExprId e : list) out |= m_[e].free;
    return out;
  }

  // What replaces the sum; invalid when it stays.
  ExprId push(const Place& p) {
    const Product factors = as_product(m_, p.sum.body);
    scope_ = p.sum.first + static_cast<uint32_t>(p.sum.over.size());
    for (size_t k = 0; k < factors.num.size(); ++k) {
      std::optional<Request> r = as_request(factors.num[k], scope_);
      if (!r || r->num == r->den || m_[r->num].rank() == 0 || m_[r->den].rank() == 0) continue;
      if (depends(r->num, p.in)) continue;  // it stands in a recurrence with what it asks about
      Product rest = factors;
      rest.num.erase(rest.num.begin() + static_cast<ptrdiff_t>(k));
      for (bool direction : {true, false}) {
        if (direction ? !directions_ : !seeds_) continue;
        // No seed is pushed into a direction: its derivative is one sweep already.
        if (out_.along.contains(r->den)) continue;
        uint64_t summed = direction ? covered(p, r->den, r->den_at) : covered(p, r->num, r->num_at);
        if (summed == 0 || (summed & free_of(direction ? r->num_at : r->den_at))) continue;
        if (ExprId pushed = push(p, *r, rest, summed, direction, m_[factors.num[k]].span))
          return pushed;
      }
    }
    return {};
  }

  ExprId push(const Place& p, const Request& r, const Product& rest, uint64_t summed,
              bool direction, Span span) {
    for (const Range& range : p.sum.over) {
      if ((m_[range.lo].free | m_[range.hi].free) & summed) return {};
    }
    // What mentions the summed indices goes into the direction, the rest stays outside.
    Product inner, outer;
    for (ExprId e : rest.num) ((m_[e].free & summed) ? inner : outer).num.push_back(e);
    for (ExprId e : rest.den) ((m_[e].free & summed) ? inner : outer).den.push_back(e);
    std::vector<ExprId> parts;
    conjuncts(m_, p.sum.gate, parts);
    // Leading conditions about other indices stay outside: each condition may rely on
    // those before it.
    auto stays = [&](ExprId c) { return m_[c].free != 0 && (m_[c].free & summed) == 0; };
    size_t outside = 0;
    while (outside < parts.size() && stays(parts[outside])) ++outside;
    auto middle = parts.begin() + static_cast<ptrdiff_t>(outside);
    ExprId inner_gate = all_of(m_, {middle, parts.end()});
    FamilyId of = direction ? r.den : r.num;
    ExprId v = from_product(m_, inner, m_[of].dtype);
    if (m_[v].type != m_[of].dtype || m_[r.num].dtype != m_[r.den].dtype) return {};

    Facts facts = p.facts;
    for (auto it = parts.begin(); it != middle; ++it) assume(m_, *it, facts);
    std::vector<Symbol> names = coordinate_names(m_[p.in]);
    names.resize(p.sum.first);
    names.insert(names.end(), p.sum.names.begin(), p.sum.names.end());
    uint64_t others = m_[v].free | (inner_gate ? m_[inner_gate].free : 0);
    std::vector<uint32_t> extra = slots_in(others & ~summed);
    if (!extra.empty() && !few(extra, facts, of)) return {};
    // The direction would be evaluated where conditions that stay outside fail.
    if (outside > 0 && !extra.empty()) return {};
    ExprId held = hoist(m_, direction ? "direction" : "seed", v, inner_gate, facts, names, span);
    if (!held) return {};
    const Access at = *get_if<Access>(m_, held);
    std::vector<Coord> coords;  // of the further indices
    for (size_t k = 0; k < at.at.size(); ++k) {
      uint32_t n = slot_of(m_, at.at[k]);
      if (std::find(extra.begin(), extra.end(), n) != extra.end()) {
        coords.push_back(m_[at.family].coords[k]);
      } else if (n == ~0u || (bit(n) & summed) == 0) {
        return {};  // only a range mentions it, or it starts below 0
      }
    }
    const std::vector<ExprId>& own = direction ? r.den_at : r.num_at;
    Request made = r;
    if (direction) {
      made.den = make_direction(r, held, inner_gate, own, extra, coords);
      made.den_at = slots(extra);
    } else {
      made.num = make_seeded(r, held, inner_gate, own, extra, coords);
      made.num_at = slots(extra);
    }
    // What is left of the sum.
    outer.num.push_back(request(m_, std::move(made), span));
    ExprId body = from_product(m_, outer, m_[p.node].type);
    if (rest.negative) body = neg(m_, body);
    return without(p, summed, all_of(m_, {parts.begin(), middle}), body);
  }

  std::vector<uint32_t> slots_in(uint64_t bits) {
    std::vector<uint32_t> out;
    for (; bits != 0; bits &= bits - 1)
      out.push_back(static_cast<uint32_t>(std::countr_zero(bits)));
    return out;
  }
  std::vector<ExprId> slots(const std::vector<uint32_t>& list) {
    std::vector<ExprId> out;
    for (uint32_t n : list) out.push_back(slot(m_, n));
    return out;
  }

  // Whether there are certainly fewer directions (or seeds) than cells of `of`.
  bool few(const std::vector<uint32_t>& extra, const Facts& facts, FamilyId of) {
    std::vector<ExprId> a, b;
    for (uint32_t n : extra) {
      ExprId hi = closed_upper(m_, facts.slots[n].hi, facts);
      if (!hi) return false;
      a.push_back(hi);
    }
    for (const Coord& c : m_[of].coords) b.push_back(c.extent);
    return is_smaller(m_, a, b);
  }

  // `e`, moved to where the coordinates in `own` are the slots from `first` on and the further
  // indices are the slots from `second` on.
  ExprId moved(ExprId e, const std::vector<ExprId>& own, const std::vector<uint32_t>& extra,
               uint32_t first, uint32_t second, uint32_t depth) {
    if (!e) return e;
    std::vector<ExprId> with(scope_);
    for (uint32_t k = 0; k < own.size(); ++k) with[slot_of(m_, own[k])] = slot(m_, first + k);
    for (uint32_t k = 0; k < extra.size(); ++k) with[extra[k]] = slot(m_, second + k);
    return substitute(m_, e, with, depth);
  }

  FamilyId declare(const std::string& name, DType type, const std::vector<Coord>& coords,
                   ExprId body) {
    Family f;
    f.name = fresh_name(m_, name);
    f.dtype = type;
    f.coords = coords;
    f.generated = true;
    Clause c{{}, body, {}};
    for (const Coord& x : coords) c.box.push_back({int_lit(m_, 0), x.extent});
    f.clauses.push_back(std::move(c));
    return m_.families.add(std::move(f));
  }

  FamilyId make_direction(const Request& r, ExprId v, ExprId gate, const std::vector<ExprId>& own,
                          const std::vector<uint32_t>& extra, const std::vector<Coord>& coords) {
    uint32_t rank = m_[r.den].rank();
    auto depth = rank + static_cast<uint32_t>(extra.size());
    Along along{r.den, coords, moved(v, own, extra, 0, rank, depth),
                moved(gate, own, extra, 0, rank, depth), "direction"};
    const Family& direction = m_[get_if<Access>(m_, v)->family];
    if (const auto* read = get_if<Access>(m_, direction.clauses.back().body))
      along.name = text(m_[read->family].name);
    DType type = m_[r.den].dtype;
    FamilyId id =
        declare(text(m_[r.den].name) + "_direction", type, coords, float_lit(m_, 0, type));
    out_.along[id] = std::move(along);
    return id;
  }

  FamilyId make_seeded(const Request& r, ExprId u, ExprId gate, const std::vector<ExprId>& own,
                       const std::vector<uint32_t>& extra, const std::vector<Coord>& coords) {
    out_.seeded = true;
    const Family num = m_[r.num];
    auto first = static_cast<uint32_t>(extra.size());
    uint32_t depth = first + num.rank();
    Reduce sum{ReduceOp::Sum, first, {}, {}, moved(gate, own, extra, first, 0, depth), {}, {}};
    std::vector<ExprId> at;
    for (uint32_t k = 0; k < num.rank(); ++k) {
      sum.over.push_back({int_lit(m_, 0), num.coords[k].extent});
      sum.names.push_back(num.coords[k].name);
      at.push_back(slot(m_, first + k));
    }
    ExprId tangent = apply(m_, Op::Tangent, {access(m_, r.num, std::move(at))});
    ExprId linear = mul(m_, moved(u, own, extra, first, 0, depth), tangent);
    sum.body = apply(m_, Op::Rule, {float_lit(m_, 0, num.dtype), linear});
    return declare(text(num.name) + "_seeded", num.dtype, coords, reduce(m_, std::move(sum)));
  }

  // The sum of `body` over the binders that are not in `gone`.
  ExprId without(const Place& p, uint64_t gone, ExprId gate, ExprId body) {
    Reduce out = p.sum;
    out.over.clear();
    out.names.clear();
    std::vector<ExprId> with(p.sum.first + p.sum.over.size());
    for (uint32_t k = 0; k < p.sum.over.size(); ++k) {
      uint32_t n = p.sum.first + k;
      if (gone & bit(n)) continue;
      with[n] = slot(m_, p.sum.first + static_cast<uint32_t>(out.over.size()));
      out.over.push_back(p.sum.over[k]);
      out.names.push_back(p.sum.names[k]);
    }
    auto depth = p.sum.first + static_cast<uint32_t>(out.over.size());
    auto put = [&](ExprId e) { return e ? substitute(m_, e, with, depth) : e; };
    for (Range& r : out.over) r = {put(r.lo), put(r.hi)};
    out.gate = put(gate);
    out.body = put(body);
    return reduce(m_, std::move(out), m_[p.node].span);
  }

  // Whether the definition of `family` reads `what`, through others or requests.
  bool depends(FamilyId family, FamilyId what) {
    std::set<FamilyId> seen{family};
    std::vector<FamilyId> work{family};
    for (size_t i = 0; i < work.size(); ++i) {
      if (work[i] == what) return true;
      auto reach = [&](FamilyId f) {
        if (seen.insert(f).second) work.push_back(f);
      };
      for_each_body(m_, work[i], [&](ExprId body) {
        for_each_node(m_, body, [&](ExprId e) {
          if (const auto* a = get_if<Access>(m_, e)) reach(a->family);
          if (const auto* r = get_if<Request>(m_, e)) reach(r->num);
        });
      });
    }
    return false;
  }

  Module& m_;
  Contractions& out_;
  bool directions_, seeds_;
  using Cell = std::pair<FamilyId, std::vector<ExprId>>;
  std::map<Cell, FamilyId> cells_, units_;  // numerators and directions made for one cell
  uint32_t scope_ = 0;                      // slots in scope inside the sum that is looked at
  std::set<FamilyId> observed_;
};

}  // namespace

Contractions push_contractions(Module& m, bool directions, bool seeds) {
  Contractions out;
  Contractor(m, out, directions, seeds).run();
  return out;
}

bool is_smaller(const Module& m, const std::vector<ExprId>& a, std::vector<ExprId> b) {
  int64_t known_a = 1, known_b = 1;
  bool symbols = false;  // in `a` beyond those of `b`
  for (ExprId e : a) {
    auto same = std::find(b.begin(), b.end(), e);
    if (same != b.end()) {
      b.erase(same);
    } else if (auto n = const_int(m, e)) {
      known_a *= *n;
    } else {
      symbols = true;
    }
  }
  bool more = false;  // in `b`
  for (ExprId e : b) {
    auto n = const_int(m, e);
    if (n) known_b *= *n;
    more |= !n;
  }
  return !symbols && (more || known_a < known_b);
}

}  // namespace ein::autodiff

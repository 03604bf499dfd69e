#include "core/core.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/match.h"

namespace ein::core {
namespace {

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9E3779B97F4A7C15ull + (h << 6) + (h >> 2);
  h *= 0xBF58476D1CE4E5B9ull;
  return h ^ (h >> 29);
}

// The hash and the equality that hash-consing uses: children by id, binder names left out.
uint64_t shallow_hash(const Node& node, DType type) {
  uint64_t h = mix(node.index(), static_cast<uint64_t>(type));
  match(
      node, [&](const FloatLit& n) { h = mix(h, std::bit_cast<uint64_t>(n.value)); },
      [&](const IntLit& n) { h = mix(h, static_cast<uint64_t>(n.value)); },
      [&](const BoolLit& n) { h = mix(h, n.value); }, [&](const Slot& n) { h = mix(h, n.n); },
      [&](const ParamRef& n) { h = mix(h, n.param.v); },
      [&](const Affine& n) {
        for (const auto& t : n.terms) h = mix(mix(h, t.atom.v), static_cast<uint64_t>(t.coef));
        h = mix(h, static_cast<uint64_t>(n.constant));
      },
      [&](const Apply& n) {
        h = mix(h, static_cast<uint64_t>(n.op));
        for (ExprId a : n.args) h = mix(h, a.v);
      },
      [&](const Access& n) {
        h = mix(h, n.family.v);
        for (ExprId a : n.at) h = mix(h, a.v);
      },
      [&](const Reduce& n) {
        h = mix(mix(h, static_cast<uint64_t>(n.op)), n.first);
        for (const Range& r : n.over) h = mix(mix(h, r.lo.v), r.hi.v);
        for (const Route& r : n.routes) h = mix(mix(h, r.slot), r.to.v);
        h = mix(mix(h, n.gate.v), n.body.v);
      },
      [&](const Request& n) {
        h = mix(mix(h, n.num.v), n.den.v);
        for (ExprId a : n.num_at) h = mix(h, a.v);
        for (ExprId a : n.den_at) h = mix(h, a.v);
      },
      [&](const Call& n) {
        h = mix(h, n.function.v);
        for (ExprId a : n.args) h = mix(h, a.v);
      },
      [&](const Arg& n) { h = mix(h, n.n); });
  return h;
}

bool same(const Range& a, const Range& b) { return a.lo == b.lo && a.hi == b.hi; }
bool same(const Route& a, const Route& b) { return a.slot == b.slot && a.to == b.to; }
bool same(const Affine::Term& a, const Affine::Term& b) {
  return a.atom == b.atom && a.coef == b.coef;
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T& x, const T& y) { return same(x, y); });
}

bool same_node(const Node& a, const Node& b) {
  if (a.index() != b.index()) return false;
  return match(
      a,
      [&](const FloatLit& n) {
        return std::bit_cast<uint64_t>(n.value) ==
               std::bit_cast<uint64_t>(std::get<FloatLit>(b).value);
      },
      [&](const IntLit& n) { return n.value == std::get<IntLit>(b).value; },
      [&](const BoolLit& n) { return n.value == std::get<BoolLit>(b).value; },
      [&](const Slot& n) { return n.n == std::get<Slot>(b).n; },
      [&](const ParamRef& n) { return n.param == std::get<ParamRef>(b).param; },
      [&](const Affine& n) {
        const auto& o = std::get<Affine>(b);
        return n.constant == o.constant && same(n.terms, o.terms);
      },
      [&](const Apply& n) {
        const auto& o = std::get<Apply>(b);
        return n.op == o.op && n.args == o.args;
      },
      [&](const Access& n) {
        const auto& o = std::get<Access>(b);
        return n.family == o.family && n.at == o.at;
      },
      [&](const Reduce& n) {
        const auto& o = std::get<Reduce>(b);
        return n.op == o.op && n.first == o.first && n.gate == o.gate && n.body == o.body &&
               same(n.over, o.over) && same(n.routes, o.routes);
      },
      [&](const Request& n) {
        const auto& o = std::get<Request>(b);
        return n.num == o.num && n.den == o.den && n.num_at == o.num_at && n.den_at == o.den_at;
      },
      [&](const Call& n) {
        const auto& o = std::get<Call>(b);
        return n.function == o.function && n.args == o.args;
      },
      [&](const Arg& n) { return n.n == std::get<Arg>(b).n; });
}

uint64_t hash_text(const std::string& s) {
  uint64_t h = 0xCBF29CE484222325ull;
  for (unsigned char c : s) h = (h ^ c) * 0x100000001B3ull;
  return h;
}

// Hashes by meaning: families and params by name, affine terms and clauses in any order.
class MeaningHash {
 public:
  explicit MeaningHash(const Module& m) : m_(m) {}

  uint64_t expr(ExprId e) {
    if (!e) return 0x5EED;
    if (auto it = memo_.find(e); it != memo_.end()) return it->second;
    const Expr& x = m_[e];
    uint64_t h = mix(x.node.index() + 77, static_cast<uint64_t>(x.type));
    match(
        x.node, [&](const FloatLit& n) { h = mix(h, std::bit_cast<uint64_t>(n.value)); },
        [&](const IntLit& n) { h = mix(h, static_cast<uint64_t>(n.value)); },
        [&](const BoolLit& n) { h = mix(h, n.value); }, [&](const Slot& n) { h = mix(h, n.n); },
        [&](const ParamRef& n) { h = mix(h, param(n.param)); },
        [&](const Affine& n) {
          uint64_t sum = 0;
          for (const auto& t : n.terms) { sum += mix(expr(t.atom), static_cast<uint64_t>(t.coef)); }
          h = mix(mix(h, sum), static_cast<uint64_t>(n.constant));
        },
        [&](const Apply& n) {
          h = mix(h, static_cast<uint64_t>(n.op));
          for (ExprId a : n.args) h = mix(h, expr(a));
        },
        [&](const Access& n) {
          h = mix(h, family_name(n.family));
          for (ExprId a : n.at) h = mix(h, expr(a));
        },
        [&](const Reduce& n) {
          h = mix(mix(h, static_cast<uint64_t>(n.op)), n.first);
          for (const Range& r : n.over) h = mix(mix(h, expr(r.lo)), expr(r.hi));
          uint64_t routes = 0;
          for (const Route& r : n.routes) routes += mix(r.slot, expr(r.to));
          h = mix(mix(mix(h, routes), expr(n.gate)), expr(n.body));
        },
        [&](const Request& n) {
          h = mix(mix(h, family_name(n.num)), family_name(n.den));
          for (ExprId a : n.num_at) h = mix(h, expr(a));
          for (ExprId a : n.den_at) h = mix(h, expr(a));
        },
        [&](const Call& n) {
          called_.insert(n.function);
          h = mix(h, hash_text(text(m_.functions[n.function].name)));
          for (ExprId a : n.args) h = mix(h, expr(a));
        },
        [&](const Arg& n) { h = mix(h, n.n); });
    memo_.emplace(e, h);
    return h;
  }

  uint64_t family(FamilyId id) {
    const Family& f = m_[id];
    uint64_t h = mix(hash_text(text(f.name)), static_cast<uint64_t>(f.kind));
    h = mix(h, static_cast<uint64_t>(f.dtype));
    std::vector<std::string> names;  // a repeated name is hashed as the printer spells it
    for (const Coord& c : f.coords) {
      std::string name = text(c.name);
      for (int n = 1; c.name && std::find(names.begin(), names.end(), name) != names.end(); ++n) {
        name = text(c.name) + "_" + std::to_string(n);
      }
      names.push_back(name);
      h = mix(mix(h, hash_text(f.kind == Family::Kind::Input ? text(c.name) : name)),
              expr(c.extent));
    }
    uint64_t clauses = 0;
    for (const Clause& c : f.clauses) {
      uint64_t k = 1;
      for (const Range& r : c.box) k = mix(mix(k, expr(r.lo)), expr(r.hi));
      clauses += mix(k, expr(c.body));
    }
    h = mix(h, clauses);
    for (ExprId c : f.cells) h = mix(h, expr(c));
    if (f.file) h = mix(mix(h, hash_text(f.file->written)), hash_text(f.file->member));
    return h;
  }

  uint64_t function(const Function& f) {
    uint64_t h = mix(hash_text(text(f.name)), static_cast<uint64_t>(f.result));
    for (const auto& p : f.params) h = mix(h, static_cast<uint64_t>(p.type));
    return mix(h, expr(f.body));
  }

  uint64_t module() {
    uint64_t h = 0;
    for (uint32_t i = 0; i < m_.families.size(); ++i) h += family(FamilyId(i));
    // Functions that nothing calls do not count: they are not printed either.
    std::set<FunctionId> done;
    for (bool more = true; more;) {
      more = false;
      for (FunctionId f : std::set<FunctionId>(called_)) {
        if (!done.insert(f).second) continue;
        h += function(m_.functions[f]);
        more = true;
      }
    }
    for (const Effect& e : m_.effects) {
      h = mix(h, static_cast<uint64_t>(e.kind));
      h = mix(mix(h, e.cond ? family_name(e.cond) : 5), hash_text(e.path));
      h = mix(mix(h, e.error), hash_text(e.end));
      for (const Piece& p : e.pieces) {
        h = mix(mix(h, hash_text(p.text)), hash_text(p.format));
        h = mix(h, p.value ? family_name(p.value) : 9);
        h = mix(h, static_cast<uint64_t>(p.join) + uint64_t{3} * p.rank);
      }
    }
    return h;
  }

 private:
  uint64_t family_name(FamilyId id) { return hash_text(text(m_[id].name)); }
  uint64_t param(ParamId id) {
    const Param& p = m_.params[id];
    if (p.name) return hash_text(text(p.name));
    return mix(family_name(p.source), p.position);
  }

  const Module& m_;
  std::unordered_map<ExprId, uint64_t> memo_;
  std::set<FunctionId> called_;
};

}  // namespace

const OpInfo& info(Op op) {
  static const OpInfo table[] = {
#define EIN_OP(name, spelling, arity, cls) {#name, spelling, arity, OpClass::cls},
#include "core/ops.def"
#undef EIN_OP
  };
  return table[static_cast<size_t>(op)];
}

const char* name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum: return "sum";
    case ReduceOp::Prod: return "prod";
    case ReduceOp::Max: return "max";
    case ReduceOp::Min: return "min";
    case ReduceOp::All: return "all";
    case ReduceOp::Any: return "any";
    case ReduceOp::ArgMax: return "argmax";
    case ReduceOp::ArgMin: return "argmin";
    case ReduceOp::Collect: return "matrix_cells";
  }
  EIN_UNREACHABLE("reduce op");
}

ExprId Arena::intern(Node node, DType type, Span span, uint64_t free) {
  if (2 * exprs_.size() >= index_.size()) grow();
  uint64_t h = shallow_hash(node, type);
  auto upper = static_cast<uint32_t>(h >> 32);
  size_t mask = index_.size() - 1, at = h & mask;
  for (; index_[at].id; at = (at + 1) & mask) {
    if (index_[at].hash != upper) continue;
    const Expr& e = exprs_[index_[at].id];
    if (e.type == type && same_node(e.node, node)) return index_[at].id;
  }
  ExprId id = exprs_.add({std::move(node), type, span, free});
  index_[at] = {upper, id};
  return id;
}

void Arena::grow() {
  index_.assign(std::max<size_t>(1024, 2 * index_.size()), {});
  for (uint32_t i = 0; i < exprs_.size(); ++i) {
    const Expr& e = exprs_[ExprId(i)];
    uint64_t h = shallow_hash(e.node, e.type);
    size_t mask = index_.size() - 1, at = h & mask;
    while (index_[at].id) at = (at + 1) & mask;
    index_[at] = {static_cast<uint32_t>(h >> 32), ExprId(i)};
  }
}

FamilyId Module::find(Symbol name) const {
  for (uint32_t i = 0; i < families.size(); ++i) {
    if (families[FamilyId(i)].name == name) return FamilyId(i);
  }
  for (uint32_t i = 0; i < families.size(); ++i) {
    if (families[FamilyId(i)].path == text(name)) return FamilyId(i);
  }
  return {};
}

uint64_t hash(const Module& m) { return MeaningHash(m).module(); }
uint64_t hash(const Module& m, FamilyId family) { return MeaningHash(m).family(family); }
uint64_t hash(const Module& m, FunctionId function) {
  return MeaningHash(m).function(m.functions[function]);
}

}  // namespace ein::core

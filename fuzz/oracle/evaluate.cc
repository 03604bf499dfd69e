#include "evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

namespace oracle {
namespace {

struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Address = std::vector<int64_t>;

struct Hash {
  size_t operator()(const Address& a) const {
    uint64_t h = 1469598103934665603ull;
    for (int64_t v : a) h = (h ^ static_cast<uint64_t>(v + 7)) * 1099511628211ull;
    return h;
  }
};

// One evaluation of the program. In an evaluation that a request starts, one cell has an
// infinitesimal added to it.
struct Context {
  Context* parent = nullptr;
  int depth = 0;
  int def = -1;
  Address at;  // its address
  std::unordered_map<Address, Num, Hash> floats;
  std::unordered_map<Address, int64_t, Hash> ints;
};

constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

class Evaluator {
 public:
  Evaluator(const Program& p, const Noise& noise, uint64_t most, Answer& out)
      : p_(p), noise_(noise), most_(most), out_(out), env_(p.vars.size(), 0), rng_(noise.seed) {
    find_dependences();
    out.nonfinite.assign(p.defs.size(), false);
    for (size_t k = 0; k < p.defs.size(); ++k) shapes_.push_back(shape_of(p, static_cast<int>(k)));
  }

  void run() {
    Context top;
    for (int id : p_.order) {
      const Definition& d = def(id);
      if (d.input || d.dropped) continue;
      Computed c;
      c.shape = shapes_[static_cast<size_t>(id)];
      Address at(c.shape.size(), 0);
      int64_t count = 1;
      for (int64_t n : c.shape) count *= n;
      for (int64_t k = 0; k < count; ++k) {
        int64_t rest = k;
        for (size_t a = at.size(); a-- > 0;) {
          at[a] = rest % c.shape[a];
          rest /= c.shape[a];
        }
        if (d.type == Type::Float) {
          c.cells.push_back(float_cell(id, at, top).value());
        } else {
          c.cells.push_back(static_cast<Real>(int_cell(id, at, top)));
        }
      }
      out_.values[id] = std::move(c);
    }
    std::vector<bool> own = out_.nonfinite;
    for (size_t k = 0; k < own.size(); ++k) {
      for (size_t j = 0; j < own.size(); ++j)
        if (own[j] && depends_[k][j]) out_.nonfinite[k] = true;
    }
  }

 private:
  const Definition& def(int id) const { return p_.defs[static_cast<size_t>(id)]; }

  // ---- what may depend on what -----------------------------------------------------------------

  void reads_of(const Node& n, std::vector<bool>& out) {
    if (n.kind == Kind::Read || n.kind == Kind::Request) out[static_cast<size_t>(n.id)] = true;
    for (const Node& k : n.kids) reads_of(k, out);
    for (int local : n.locals) reads_of_clauses(def(local), out);
  }
  void reads_of_clauses(const Definition& d, std::vector<bool>& out) {
    for (const Clause& c : d.clauses) {
      reads_of(c.gate, out);
      reads_of(c.otherwise, out);
      reads_of(c.body, out);
      reads_of(c.until, out);
    }
  }
  void find_dependences() {
    size_t n = p_.defs.size();
    depends_.assign(n, std::vector<bool>(n, false));
    for (size_t k = 0; k < n; ++k) reads_of_clauses(p_.defs[k], depends_[k]);
    // A local is a recurrence when it reads itself within its block; its family may also
    // do so around it.
    for (size_t k = 0; k < n; ++k) recurs_.push_back(reaches_itself(k));
    for (size_t via = 0; via < n; ++via) {
      for (size_t k = 0; k < n; ++k) {
        if (!depends_[k][via]) continue;
        for (size_t j = 0; j < n; ++j)
          if (depends_[via][j]) depends_[k][j] = true;
      }
    }
  }

  static bool inside(const Definition& d, const Definition& block) {
    return d.blocks.size() >= block.blocks.size() &&
           std::equal(block.blocks.begin(), block.blocks.end(), d.blocks.begin());
  }
  bool reaches_itself(size_t id) {
    std::vector<size_t> left{id};
    std::vector<bool> seen(p_.defs.size(), false);
    while (!left.empty()) {
      size_t at = left.back();
      left.pop_back();
      for (size_t k = 0; k < p_.defs.size(); ++k) {
        if (!depends_[at][k] || !inside(p_.defs[k], p_.defs[id])) continue;
        if (k == id) return true;
        if (!seen[k]) left.push_back(k);
        seen[k] = true;
      }
    }
    return false;
  }

  // The outermost context in which the definition has the same values as in this one. Only
  // definitions in its own block can depend on a local: the rest of the program was defined before
  // it.
  Context& home(int id, Context& c) {
    Context* at = &c;
    while (at->parent) {
      const Definition& moved = def(at->def);
      bool follows =
          id == at->def || depends_[static_cast<size_t>(id)][static_cast<size_t>(at->def)];
      follows = follows && inside(def(id), moved);
      if (follows) break;
      at = at->parent;
    }
    return *at;
  }

  Address key_of(int id, const Address& at) {
    Address key{id};
    for (int v : def(id).around) key.push_back(env_[static_cast<size_t>(v)]);
    key.insert(key.end(), at.begin(), at.end());
    return key;
  }

  // ---- cells -----------------------------------------------------------------------------------

  void check_bounds(int id, const Address& at) {
    const std::vector<int64_t>& shape = shapes_[static_cast<size_t>(id)];
    if (shape.size() != at.size()) throw Wrong("rank of " + def(id).name);
    for (size_t k = 0; k < at.size(); ++k)
      if (at[k] < 0 || at[k] >= shape[k]) throw Wrong("a read outside of " + def(id).name);
  }

  Real datum(const Definition& d, const Address& at, const std::vector<int64_t>& shape) {
    int64_t offset = 0;
    for (size_t k = 0; k < at.size(); ++k) offset = offset * shape[k] + at[k];
    return d.data[static_cast<size_t>(offset)];
  }

  Num float_cell(int id, const Address& at, Context& asked) {
    Context& c = home(id, asked);
    Address key = key_of(id, at);
    auto [found, fresh] = c.floats.try_emplace(key);
    if (!fresh) {
      if (found->second.depth < 0) throw Wrong("a cycle through " + def(id).name);
      return found->second;
    }
    found->second.depth = -1;  // being computed
    int outer = std::exchange(current_, id);
    const Definition& d = def(id);
    Num out;
    // The definition with the infinitesimal keeps its value, unless it is a recurrence: then later
    // steps change.
    bool itself = id == c.def, again = itself && recurs_[static_cast<size_t>(id)];
    if (itself && !again) {
      out = float_cell(id, at, *c.parent);
    } else if (d.input) {
      check_bounds(id, at);
      out = Num(datum(d, at, shapes_[static_cast<size_t>(id)]));
    } else {
      check_bounds(id, at);
      out = from_clauses(d, at, c);
    }
    if (itself && !again) {
      if (key == c.at) out = perturbed(out, c.depth, 1);
    } else {  // what this context and those above it add is not in the clause
      for (Context* up = &c; up; up = up->parent)
        if (up->def == id && key == up->at) out = perturbed(out, up->depth, 1);
    }
    c.floats[key] = out;
    current_ = outer;
    return out;
  }

  int64_t int_cell(int id, const Address& at, Context& asked) {
    Context& c = home(id, asked);
    Address key = key_of(id, at);
    if (auto it = c.ints.find(key); it != c.ints.end()) return it->second;
    const Definition& d = def(id);
    check_bounds(id, at);
    int64_t out = 0;
    if (d.input) {
      out = static_cast<int64_t>(datum(d, at, shapes_[static_cast<size_t>(id)]));
    } else {
      std::vector<int64_t> saved = env_;
      const Clause* clause = clause_of(d, at, c);
      if (clause) out = integer(clause->body, c);
      env_ = saved;
    }
    c.ints[key] = out;
    return out;
  }

  bool in_box(const Clause& clause, const Address& at, Context& c) {
    for (size_t k = 0; k < clause.slots.size(); ++k) {
      const Slot& s = clause.slots[k];
      if (s.var < 0) {
        if (integer(s.low, c) != at[k]) return false;
      } else if (at[k] < integer(s.low, c) || at[k] >= integer(s.high, c)) {
        return false;
      }
    }
    return true;
  }
  void bind(const Clause& clause, const Address& at) {
    for (size_t k = 0; k < clause.slots.size(); ++k)
      if (clause.slots[k].var >= 0) env_[static_cast<size_t>(clause.slots[k].var)] = at[k];
  }

  // The last clause that claims the cell (decisions.md, 11); env_ is left bound for it.
  const Clause* clause_of(const Definition& d, const Address& at, Context& c,
                          const Clause** boxed = nullptr) {
    for (size_t k = d.clauses.size(); k-- > 0;) {
      const Clause& clause = d.clauses[k];
      if (!in_box(clause, at, c)) continue;
      bind(clause, at);
      if (boxed && !*boxed) *boxed = &clause;
      if (clause.gate.kind == Kind::None || holds(clause.gate, c)) return &clause;
    }
    return nullptr;
  }

  static Address before(const Clause& clause, Address at) {
    at[0] += clause.down ? 1 : -1;
    return at;
  }
  // Whether the condition of `until` has held at an earlier step: this one repeats the step before.
  bool repeats(const Clause& clause, const Address& at, Context& c) {
    if (clause.until.kind == Kind::None) return false;
    Address earlier = before(clause, at);
    if (!in_box(clause, earlier, c)) return false;
    if (repeats(clause, earlier, c)) return true;
    bind(clause, earlier);
    return holds(clause.until, c);
  }

  Num from_clauses(const Definition& d, const Address& at, Context& c) {
    std::vector<int64_t> saved = env_;
    const Clause* boxed = nullptr;
    const Clause* clause = clause_of(d, at, c, &boxed);
    if (!clause && !boxed) throw Wrong("a hole in " + d.name);
    Num out;
    if (clause && repeats(*clause, at, c)) {
      out = float_cell(static_cast<int>(&d - p_.defs.data()), before(*clause, at), c);
    } else if (clause) {
      bind(*clause, at);
      out = number(clause->body, c);
    } else if (boxed->otherwise.kind != Kind::None) {
      bind(*boxed, at);
      out = number(boxed->otherwise, c);
    }
    env_ = saved;
    return out;
  }

  // ---- expressions -----------------------------------------------------------------------------

  Address address(const Node& n, size_t first, Context& c) {
    Address at;
    for (size_t k = first; k < n.kids.size(); ++k) at.push_back(integer(n.kids[k], c));
    return at;
  }

  Num rounded(Num x) {
    if (++out_.operations > most_) throw Wrong("too much work");
    for (int k = 0; k < 1 << x.depth; ++k) out_.largest = std::max(out_.largest, std::fabs(x.c[k]));
    if (!finite(x)) not_finite();
    return shaken(x);
  }
  // `x` with noise in every coefficient. Operands of products get it too: the terms of a slope may
  // cancel, as those of x / x do, and each of them has an error.
  Num shaken(Num x, int from = 0) {
    if (noise_.unit == 0) return x;
    for (int k = from; k < 1 << x.depth; ++k)
      x.c[k] += random() * (noise_.unit * x.c[k] + noise_.smallest);
    return x;
  }
  // In the slopes alone: those of `x - y` add up after both sides were multiplied by what is around
  // them, so they may not cancel exactly although the values do.
  Num sloped(Num x) { return shaken(x, 1); }
  Real random() {  // between −1 and 1
    rng_ = rng_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<Real>(static_cast<int64_t>(rng_ >> 33) - (int64_t{1} << 30)) /
           static_cast<Real>(int64_t{1} << 30);
  }

  void not_finite() {
    if (current_ >= 0) out_.nonfinite[static_cast<size_t>(current_)] = true;
  }
  void decided(bool how) { out_.decisions = (out_.decisions ^ (how ? 3u : 1u)) * 1099511628211ull; }
  void gap(Real a, Real b, bool data) {
    Real g = std::fabs(a - b) / std::max({Real{1}, std::fabs(a), std::fabs(b)});
    if (std::isnan(g)) return;
    if (g == 0 && data) return;
    if (g == 0) out_.tie = true;
    out_.smallest_gap = std::min(out_.smallest_gap, g);
  }
  // Whether every way of computing the value gives the same bits.
  bool is_data(const Node& n) {
    return n.kind == Kind::Literal || (n.kind == Kind::Read && def(n.id).input);
  }

  Num number(const Node& n, Context& c) {
    switch (n.kind) {
      case Kind::Literal: return Num(n.value);
      case Kind::Read: return float_cell(n.id, address(n, 0, c), c);
      case Kind::Negate: return scaled(number(n.kids[0], c), -1);
      case Kind::Add: return rounded(sloped(number(n.kids[0], c)) + sloped(number(n.kids[1], c)));
      case Kind::Subtract:
        return rounded(sloped(number(n.kids[0], c)) - sloped(number(n.kids[1], c)));
      case Kind::Multiply:
        return rounded(shaken(number(n.kids[0], c)) * shaken(number(n.kids[1], c)));
      case Kind::Divide:
        return rounded(shaken(number(n.kids[0], c)) / shaken(number(n.kids[1], c)));
      case Kind::Apply: {
        Num x = number(n.kids[0], c);
        if (n.function == Function::Abs) {
          gap(x.value(), 0, false);
          decided(x.value() < 0);
        }
        return rounded(apply(n.function, shaken(x), noise_.unit * random()));
      }
      case Kind::Max2:
      case Kind::Min2: {
        Num a = number(n.kids[0], c), b = number(n.kids[1], c);
        gap(a.value(), b.value(), false);
        bool second = n.kind == Kind::Max2 ? b.value() > a.value() : b.value() < a.value();
        decided(second);
        return second ? b : a;
      }
      case Kind::If:
      case Kind::Match: return number(n.kids[holds(n.kids[0], c) ? 1 : 2], c);
      case Kind::Choose: {
        int64_t which = integer(n.kids[0], c);
        auto arms = static_cast<int64_t>(n.kids.size()) - 2;
        return number(
            n.kids[static_cast<size_t>(which >= 0 && which < arms ? which + 1 : arms + 1)], c);
      }
      case Kind::Reduce: return reduce(n, c);
      case Kind::Block: return number(n.kids[0], c);
      case Kind::Shown: {
        // Adding up this many terms one after the other may be wrong by up to this many units.
        Num x = number(n.kids[0], c);
        return n.value > 0 ? scaled(x, 1 + noise_.unit * n.value * random() / kCaution) : x;
      }
      case Kind::Request: return request(n, c);
      case Kind::Cast: return Num(static_cast<Real>(integer(n.kids[0], c)));
      case Kind::Recurse: {
        Num a = number(n.kids[0], c), b = number(n.kids[1], c);
        return recurse(p_.functions[static_cast<size_t>(n.id)], a, b, integer(n.kids[2], c), c);
      }
      case Kind::Param: return params_.back()[static_cast<size_t>(n.id)];
      default: throw Wrong("not a number");
    }
  }

  Num recurse(const Recursive& f, const Num& a, const Num& b, int64_t n, Context& c) {
    params_.push_back({a, b, Num()});
    Num out;
    if (n <= 0) {
      out = number(f.base, c);
    } else {
      Num first = number(f.first, c), second = number(f.second, c);
      params_.back()[2] = recurse(f, first, second, n - 1, c);
      out = number(f.step, c);
    }
    params_.pop_back();
    return out;
  }

  // The change of the value when an infinitesimal is added to that cell (decisions.md, 23).
  Num request(const Node& n, Context& c) {
    Context below;
    below.parent = &c;
    below.depth = c.depth + 1;
    if (below.depth > kMaxDepth) throw Wrong("requests too deep");
    below.def = n.id;
    Address at = address(n, 1, c);
    check_bounds(n.id, at);
    below.at = key_of(n.id, at);
    return coefficient(number(n.kids[0], below), below.depth);
  }

  // Calls `visit` for every cell that the gate lets in, first variable outermost.
  template <class F>
  void over(const Node& n, size_t k, Context& c, const F& visit) {
    if (k == n.vars.size()) {
      if (n.kids[1].kind == Kind::None || holds(n.kids[1], c)) visit();
      return;
    }
    int64_t low = integer(n.kids[2 + 2 * k], c);
    int64_t high = integer(n.kids[3 + 2 * k], c) + (n.inclusive ? 1 : 0);
    auto var = static_cast<size_t>(n.vars[k]);
    int64_t saved = env_[var];
    for (int64_t i = low; i < high; ++i) {
      env_[var] = i;
      over(n, k + 1, c, visit);
    }
    env_[var] = saved;
  }

  Num reduce(const Node& n, Context& c) {
    Num out(n.reduction == Reduction::Prod  ? 1
            : n.reduction == Reduction::Max ? -kInfinity
            : n.reduction == Reduction::Min ? kInfinity
                                            : 0);
    int64_t count = 0;
    bool nan = false;
    over(n, 0, c, [&] {
      Num x = number(n.kids[0], c);
      ++count;
      switch (n.reduction) {
        case Reduction::Prod: out = rounded(shaken(out) * shaken(x)); break;
        case Reduction::Max:
        case Reduction::Min: {
          if (nan) break;
          if (count > 1) gap(x.value(), out.value(), is_data(n.kids[0]));
          nan = std::isnan(x.value());
          bool wins =
              nan || count == 1 ||
              (n.reduction == Reduction::Max ? x.value() > out.value() : x.value() < out.value());
          decided(wins);
          if (wins) out = x;
          break;
        }
        default: out = rounded(out + x);
      }
    });
    if (n.reduction == Reduction::Mean) {
      if (count == 0) not_finite();
      out = count == 0 ? Num(std::numeric_limits<Real>::quiet_NaN())
                       : rounded(scaled(out, 1 / static_cast<Real>(count)));
    }
    return out;
  }

  // The first winner's address, −1 where there is none.
  int64_t select(const Node& n, Context& c) {
    int64_t best = -1;
    Real value = 0;
    bool any = false;
    over(n, 0, c, [&] {
      Real x = number(n.kids[0], c).value();
      if (any) gap(x, value, is_data(n.kids[0]));
      bool wins =
          !any || (!std::isnan(value) &&
                   (std::isnan(x) || (n.reduction == Reduction::ArgMax ? x > value : x < value)));
      decided(wins);
      if (!wins) return;
      any = true;
      best = env_[static_cast<size_t>(n.vars[0])];
      value = x;
    });
    return best;
  }

  int64_t integer(const Node& n, Context& c) {
    switch (n.kind) {
      case Kind::Integer: return static_cast<int64_t>(n.value);
      case Kind::Variable: return env_[static_cast<size_t>(n.id)];
      case Kind::Extent: return p_.extents[static_cast<size_t>(n.id)].size;
      case Kind::Plus: return integer(n.kids[0], c) + integer(n.kids[1], c);
      case Kind::Minus: return integer(n.kids[0], c) - integer(n.kids[1], c);
      case Kind::Times: return integer(n.kids[0], c) * integer(n.kids[1], c);
      case Kind::Modulo: {
        int64_t a = integer(n.kids[0], c), b = integer(n.kids[1], c);
        if (b == 0) throw Wrong("modulo zero");
        return a % b;
      }
      case Kind::BitAnd: return integer(n.kids[0], c) & integer(n.kids[1], c);
      case Kind::BitOr: return integer(n.kids[0], c) | integer(n.kids[1], c);
      case Kind::BitXor: return integer(n.kids[0], c) ^ integer(n.kids[1], c);
      case Kind::ShiftRight: return integer(n.kids[0], c) >> integer(n.kids[1], c);
      case Kind::Read: return int_cell(n.id, address(n, 0, c), c);
      case Kind::Reduce: return select(n, c);
      case Kind::Shown: return integer(n.kids[0], c);
      default: throw Wrong("not an integer");
    }
  }

  bool holds(const Node& n, Context& c) {
    switch (n.kind) {
      case Kind::And: return holds(n.kids[0], c) && holds(n.kids[1], c);
      case Kind::Or: return holds(n.kids[0], c) || holds(n.kids[1], c);
      case Kind::Not: return !holds(n.kids[0], c);
      case Kind::Read: return int_cell(n.id, address(n, 0, c), c) != 0;
      default: break;
    }
    if (n.type != Type::Float) {
      int64_t a = integer(n.kids[0], c), b = integer(n.kids[1], c);
      return compare(n.kind, a, b);
    }
    Real a = number(n.kids[0], c).value(), b = number(n.kids[1], c).value();
    gap(a, b, is_data(n.kids[0]) && is_data(n.kids[1]));
    bool out = compare(n.kind, a, b);
    decided(out);
    return out;
  }
  template <class T>
  static bool compare(Kind k, T a, T b) {
    switch (k) {
      case Kind::Less: return a < b;
      case Kind::LessEqual: return a <= b;
      case Kind::Equal: return a == b;
      case Kind::Unequal: return a != b;
      case Kind::Greater: return a > b;
      case Kind::GreaterEqual: return a >= b;
      default: throw Wrong("not a condition");
    }
  }

  const Program& p_;
  Noise noise_;
  uint64_t most_;
  Answer& out_;
  std::vector<int64_t> env_;
  std::vector<std::vector<bool>> depends_;
  std::vector<bool> recurs_;
  std::vector<std::vector<int64_t>> shapes_;  // by definition
  std::vector<std::vector<Num>> params_;
  int current_ = -1;  // the definition whose cell is being computed
  uint64_t rng_;
};

int64_t constant(const Program& p, const Node& n) {
  switch (n.kind) {
    case Kind::Integer: return static_cast<int64_t>(n.value);
    case Kind::Extent: return p.extents[static_cast<size_t>(n.id)].size;
    case Kind::Plus: return constant(p, n.kids[0]) + constant(p, n.kids[1]);
    case Kind::Minus: return constant(p, n.kids[0]) - constant(p, n.kids[1]);
    default: return 0;
  }
}

}  // namespace

std::vector<int64_t> shape_of(const Program& p, int def) {
  std::vector<int64_t> out;
  for (const Node& e : p.defs[static_cast<size_t>(def)].extents) out.push_back(constant(p, e));
  return out;
}

Answer evaluate(const Program& p, const Noise& noise, uint64_t most_operations) {
  Answer out;
  try {
    Evaluator(p, noise, most_operations, out).run();
  } catch (const Wrong& w) { out.wrong = w.what(); }
  return out;
}

}  // namespace oracle

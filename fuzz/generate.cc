#include "generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <random>

namespace ein::fuzz {
namespace {

// An extent. Two extents with the same token are equal, and the compiler can see that.
struct Extent {
  int token;
  int64_t size;
};

struct Value {
  std::string name;
  std::vector<Extent> coords;
};

struct Index {
  std::string name;
  Extent extent;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : rng_(seed) {}

  Generated run() {
    inputs();
    if (chance(40)) recursive();
    int statements = pick(2, 6);
    for (int k = 0; k < statements; ++k) statement();
    loss();
    return std::move(out_);
  }

 private:
  int pick(int lo,
           int hi) {  // inclusive; not std::uniform_int_distribution, which varies by library
    return lo + static_cast<int>(rng_() % static_cast<uint64_t>(hi - lo + 1));
  }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  double real(double lo, double hi) {
    return lo + (hi - lo) * static_cast<double>(rng_() >> 11) * 0x1p-53;
  }
  template <class T>
  const T& any(const std::vector<T>& v) {
    return v[static_cast<size_t>(pick(0, static_cast<int>(v.size()) - 1))];
  }
  std::string fresh(const char* base) { return fmt::format("{}{}", base, counter_++); }
  Extent new_extent(int64_t size) { return {counter_++, size}; }
  std::string literal() { return fmt::format("{:.3f}", real(-1.5, 1.5)); }

  void line(const std::string& s) { out_.source += s + "\n"; }

  // ---- inputs ----------------------------------------------------------------------------------

  void inputs() {
    int extents = pick(1, 3);
    for (int k = 0; k < extents; ++k) {
      named_.push_back(new_extent(pick(2, 5)));
      extent_names_.push_back(fmt::format("n{}", k));
    }
    int count = pick(2, 4);
    for (int k = 0; k < count; ++k) {
      Value v{fmt::format("x{}", k), {}};
      // The first inputs introduce every extent.
      if (k < extents) v.coords.push_back(named_[static_cast<size_t>(k)]);
      int more = pick(0, k == 0 ? 1 : 2);
      for (int r = 0; r < more && v.coords.size() < 3; ++r) v.coords.push_back(any(named_));
      declare(v, DType::F64, [&] { return real(-1.2, 1.2); });
      values_.push_back(v);
      out_.differentiable.push_back(v.name);
    }
    for (int k = count; k < extents; ++k) {
      Value v{fmt::format("x{}", k), {named_[static_cast<size_t>(k)]}};
      declare(v, DType::F64, [&] { return real(-1.2, 1.2); });
      values_.push_back(v);
      out_.differentiable.push_back(v.name);
    }
    if (chance(50)) {
      mask_ = Value{"mask", {any(named_)}};
      declare(mask_, DType::Bool, [&] { return static_cast<double>(chance(60)); });
    }
    if (chance(60)) {
      target_ = any(named_);
      idx_ = Value{"idx", {any(named_)}};
      declare(idx_, DType::I32,
              [&] { return static_cast<double>(pick(0, static_cast<int>(target_.size) - 1)); });
    }
  }

  std::string extent_text(const Extent& e) {
    for (size_t k = 0; k < named_.size(); ++k) {
      if (named_[k].token == e.token) return extent_names_[k];
    }
    return std::to_string(e.size);
  }

  void declare(const Value& v, DType type, const std::function<double()>& cell) {
    std::vector<std::string> dims;
    std::vector<int64_t> shape;
    for (const Extent& e : v.coords) {
      dims.push_back(extent_text(e));
      shape.push_back(e.size);
    }
    Tensor t(type, shape);
    for (int64_t i = 0; i < t.size(); ++i) {
      double c = cell();
      if (type == DType::F64) {
        t.set_float(i, c);
      } else {
        t.set_int(i, static_cast<int64_t>(c));
      }
    }
    out_.inputs[v.name] = t;
    if (dims.empty()) {
      line(fmt::format("let {}: {};", v.name, name_of(type)));
    } else {
      line(fmt::format("let {}: [{}; {}];", v.name, name_of(type), fmt::join(dims, ", ")));
    }
  }

  // ---- expressions -----------------------------------------------------------------------------

  const Index* index_over(const std::vector<Index>& scope, const Extent& e) {
    std::vector<const Index*> fits;
    for (const Index& i : scope) {
      if (i.extent.token == e.token) fits.push_back(&i);
    }
    return fits.empty() ? nullptr : any(fits);
  }

  // A read of some value whose coordinates all have an index in scope (or a gathered, constant or
  // argmax address); empty when none fits.
  std::string read(const std::vector<Index>& scope) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      const Value& v = any(values_);
      std::vector<std::string> at;
      bool ok = true;
      for (const Extent& e : v.coords) {
        const Index* i = index_over(scope, e);
        bool gathers = !idx_.name.empty() && e.token == target_.token;
        const Index* k = gathers ? index_over(scope, idx_.coords[0]) : nullptr;
        if (k && (!i || chance(30))) {
          at.push_back(fmt::format("idx[{}]", k->name));
        } else if (i && !chance(4)) {
          at.push_back(i->name);
        } else if (chance(15)) {
          at.push_back(std::to_string(pick(0, e.size > 1 ? 1 : 0)));
        } else {
          ok = false;
          break;
        }
      }
      if (ok) return at.empty() ? v.name : fmt::format("{}[{}]", v.name, fmt::join(at, ", "));
    }
    return "";
  }

  std::string condition(const std::vector<Index>& scope) {
    if (!mask_.name.empty() && chance(50)) {
      if (const Index* i = index_over(scope, mask_.coords[0]))
        return fmt::format("mask[{}]", i->name);
    }
    if (!scope.empty() && chance(50)) {
      const Index& i = any(scope);
      return fmt::format("{} {} {}", i.name, chance(50) ? ">" : "!=", pick(0, 1));
    }
    std::string a = read(scope);
    if (a.empty()) return "";
    return fmt::format("{} > {}", a, literal());
  }

  std::string expr(const std::vector<Index>& scope, int depth) {
    if (depth <= 0 || chance(15)) {
      std::string r = read(scope);
      if (!scope.empty() && chance(4)) {
        return fmt::format("({}({}, {}) as f64)", chance(50) ? "uniform" : "normal", pick(0, 9),
                           any(scope).name);
      }
      if (!scope.empty() && chance(5)) return bits(scope);
      return r.empty() || chance(12) ? literal() : r;
    }
    auto sub = [&] { return expr(scope, depth - 1); };
    switch (pick(0, 20)) {
      case 0:
      case 1: return fmt::format("({} + {})", sub(), sub());
      case 2: return fmt::format("({} - {})", sub(), sub());
      case 3:
      case 4:
      case 5: return fmt::format("({} * {})", sub(), sub());
      case 6: return fmt::format("tanh({})", sub());
      case 7: return fmt::format("sin({})", sub());
      case 8: return fmt::format("({} / (({}) ** 2.0 + 1.5))", sub(), sub());
      case 9: return fmt::format("exp(-(({}) ** 2.0))", sub());
      case 10: return fmt::format("sqrt(({}) ** 2.0 + 0.5)", sub());
      case 11: return fmt::format("(-{})", sub());
      case 12: {
        std::string c = condition(scope);
        if (c.empty()) return sub();
        return fmt::format("(if {} {{ {} }} else {{ {} }})", c, sub(), sub());
      }
      case 13: return reduction(scope, depth - 1);
      case 14:
        return chance(50) ? fmt::format("max({}, {})", sub(), sub())
                          : fmt::format("abs({})", sub());
      case 15: return fmt::format("(|p| p * {} + {})({})", sub(), literal(), sub());
      case 16: {
        std::string c = condition(scope);
        if (c.empty() || chance(50)) {
          return fmt::format("(match {} {{ p if p > {} => p * {}, p => {} - p }})", sub(),
                             literal(), sub(), sub());
        }
        return fmt::format("(match ({}, {}) {{ (true, 0) => {}, (true, _) => {}, _ => {} }})", c,
                           scope.empty() ? "1" : any(scope).name, sub(), sub(), sub());
      }
      case 17: return fmt::format("({}, {}).{}", sub(), sub(), pick(0, 1));
      case 18:
        if (recursive_.empty()) return sub();
        return fmt::format("{}({}, {}, {})", recursive_, sub(), sub(),
                           scope.empty() || chance(50) ? "2" : any(scope).name);
      case 19: return recurrence_inside(scope, depth - 1);
      default: return fmt::format("log(({}) ** 2.0 + 1.0)", sub());
    }
  }

  // An integer made of the bits of an index or of data; small, because it enters sums.
  std::string bits(const std::vector<Index>& scope) {
    std::string a = any(scope).name, b = std::to_string(pick(0, 7));
    const Index* k = idx_.name.empty() ? nullptr : index_over(scope, idx_.coords[0]);
    if (k && chance(50)) a = fmt::format("idx[{}]", k->name);
    static const char* ops[] = {"&", "|", "^"};
    std::string mixed = fmt::format("{} {} {}", a, ops[pick(0, 2)], b);
    if (chance(30)) mixed = fmt::format("~({})", mixed);
    if (chance(30)) mixed = fmt::format("{} {} {}", mixed, chance(50) ? "<<" : ">>", pick(0, 2));
    return fmt::format("(0.1 * (({}) as f64))", mixed);
  }

  // A recurrence, or a local with two clauses, that depends on the reduced index.
  std::string recurrence_inside(const std::vector<Index>& scope, int depth) {
    if (scope.size() > 4) return literal();
    Index r{fresh("r"), any(named_)};
    std::vector<Index> inner = scope;
    inner.push_back(r);
    std::string h = fresh("h"), t = fresh("t"), first = expr(inner, depth - 1);
    std::string next = chance(70) ? fmt::format("tanh({} * {}[{} - 1] + {})", literal(), h, t,
                                                expr(inner, depth - 1))
                                  : expr(inner, depth - 1);
    return fmt::format(
        "sum[{} in 0..{}]({{ let {}[0]: f64 = {}; let {}[{} in 1..3] = {}; {}[2] * {}[1] * {} }})",
        r.name, extent_text(r.extent), h, first, h, t, next, h, h, grounding(r, inner));
  }

  void recursive() {
    recursive_ = fresh("rec");
    line(
        fmt::format("fn {}(a: f64, b: f64, n: i32) -> f64 {{ if n <= 0 {{ a * b + {} }} else {{ "
                    "let c = {}(b, tanh(a * {}), n - 1); c * {} + {} }} }}",
                    recursive_, literal(), recursive_, literal(), chance(50) ? "c" : "sin(a)",
                    chance(50) ? "b" : "exp(-(c ** 2.0))"));
  }

  std::string reduction(const std::vector<Index>& scope, int depth) {
    std::vector<Index> inner = scope;
    std::vector<std::string> names;
    int count = chance(25) ? 2 : 1;
    for (int k = 0; k < count; ++k) {
      Index i{fresh("r"), any(named_)};
      names.push_back(i.name);
      inner.push_back(i);
    }
    // Every binder is grounded by a read of its own; the rest of the body may be anything.
    std::string body;
    for (int k = 0; k < count; ++k) {
      const Index& i = inner[scope.size() + static_cast<size_t>(k)];
      std::string ground = grounding(i, inner);
      body = body.empty() ? ground : fmt::format("{} * {}", body, ground);
    }
    if (chance(60))
      body = fmt::format("{} {} {}", body, chance(50) ? "*" : "+", expr(inner, depth));
    const char* op = "sum";
    int kind = pick(0, 9);
    if (kind >= 6) op = "mean";
    if (kind >= 8) op = "max";
    if (kind == 9) op = chance(50) ? "min" : "prod";
    if (std::string(op) == "prod") body = fmt::format("tanh({})", body);  // keeps the product small
    std::string where;
    if (chance(25) &&
        (std::string(op) == "sum" || std::string(op) == "prod")) {  // an empty max is −inf
      std::string c = condition(inner);
      if (!c.empty()) where = " where " + c;
    }
    return fmt::format("{}[{}]({}{})", op, fmt::join(names, ", "), body, where);
  }

  // A read of an input that has this extent, at this index, other coordinates at any legal address.
  std::string grounding(const Index& i, const std::vector<Index>& scope) {
    std::vector<std::pair<const Value*, size_t>> fits;
    for (const Value& v : values_) {
      for (size_t k = 0; k < v.coords.size(); ++k) {
        if (v.coords[k].token == i.extent.token) fits.push_back({&v, k});
      }
    }
    auto [v, position] = any(fits);
    std::vector<std::string> at;
    for (size_t k = 0; k < v->coords.size(); ++k) {
      const Index* other = index_over(scope, v->coords[k]);
      at.push_back(k == position ? i.name : other && chance(80) ? other->name : "0");
    }
    return fmt::format("{}[{}]", v->name, fmt::join(at, ", "));
  }

  // ---- statements ------------------------------------------------------------------------------

  void add(Value v) {
    out_.values.push_back(v.name);
    values_.push_back(std::move(v));
  }

  std::vector<Index> left_side(int lo, int hi) {
    std::vector<Index> scope;
    int rank = pick(lo, hi);
    for (int k = 0; k < rank; ++k) scope.push_back({fmt::format("i{}", k), any(named_)});
    return scope;
  }

  std::string slots(const std::vector<Index>& scope) {
    std::vector<std::string> parts;
    for (const Index& i : scope) {
      parts.push_back(fmt::format("{} in 0..{}", i.name, extent_text(i.extent)));
    }
    return parts.empty() ? "" : fmt::format("[{}]", fmt::join(parts, ", "));
  }

  std::vector<Extent> extents(const std::vector<Index>& scope) {
    std::vector<Extent> out;
    for (const Index& i : scope) out.push_back(i.extent);
    return out;
  }

  void statement() {
    switch (pick(0, 15)) {
      case 0:
      case 1:
      case 2: return pointwise();
      case 3:
      case 4: return contraction();
      case 5: return stencil();
      case 6: return recurrence();
      case 7: return coupled();
      case 8: return function();
      case 9:
      case 10: return coordinates();
      case 11: return filter();
      case 12: return layer();
      case 13: return record();
      case 14: return scores();
      default: return selection();
    }
  }

  void pointwise() {
    std::vector<Index> scope = left_side(0, 2);
    std::string name = fresh("v"), where;
    if (chance(30)) {
      std::string c = condition(scope);
      if (!c.empty()) where = " where " + c + (chance(30) ? " else " + literal() : "");
    }
    line(fmt::format("let {}{}: f64 = {}{};", name, slots(scope), expr(scope, 3), where));
    add({name, extents(scope)});
  }

  // Inferred ranges: every index stands alone in some slot.
  void contraction() {
    std::vector<Index> scope = left_side(0, 2);
    Index k{fresh("k"), any(named_)};
    std::vector<Index> inner = scope;
    inner.push_back(k);
    std::string name = fresh("v"), body = grounding(k, inner);
    std::vector<std::string> left;
    for (const Index& i : scope) {
      left.push_back(i.name);
      body += " * " + grounding(i, inner);
    }
    for (int more = pick(0, 2); more > 0; --more) body += " * " + grounding(k, inner);
    const char* op = chance(70) ? "sum" : "mean";
    line(fmt::format("let {}{} = {}[{}]({});", name,
                     left.empty() ? "" : fmt::format("[{}]", fmt::join(left, ", ")), op, k.name,
                     body));
    add({name, extents(scope)});
  }

  // Products by rows, something between them, and products that consume them: programs that run in
  // bands.
  void scores() {
    std::vector<Index> front;
    if (chance(80)) front.push_back({"f", any(named_)});
    Index r{"r", any(named_)}, d{"d", any(named_)}, s{"s", chance(70) ? r.extent : any(named_)};
    auto with = [&](std::vector<Index> more) {
      more.insert(more.begin(), front.begin(), front.end());
      return more;
    };
    auto at = [&](const std::string& name, const std::vector<Index>& scope) {
      std::vector<std::string> parts;
      for (const Index& i : scope) parts.push_back(i.name);
      return fmt::format("{}[{}]", name, fmt::join(parts, ", "));
    };
    auto array = [&](const std::vector<Index>& scope, const std::string& body) {
      std::string name = fresh("v");
      line(fmt::format("let {}{}: f64 = {};", name, slots(scope), body));
      return at(name, scope);
    };
    auto operand = [&](const std::vector<Index>& scope) {
      return array(scope, fmt::format("tanh({})", expr(scope, 1)));
    };
    bool gated = chance(50);
    auto where = [&] { return gated && chance(50) ? " where s <= r" : ""; };
    std::string a = operand(with({r, d})), b = operand(with({s, d})), c = operand(with({s, d}));
    std::string x =
        array(with({r, s}), fmt::format("sum[d in 0..{}]({} * {})", extent_text(d.extent), a, b));
    std::string e = chance(50) ? fmt::format("exp(0.3 * tanh({}))", x) : fmt::format("sin({})", x);
    e = array(with({r, s}), gated ? fmt::format("if s <= r {{ {} }} else {{ 0.0 }}", e) : e);
    std::string columns = extent_text(s.extent);
    if (chance(60)) {
      std::string total =
          array(with({r}), fmt::format("1.5 + sum[s in 0..{}]({} ** 2.0{})", columns, e, where()));
      e = array(with({r, s}), fmt::format("{} / {}", e, total));
    }
    auto result = [&](const std::vector<Index>& scope, const std::string& body) {
      std::string name = fresh("v");
      line(fmt::format("let {}{}: f64 = {};", name, slots(scope), body));
      add({name, extents(scope)});
    };
    result(with({r, d}), fmt::format("sum[s in 0..{}]({} * {}{})", columns, e, c, where()));
    if (chance(50)) {
      result(with({s, d}),
             fmt::format("sum[r in 0..{}]({} * {}{})", extent_text(r.extent), e, a, where()));
    }
  }

  // x[s·i + k] · w[k]: valid, strided, or padded by a gate.
  void stencil() {
    std::vector<const Value*> signals;
    for (const Value& v : values_) {
      if (v.coords.size() == 1 && v.coords[0].size >= 2) signals.push_back(&v);
    }
    if (signals.empty()) return pointwise();
    const Value x = *any(signals);
    std::string name = fresh("v");
    int64_t n = x.coords[0].size;
    int taps = pick(2, 3), stride = pick(1, 2), pad = pick(0, 1);
    std::string w = fresh("w");
    std::vector<std::string> cells;
    for (int k = 0; k < taps; ++k) cells.push_back(literal());
    line(fmt::format("let {}: [f64; {}] = [{}];", w, taps, fmt::join(cells, ", ")));
    if (n >= taps && chance(60) && is_named(x.coords[0])) {
      // The extent is inferred: the largest box in which every read is in bounds.
      line(fmt::format("let {}[o] = sum[k]({}[{} * o + k] * {}[k]);", name, x.name, stride, w));
      add({name, {new_extent((n - taps) / stride + 1)}});
      return;
    }
    line(fmt::format(
        "let {}[o in 0..{}] = sum[k]({}[p] * {}[k]) where p = {} * o + k - {}, p >= 0, p < {};",
        name, 3, x.name, w, stride, pad, extent_of(x)));
    add({name, {new_extent(3)}});
  }

  bool is_named(const Extent& e) {
    return std::any_of(named_.begin(), named_.end(),
                       [&](const Extent& n) { return n.token == e.token; });
  }
  std::string extent_of(const Value& v) { return fmt::format("extent({}, 0)", v.name); }

  void recurrence() {
    std::string h = fresh("h");
    std::vector<Index> rest = left_side(0, 1);
    int steps = pick(2, 5);
    bool down = chance(25);
    std::string tail =
        rest.empty() ? "" : fmt::format(", {} in 0..{}", rest[0].name, extent_text(rest[0].extent));
    std::string read_tail = rest.empty() ? "" : ", " + rest[0].name;
    bool gathers = !rest.empty() && !idx_.name.empty() && rest[0].extent.token == target_.token &&
                   idx_.coords[0].token == target_.token;
    if (gathers && chance(60)) read_tail = fmt::format(", idx[{}]", rest[0].name);
    line(fmt::format("let {}[{}{}]: f64 = {};", h, down ? steps - 1 : 0, tail, expr(rest, 1)));
    std::string range = down ? fmt::format("0..{}", steps - 1) : fmt::format("1..{}", steps);
    std::string step = fmt::format("tanh({} * {}[t {} 1{}] + {})", literal(), h, down ? "+" : "-",
                                   read_tail, expr(rest, 2));
    std::string seen = fmt::format("{}[t{}]", h, rest.empty() ? "" : ", " + rest[0].name);
    if (chance(35)) {
      // A block with a local in the step.
      std::string u = fresh("u");
      step = fmt::format("{{ let {} = {}; sin({}) + 0.3 * {} }}", u, step, u, u);
      if (chance(50)) seen = u;
    }
    if (!rest.empty() && chance(50)) {  // one condition for all cells
      seen = fmt::format("max[k in 0..{}]({}[t, k])", extent_text(rest[0].extent), h);
    }
    std::string until = chance(40) ? fmt::format(" until {} > {}", seen, literal()) : "";
    line(fmt::format("let {}[t in {}{}] = {}{};", h, range, tail, step, until));
    std::vector<Extent> coords{new_extent(steps)};
    for (const Index& i : rest) coords.push_back(i.extent);
    add({h, coords});
  }

  // Records, and recurrences whose steps are records.
  void record() {
    std::string r = fresh("q");
    if (chance(40)) {
      std::vector<Index> scope = left_side(1, 1);
      std::string w = fresh("v");
      line(fmt::format("let {}{}: f64 = {};", w, slots(scope), expr(scope, 2)));
      line(fmt::format("let {}: {{ a: f64, b: {{ c: [f64; ?] }} }} = {{ b: {{ c: {} }}, a: {} }};",
                       r, w, expr({}, 2)));
      add({r + ".a", {}});
      add({r + ".b.c", extents(scope)});
      return;
    }
    int steps = pick(2, 5);
    line(fmt::format("let {}[0]: {{ a: f64, b: f64 }} = {{ a: {}, b: {} }};", r, expr({}, 1),
                     expr({}, 1)));
    std::string step =
        chance(40)
            ? fmt::format("each({}[t - 1], |w| tanh(w * {} + {}))", r, literal(), expr({}, 1))
            : fmt::format(
                  "{{ let p = {}[t - 1]; {{ b: 0.8 * p.b + {} * p.a, a: tanh(p.b + {}) }} }}", r,
                  literal(), expr({}, 1));
    line(fmt::format("let {}[t in 1..{}] = {};", r, steps, step));
    Extent e = new_extent(steps);
    add({r + ".a", {e}});
    add({r + ".b", {e}});
  }

  void coupled() {
    std::string a = fresh("a"), b = fresh("b");
    int steps = pick(2, 5);
    line(fmt::format("let {}[0]: f64 = {};", a, expr({}, 1)));
    line(fmt::format("let {}[0]: f64 = {};", b, expr({}, 1)));
    // One condition may end both.
    std::string until = fmt::format(" until {}[t] > {}", chance(50) ? a : b, literal());
    int ends = chance(40) ? pick(0, 1) : -1;
    line(fmt::format("let {}[t in 1..{}] = tanh({} * {}[t - 1] + {}[t - 1] * {}){};", a, steps,
                     literal(), a, b, expr({}, 1), ends == 0 ? until : ""));
    line(fmt::format("let {}[t in 1..{}] = 0.8 * {}[t - 1] + {} * {}{};", b, steps, b,
                     chance(50) ? a + "[t]" : a + "[t - 1]", expr({}, 1), ends == 1 ? until : ""));
    Extent e = new_extent(steps);
    add({a, {e}});
    add({b, {e}});
  }

  // A filter with a small state: products of several factors over few cells, recurrences along the
  // same steps of which one reads the other, and sums over those steps. The state stays small:
  // otherwise the two sides would differ by accumulated rounding.
  void filter() {
    std::string F = fresh("f"), P = fresh("p"), x = fresh("s"), v = fresh("v");
    Extent steps = any(named_);
    std::string n = extent_text(steps);
    int size = pick(2, 3);
    line(fmt::format(
        "let {}[i in 0..{}, j in 0..{}]: f64 = if i == j {{ 0.4 }} else {{ 0.1 * sin({}) }};", F,
        size, size, expr({}, 1)));
    line(fmt::format(
        "let {}[0, i in 0..{}, j in 0..{}]: f64 = if i == j {{ {} }} else {{ tanh({}) }};", P, size,
        size, literal(), expr({}, 1)));
    line(fmt::format(
        "let {0}[t in 1..{1}, i in 0..{2}, j in 0..{2}] = sum[k in 0..{2}, l in 0..{2}]("
        "{3}[i, k] * ({0}[t - 1, k, l] - {4} * {0}[t - 1, k, 0]) * {3}[j, l]) + {5};",
        P, n, size, F, literal(), literal()));
    line(fmt::format("let {}[0, i in 0..{}]: f64 = {};", x, size, literal()));
    line(fmt::format(
        "let {0}[t in 1..{1}, i in 0..{2}] = tanh(sum[k in 0..{2}]({3}[i, k] * {0}[t - 1, k] * "
        "{4}[t{5}, k, {6}]));",
        x, n, size, F, P, chance(50) ? "" : " - 1", pick(0, 1)));
    line(fmt::format("let {} = sum[t in {}..{}, i in 0..{}]({}[t, i] * {}[t{}, i, {}] * {});", v, 1,
                     n, size, x, P, chance(50) ? "" : " - 1", chance(50) ? "i" : "0", expr({}, 1)));
    add({P, {new_extent(steps.size), new_extent(size), new_extent(size)}});
    add({x, {new_extent(steps.size), new_extent(size)}});
    add({v, {}});
  }

  // A recurrent layer: every step multiplies the states of a batch by the same weights.
  void layer() {
    std::string w = fresh("w"), h = fresh("h");
    std::vector<Index> cell{{"i", any(named_)}, {"j", any(named_)}};
    cell[1].extent = cell[0].extent;
    std::vector<Index> state{{"i", any(named_)}, {"j", cell[0].extent}};
    line(fmt::format("let {}{}: f64 = 0.4 * sin({});", w, slots(cell), expr(cell, 1)));
    std::string rest = fmt::format("i in 0..{}, j in 0..{}", extent_text(state[0].extent),
                                   extent_text(state[1].extent));
    Extent steps = any(named_);
    line(fmt::format("let {}[0, {}]: f64 = {};", h, rest, expr(state, 1)));
    line(fmt::format(
        "let {0}[t in 1..{1}, {2}] = tanh(sum[k in 0..{3}]({0}[t - 1, i, k] * {4}[{5}]) + {6});", h,
        extent_text(steps), rest, extent_text(state[1].extent), w, chance(50) ? "j, k" : "k, j",
        expr(state, 1)));
    add({h, {new_extent(steps.size), state[0].extent, state[1].extent}});
  }

  void function() {
    std::string f = fresh("f"), name = fresh("v");
    std::vector<Index> scope = left_side(0, 2);
    line(fmt::format("fn {}(p, q, r = {}) {{ if p > q {{ p * r }} else {{ sin(q) + p }} }}", f,
                     literal()));
    std::vector<std::string> given{expr(scope, 1), expr(scope, 1)};
    if (chance(40)) given.push_back(expr(scope, 1));
    // Some arguments by position, then the others by name, in any order.
    auto named = static_cast<size_t>(chance(40) ? pick(0, static_cast<int>(given.size())) : 3);
    for (size_t k = named; k < given.size(); ++k)
      given[k] = fmt::format("{} = {}", "pqr"[k], given[k]);
    if (named + 1 < given.size() && chance(50))
      std::reverse(given.begin() + static_cast<ptrdiff_t>(named), given.end());
    line(fmt::format("let {}{}: f64 = {}({});", name, slots(scope), f, fmt::join(given, ", ")));
    add({name, extents(scope)});
  }

  // A function over a coordinate of a value of any rank, or a pack in a statement.
  void coordinates() {
    std::vector<const Value*> tensors;
    for (const Value& v : values_) {
      if (!v.coords.empty()) tensors.push_back(&v);
    }
    const Value x = *any(tensors);
    std::string name = fresh("v");
    std::vector<std::string> at;
    for (size_t k = 0; k < x.coords.size(); ++k) at.push_back(fmt::format("i{}", k));
    if (chance(20)) {
      line(fmt::format("let {}[..p, i] = {}[..p, i] * {};", name, x.name, literal()));
      add({name, x.coords});
      return;
    }
    auto along = static_cast<size_t>(pick(0, static_cast<int>(x.coords.size()) - 1));
    std::string read = fmt::format("{}[{}]", x.name, fmt::join(at, ", "));
    std::string argument = chance(40) ? fmt::format("sin({}) * {}", read, literal()) : read;
    if (chance(40)) {
      define("norm",
             "fn norm[c](x: [f64; ..l, c, ..r], s: [f64; c]) -> [f64; ..l, c, ..r] {"
             " let m[..l, ..r] = mean[c](x[..l, c, ..r]);"
             " let d[..l, c, ..r] = x[..l, c, ..r] - m[..l, ..r];"
             " d[..l, c, ..r] / sqrt(mean[c](d[..l, c, ..r] ** 2.0) + 0.5) * s[c] }");
      std::vector<std::string> rest = at;
      for (size_t k = 0; k < at.size(); ++k) {
        if (k != along) rest[k] = "0";
      }
      line(fmt::format("let {0}[{1}] = norm[{2}]({3}, {4}[{5}]);", name, fmt::join(at, ", "),
                       at[along], argument, x.name, fmt::join(rest, ", ")));
      add({name, x.coords});
      return;
    }
    define("soft",
           "fn soft[c](x: [f64; ..l, c, ..r]) -> [f64; ..l, c, ..r] {"
           " let m[..l, ..r] = max[c](x[..l, c, ..r]);"
           " let e[..l, c, ..r] = exp(x[..l, c, ..r] - m[..l, ..r]);"
           " e[..l, c, ..r] / sum[k](e[..l, k, ..r]) }");
    std::string where;
    if (chance(40))
      where = fmt::format(" where {} > {}", chance(50) ? at[along] : read, pick(-1, 0));
    std::vector<Extent> coords = x.coords;
    std::vector<std::string> left = at;
    if (chance(30)) {
      std::reverse(left.begin(), left.end());
      std::reverse(coords.begin(), coords.end());
    }
    if (where.find(read) != std::string::npos) where += ".0";
    line(fmt::format("let {}[{}] = soft[{}]({}){};", name, fmt::join(left, ", "), at[along],
                     argument, where));
    add({name, coords});
  }

  // A function that the program defines once.
  void define(const std::string& name, const std::string& text) {
    if (std::find(defined_.begin(), defined_.end(), name) != defined_.end()) return;
    defined_.push_back(name);
    line(text);
  }

  // argmax as an address. It only selects, so the gradient goes to the selected cell only.
  void selection() {
    std::vector<const Value*> rows;
    for (const Value& v : values_) {
      if (v.coords.size() == 1 && is_named(v.coords[0])) rows.push_back(&v);
    }
    if (rows.empty()) return pointwise();
    const Value x = *any(rows);
    std::string m = fresh("m"), name = fresh("v");
    line(fmt::format("let {} = argmax[k]({}[k]);", m, x.name));
    line(fmt::format("let {} = {}[{}] * {};", name, x.name, m, expr({}, 2)));
    add({name, {}});
  }

  void loss() {
    std::vector<std::string> terms;
    int left = 4;
    for (auto it = values_.rbegin(); it != values_.rend() && left > 0; ++it, --left) {
      std::vector<std::string> names;
      for (size_t k = 0; k < it->coords.size(); ++k) names.push_back(fmt::format("l{}", k));
      std::string r =
          names.empty() ? it->name : fmt::format("{}[{}]", it->name, fmt::join(names, ", "));
      std::string term = fmt::format("{} * sin({})", literal(), r);
      if (!names.empty()) term = fmt::format("sum[{}]({})", fmt::join(names, ", "), term);
      terms.push_back(term);
    }
    line(fmt::format("let loss: f64 = {};", fmt::join(terms, " + ")));
    out_.values.push_back("loss");
    for (const std::string& x : out_.differentiable) {
      line(fmt::format("let d_{} = @loss / @{};", x, x));
      out_.values.push_back("d_" + x);
    }
  }

  std::mt19937_64 rng_;
  Generated out_;
  int counter_ = 0;
  std::vector<std::string> defined_;
  std::vector<Extent> named_;
  std::vector<std::string> extent_names_;
  std::vector<Value> values_;
  std::string recursive_;  // the name of a recursive function
  Value mask_, idx_;
  Extent target_{-1, 0};
};

}  // namespace

Generated generate(uint64_t seed) { return Generator(seed).run(); }

}  // namespace ein::fuzz

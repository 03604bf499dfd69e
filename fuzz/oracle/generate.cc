#include "generate.h"

#include <algorithm>
#include <cmath>

#include "evaluate.h"
#include "generator.h"

namespace oracle {

const std::vector<std::string>& class_names() {
  static const std::vector<std::string> names = {"f64",
                                                 "f32",
                                                 "f16",
                                                 "bf16",
                                                 "sum",
                                                 "prod",
                                                 "mean",
                                                 "max",
                                                 "min",
                                                 "argmax",
                                                 "argmin",
                                                 "dependent range",
                                                 "gated reduction",
                                                 "empty range",
                                                 "negative start",
                                                 "negative winner",
                                                 "triangular",
                                                 "data-bounded range",
                                                 "clauses",
                                                 "symbolic boxes",
                                                 "overlapping clauses",
                                                 "gated clause",
                                                 "recurrence",
                                                 "one step",
                                                 "lookback 2",
                                                 "shifted sum",
                                                 "downward",
                                                 "history",
                                                 "parent pointers",
                                                 "two coordinates",
                                                 "mutual group",
                                                 "checkpoint",
                                                 "until",
                                                 "symbolic steps",
                                                 "training loop",
                                                 "meta step",
                                                 "constant local",
                                                 "gradient penalty",
                                                 "gather",
                                                 "gather of gather",
                                                 "guarded gather",
                                                 "guarded read",
                                                 "guarded value",
                                                 "match",
                                                 "choose",
                                                 "recursion",
                                                 "coordinate call",
                                                 "gated call",
                                                 "function",
                                                 "named argument",
                                                 "default argument",
                                                 "request in function",
                                                 "block",
                                                 "ties",
                                                 "huge sum",
                                                 "if",
                                                 "inferred range",
                                                 "selection",
                                                 "range to a winner",
                                                 "gated selection",
                                                 "whole value",
                                                 "gradient",
                                                 "Hessian",
                                                 "Hessian diagonal",
                                                 "Hessian vector",
                                                 "mixed",
                                                 "third",
                                                 "Jacobian",
                                                 "by an intermediate"};
  return names;
}

// A multiple of a power of two that the element types in use can represent.
double Generator::datum() {
  int steps = p_.dtype == "bf16" ? 32 : p_.dtype == "f16" ? 256 : 4096;
  return static_cast<double>(pick(-steps * 9 / 8, steps * 9 / 8)) / steps;
}
double Generator::coarse() {
  int steps = p_.dtype == "bf16" ? 16 : 64;
  int k = pick(-steps * 5 / 4, steps * 5 / 4);
  return static_cast<double>(k == 0 ? 1 : k) / steps;
}

int Generator::define(const std::string& name, Type type, const std::vector<int>& extents) {
  Definition d;
  d.name = name;
  d.type = type;
  for (int e : extents) d.extents.push_back(extent_node(e));
  p_.defs.push_back(d);
  p_.order.push_back(static_cast<int>(p_.defs.size()) - 1);
  return p_.order.back();
}

int Generator::local(const Scope& s, const std::string& name, const std::vector<int>& extents) {
  int id = define(name, Type::Float, extents);
  p_.order.pop_back();
  Definition& d = p_.defs.back();
  d.around = s.vars;
  d.blocks = s.blocks;
  return id;
}

Clause& Generator::clause(int def, const std::vector<Slot>& slots, Node body) {
  Definition& d = p_.defs[static_cast<size_t>(def)];
  Clause c;
  c.slots = slots;
  c.body = std::move(body);
  c.typed = d.clauses.empty() && d.type == Type::Float && d.blocks.empty();
  d.clauses.push_back(std::move(c));
  return d.clauses.back();
}

int Generator::input(const std::string& name, Type type, const std::vector<int>& extents,
                     const std::function<double()>& cell) {
  int id = define(name, type, extents);
  Definition& d = p_.defs.back();
  d.input = true;
  int64_t count = 1;
  for (int e : extents) count *= size(e);
  for (int64_t k = 0; k < count; ++k) d.data.push_back(cell());
  return id;
}

std::vector<Index> Generator::left(int least, int most) {
  std::vector<Index> out;
  for (int k = pick(least, most); k > 0; --k) out.push_back(new_index("i", some_extent()));
  return out;
}

std::vector<Index> Generator::indices_of(const Value& v, const char* base) {
  std::vector<Index> out;
  for (int e : v.extents) out.push_back(new_index(base, e));
  return out;
}

int64_t Generator::cells(int def) const {
  int64_t out = 1;
  for (const Node& e : p_.defs[static_cast<size_t>(def)].extents) out *= size(e.id);
  return out;
}

void Generator::inputs() {
  int types = pick(1, 100);
  p_.dtype = types <= 4 ? "bf16" : types <= 8 ? "f16" : types <= 30 ? "f32" : "f64";
  if (!allowed(p_.dtype.c_str())) p_.dtype = "f64";
  drew(p_.dtype.c_str());
  int extents = pick(1, 2);
  for (int k = 0; k < extents; ++k) {
    p_.extents.push_back({"n" + std::to_string(k), pick(1, 100) <= 12 ? 1 : pick(2, 4)});
    named_.push_back(k);
  }
  auto any_datum = [&] { return datum(); };
  bool in_record = chance(15) && allowed("record input");
  if (in_record) drew("record input");
  for (int k = 0; k < extents + 1; ++k) {
    std::vector<int> over;
    if (k < extents) over.push_back(named_[static_cast<size_t>(k)]);
    if (k < extents ? chance(25) : chance(40)) over.push_back(some_extent());
    std::string name = "x" + std::to_string(k);
    int id = input(in_record ? "given." + name : name, Type::Float, over, any_datum);
    add_value(id, over);
    by_.push_back(id);
  }
  if (chance(35)) {
    int over = some_extent();
    int id = input("tie", Type::Float, {over}, [&] { return pick(-2, 2) / 2.0; });
    coarse_.push_back({id, {over}});
    by_.push_back(id);
  }
  if (chance(40)) {
    int over = some_extent();
    masks_.push_back(
        {input("mask", Type::Bool, {over}, [&] { return chance(60) ? 1.0 : 0.0; }), over});
  }
  for (int k = pick(0, 2); k > 0; --k) {
    int over = some_extent(), target = some_extent();
    bool inside = chance(60);
    int n = static_cast<int>(size(target));
    int id = input(fresh("idx"), Type::Int, {over},
                   [&] { return static_cast<double>(inside ? pick(0, n - 1) : pick(-1, n)); });
    gathers_.push_back({id, over, target, inside});
  }
}

void Generator::statement() {
  struct Choice {
    int weight;
    void (Generator::*draw)();
  };
  static const Choice choices[] = {
      {14, &Generator::pointwise},
      {8, &Generator::contraction},
      {3, &Generator::whole_value},
      {12, &Generator::dependent},
      {5, &Generator::triangular},
      {6, &Generator::selection},
      {10, &Generator::clauses},
      {5, &Generator::rows},
      {6, &Generator::coordinate_call},
      {5, &Generator::scalar_call},
      {5, &Generator::ties},
      {3, &Generator::empty},
      {12, &Generator::recurrence},
      {5, &Generator::history},
      {4, &Generator::tree},
      {5, &Generator::grid},
      {5, &Generator::coupled},
      {7, &Generator::training},
      {4, &Generator::meta},
      {3, &Generator::constant_local},
      {3, &Generator::penalty},
  };
  int total = 0;
  for (const Choice& c : choices) total += c.weight;
  int at = pick(1, total);
  for (const Choice& c : choices) {
    at -= c.weight;
    if (at <= 0) return (this->*c.draw)();
  }
}

void Generator::loss() {
  Node sum;
  int left = pick(1, 3);
  for (size_t k = floats_.size(); k-- > 0 && left > 0; --left) {
    const Value v = floats_[k];
    std::vector<Index> at = indices_of(v, "l");
    Node term = multiply(constant(), call(Function::Sin, cell(v.def, at)));
    if (chance(25)) term = multiply(constant(), cell(v.def, at));
    if (!at.empty()) {
      std::vector<Binder> binders;
      for (const Index& i : at) binders.push_back({i.var, integer(0), extent_node(i.extent)});
      term = reduce(Reduction::Sum, binders, term);
    }
    sum = sum.kind == Kind::None ? term : add(sum, term);
  }
  loss_ = define("loss", Type::Float, {});
  clause(loss_, {}, sum);
}

void Generator::requests() {
  // The cost of one evaluation of the loss decides how many requests can be afforded.
  int64_t cost = static_cast<int64_t>(evaluate(p_, {}, 200000).operations) + 10;
  int64_t budget = 40000;
  std::map<int, int> gradients;
  for (int x : by_) {
    if (!gradients.empty() && chance(40)) continue;
    const Definition& d = p_.defs[static_cast<size_t>(x)];
    Value v{x, {}};
    for (const Node& e : d.extents) v.extents.push_back(e.id);
    if (budget < cells(x) * cost * 2 && !gradients.empty()) continue;
    budget -= cells(x) * cost * 2;
    std::vector<Index> at = indices_of(v, "g");
    std::vector<Node> address;
    for (const Index& i : at) address.push_back(variable(i.var));
    std::string name = d.name;
    std::replace(name.begin(), name.end(), '.', '_');  // of a part of a record
    int g = define("d_" + name, Type::Float, v.extents);
    Clause& c = clause(g, slots_of(at), request(whole(loss_, {}), x, address, true));
    c.trailing = static_cast<int>(at.size());
    c.typed = false;
    gradients[x] = g;
    drew("gradient");
  }
  second_order(budget / cost, gradients);
}

void Generator::second_order(int64_t evaluations, const std::map<int, int>& gradients) {
  auto value = [&](int def) {
    Value v{def, {}};
    for (const Node& e : p_.defs[static_cast<size_t>(def)].extents) v.extents.push_back(e.id);
    return v;
  };
  auto address = [&](const std::vector<Index>& at) {
    std::vector<Node> out;
    for (const Index& i : at) out.push_back(variable(i.var));
    return out;
  };
  auto define_whole = [&](const char* base, std::vector<Index> a, const std::vector<Index>& b,
                          Node body) {
    a.insert(a.end(), b.begin(), b.end());
    int id = define(fresh(base), Type::Float, extents_of(a));
    Clause& c = clause(id, slots_of(a), std::move(body));
    c.trailing = static_cast<int>(a.size());
    c.typed = false;
    return id;
  };
  std::vector<std::pair<int, int>> known(gradients.begin(), gradients.end());
  for (int tries = chance(65) ? 1 : 0; tries > 0; --tries) {
    const auto [x, g] = any(known);
    const auto [y, unused] = any(known);
    std::vector<Index> a = indices_of(value(x), "p"), b = indices_of(value(y), "q");
    int64_t nx = cells(x), ny = cells(y);
    switch (pick(0, 7)) {
      case 0:  // the whole Hessian, in one request of a request
        if (!allowed("Hessian") || nx * nx * 4 > evaluations) break;
        evaluations -= nx * nx * 4;
        b = indices_of(value(x), "q");
        define_whole("H", a, b,
                     request(request(whole(loss_, {}), x, address(a), true), x, address(b), true));
        drew("Hessian");
        break;
      case 1:
        if (!allowed("Hessian diagonal") || nx * 4 > evaluations || a.empty()) break;
        evaluations -= nx * 4;
        {
          int id = define(fresh("H"), Type::Float, extents_of(a));
          std::vector<Slot> slots = slots_of(a);
          clause(id, slots, request(cell(g, a), x, address(a), false)).typed = false;
        }
        drew("Hessian diagonal");
        break;
      case 2:
      case 3:
      case 4: {  // along a direction
        if (!allowed("Hessian vector") || nx * ny * 4 > evaluations) break;
        evaluations -= nx * ny * 4;
        int v = input(fresh("dir"), Type::Float, value(x).extents, [&] { return datum(); });
        // An input is declared before its readers, as people do.
        std::vector<Binder> binders;
        for (const Index& i : a) binders.push_back({i.var, integer(0), extent_node(i.extent)});
        Node dot = multiply(cell(g, a), cell(v, a));
        if (!a.empty()) dot = reduce(Reduction::Sum, binders, dot);
        int hv = define_whole("hv", b, {}, request(dot, y, address(b), true));
        drew("Hessian vector");
        if (nx * ny * ny * 8 > evaluations || !allowed("third") || chance(50)) break;
        evaluations -= nx * ny * ny * 8;
        std::vector<Index> c = indices_of(value(y), "r"), d = indices_of(value(y), "s");
        std::vector<Binder> over;
        for (const Index& i : c) over.push_back({i.var, integer(0), extent_node(i.extent)});
        Node square = call(Function::Square, cell(hv, c));
        if (!c.empty()) square = reduce(Reduction::Sum, over, square);
        define_whole("t", d, {}, request(square, y, address(d), true));
        drew("third");
        break;
      }
      case 5:
        if (!allowed("mixed") || nx * ny * 4 > evaluations) break;
        evaluations -= nx * ny * 4;
        define_whole("M", a, b, request(whole(g, address(a)), y, address(b), true));
        drew("mixed");
        break;
      default: {
        std::vector<Value> inner;
        for (const Value& v : floats_)
          if (!p_.defs[static_cast<size_t>(v.def)].input) inner.push_back(v);
        if (inner.empty()) break;
        const Value v = any(inner);
        int64_t nv = cells(v.def);
        std::vector<Index> c = indices_of(v, "v");
        if (chance(50)) {
          if (!allowed("Jacobian") || nv * nx > evaluations) break;
          evaluations -= nv * nx;
          if (chance(50)) {
            define_whole("J", c, a, request(whole(v.def, address(c)), x, address(a), true));
          } else {  // spelled, in any order of the coordinates
            std::vector<Index> all = c;
            all.insert(chance(50) ? all.begin() : all.end(), a.begin(), a.end());
            int id = define(fresh("J"), Type::Float, extents_of(all));
            clause(id, slots_of(all), request(cell(v.def, c), x, address(a), false)).typed = false;
          }
          drew("Jacobian");
        } else {
          if (!allowed("by an intermediate") || nv > evaluations) break;
          evaluations -= nv;
          define_whole("dv", c, {}, request(whole(loss_, {}), v.def, address(c), true));
          drew("by an intermediate");
        }
      }
    }
  }
}

Program Generator::run() {
  inputs();
  if (allowed("huge sum") && pick(1, 1000) == 1) huge();
  // Small programs: many small ones find more than few large ones, and compiling machine code takes
  // time.
  for (int k = pick(1, 3); k > 0; --k) statement();
  loss();
  requests();
  return std::move(p_);
}

Program draw(uint64_t seed, int attempt, const std::set<std::string>& without) {
  uint64_t mixed =
      (seed + 1) * 0x9E3779B97F4A7C15ull + static_cast<uint64_t>(attempt) * 0xBF58476Dull;
  return Generator(mixed, without).run();
}

}  // namespace oracle

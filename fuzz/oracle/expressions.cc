#include "generator.h"

namespace oracle {

const Index* Generator::index_over(const Scope& s, int extent) {
  std::vector<const Index*> fits;
  for (const Index& i : s.indices)
    if (i.extent == extent) fits.push_back(&i);
  return fits.empty() ? nullptr : any(fits);
}

// A read of some value at the indices in scope; false when none fits.
bool Generator::read_some(const Scope& s, Node& out) {
  for (int attempt = 0; attempt < 6; ++attempt) {
    const Value& v = any(floats_);
    std::vector<Node> at;
    for (int e : v.extents) {
      const Index* i = index_over(s, e);
      const Gather* via = nullptr;
      const Index* k = nullptr;
      for (const Gather& g : gathers_) {
        if (!g.inside || g.target != e) continue;
        k = index_over(s, g.over);
        if (k) via = &g;
        if (k) break;
      }
      if (via && (!i || chance(25))) {
        at.push_back(oracle::read(via->def, {variable(k->var)}, Type::Int));
        drew("gather");
      } else if (i) {
        at.push_back(variable(i->var));
      } else if (chance(20)) {
        at.push_back(integer(0));
      } else {
        break;
      }
    }
    if (at.size() != v.extents.size()) continue;
    out = oracle::read(v.def, at);
    return true;
  }
  return false;
}

// A read that always succeeds.
Node Generator::certain(const Scope& s) {
  Node out;
  if (read_some(s, out)) return out;
  size_t rank = p_.defs[static_cast<size_t>(by_[0])].extents.size();
  return oracle::read(by_[0], std::vector<Node>(rank, integer(0)));
}

Node Generator::leaf(const Scope& s) {
  if (!s.vars.empty() && chance(8)) {
    Node number = variable(any(s.vars));
    if (chance(30) && allowed("bits")) {
      drew("bits");
      static const Kind kinds[] = {Kind::BitAnd, Kind::BitOr, Kind::BitXor, Kind::ShiftRight};
      number = node(kinds[pick(0, 3)], {number, integer(pick(0, 3))});
    }
    return multiply(constant(), cast(number));
  }
  Node out;
  if (chance(10) || !read_some(s, out)) return constant();
  return out;
}

// A read of a value along the extent of this index, at this index.
Node Generator::grounded(const Scope& s, const Index& i) {
  std::vector<std::pair<const Value*, size_t>> fits;
  for (const Value& v : floats_) {
    for (size_t k = 0; k < v.extents.size(); ++k)
      if (v.extents[k] == i.extent) fits.push_back({&v, k});
  }
  if (fits.empty()) return multiply(constant(), cast(variable(i.var)));
  auto [v, position] = any(fits);
  std::vector<Node> at;
  for (size_t k = 0; k < v->extents.size(); ++k) {
    const Index* other = index_over(s, v->extents[k]);
    at.push_back(k == position          ? variable(i.var)
                 : other && !chance(15) ? variable(other->var)
                                        : integer(0));
  }
  return oracle::read(v->def, at);
}

Node Generator::condition(const Scope& s) {
  if (!masks_.empty() && chance(40)) {
    const auto& [def, over] = any(masks_);
    if (const Index* i = index_over(s, over))
      return oracle::read(def, {variable(i->var)}, Type::Bool);
  }
  if (!s.indices.empty() && chance(50)) {
    const Index& i = any(s.indices);
    const Index& j = any(s.indices);
    static const Kind kinds[] = {Kind::Greater, Kind::Unequal, Kind::LessEqual, Kind::Equal};
    Kind k = kinds[pick(0, 3)];
    if (i.var != j.var && chance(50)) return compare_ints(k, variable(i.var), variable(j.var));
    return compare_ints(k, variable(i.var), integer(pick(0, 1)));
  }
  return compare(chance(50) ? Kind::Greater : Kind::Less, Type::Float, certain(s), constant());
}

Node Generator::smooth(const Scope& s, int depth) { return bounded(expr(s, depth)); }

Node Generator::expr(const Scope& s, int depth) {
  if (depth <= 0 || chance(12)) return leaf(s);
  auto sub = [&] { return expr(s, depth - 1); };
  switch (pick(0, 25)) {
    case 0:
    case 1: return add(sub(), sub());
    case 2: return subtract(sub(), sub());
    case 3:
    case 4:
    case 5: return multiply(sub(), sub());
    case 6: return call(Function::Tanh, sub());
    case 7: return call(chance(50) ? Function::Sin : Function::Cos, sub());
    case 8: return divide(sub(), add(call(Function::Square, sub()), literal(1.5)));
    case 9: return call(Function::Exp, node(Kind::Negate, {call(Function::Square, sub())}));
    case 10: return call(Function::Sqrt, add(call(Function::Square, sub()), literal(0.5)));
    case 11: return node(Kind::Negate, {sub()});
    case 12: {
      Node c = condition(s);
      drew("if");
      return choose(c, sub(), sub());
    }
    case 13:
    case 14:
    case 15: return reduction(s, depth - 1);
    case 16:
      if (chance(40)) return call(Function::Abs, sub());
      return node(chance(50) ? Kind::Max2 : Kind::Min2, {sub(), sub()});
    case 17: return call(Function::Sigmoid, sub());
    case 18: return matched(s, depth - 1);
    case 19: return guarded(s, depth - 1);
    case 20: return neighbour(s, depth - 1);
    case 21: return gathered(s, depth - 1);
    case 22: return window(s, depth - 1);
    case 23: return block(s, depth - 1);
    case 24: return recursive(s, depth - 1);
    default: return call(Function::Log, add(call(Function::Square, sub()), literal(1.0)));
  }
}

Node Generator::matched(const Scope& s, int depth) {
  if (!s.indices.empty() && chance(50) && allowed("choose")) {
    drew("choose");
    return node(Kind::Choose,
                {variable(any(s.indices).var), expr(s, depth), expr(s, depth), expr(s, depth)});
  }
  if (!allowed("match")) return leaf(s);
  drew("match");
  Scope inner = s;
  inner.blocks.push_back(p_.blocks++);
  int id = local(inner, fresh("p"), {});
  Node matched = expr(s, depth);
  // A literal alone would be matched as another type.
  if (matched.kind == Kind::Literal) matched = certain(s);
  clause(id, {}, matched);
  Node p = oracle::read(id, {});
  Node out = node(Kind::Match, {compare(Kind::Greater, Type::Float, p, constant()),
                                multiply(p, expr(inner, depth)), subtract(expr(inner, depth), p)});
  out.locals = {id};
  return out;
}

// Conditions that protect what would be NaN, infinite or out of bounds.
Node Generator::guarded(const Scope& s, int depth) {
  Node x;
  bool positive = chance(50);
  if (!coarse_.empty() && chance(60)) {
    const Value& v = any(coarse_);
    const Index* i = index_over(s, v.extents[0]);
    x = oracle::read(v.def, {i ? variable(i->var) : integer(0)});
  } else if (!read_some(s, x)) {
    return leaf(s);
  }
  if (!allowed("guarded value")) return leaf(s);
  drew("guarded value");
  Node other = expr(s, depth);
  if (positive) {
    Function f = chance(50) ? Function::Log : Function::Sqrt;
    Node test = compare(Kind::Greater, Type::Float, x, literal(0));
    return choose(test, multiply(call(f, x), expr(s, depth)), other);
  }
  Node test = compare(Kind::Unequal, Type::Float, x, literal(0));
  if (chance(30))
    return choose(node(Kind::Not, {compare(Kind::Equal, Type::Float, x, literal(0))}),
                  bounded(divide(expr(s, depth), x)), other);
  return choose(test, bounded(divide(expr(s, depth), x)), other);
}

// A read of a neighbouring cell, where it exists; sometimes at an address that is itself read
// there.
Node Generator::neighbour(const Scope& s, int depth) {
  if (s.indices.empty() || !allowed("guarded read")) return leaf(s);
  const Index i = any(s.indices);
  bool before = chance(50);
  int64_t step = before ? -1 : 1;
  Node test =
      before ? compare_ints(chance(50) ? Kind::Greater : Kind::Unequal, variable(i.var), integer(0))
             : compare_ints(Kind::Less, plus(variable(i.var), 1), extent_node(i.extent));
  std::vector<std::pair<const Value*, size_t>> fits;
  for (const Value& v : floats_) {
    for (size_t k = 0; k < v.extents.size(); ++k) {
      bool through = false;
      for (const Gather& g : gathers_)
        through = through || (g.inside && g.over == i.extent && g.target == v.extents[k]);
      if (v.extents[k] == i.extent || through) fits.push_back({&v, k});
    }
  }
  if (fits.empty()) return leaf(s);
  auto [v, position] = any(fits);
  Node address = plus(variable(i.var), step);
  for (const Gather& g : gathers_) {
    if (!g.inside || g.over != i.extent || g.target != v->extents[position]) continue;
    if (v->extents[position] == i.extent && chance(50)) continue;
    address = oracle::read(g.def, {plus(variable(i.var), step)}, Type::Int);
    drew("gather");
    break;
  }
  if (address.kind != Kind::Read && v->extents[position] != i.extent) return leaf(s);
  std::vector<Node> at;
  for (size_t k = 0; k < v->extents.size(); ++k) {
    const Index* other = index_over(s, v->extents[k]);
    at.push_back(k == position ? address : other ? variable(other->var) : integer(0));
  }
  drew("guarded read");
  Node inside = oracle::read(v->def, at);
  if (chance(40)) inside = multiply(inside, expr(s, depth));
  return choose(test, inside, leaf(s));
}

// Reads at addresses that are data, some of them through data themselves.
Node Generator::gathered(const Scope& s, int depth) {
  for (int attempt = 0; attempt < 4 && !gathers_.empty(); ++attempt) {
    const Gather& g = any(gathers_);
    Node k;
    if (const Index* i = index_over(s, g.over)) {
      k = variable(i->var);
    } else {
      k = integer(0);
    }
    Node address = oracle::read(g.def, {k}, Type::Int);
    bool inside = g.inside;
    int target = g.target;
    const char* name = "gather";
    Node before;  // the condition that must hold first
    auto within = [&](const Node& a, int e) {
      return both(compare_ints(Kind::GreaterEqual, a, integer(0)),
                  compare_ints(Kind::Less, a, extent_node(e)));
    };
    if (chance(50)) {
      std::vector<const Gather*> next;
      for (const Gather& h : gathers_)
        if (h.over == target) next.push_back(&h);
      if (!next.empty()) {
        const Gather* h = any(next);
        if (!inside) before = within(address, target);
        address = oracle::read(h->def, {address}, Type::Int);
        inside = h->inside;
        target = h->target;
        name = "gather of gather";
      }
    }
    std::vector<const Value*> fits;
    for (const Value& v : floats_)
      if (!v.extents.empty() && v.extents[0] == target) fits.push_back(&v);
    if (fits.empty() || !allowed(name)) continue;
    const Value* v = any(fits);
    std::vector<Node> at{address};
    for (size_t r = 1; r < v->extents.size(); ++r) {
      const Index* i = index_over(s, v->extents[r]);
      at.push_back(i ? variable(i->var) : integer(0));
    }
    Node out = oracle::read(v->def, at);
    if (!inside || before.kind != Kind::None) {
      if (!allowed("guarded gather")) continue;
      drew("guarded gather");
      Node test = inside ? before : within(address, target);
      if (!inside && before.kind != Kind::None) test = both(before, test);
      out = choose(test, out, expr(s, depth));
    }
    drew(name);
    return out;
  }
  return leaf(s);
}

// x[i + k] around i, with a gate that keeps it inside.
Node Generator::window(const Scope& s, int depth) {
  if (s.indices.empty() || !allowed("negative start")) return leaf(s);
  const Index i = any(s.indices);
  std::vector<const Value*> fits;
  for (const Value& v : floats_)
    if (!v.extents.empty() && v.extents[0] == i.extent) fits.push_back(&v);
  if (fits.empty()) return leaf(s);
  const Value v = *any(fits);
  int k = new_var("k");
  Scope inner = s;
  inner.vars.push_back(k);
  Node where = node(Kind::Plus, {variable(i.var), variable(k)});
  std::vector<Node> at{where};
  for (size_t r = 1; r < v.extents.size(); ++r) {
    const Index* j = index_over(s, v.extents[r]);
    at.push_back(j ? variable(j->var) : integer(0));
  }
  Node body = oracle::read(v.def, at);
  if (chance(60)) body = multiply(body, expr(inner, depth));
  Node gate = both(compare_ints(Kind::GreaterEqual, where, integer(0)),
                   compare_ints(Kind::Less, where, extent_node(i.extent)));
  static const Reduction all[] = {Reduction::Sum, Reduction::Sum, Reduction::Mean, Reduction::Max,
                                  Reduction::Min};
  Reduction r = all[pick(0, 4)];
  bool selects = r == Reduction::Max || r == Reduction::Min;
  if (selects && !allowed("negative winner")) r = Reduction::Sum;
  if (selects && allowed("negative winner")) drew("negative winner");
  drew("negative start");
  Node out = reduce(r, {{k, integer(-pick(1, 2)), integer(pick(1, 2))}}, body, gate);
  out.inclusive = chance(50);
  return out;
}

Node Generator::block(const Scope& s, int depth) {
  if (!allowed("block")) return leaf(s);
  drew("block");
  Scope inner = s;
  inner.blocks.push_back(p_.blocks++);
  Node out = node(Kind::Block);
  int id = local(inner, fresh("u"), {});
  clause(id, {}, expr(s, depth)).typed = true;
  out.locals = {id};
  Node u = oracle::read(id, {});
  out.kids = {add(call(Function::Sin, u), multiply(u, expr(s, depth)))};
  return out;
}

Node Generator::recursive(const Scope& s, int depth) {
  if (!allowed("recursion")) return leaf(s);
  drew("recursion");
  if (p_.functions.empty()) {
    Recursive f;
    f.name = fresh("rec");
    Node a = param(0), b = param(1), c = param(2);
    f.base = add(multiply(a, b), constant());
    f.first = chance(50) ? b : call(Function::Sin, b);
    f.second = call(Function::Tanh, multiply(a, constant()));
    f.step = add(multiply(c, chance(50) ? c : call(Function::Sin, a)), chance(50) ? b : constant());
    p_.functions.push_back(f);
  }
  Node n = node(Kind::Recurse,
                {bounded(expr(s, depth)), bounded(leaf(s)),
                 s.vars.empty() || chance(50) ? integer(pick(0, 3)) : variable(any(s.vars))});
  n.id = 0;
  return n;
}

}  // namespace oracle

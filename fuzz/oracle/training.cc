#include "generator.h"

namespace oracle {

// A scalar that depends on every cell of a local value.
Node Generator::objective(const Scope& s, const Value& w) {
  floats_.push_back(w);
  std::vector<Index> at = indices_of(w, "j");
  Scope inner = s;
  for (const Index& i : at) inner.bind(i);
  Node error = add(multiply(cell(w.def, at), leaf(inner)), expr(inner, 1));
  Node body = chance(70) ? call(Function::Square, error) : call(Function::Sin, error);
  if (chance(20)) body = call(Function::Exp, bounded(error));
  if (!at.empty()) {
    std::vector<Binder> binders;
    for (const Index& i : at) binders.push_back({i.var, integer(0), extent_node(i.extent)});
    body = reduce(chance(80) ? Reduction::Sum : Reduction::Mean, binders, body);
  } else if (chance(40)) {  // over samples
    Index i = new_index("n", some_extent());
    Scope sample = s;
    sample.bind(i);
    body = reduce(Reduction::Sum, {{i.var, integer(0), extent_node(i.extent)}},
                  call(Function::Square,
                       subtract(multiply(cell(w.def, at), grounded(sample, i)), leaf(sample))));
  }
  floats_.pop_back();
  return body;
}

// A state that follows gradients taken inside its steps; sometimes gradients through a step.
void Generator::training() {
  if (!allowed("training loop")) return pointwise();
  std::vector<Index> rest = left(0, 1);  // coordinates of the state
  int steps = pick(2, 4);
  if (steps == 2 && !allowed("one step")) ++steps;
  int extent = new_extent(steps);
  std::vector<int> extents{extent}, inner_extents = extents_of(rest);
  for (const Index& i : rest) extents.push_back(i.extent);
  Node first = expr(scope_of(rest), 1);
  Node rate = chance(60) ? literal(pick(1, 6) / 16.0) : bounded(certain({}));
  int t = new_var("t");
  std::vector<Index> last;  // the trailing coordinates of a step
  for (const Index& i : rest) last.push_back(again(i));
  bool spelled = chance(25);
  Scope s;
  s.vars = {t};
  if (spelled)
    for (const Index& i : last) s.bind(i);
  s.blocks = {p_.blocks++};
  int id = define(fresh("W"), Type::Float, extents);
  std::vector<Slot> base{at(0)};
  for (const Index& i : rest) base.push_back(slot(i));
  clause(id, base, first);
  auto address = [&](const std::vector<Index>& at) {
    std::vector<Node> out;
    for (const Index& i : at) out.push_back(variable(i.var));
    return out;
  };
  Node block = node(Kind::Block);
  auto let = [&](const char* name, const std::vector<Index>& at, Node body) {
    int d = local(s, fresh(name), extents_of(at));
    clause(d, slots_of(at), std::move(body)).trailing = static_cast<int>(at.size());
    block.locals.push_back(d);
    return d;
  };
  auto copies = [&] {
    std::vector<Index> out;
    for (const Index& i : rest) out.push_back(new_index("c", i.extent));
    return out;
  };
  // let w = W[t - 1];
  std::vector<Index> c = copies();
  Node before = oracle::read(id, {plus(variable(t), -1)});
  for (const Index& i : c) before.kids.push_back(variable(i.var));
  before.hidden = static_cast<int>(c.size());
  int w = let("w", c, before);
  int l = let("l", {}, objective(s, {w, inner_extents}));
  auto descent = [&](int from, int of, const std::vector<Index>& at) {
    return subtract(whole(from, address(at)),
                    multiply(rate, request(whole(of, {}), w, address(at), true)));
  };
  if (chance(35) && allowed("meta step")) {
    drew("meta step");
    std::vector<Index> d = copies();
    int u = let("u", d, descent(w, l, d));
    l = let("m", {}, objective(s, {u, inner_extents}));
  }
  if (spelled) {
    Node slope = request(whole(l, {}), w, address(last), false);
    block.kids = {subtract(oracle::read(w, address(last)), multiply(rate, slope))};
  } else if (chance(40)) {
    std::vector<Index> d = copies();
    int g = let("g", d, request(whole(l, {}), w, address(d), true));
    block.kids = {subtract(whole(w, address(last)), multiply(rate, whole(g, address(last))))};
  } else {
    block.kids = {descent(w, l, last)};
  }
  std::vector<Slot> slots{ranged(t, integer(1), integer(steps))};
  for (const Index& i : last) slots.push_back(slot(i));
  clause(id, slots, block).trailing = spelled ? 0 : static_cast<int>(last.size());
  if (chance(25) && allowed("checkpoint")) {
    p_.defs[static_cast<size_t>(id)].attribute = "#[checkpoint]";
    drew("checkpoint");
  }
  drew("training loop");
  if (steps == 2) drew("one step");
  add_value(id, extents);
}

// A loss after a step along the gradient of another.
void Generator::meta() {
  if (!allowed("meta step")) return pointwise();
  const Value x = floats_[0];
  int l = define(fresh("l"), Type::Float, {});
  p_.order.pop_back();  // written below, after what it reads
  clause(l, {}, objective({}, x));
  p_.order.push_back(l);
  std::vector<Index> at = indices_of(x, "j");
  std::vector<Node> address;
  for (const Index& i : at) address.push_back(variable(i.var));
  bool spelled = chance(50);
  Node rate = literal(pick(1, 6) / 16.0);
  int u = define(fresh("u"), Type::Float, x.extents);
  if (spelled) {
    clause(u, slots_of(at),
           subtract(oracle::read(x.def, address),
                    multiply(rate, request(whole(l, {}), x.def, address, false))))
        .typed = false;
  } else {
    Clause& c = clause(u, slots_of(at),
                       subtract(whole(x.def, address),
                                multiply(rate, request(whole(l, {}), x.def, address, true))));
    c.trailing = static_cast<int>(at.size());
    c.typed = false;
  }
  Node second = objective({}, {u, x.extents});
  int m = define(fresh("m"), Type::Float, {});
  clause(m, {}, second);
  drew("meta step");
  add_value(u, x.extents);
  add_value(m, {});
}

// A step whose loss holds a derivative by a value that does not depend on the step.
void Generator::constant_local() {
  if (!allowed("constant local")) return pointwise();
  int steps = pick(2, 4);
  if (steps == 2 && !allowed("one step")) ++steps;
  int extent = new_extent(steps);
  Node first = bounded(certain({}));
  int t = new_var("t");
  Scope s;
  s.vars = {t};
  s.blocks = {p_.blocks++};
  Node fixed = chance(50) ? constant() : bounded(certain({}));
  Node target = constant(), rate = literal(pick(1, 4) / 16.0);
  int id = define(fresh("W"), Type::Float, {extent});
  clause(id, {at(0)}, first);
  Node block = node(Kind::Block);
  auto let = [&](const char* name, Node body) {
    int d = local(s, fresh(name), {});
    clause(d, {}, std::move(body)).typed = true;
    block.locals.push_back(d);
    return d;
  };
  int w = let("w", oracle::read(id, {plus(variable(t), -1)}));
  int x = let("x", fixed);
  Node product = multiply(whole(w, {}), whole(x, {}));
  int y = let("y", chance(50) ? call(Function::Tanh, product) : multiply(product, whole(x, {})));
  int ux = let("ux", request(whole(y, {}), x, {}, true));
  if (chance(50)) {
    int l = let("l", call(Function::Square, subtract(whole(ux, {}), target)));
    block.kids = {subtract(whole(w, {}), multiply(rate, request(whole(l, {}), w, {}, true)))};
  } else {
    block.kids = {subtract(whole(w, {}), multiply(rate, whole(ux, {})))};
  }
  clause(id, {ranged(t, integer(1), integer(steps))}, block);
  drew("constant local");
  if (steps == 2) drew("one step");
  add_value(id, {extent});
}

// A derivative as a value that the loss reads.
void Generator::penalty() {
  if (!allowed("gradient penalty")) return pointwise();
  const Value x = floats_[0];
  std::vector<Value> scalars;
  for (const Value& v : floats_)
    if (v.extents.empty() && !p_.defs[static_cast<size_t>(v.def)].input) scalars.push_back(v);
  if (scalars.empty()) return pointwise();
  const Value y = any(scalars);
  std::vector<Index> at = indices_of(x, "j");
  std::vector<Node> address;
  for (const Index& i : at) address.push_back(variable(i.var));
  int g = define(fresh("g"), Type::Float, x.extents);
  Clause& c = clause(g, slots_of(at), request(whole(y.def, {}), x.def, address, true));
  c.trailing = static_cast<int>(at.size());
  c.typed = false;
  drew("gradient penalty");
  add_value(g, x.extents);
}

}  // namespace oracle

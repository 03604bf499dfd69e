#include "generator.h"

namespace oracle {

// One coordinate runs in steps: up or down, one or two steps back, a few steps or symbolically
// many.
void Generator::recurrence() {
  if (!allowed("recurrence")) return pointwise();
  std::vector<Index> rest = left(0, 1);
  bool symbolic = chance(30) && allowed("symbolic steps"), down = !symbolic && chance(25);
  int back = !symbolic && chance(25) && allowed("lookback 2") ? 2 : 1;
  int steps = symbolic ? -1 : back + pick(1, 3);
  if (!symbolic && steps == back + 1 && !allowed("one step")) ++steps;
  int extent = symbolic ? some_extent() : new_extent(steps);
  if (symbolic && size(extent) < back) return pointwise();
  std::string name = fresh("h");
  std::vector<int> extents{extent};
  for (const Index& i : rest) extents.push_back(i.extent);
  struct Base {
    std::vector<Slot> slots;
    Node body;
  };
  std::vector<Base> bases;
  for (int k = 0; k < back; ++k) {
    std::vector<Index> own;
    for (const Index& i : rest) own.push_back(again(i));
    std::vector<Slot> slots{at(down ? steps - 1 - k : k)};
    for (const Index& i : own) slots.push_back(slot(i));
    bases.push_back({slots, expr(scope_of(own), 1)});
  }
  Index t = new_index("t", extent);
  Scope s = scope_of(rest);
  if (symbolic) {
    s.bind(t);
  } else {
    s.vars.push_back(t.var);
  }
  Node step = expr(s, 2);
  int id = define(name, Type::Float, extents);
  for (const Base& b : bases) clause(id, b.slots, b.body);
  auto state = [&](int k) {
    std::vector<Node> address{plus(variable(t.var), down ? k : -k)};
    for (const Index& i : rest) address.push_back(variable(i.var));
    return oracle::read(id, address);
  };
  Node before = multiply(constant(), state(1));
  if (back == 2) before = add(before, multiply(constant(), state(2)));
  if (!rest.empty() && chance(40)) {  // the whole state before it
    Index k = new_index("k", rest[0].extent);
    Scope inner = s;
    inner.bind(k);
    Node cellwise = oracle::read(id, {plus(variable(t.var), down ? 1 : -1), variable(k.var)});
    static const Reduction all[] = {Reduction::Sum, Reduction::Sum, Reduction::Max, Reduction::Prod,
                                    Reduction::Mean};
    Reduction r = all[pick(0, 4)];
    if (r == Reduction::Prod && !allowed("prod")) r = Reduction::Sum;
    before = add(before, reduce(r, {{k.var, integer(0), extent_node(k.extent)}},
                                multiply(cellwise, expr(inner, 1))));
  }
  Node body = chance(50) ? bounded(add(before, step)) : add(before, bounded(step));
  if (chance(20)) body = multiply(state(1), bounded(step));
  std::vector<Slot> slots{down ? ranged(t.var, integer(0), integer(steps - back))
                               : ranged(t.var, integer(back), extent_node(extent))};
  for (const Index& i : rest) slots.push_back(slot(i));
  clause(id, slots, body);
  if (chance(30) && allowed("until")) {
    // For each cell on its own, or for all of them.
    Node seen = state(0);
    if (!rest.empty() && chance(50)) {
      Index k = new_index("k", rest[0].extent);
      seen = reduce(Reduction::Max, {{k.var, integer(0), extent_node(k.extent)}},
                    oracle::read(id, {variable(t.var), variable(k.var)}));
    }
    Clause& last = p_.defs[static_cast<size_t>(id)].clauses.back();
    last.until = compare(chance(50) ? Kind::Greater : Kind::Less, Type::Float, seen, constant());
    last.down = down;
    drew("until");
  }
  if (chance(30) && allowed("checkpoint")) {
    p_.defs[static_cast<size_t>(id)].attribute =
        chance(50) ? "#[checkpoint]" : "#[checkpoint(" + std::to_string(pick(1, 2)) + ")]";
    drew("checkpoint");
  }
  drew("recurrence");
  if (symbolic) drew("symbolic steps");
  if (down) drew("downward");
  if (back == 2) drew("lookback 2");
  if (size(extent) == back + 1) drew("one step");
  add_value(id, extents);
  if (chance(30) && allowed("shifted sum")) sum_of_steps(id, extent, rest);
}

// Over an index that is a step by a shift, so its range may begin before the first step and end behind
// the last one.
void Generator::sum_of_steps(int steps, int extent, const std::vector<Index>& rest) {
  const int shift = pick(-2, 2), lag = chance(40) ? 1 : 0;
  Index k = new_index("k", extent);
  std::vector<Binder> binders{{k.var, integer(shift + lag), plus(extent_node(extent), shift)}};
  std::vector<Node> now{plus(variable(k.var), -shift)}, before{plus(variable(k.var), -shift - lag)};
  for (const Index& i : rest) {
    Index r = new_index("r", i.extent);
    binders.push_back({r.var, integer(0), extent_node(r.extent)});
    now.push_back(variable(r.var));
    before.push_back(variable(r.var));
  }
  Node body = oracle::read(steps, now);
  if (chance(60)) body = multiply(body, oracle::read(steps, before));
  int id = define(fresh("v"), Type::Float, {});
  clause(id, {}, multiply(literal(0.25), reduce(Reduction::Sum, binders, body)));
  drew("shifted sum");
  add_value(id, {});
}

// Reads of all earlier steps.
void Generator::history() {
  if (!allowed("history")) return pointwise();
  int extent = chance(50) ? some_extent() : new_extent(pick(2, 4));
  bool symbolic = !p_.extents[static_cast<size_t>(extent)].name.empty();
  Index t = new_index("t", extent), k = new_index("k", extent);
  Scope s;
  if (symbolic) {
    s.bind(t);
  } else {
    s.vars = {t.var};
  }
  Node first = expr({}, 1), step = expr(s, 1);
  Scope inner = s;
  if (symbolic) {
    inner.bind(k);
  } else {
    inner.vars.push_back(k.var);
  }
  Node factor = chance(50) ? expr(inner, 1) : literal(1);
  int id = define(fresh("h"), Type::Float, {extent});
  Node past = oracle::read(id, {variable(k.var)});
  static const Reduction all[] = {Reduction::Sum, Reduction::Max, Reduction::Min, Reduction::Prod,
                                  Reduction::Mean};
  Reduction r = all[pick(0, 4)];
  if (r == Reduction::Prod && !allowed("prod")) r = Reduction::Sum;
  Node all_before = reduce(r, {{k.var, integer(0), variable(t.var)}}, multiply(past, factor));
  if (chance(50)) {
    clause(id, {at(0)}, first);
    clause(id, {ranged(t.var, integer(1), extent_node(extent))},
           add(multiply(constant(), all_before), bounded(step)));
  } else {
    // One clause: the sum of the first step is empty.
    clause(id, {slot(t)},
           choose(compare_ints(Kind::Equal, variable(t.var), integer(0)), first,
                  add(multiply(constant(), all_before), bounded(step))));
  }
  drew("history");
  drew("recurrence");
  add_value(id, {extent});
}

// Every cell reads the one its data points to, which is an earlier one.
void Generator::tree() {
  if (!allowed("parent pointers")) return pointwise();
  int extent = some_extent();
  int made = 0;
  int parent = input(fresh("parent"), Type::Int, {extent}, [&] {
    int k = made++;
    return static_cast<double>(chance(20) ? k : pick(-1, k - 1));
  });
  Index t = new_index("t", extent);
  Scope s = scope_of({t});
  Node root = expr(s, 1), factor = expr(s, 1);
  int id = define(fresh("h"), Type::Float, {extent});
  Node up = oracle::read(parent, {variable(t.var)}, Type::Int);
  Node test = both(compare_ints(Kind::GreaterEqual, up, integer(0)),
                   compare_ints(Kind::Less, up, variable(t.var)));
  Node above = oracle::read(id, {up});
  clause(id, {slot(t)},
         choose(test, chance(50) ? multiply(above, factor) : bounded(add(above, factor)), root));
  drew("parent pointers");
  drew("recurrence");
  add_value(id, {extent});
}

// Two coordinates, each cell from its neighbours.
void Generator::grid() {
  if (!allowed("two coordinates")) return pointwise();
  Index i = new_index("i", some_extent()), j = new_index("j", some_extent());
  Scope s = scope_of({i, j});
  Node edge = expr(s, 1), step = expr(s, 1);
  Node f = constant(), g = constant();
  int id = define(fresh("g"), Type::Float, {i.extent, j.extent});
  Node a = oracle::read(id, {plus(variable(i.var), -1), variable(j.var)});
  Node b = oracle::read(id, {variable(i.var), plus(variable(j.var), -1)});
  Node inside = bounded(add(add(multiply(f, a), multiply(g, b)), step));
  if (chance(50)) {
    Node border = node(Kind::Or, {compare_ints(Kind::Equal, variable(i.var), integer(0)),
                                  compare_ints(Kind::Equal, variable(j.var), integer(0))});
    clause(id, {slot(i), slot(j)}, choose(border, edge, inside));
  } else {
    Index i0 = again(i), j0 = again(j);
    clause(id, {slot(i0), slot(j0)}, expr(scope_of({i0, j0}), 1));
    clause(id,
           {ranged(i.var, integer(1), extent_node(i.extent)),
            ranged(j.var, integer(1), extent_node(j.extent))},
           inside);
  }
  drew("two coordinates");
  drew("recurrence");
  add_value(id, {i.extent, j.extent});
}

// Families that read each other.
void Generator::coupled() {
  if (!allowed("mutual group")) return pointwise();
  int steps = pick(2, 4);
  if (steps == 2 && !allowed("one step")) ++steps;
  int extent = new_extent(steps);
  int t = new_var("t"), u = new_var("t");
  Scope s, r;
  s.vars = {t};
  r.vars = {u};
  Node a0 = expr({}, 1), b0 = expr({}, 1), a1 = expr(s, 1), b1 = expr(r, 1);
  int a = define(fresh("a"), Type::Float, {extent});
  int b = define(fresh("b"), Type::Float, {extent});
  clause(a, {at(0)}, a0);
  clause(b, {at(0)}, b0);
  clause(a, {ranged(t, integer(1), integer(steps))},
         bounded(add(multiply(constant(), oracle::read(a, {plus(variable(t), -1)})),
                     multiply(a1, oracle::read(b, {plus(variable(t), -1)})))));
  Node now = oracle::read(a, {chance(50) ? variable(u) : plus(variable(u), -1)});
  clause(b, {ranged(u, integer(1), integer(steps))},
         add(multiply(constant(), oracle::read(b, {plus(variable(u), -1)})),
             multiply(now, bounded(b1))));
  drew("mutual group");
  drew("recurrence");
  if (steps == 2) drew("one step");
  add_value(a, {extent});
  add_value(b, {extent});
}

}  // namespace oracle

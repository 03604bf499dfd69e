#include <algorithm>

#include "generator.h"

namespace oracle {

void Generator::pointwise() {
  std::vector<Index> at = left(0, 2);
  Scope s = scope_of(at);
  Node body = expr(s, 3);
  int id = define(fresh("v"), Type::Float, extents_of(at));
  Clause& c = clause(id, slots_of(at), body);
  if (!at.empty() && chance(25) && allowed("gated clause")) {
    c.gate = condition(s);
    if (chance(40)) c.otherwise = expr(s, 1);
    drew("gated clause");
  }
  add_value(id, extents_of(at));
}

// Ranges that the compiler has to infer.
void Generator::contraction() {
  if (!allowed("inferred range")) return pointwise();
  std::vector<Index> at = left(0, 2);
  Index k = new_index("k", some_extent());
  Scope s = scope_of(at);
  s.bind(k);
  Node body = grounded(s, k);
  for (const Index& i : at) body = multiply(body, grounded(s, i));
  std::vector<Slot> slots = slots_of(at);
  Node sum = reduce(chance(70) ? Reduction::Sum : Reduction::Mean,
                    {{k.var, integer(0), extent_node(k.extent)}}, body);
  sum.inferred = true;
  for (Slot& each : slots) each.inferred = true;
  drew("inferred range");
  int id = define(fresh("v"), Type::Float, extents_of(at));
  clause(id, slots, sum);
  add_value(id, extents_of(at));
}

void Generator::dependent() {
  std::vector<Index> at = left(1, 2);
  Scope s = scope_of(at);
  Node body = reduction_along(s, 2, at[0].extent, &at[0]);
  int id = define(fresh("v"), Type::Float, extents_of(at));
  clause(id, slots_of(at), body);
  add_value(id, extents_of(at));
}

// Arithmetic on a value as a whole.
void Generator::whole_value() {
  std::vector<Value> tensors;
  for (const Value& v : floats_)
    if (!v.extents.empty()) tensors.push_back(v);
  if (tensors.empty() || !allowed("whole value")) return pointwise();
  const Value x = any(tensors);
  std::vector<Index> at = indices_of(x, "i");
  std::vector<Node> address;
  for (const Index& i : at) address.push_back(variable(i.var));
  Node v = whole(x.def, address);
  Node body = add(multiply(v, certain({})), call(Function::Sin, v));
  if (chance(40)) body = multiply(v, subtract(call(Function::Tanh, v), constant()));
  int id = define(fresh("v"), Type::Float, x.extents);
  Clause& c = clause(id, slots_of(at), body);
  c.trailing = static_cast<int>(at.size());
  c.typed = false;
  drew("whole value");
  add_value(id, x.extents);
}

// Two indices, the range of the second depends on the first.
void Generator::triangular() {
  if (!allowed("triangular")) return pointwise();
  int extent = some_extent();
  std::vector<Index> at = left(0, 1);
  Index a = new_index("a", extent), b = new_index("b", extent);
  Scope s = scope_of(at);
  s.bind(a);
  s.bind(b);
  Node low = integer(0), high = variable(a.var);
  switch (pick(0, 3)) {
    case 0: break;
    case 1: high = plus(high, 1); break;
    case 2:
      low = variable(a.var);
      high = extent_node(extent);
      break;
    default:
      low = node(Kind::Minus, {extent_node(extent), variable(a.var)});
      high = extent_node(extent);
  }
  Node body = multiply(grounded(s, a), grounded(s, b));
  if (chance(40)) body = multiply(chance(50) ? cast(variable(a.var)) : expr(s, 1), grounded(s, b));
  bool product = chance(20) && allowed("prod");
  Node out = reduce(product ? Reduction::Prod : Reduction::Sum,
                    {{a.var, integer(0), extent_node(extent)}, {b.var, low, high}}, body);
  if (product) {
    out.kids[0] = add(literal(0.75), bounded(out.kids[0]));
    drew("prod");
  }
  if (chance(30) && allowed("gated reduction")) {
    out.kids[1] = condition(s);
    drew("gated reduction");
  }
  drew("triangular");
  int id = define(fresh("v"), Type::Float, extents_of(at));
  clause(id, slots_of(at), out);
  add_value(id, extents_of(at));
}

// argmax and argmin as addresses; where the range is empty the answer is −1 and guarded.
void Generator::selection() {
  if (!allowed("selection")) return pointwise();
  std::vector<Index> at = left(0, 1);
  Index k = new_index("k", at.empty() ? some_extent() : at[0].extent);
  Scope s = scope_of(at), inner = s;
  inner.bind(k);
  bool most = chance(50);
  Node low = integer(0), high = extent_node(k.extent), gate;
  bool empty = false;
  if (!at.empty() && chance(60) && allowed("dependent range")) {
    drew("dependent range");
    if (chance(50)) {
      empty = chance(50) && allowed("empty range");
      high = plus(variable(at[0].var), empty ? 0 : 1);
    } else {
      low = variable(at[0].var);
    }
  } else if (chance(40) && allowed("gated selection")) {
    gate = condition(inner);
    drew("gated selection");
    empty = true;
  }
  Node body = grounded(inner, k);
  if (chance(40)) body = add(body, expr(inner, 1));
  Node m = reduce(most ? Reduction::ArgMax : Reduction::ArgMin, {{k.var, low, high}}, body, gate);
  drew(most ? "argmax" : "argmin");
  drew("selection");
  int id = define(fresh("m"), Type::Int, extents_of(at));
  clause(id, slots_of(at), m);
  std::vector<Node> address;
  for (const Index& i : at) address.push_back(variable(i.var));
  Node chosen = oracle::read(id, address, Type::Int);
  if (chance(30) && allowed("range to a winner")) {  // none where there is no winner
    if (at.empty()) at = left(0, 1);
    Index j = new_index("k", k.extent);
    Scope below = scope_of(at);
    below.bind(j);
    bool product = chance(30) && allowed("prod");
    Node out = reduce(product ? Reduction::Prod : Reduction::Sum,
                      {{j.var, integer(0), plus(chosen, chance(70) ? 1 : 0)}}, grounded(below, j));
    drew("range to a winner");
    int v = define(fresh("v"), Type::Float, extents_of(at));
    clause(v, slots_of(at), out);
    return add_value(v, extents_of(at));
  }
  std::vector<const Value*> fits;
  for (const Value& v : floats_)
    if (v.extents.size() == 1 && v.extents[0] == k.extent) fits.push_back(&v);
  if (fits.empty()) return;
  Node out = oracle::read(any(fits)->def, {chosen});
  if (empty) {
    drew("empty range");
    out = choose(compare_ints(Kind::GreaterEqual, chosen, integer(0)), out, expr(s, 1));
  }
  int v = define(fresh("v"), Type::Float, extents_of(at));
  clause(v, slots_of(at), multiply(out, expr(s, 1)));
  add_value(v, extents_of(at));
}

// Several clauses over boxes with symbolic bounds; later ones win.
void Generator::clauses() {
  if (!allowed("clauses")) return pointwise();
  std::vector<Index> at = left(1, 2);
  Node n = extent_node(at[0].extent);
  std::string name = fresh("v");
  struct Piece {
    std::vector<Slot> slots;
    Node body, gate, otherwise;
  };
  std::vector<Piece> pieces;
  Scope s = scope_of(at);
  pieces.push_back({slots_of(at), expr(s, 2), {}, {}});
  if (chance(30) && allowed("gated clause")) {
    pieces[0].gate = condition(s);
    if (chance(50)) pieces[0].otherwise = leaf(s);
    drew("gated clause");
  }
  for (int more = allowed("overlapping clauses") ? pick(1, 2) : 1; more > 0; --more) {
    std::vector<Index> inner;
    for (const Index& i : at) inner.push_back(again(i));
    std::vector<Slot> slots = slots_of(inner);
    Scope t = scope_of(inner);
    Node body, gate;
    int kind = allowed("symbolic boxes") ? pick(0, 3) : 0;
    if (kind == 0) {
      slots[0] = this->at(0);
      Scope rest = scope_of({inner.begin() + 1, inner.end()});
      body = expr(rest, 2);
    } else {
      if (kind == 1) slots[0].low = integer(1);
      if (kind == 2) slots[0].high = plus(n, -1);
      if (kind == 3) {
        slots[0].low = integer(1);
        slots[0].high = plus(n, -1);
      }
      body = expr(t, 2);
      // The box allows a read of a neighbour.
      std::vector<const Value*> fits;
      for (const Value& v : floats_)
        if (v.extents.size() == 1 && v.extents[0] == inner[0].extent) fits.push_back(&v);
      if (!fits.empty() && chance(60)) {
        Node next =
            oracle::read(any(fits)->def, {plus(variable(inner[0].var), kind == 2 ? 1 : -1)});
        body = chance(50) ? multiply(next, body) : add(next, body);
      }
      if (chance(25) && allowed("gated clause")) {
        gate = condition(t);
        drew("gated clause");
      }
      drew("symbolic boxes");
    }
    pieces.push_back({slots, body, gate, {}});
  }
  if (pieces.size() > 2) drew("overlapping clauses");
  int id = define(name, Type::Float, extents_of(at));
  for (const Piece& piece : pieces) {
    Clause& c = clause(id, piece.slots, piece.body);
    c.gate = piece.gate;
    c.otherwise = piece.otherwise;
  }
  drew("clauses");
  add_value(id, extents_of(at));
}

// Rows of a sparse matrix: the range of the sum is data.
void Generator::rows() {
  if (!allowed("data-bounded range")) return pointwise();
  int over = some_extent();
  int64_t n = size(over);
  int entries = pick(1, 5);
  p_.extents.push_back({fresh("z"), entries});
  int nnz = static_cast<int>(p_.extents.size()) - 1;
  std::vector<int> starts;
  for (int64_t k = 0; k < n - 1; ++k) starts.push_back(pick(0, entries));
  std::sort(starts.begin(), starts.end());
  starts.insert(starts.begin(), chance(80) ? 0 : std::min(1, starts.empty() ? 0 : starts[0]));
  starts.push_back(entries);
  size_t at = 0;
  int row = input(fresh("row"), Type::Int, {over}, [&] { return 0.0; });
  Definition& d = p_.defs[static_cast<size_t>(row)];
  d.data.clear();
  for (; at < starts.size(); ++at) d.data.push_back(starts[at]);
  d.extents[0] = plus(extent_node(over), 1);
  int val = input(fresh("val"), Type::Float, {nnz}, [&] { return datum(); });
  by_.push_back(val);
  Index i = new_index("i", over);
  Index k = new_index("k", nnz);
  Scope s = scope_of({i}), inner = s;
  inner.bind(k);
  Node body = oracle::read(val, {variable(k.var)});
  if (chance(60)) {
    int target = some_extent();
    int m = static_cast<int>(size(target));
    int col =
        input(fresh("col"), Type::Int, {nnz}, [&] { return static_cast<double>(pick(0, m - 1)); });
    gathers_.push_back({col, nnz, target, true});
  }
  body = multiply(body, expr(inner, 2));
  static const Reduction all[] = {Reduction::Sum, Reduction::Sum, Reduction::Prod, Reduction::Max};
  Reduction r = all[pick(0, 3)];
  if (r == Reduction::Prod && !allowed("prod")) r = Reduction::Sum;
  Node out = reduce(r,
                    {{k.var, oracle::read(row, {variable(i.var)}, Type::Int),
                      oracle::read(row, {plus(variable(i.var), 1)}, Type::Int)}},
                    body);
  if (r == Reduction::Max) out = node(Kind::Max2, {out, literal(-4.0)});
  drew("data-bounded range");
  int id = define(fresh("v"), Type::Float, {over});
  clause(id, {slot(i)}, out);
  add_value(id, {over});
}

// max and min over data with equal cells: the first winner takes the derivative.
void Generator::ties() {
  if (coarse_.empty() || !allowed("ties")) return pointwise();
  const Value x = any(coarse_);
  std::vector<Index> at = left(0, 1);
  Index k = new_index("k", x.extents[0]);
  Scope s = scope_of(at);
  Node low = integer(0), high = extent_node(k.extent);
  if (!at.empty() && at[0].extent == k.extent && chance(60)) low = variable(at[0].var);
  Node body = reduce(chance(50) ? Reduction::Max : Reduction::Min, {{k.var, low, high}},
                     oracle::read(x.def, {variable(k.var)}));
  drew("ties");
  int id = define(fresh("v"), Type::Float, extents_of(at));
  clause(id, slots_of(at), multiply(body, expr(s, 2)));
  add_value(id, extents_of(at));
}

// What empty ranges give, as values that nothing reads.
void Generator::empty() {
  if (!allowed("empty range")) return pointwise();
  Index i = new_index("i", some_extent());
  Index k = new_index("k", i.extent);
  Scope s = scope_of({i});
  s.bind(k);
  static const Reduction all[] = {Reduction::Sum, Reduction::Prod, Reduction::Mean, Reduction::Max,
                                  Reduction::Min};
  Node high = variable(i.var);
  if (chance(40)) high = plus(high, -pick(1, 2));
  Node body = reduce(all[pick(0, 4)], {{k.var, integer(0), high}}, grounded(s, k));
  drew("empty range");
  int id = define(fresh("e"), Type::Float, {i.extent});
  clause(id, {slot(i)}, body);
}

// A million cells whose sum is known from one period.
void Generator::huge() {
  if (p_.dtype != "f64" && p_.dtype != "f32") return;
  drew("huge sum");
  int period = pick(2, 7);
  int64_t count = 1000000 + pick(0, 9);
  std::string k = fresh("k");
  int r = new_var("r");
  // As printed, the body runs over k; its meaning runs over the residues.
  p_.vars[static_cast<size_t>(r)] = "(" + k + " % " + std::to_string(period) + ")";
  Node slope = call(Function::Square, multiply(certain({}), cast(variable(r))));
  Node body = call(Function::Exp, node(Kind::Negate, {slope}));
  Node times = add(literal(static_cast<double>(count / period)),
                   choose(compare_ints(Kind::Less, variable(r), integer(count % period)),
                          literal(1), literal(0)));
  Node meaning = reduce(Reduction::Sum, {{r, integer(0), integer(period)}}, multiply(body, times));
  std::string text = "sum[" + k + " in 0.." + std::to_string(count) + "](" + print(p_, body) + ")";
  int sum = define(fresh("big"), Type::Float, {});
  Node written = shown(text, meaning);
  // Sums of f32 must be better than that: they are not added up one after the other in f32.
  if (p_.dtype == "f64") written.value = static_cast<Real>(count);
  clause(sum, {}, written);
  int v = define(fresh("v"), Type::Float, {});
  clause(v, {}, multiply(oracle::read(sum, {}), literal(1.0 / 1048576)));
  add_value(v, {});
}

}  // namespace oracle

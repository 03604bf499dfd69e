#include <algorithm>

#include "generator.h"

namespace oracle {
namespace {

// Renames a variable in every read of it.
Node renamed(Node n, int from, int to) {
  if (n.kind == Kind::Variable && n.id == from) n.id = to;
  for (Node& k : n.kids) k = renamed(std::move(k), from, to);
  return n;
}

}  // namespace

// A function over a coordinate of a value of any rank, sometimes gated along it.
void Generator::coordinate_call() {
  std::vector<Value> tensors;
  for (const Value& v : floats_)
    if (!v.extents.empty()) tensors.push_back(v);
  if (tensors.empty() || !allowed("coordinate call")) return pointwise();
  const Value x = any(tensors);
  std::vector<Index> at = indices_of(x, "i");
  auto along = static_cast<size_t>(pick(0, static_cast<int>(at.size()) - 1));
  int c = at[along].var, k = new_var("k");
  Node n = extent_node(at[along].extent);
  Node value = cell(x.def, at);
  auto define_once = [&](const std::string& text) {
    if (std::find(p_.preamble.begin(), p_.preamble.end(), text) == p_.preamble.end())
      p_.preamble.push_back(text);
  };
  auto over = [&](Reduction r, const Node& body, const Node& gate) {
    Node inner = gate.kind == Kind::None ? gate : renamed(gate, c, k);
    return reduce(r, {{k, integer(0), n}}, renamed(body, c, k), inner);
  };
  Node gate;
  if (chance(40) && allowed("gated call")) {
    gate = chance(50) ? compare_ints(chance(50) ? Kind::Greater : Kind::LessEqual, variable(c),
                                     integer(pick(0, 1)))
                      : compare(Kind::Greater, Type::Float, value, constant());
    drew("gated call");
  }
  drew("coordinate call");
  std::string T = p_.dtype, argument = print(p_, value), name = p_.vars[static_cast<size_t>(c)];
  if (chance(50)) {
    define_once("fn soft[c](x: [" + T + "; ..l, c, ..r]) -> [" + T +
                "; ..l, c, ..r] { let m[..l, ..r] = max[c](x[..l, c, ..r]); let e[..l, c, ..r] = "
                "exp(x[..l, c, ..r] - m[..l, ..r]); e[..l, c, ..r] / sum[k](e[..l, k, ..r]) }");
    // Subtracting the maximum does not change the quotient, so the meaning leaves it out.
    Node e = call(Function::Exp, value);
    Node meaning = divide(e, over(Reduction::Sum, e, gate));
    int id = define(fresh("v"), Type::Float, x.extents);
    clause(id, slots_of(at), shown("soft[" + name + "](" + argument + ")", meaning)).gate = gate;
    add_value(id, x.extents);
    return;
  }
  // The result does not have the coordinate.
  define_once("fn energy[c](x: [" + T + "; ..l, c, ..r], w: " + T + " = 0.5) -> [" + T +
              "; ..l, ..r] { sum[c](x[..l, c, ..r] * x[..l, c, ..r] * w) }");
  bool left_out = chance(30) && allowed("default argument");
  Node w = left_out ? literal(0.5) : certain({});
  if (left_out) {
    drew("default argument");
  } else {
    argument += ", ";
    if (chance(40) && allowed("named argument")) {
      argument += "w = ";
      drew("named argument");
    }
    argument += print(p_, w);
  }
  Node meaning = over(Reduction::Sum, multiply(multiply(value, value), w), gate);
  std::vector<Index> rest = at;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(along));
  int id = define(fresh("v"), Type::Float, extents_of(rest));
  std::string text = "energy[" + name + "](" + argument + ")";
  if (gate.kind != Kind::None) text += " where " + print(p_, gate);
  clause(id, slots_of(rest), shown(text, meaning));
  add_value(id, extents_of(rest));
}

// The arguments of a call: some by position, then the others by name, in any order.
std::string Generator::arguments_of(std::vector<std::pair<std::string, std::string>> given) {
  auto by_position = given.size();
  if (chance(40) && allowed("named argument")) {
    by_position = static_cast<size_t>(pick(0, static_cast<int>(given.size()) - 1));
    for (size_t k = given.size(); k-- > by_position + 1;) {
      std::swap(
          given[k],
          given[static_cast<size_t>(pick(static_cast<int>(by_position), static_cast<int>(k)))]);
    }
    drew("named argument");
  }
  std::string out;
  for (size_t k = 0; k < given.size(); ++k) {
    if (k > 0) out += ", ";
    out += (k < by_position ? "" : given[k].first + " = ") + given[k].second;
  }
  return out;
}

// Ordinary functions: of scalars, of a row, with a request inside.
void Generator::scalar_call() {
  std::vector<Index> at = left(0, 2);
  Scope s = scope_of(at);
  Scope inner = s;
  inner.blocks.push_back(p_.blocks++);
  std::string f = fresh("f"), T = p_.dtype;
  Node body = node(Kind::Block);
  std::vector<std::pair<std::string, std::string>> given;  // parameters that get an argument
  auto parameter = [&](const char* name, Node value, bool left_out = false) {
    int id = local(inner, name, {});
    clause(id, {}, value);
    body.locals.push_back(id);
    if (!left_out) given.emplace_back(name, print(p_, value));
    return oracle::read(id, {});
  };
  if (chance(40) && allowed("request in function")) {
    // The parameter is a binding of its own, whatever is passed.
    Node u = parameter("u", expr(s, 1));
    int z = local(inner, "z", {});
    Scope of;  // no index of the caller is in scope there
    Node value = chance(50) ? multiply(call(Function::Sin, u), u)
                            : call(Function::Tanh, multiply(call(Function::Square, u), constant()));
    clause(z, {}, value);
    body.locals.push_back(z);
    Node slope = request(oracle::read(z, {}), u.id, {}, true);
    body.kids = {add(slope, multiply(u, constant()))};
    p_.preamble.push_back("fn " + f + "(u: " + T + ") -> " + T + " { let z = " + print(p_, value) +
                          "; " + print(p_, body.kids[0]) + " }");
    drew("request in function");
  } else {
    if (!allowed("function")) return pointwise();
    Node p = parameter("p", expr(s, 1)), q = parameter("q", expr(s, 1));
    Node scale = constant();
    std::string third;
    if (chance(40) && allowed("default argument")) {
      third = ", r: " + T + " = " + print(p_, scale);
      bool left_out = chance(60);
      Node own = left_out ? scale : expr(s, 1);
      scale = parameter("r", own, left_out);
      drew("default argument");
    }
    body.kids = {choose(compare(Kind::Greater, Type::Float, p, q), multiply(p, scale),
                        add(call(Function::Sin, q), p))};
    p_.preamble.push_back("fn " + f + "(p: " + T + ", q: " + T + third + ") -> " + T + " { " +
                          print(p_, body.kids[0]) + " }");
    drew("function");
  }
  std::string arguments = arguments_of(std::move(given));
  int id = define(fresh("v"), Type::Float, extents_of(at));
  clause(id, slots_of(at), shown(f + "(" + arguments + ")", body));
  add_value(id, extents_of(at));
}

}  // namespace oracle

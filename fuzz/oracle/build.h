// Short names for the nodes of the oracle's trees.
#pragma once

#include <utility>

#include "tree.h"

namespace oracle {

inline Node node(Kind k, std::vector<Node> kids = {}) {
  Node n;
  n.kind = k;
  n.kids = std::move(kids);
  return n;
}
inline Node literal(double v) {
  Node n = node(Kind::Literal);
  n.value = v;
  return n;
}
inline Node integer(int64_t v) {
  Node n = node(Kind::Integer);
  n.value = static_cast<Real>(v);
  return n;
}
inline Node variable(int id) {
  Node n = node(Kind::Variable);
  n.id = id;
  return n;
}
inline Node extent_node(int id) {
  Node n = node(Kind::Extent);
  n.id = id;
  return n;
}
inline Node param(int id) {
  Node n = node(Kind::Param);
  n.id = id;
  return n;
}
inline Node read(int def, std::vector<Node> at, Type type = Type::Float) {
  Node n = node(Kind::Read, std::move(at));
  n.id = def;
  n.type = type;
  return n;
}
// A read whose last `hidden` slots are not written: the value as a whole.
inline Node whole(int def, std::vector<Node> at) {
  Node n = read(def, std::move(at));
  n.hidden = static_cast<int>(n.kids.size());
  return n;
}
inline Node add(Node a, Node b) { return node(Kind::Add, {std::move(a), std::move(b)}); }
inline Node subtract(Node a, Node b) { return node(Kind::Subtract, {std::move(a), std::move(b)}); }
inline Node multiply(Node a, Node b) { return node(Kind::Multiply, {std::move(a), std::move(b)}); }
inline Node divide(Node a, Node b) { return node(Kind::Divide, {std::move(a), std::move(b)}); }
inline Node call(Function f, Node a) {
  Node n = node(Kind::Apply, {std::move(a)});
  n.function = f;
  return n;
}
inline Node plus(Node a, int64_t b) {
  if (b == 0) return a;
  return node(b > 0 ? Kind::Plus : Kind::Minus, {std::move(a), integer(b > 0 ? b : -b)});
}
inline Node cast(Node a) { return node(Kind::Cast, {std::move(a)}); }
inline Node choose(Node condition, Node yes, Node no) {
  return node(Kind::If, {std::move(condition), std::move(yes), std::move(no)});
}
inline Node both(Node a, Node b) { return node(Kind::And, {std::move(a), std::move(b)}); }
inline Node compare(Kind k, Type t, Node a, Node b) {
  Node n = node(k, {std::move(a), std::move(b)});
  n.type = t;
  return n;
}
inline Node compare_ints(Kind k, Node a, Node b) {
  return compare(k, Type::Int, std::move(a), std::move(b));
}
inline Node shown(std::string text, Node meaning) {
  Node n = node(Kind::Shown, {std::move(meaning)});
  n.text = std::move(text);
  return n;
}
// The derivative of `of` by a cell of a definition.
inline Node request(Node of, int by, std::vector<Node> at, bool hidden) {
  Node n = node(Kind::Request, {std::move(of)});
  n.id = by;
  n.hidden = hidden ? static_cast<int>(at.size()) : 0;
  for (Node& a : at) n.kids.push_back(std::move(a));
  return n;
}

struct Binder {
  int var;
  Node low, high;
};
inline Node reduce(Reduction r, std::vector<Binder> binders, Node body, Node gate = {}) {
  Node n = node(Kind::Reduce, {std::move(body), std::move(gate)});
  n.reduction = r;
  for (Binder& b : binders) {
    n.vars.push_back(b.var);
    n.kids.push_back(std::move(b.low));
    n.kids.push_back(std::move(b.high));
  }
  return n;
}

}  // namespace oracle

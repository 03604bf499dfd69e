#include "generator.h"

namespace oracle {
namespace {

const char* class_of(Reduction r) {
  static const char* names[] = {"sum", "prod", "mean", "max", "min", "argmax", "argmin"};
  return names[static_cast<int>(r)];
}

}  // namespace

Node Generator::reduction(const Scope& s, int depth) {
  if (s.indices.size() > 3) return leaf(s);
  int extent = some_extent();
  const Index* outer = index_over(s, extent);
  return reduction_along(s, depth, extent, outer && chance(60) ? outer : nullptr);
}

// Over the whole extent; or, with an outer index, over a part of it that depends on that index.
Node Generator::reduction_along(const Scope& s, int depth, int extent, const Index* outer) {
  Index k = new_index("k", extent);
  Scope inner = s;
  inner.bind(k);
  Node low = integer(0), high = extent_node(extent), filled;  // `filled`: the range is not empty
  bool inclusive = false;
  if (outer && !allowed("dependent range")) outer = nullptr;
  if (outer) {
    Node i = variable(outer->var);
    drew("dependent range");
    switch (pick(0, 7)) {
      case 0:
      case 1:
        if (!allowed("empty range")) break;
        high = i;
        filled = compare_ints(Kind::Greater, i, integer(0));
        break;
      case 2:
        high = i;
        inclusive = true;
        break;
      case 3: high = plus(i, 1); break;
      case 4: low = i; break;
      case 5:
        if (!allowed("empty range")) break;
        low = plus(i, 1);
        filled = compare_ints(Kind::Less, plus(i, 1), extent_node(extent));
        break;
      case 6:
        if (!allowed("empty range")) break;
        high = plus(i, -1);
        filled = compare_ints(Kind::Greater, i, integer(1));
        break;
      default:
        if (!allowed("empty range")) break;
        low = node(Kind::Minus, {extent_node(extent), i});
        filled = compare_ints(Kind::Greater, i, integer(0));
    }
  }
  static const Reduction all[] = {Reduction::Sum,  Reduction::Sum,  Reduction::Sum,
                                  Reduction::Sum,  Reduction::Prod, Reduction::Prod,
                                  Reduction::Mean, Reduction::Max,  Reduction::Min};
  Reduction r = all[pick(0, 8)];
  if (!allowed(class_of(r))) r = Reduction::Sum;
  drew(class_of(r));
  Node body = grounded(inner, k);
  if (chance(60)) {
    Node more = expr(inner, depth - 1);
    body = chance(60) ? multiply(body, more) : add(body, more);
  }
  if (r == Reduction::Prod && chance(60)) body = bounded(body);
  Node gate;
  if (chance(25) && allowed("gated reduction")) {
    gate = condition(inner);
    drew("gated reduction");
  }
  Node out = reduce(r, {{k.var, low, high}}, body, gate);
  out.inclusive = inclusive;
  bool may_be_empty = r != Reduction::Sum && r != Reduction::Prod &&
                      (filled.kind != Kind::None || gate.kind != Kind::None);
  if (!may_be_empty) {
    if (filled.kind != Kind::None) drew("empty range");
    return out;
  }
  // The result of an empty reduction must not reach the rest of the program.
  drew("empty range");
  if (gate.kind != Kind::None) {
    if (r == Reduction::Mean) {
      out.reduction = Reduction::Sum;
      return out;
    }
    return node(r == Reduction::Max ? Kind::Max2 : Kind::Min2,
                {out, literal(r == Reduction::Max ? -4.0 : 4.0)});
  }
  return choose(filled, out, leaf(s));
}

}  // namespace oracle

#include "shrink.h"

#include <algorithm>

#include "build.h"

namespace oracle {
namespace {

bool is_float(const Node& n) {
  if (n.kind == Kind::Read) return n.type == Type::Float;
  if (n.kind == Kind::Reduce)
    return n.reduction != Reduction::ArgMax && n.reduction != Reduction::ArgMin;
  return n.kind >= Kind::Literal && n.kind <= Kind::Param;
}

void reads_of(const Program& p, const Node& n, std::vector<bool>& out) {
  if (n.kind == Kind::Read || n.kind == Kind::Request) out[static_cast<size_t>(n.id)] = true;
  for (const Node& k : n.kids) reads_of(p, k, out);
  for (int id : n.locals) {
    for (const Clause& c : p.defs[static_cast<size_t>(id)].clauses) reads_of(p, c.body, out);
  }
}

// Definitions that a written one reads.
std::vector<bool> needed(const Program& p) {
  std::vector<bool> out(p.defs.size(), false);
  for (int id : p.order) {
    const Definition& d = p.defs[static_cast<size_t>(id)];
    if (d.dropped) continue;
    std::vector<bool> own(p.defs.size(), false);
    for (const Clause& c : d.clauses) {
      reads_of(p, c.body, own);
      reads_of(p, c.gate, own);
      reads_of(p, c.otherwise, own);
      reads_of(p, c.until, own);
      for (const Slot& s : c.slots) {
        reads_of(p, s.low, own);
        reads_of(p, s.high, own);
      }
    }
    own[static_cast<size_t>(id)] = false;
    for (size_t k = 0; k < own.size(); ++k) out[k] = out[k] || own[k];
  }
  return out;
}

void collect(Program& p, Node& n, std::vector<Node*>& out) {
  if (n.kind == Kind::None) return;
  out.push_back(&n);
  if (n.kind == Kind::Shown) return;
  // What is not written stays as it is.
  for (size_t k = 0; k + static_cast<size_t>(n.hidden) < n.kids.size(); ++k)
    collect(p, n.kids[k], out);
  for (int id : n.locals) {
    for (Clause& c : p.defs[static_cast<size_t>(id)].clauses) collect(p, c.body, out);
  }
}

// Every place of a written expression, the outermost first.
std::vector<Node*> places(Program& p) {
  std::vector<Node*> out;
  for (int id : p.order) {
    Definition& d = p.defs[static_cast<size_t>(id)];
    if (d.dropped) continue;
    for (Clause& c : d.clauses) {
      collect(p, c.body, out);
      collect(p, c.gate, out);
      collect(p, c.otherwise, out);
      collect(p, c.until, out);
    }
  }
  for (Recursive& f : p.functions) {
    for (Node* n : {&f.base, &f.first, &f.second, &f.step}) collect(p, *n, out);
  }
  return out;
}

// Simpler trees for one place.
std::vector<Node> simpler(const Node& n) {
  std::vector<Node> out;
  if (is_float(n)) {
    if (n.kind != Kind::Literal) out.push_back(literal(0.5));
    size_t kids = n.kind == Kind::Request ? 0 : n.kids.size();
    for (size_t k = 0; k < kids; ++k)
      if (is_float(n.kids[k])) out.push_back(n.kids[k]);
    if (n.kind == Kind::Reduce && n.kids[1].kind != Kind::None) {
      Node open = n;
      open.kids[1] = Node();
      out.push_back(open);
    }
    if (n.kind == Kind::Reduce && n.reduction != Reduction::Sum) {
      Node sum = n;
      sum.reduction = Reduction::Sum;
      out.push_back(sum);
    }
  } else if (n.kind == Kind::And || n.kind == Kind::Or) {
    out = n.kids;
  } else if (n.kind != Kind::Integer && n.kind != Kind::Extent && n.kind < Kind::Less &&
             n.kind > Kind::Param) {
    out.push_back(integer(0));
    for (const Node& k : n.kids) out.push_back(k);
  }
  return out;
}

// The program with one extent smaller by one; inputs keep the cells that are left.
Program smaller(const Program& p, size_t extent) {
  Program out = p;
  for (size_t k = 0; k < p.defs.size(); ++k) {
    Definition& d = out.defs[k];
    if (!d.input) continue;
    std::vector<int64_t> shape = shape_of(p, static_cast<int>(k));
    Program reduced = p;
    --reduced.extents[extent].size;
    std::vector<int64_t> now = shape_of(reduced, static_cast<int>(k));
    std::vector<double> data;
    for (size_t cell = 0; cell < p.defs[k].data.size(); ++cell) {
      auto rest = static_cast<int64_t>(cell);
      bool inside = true;
      for (size_t a = shape.size(); a-- > 0;) {
        inside = inside && rest % shape[a] < now[a];
        rest /= shape[a];
      }
      if (inside) data.push_back(p.defs[k].data[cell]);
    }
    d.data = data;
  }
  --out.extents[extent].size;
  return out;
}

}  // namespace

Program shrink(Program p, const std::function<bool(const Program&)>& fails) {
  auto accept = [&](Program& q) {
    if (!fails(q)) return false;
    p = std::move(q);
    return true;
  };
  bool changed = true;
  while (changed) {
    changed = false;
    for (size_t k = p.order.size(); k-- > 0;) {
      auto id = static_cast<size_t>(p.order[k]);
      if (p.defs[id].dropped || needed(p)[id]) continue;
      Program q = p;
      q.defs[id].dropped = true;
      changed |= accept(q);
    }
    for (size_t k = 0; k < places(p).size(); ++k) {
      std::vector<Node> candidates = simpler(*places(p)[k]);
      for (const Node& candidate : candidates) {
        Program q = p;
        *places(q)[k] = candidate;
        if (accept(q)) {
          changed = true;
          break;
        }
      }
    }
    for (size_t id = 0; id < p.defs.size(); ++id) {
      if (p.defs[id].dropped) continue;
      for (size_t c = 0; c < p.defs[id].clauses.size(); ++c) {
        if (p.defs[id].clauses.size() > 1) {
          Program q = p;
          q.defs[id].clauses.erase(q.defs[id].clauses.begin() + static_cast<std::ptrdiff_t>(c));
          if (accept(q)) {
            changed = true;
            continue;
          }
        }
        if (p.defs[id].clauses[c].gate.kind != Kind::None) {
          Program q = p;
          q.defs[id].clauses[c].gate = q.defs[id].clauses[c].otherwise = Node();
          changed |= accept(q);
        }
        if (p.defs[id].clauses[c].until.kind != Kind::None) {
          Program q = p;
          q.defs[id].clauses[c].until = Node();
          changed |= accept(q);
        }
      }
      if (!p.defs[id].attribute.empty()) {
        Program q = p;
        q.defs[id].attribute.clear();
        changed |= accept(q);
      }
    }
    for (size_t e = 0; e < p.extents.size(); ++e) {
      while (p.extents[e].size > 1 && !p.extents[e].name.empty()) {
        Program q = smaller(p, e);
        if (!accept(q)) break;
        changed = true;
      }
    }
    if (p.dtype != "f64") {
      Program q = p;
      q.dtype = "f64";
      changed |= accept(q);
    }
    for (size_t k = p.preamble.size(); k-- > 0;) {
      Program q = p;
      q.preamble.erase(q.preamble.begin() + static_cast<std::ptrdiff_t>(k));
      changed |= accept(q);
    }
    if (!p.functions.empty()) {
      Program q = p;
      q.functions.clear();
      changed |= accept(q);
    }
  }
  return p;
}

}  // namespace oracle

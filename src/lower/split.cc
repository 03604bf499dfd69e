// The first and the last steps of a recurrence, apart from all others: a loop over steps whose body
// asks at every step whether it is the first one becomes two loops, and the second no longer asks.
// Values that a step stores and reads again then stay in registers. Only for steps that do little:
// the body is compiled once more for every part.
#include <algorithm>
#include <optional>

#include "lower/copy.h"
#include "lower/walk.h"

namespace ein::loops {
namespace {

constexpr int64_t kMostNodes = 2000;  // of a body
constexpr int64_t kNear = 2;          // so many steps at an end are apart at most

using core::Op;

struct Splitter {
  Program& p;
  std::unordered_map<VarId, ExprId> lets = {};  // all of the kernel

  ExprId integer(int64_t v) { return p.exprs.add({IntConst{v}, DType::I64}); }
  ExprId op(Op o, ExprId a, ExprId b) { return p.exprs.add({Apply{o, {a, b}}, DType::I64}); }

  // constant + the sum of atoms with factors: enough to compare bounds.
  struct Linear {
    int64_t constant = 0;
    std::vector<std::pair<Node, int64_t>> terms = {};  // Get and Param only

    void add(const Node& n, int64_t factor) {
      for (auto& [m, f] : terms) {
        if (same(m, n)) {
          f += factor;
          return;
        }
      }
      terms.emplace_back(n, factor);
    }
    static bool same(const Node& a, const Node& b) {
      if (const auto* x = std::get_if<Get>(&a)) {
        const auto* y = std::get_if<Get>(&b);
        return y && x->var == y->var;
      }
      const auto *x = std::get_if<Param>(&a), *y = std::get_if<Param>(&b);
      return x && y && x->index == y->index;
    }
  };

  bool linear(ExprId e, int64_t factor, Linear& out) const {
    const Node& n = p.exprs[e].node;
    if (p.exprs[e].type != DType::I64) return false;
    if (const auto* c = std::get_if<IntConst>(&n)) {
      out.constant += factor * c->value;
      return true;
    }
    if (const auto* g = std::get_if<Get>(&n)) {
      auto it = lets.find(g->var);
      if (it != lets.end()) return linear(it->second, factor, out);
      out.add(n, factor);
      return true;
    }
    if (std::holds_alternative<Param>(n)) {
      out.add(n, factor);
      return true;
    }
    const auto* a = std::get_if<Apply>(&n);
    if (!a) return false;
    if (a->op == Op::Add || a->op == Op::Sub) {
      return linear(a->args[0], factor, out) &&
             linear(a->args[1], a->op == Op::Add ? factor : -factor, out);
    }
    return false;
  }

  // t compared with something: true from `from` steps after the beginning on, or up to `to` steps
  // before the end, or the opposite of that.
  struct Question {
    bool at_end = false;
    int64_t distance = 0;  // from the beginning, or from the end
    bool after = false;    // true for the steps behind that point
  };

  // Without the `max(0, …)` that keeps a range from ending before it begins.
  ExprId bare(ExprId e) const {
    if (const auto* g = std::get_if<Get>(&p.exprs[e].node)) {
      auto it = lets.find(g->var);
      return it == lets.end() ? e : bare(it->second);
    }
    const auto* a = std::get_if<Apply>(&p.exprs[e].node);
    if (!a || a->op != Op::Max) return e;
    for (size_t i : {0, 1}) {
      const auto* zero = std::get_if<IntConst>(&p.exprs[a->args[i]].node);
      if (zero && zero->value == 0) return a->args[1 - i];
    }
    return e;
  }

  // The distance from `from` to `to`, if it is a constant.
  std::optional<int64_t> distance(ExprId from, ExprId to) const {
    Linear d;
    if (!linear(to, 1, d) || !linear(from, -1, d)) return {};
    for (const auto& term : d.terms) {
      if (term.second != 0) return {};
    }
    return d.constant;
  }

  std::optional<Question> question(ExprId e, const Loop& loop) const {
    const auto* a = std::get_if<Apply>(&p.exprs[e].node);
    if (!a || (a->op != Op::Lt && a->op != Op::Ge && a->op != Op::Le && a->op != Op::Gt)) return {};
    // `t + c` is compared with `point`.
    auto offset = [&](ExprId x) {
      Linear d;
      bool fits = linear(x, 1, d);
      for (const auto& [n, f] : d.terms) fits &= f == (Linear::same(n, Get{loop.var}) ? 1 : 0);
      bool has = std::any_of(d.terms.begin(), d.terms.end(), [&](const auto& term) {
        return Linear::same(term.first, Get{loop.var});
      });
      return fits && has ? std::optional(d.constant) : std::nullopt;
    };
    auto left = offset(a->args[0]), right = offset(a->args[1]);
    if (left.has_value() == right.has_value()) return {};
    int64_t c = left ? *left : *right;
    ExprId point = left ? a->args[1] : a->args[0];
    bool less = a->op == Op::Lt || a->op == Op::Le, strict = a->op == Op::Lt || a->op == Op::Gt;
    bool below = less == left.has_value();    // true for the steps before a point
    int64_t shift = below == strict ? 0 : 1;  // t <= x is t < x + 1, t > x is t >= x + 1
    // t + c < max(0, x) is t + c < x where t + c is not negative.
    if (shift == 0 && c >= 0) point = bare(point);
    if (auto d = distance(loop.lo, point)) return Question{false, *d - c + shift, !below};
    if (auto d = distance(point, bare(loop.hi))) return Question{true, *d + c - shift, !below};
    return {};
  }

  struct Cuts {
    int64_t first = 0, last = 0;  // so many steps at the beginning and at the end are apart
  };

  // What is known of a question in one part.
  enum class Part { First, Middle, Last };
  static std::optional<bool> answer(const Question& q, const Cuts& cuts, Part part) {
    if (!q.at_end) {
      if (q.distance <= 0) return q.after;
      if (part == Part::Middle && q.distance <= cuts.first) return q.after;
      if (part == Part::First && q.distance == cuts.first) return !q.after;
    } else {
      if (q.distance <= 0) return !q.after;
      if (part == Part::Middle && q.distance <= cuts.last) return !q.after;
      if (part == Part::Last && q.distance == cuts.last) return q.after;
    }
    return {};
  }

  int64_t size(const Block& body) const {
    int64_t nodes = 0;
    for_each_stmt(body, [&](const Stmt& s) {
      ++nodes;
      for_each_expr(s, [&](ExprId e) { for_each_node(p, e, [&](const Node&) { ++nodes; }); });
    });
    return nodes;
  }

  // Every loop inside has a known length: no step does much.
  bool does_little(const Block& body) const {
    bool ok = size(body) <= kMostNodes;
    for_each_stmt(body, [&](const Stmt& s) {
      if (const auto* n = std::get_if<Loop>(&s.node)) {
        ok &= std::holds_alternative<IntConst>(p.exprs[n->lo].node) &&
              std::holds_alternative<IntConst>(p.exprs[n->hi].node);
      }
      ok &= !std::holds_alternative<Contract>(s.node);
    });
    return ok;
  }

  std::optional<bool> known(ExprId cond, const std::unordered_map<VarId, bool>& settled) const {
    if (const auto* n = std::get_if<IntConst>(&p.exprs[cond].node)) return n->value != 0;
    const auto* g = std::get_if<Get>(&p.exprs[cond].node);
    auto it = g ? settled.find(g->var) : settled.end();
    return it == settled.end() ? std::nullopt : std::optional(it->second);
  }

  void take_sides(Block& block, std::unordered_map<VarId, bool> settled = {}) const {
    Block out;
    for (Stmt& s : block) {
      if (const auto* let = std::get_if<Let>(&s.node);
          let && p.exprs[let->value].type == DType::Bool) {
        if (auto value = known(let->value, settled)) settled[let->var] = *value;
      }
      for_each_block(s, [&](Block& b) { take_sides(b, settled); });
      auto* n = std::get_if<If>(&s.node);
      auto cond = n ? known(n->cond, settled) : std::nullopt;
      if (!cond) {
        out.push_back(std::move(s));
        continue;
      }
      Block& side = *cond ? n->then : n->otherwise;
      std::move(side.begin(), side.end(), std::back_inserter(out));
    }
    block = std::move(out);
  }

  Stmt part(const Loop& loop, ExprId lo, ExprId hi, const Cuts& cuts, Part which) {
    Loop out = loop;
    out.lo = lo;
    out.hi = hi;
    if (loop.poll.valid()) out.steps = op(Op::Sub, loop.hi, loop.lo);
    auto decide = [&](ExprId e) {
      if (p.exprs[e].type != DType::Bool) return e;
      std::optional<bool> known;
      if (auto q = question(e, loop)) known = answer(*q, cuts, which);
      if (const auto* a = std::get_if<Apply>(&p.exprs[e].node); a && a->op == Op::And) {
        for (size_t i : {0, 1}) {
          const auto* side = std::get_if<IntConst>(&p.exprs[a->args[i]].node);
          if (side) return side->value ? a->args[1 - i] : a->args[i];
        }
      }
      return known ? p.exprs.add({IntConst{*known}, DType::Bool}) : e;
    };
    Copier deciding{p, decide};
    for_each_stmt(out.body,
                  [&](Stmt& s) { for_each_expr(s, [&](ExprId& e) { e = deciding.expr(e, {}); }); });
    take_sides(out.body);
    out.var = p.vars.add(p.vars[loop.var]);
    out.body = Copier{p}.block(out.body, {{loop.var, p.exprs.add({Get{out.var}, DType::I64})}});
    return {std::move(out)};
  }

  void note_lets(const Block& block) {
    for_each_stmt(block, [&](const Stmt& s) {
      if (const auto* n = std::get_if<Let>(&s.node)) lets[n->var] = n->value;
    });
  }

  void run(Block& block) {
    Block out;
    for (Stmt& s : block) {
      auto* loop = std::get_if<Loop>(&s.node);
      if (loop && loop->axis.kind == Axis::Kind::Seq && does_little(loop->body)) {
        Cuts cuts;
        for_each_stmt(loop->body, [&](const Stmt& inner) {
          for_each_expr(inner, [&](ExprId e) { look(e, *loop, cuts); });
        });
        if (cuts.first > 0 || cuts.last > 0) {
          cut(*loop, cuts, out);
          continue;
        }
      }
      for_each_block(s, [&](Block& b) { run(b); });
      out.push_back(std::move(s));
    }
    block = std::move(out);
  }

  void look(ExprId e, const Loop& loop, Cuts& cuts) const {
    if (p.exprs[e].type == DType::Bool) {
      auto q = question(e, loop);
      if (q && q->distance > 0 && q->distance <= kNear) {
        int64_t& cut = q->at_end ? cuts.last : cuts.first;
        cut = std::max(cut, q->distance);
      }
    }
    const auto* a = std::get_if<Apply>(&p.exprs[e].node);
    if (!a) return;
    for (ExprId x : a->args) look(x, loop, cuts);
  }

  void cut(const Loop& loop, const Cuts& cuts, Block& out) {
    ExprId one = op(Op::Min, op(Op::Add, loop.lo, integer(cuts.first)), loop.hi);
    ExprId two = op(Op::Max, one, op(Op::Sub, loop.hi, integer(cuts.last)));
    std::vector<Stmt> parts;
    if (cuts.first > 0) parts.push_back(part(loop, loop.lo, one, cuts, Part::First));
    parts.push_back(part(loop, cuts.first > 0 ? one : loop.lo, cuts.last > 0 ? two : loop.hi, cuts,
                         Part::Middle));
    if (cuts.last > 0) parts.push_back(part(loop, two, loop.hi, cuts, Part::Last));
    if (loop.downward) std::reverse(parts.begin(), parts.end());
    std::move(parts.begin(), parts.end(), std::back_inserter(out));
  }
};

}  // namespace

void split_steps(Program& p) {
  for (Kernel& k : p.kernels) {
    Splitter splitter{p};
    splitter.note_lets(k.body);
    splitter.run(k.body);
  }
}

}  // namespace ein::loops

// Splits the first and the last steps of a recurrence from the others. A loop over steps whose body
// tests at every step whether it is the first one becomes two loops, and the second no longer
// tests. Values that a step stores and reads again then stay in registers. Only done for short
// steps, because the body is compiled again for every part.
//
// Loops over cells that test whether a cell is at the edge of an array, as in the derivative of a
// stencil, are treated alike: the innermost loop, in lanes, is cut like a loop over steps, and the
// loop around it tests once for each row.
#include <algorithm>
#include <optional>

#include "loops/copy.h"
#include "loops/linear.h"
#include "loops/simplify.h"

namespace ein::loops {
namespace {

using core::Op;

struct Splitter {
  Program& p;
  Lets lets = {};  // of the whole kernel

  ExprId integer(int64_t v) { return p.exprs.add({IntConst{v}, DType::I64}); }
  ExprId op(Op o, ExprId a, ExprId b) { return p.exprs.add({Apply{o, {a, b}}, DType::I64}); }

  // A comparison of the step with a point near the beginning or the end of the loop.
  struct Question {
    bool at_end = false;
    int64_t distance = 0;  // of that point from the beginning, or from the end
    bool after = false;    // it is true from that point on; otherwise before it
  };

  std::optional<Question> question(ExprId e, const Loop& loop) const {
    const auto* a = std::get_if<Apply>(&p.exprs[e].node);
    if (!a || (a->op != Op::Lt && a->op != Op::Ge && a->op != Op::Le && a->op != Op::Gt)) return {};
    // `t + c` is compared with `point`.
    Sums sums{p, lets};
    auto left = sums.offset(a->args[0], loop.var), right = sums.offset(a->args[1], loop.var);
    if (left.has_value() == right.has_value()) return {};
    int64_t c = left ? *left : *right;
    ExprId point = left ? a->args[1] : a->args[0];
    bool less = a->op == Op::Lt || a->op == Op::Le, strict = a->op == Op::Lt || a->op == Op::Gt;
    bool below = less == left.has_value();    // it is true for the steps before a point
    int64_t shift = below == strict ? 0 : 1;  // t <= x means t < x + 1, and t > x means t >= x + 1
    // t + c < max(0, x) means t + c < x if t + c is not negative.
    if (shift == 0 && c >= 0) point = sums.bare(point);
    if (auto d = sums.distance(loop.lo, point)) return Question{false, *d - c + shift, !below};
    if (auto d = sums.distance(point, sums.bare(loop.hi)))
      return Question{true, *d + c - shift, !below};
    return {};
  }

  struct Cuts {
    int64_t first = 0, last = 0;  // how many steps are split off at the beginning and at the end
  };

  // The answer to a question in one part, if it is known.
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

  Stmt part(const Loop& loop, ExprId lo, ExprId hi, const Cuts& cuts, Part which) {
    Loop out = loop;
    out.lo = lo;
    out.hi = hi;
    if (loop.poll.valid()) out.steps = op(Op::Sub, loop.hi, loop.lo);
    simplify(p, out.body, [&](ExprId e) {
      auto q = question(e, loop);
      return q ? answer(*q, cuts, which) : std::nullopt;
    });
    out.var = p.vars.add(p.vars[loop.var]);
    out.body = Copier{p}.block(out.body, {{loop.var, p.exprs.add({Get{out.var}, DType::I64})}});
    return {std::move(out)};
  }

  void run(Block& block) {
    Block out;
    for (Stmt& s : block) {
      auto* loop = std::get_if<Loop>(&s.node);
      if (loop && loop->axis.kind == Axis::Kind::Seq && !loop->leave &&
          does_little(p, loop->body)) {
        Cuts cuts = cuts_of(*loop);
        if (cuts.first > 0 || cuts.last > 0) {
          cut(*loop, cuts, out);
          continue;
        }
      }
      for_each_block(s, [&](Block& b) { run(b); });
      if (loop && asks_for_rim(*loop)) {
        Cuts cuts = cuts_of(*loop);
        bool any = cuts.first > 0 || cuts.last > 0;
        if (any && loop->axis.kind == Axis::Kind::Vector) {
          const size_t before = out.size();
          cut(*loop, cuts, out);
          lets.merge(lets_of(Block(out.begin() + static_cast<ptrdiff_t>(before), out.end())));
          continue;
        }
        if (any) ask_once(*loop, cuts);
      }
      out.push_back(std::move(s));
    }
    block = std::move(out);
  }

  // Whether it is a loop over many cells, as far as that is known, with little work for each.
  bool asks_for_rim(const Loop& loop) const {
    if (loop.axis.kind != Axis::Kind::Vector && loop.axis.kind != Axis::Kind::Parallel)
      return false;
    auto n = trips(p, loop);
    return (!n || *n > 4 * int64_t{loop.axis.width}) &&
           nodes_in(p, loop.body) <= p.tuning.rim_nodes;
  }

  Cuts cuts_of(const Loop& loop) const {
    Cuts cuts;
    for_each_stmt(loop.body, [&](const Stmt& inner) {
      for_each_expr(inner, [&](ExprId e) { look(e, loop, cuts); });
    });
    return cuts;
  }

  // Splits the body in two: one for cells away from the ends, which no longer tests for them, and
  // the original for the others.
  void ask_once(Loop& loop, const Cuts& cuts) {
    Block middle = loop.body;
    simplify(p, middle, [&](ExprId e) {
      auto q = question(e, loop);
      return q ? answer(*q, cuts, Part::Middle) : std::nullopt;
    });
    middle = Copier{p}.block(middle, {});
    auto compare = [&](Op o, ExprId bound) {
      return p.exprs.add(
          {Apply{o, {p.exprs.add({Get{loop.var}, DType::I64}), bound}}, DType::Bool});
    };
    ExprId from = compare(Op::Ge, op(Op::Add, loop.lo, integer(cuts.first)));
    ExprId to = compare(Op::Lt, op(Op::Sub, loop.hi, integer(cuts.last)));
    ExprId inside = p.exprs.add({Apply{Op::And, {from, to}}, DType::Bool});
    Block body;
    body.push_back({If{inside, std::move(middle), std::move(loop.body)}});
    loop.body = std::move(body);
    lets.merge(lets_of(loop.body));
  }

  void look(ExprId e, const Loop& loop, Cuts& cuts) const {
    if (p.exprs[e].type == DType::Bool) {
      auto q = question(e, loop);
      if (q && q->distance > 0 && q->distance <= p.tuning.split_steps) {
        int64_t& cut = q->at_end ? cuts.last : cuts.first;
        cut = std::max(cut, q->distance);
      }
    }
    const auto* a = std::get_if<Apply>(&p.exprs[e].node);
    if (!a) return;
    for (ExprId x : a->args) look(x, loop, cuts);
  }

  void cut(const Loop& loop, const Cuts& cuts, Block& out) {
    // If there are few steps, the middle part is empty.
    ExprId lo = cuts.first > 0 ? op(Op::Add, loop.lo, integer(cuts.first)) : loop.lo;
    ExprId hi = cuts.last > 0 ? op(Op::Sub, loop.hi, integer(cuts.last)) : loop.hi;
    std::vector<Stmt> parts;
    if (cuts.first > 0) {
      parts.push_back(part(loop, loop.lo, op(Op::Min, lo, loop.hi), cuts, Part::First));
    }
    parts.push_back(part(loop, lo, hi, cuts, Part::Middle));
    if (cuts.last > 0) {
      parts.push_back(part(loop, op(Op::Max, lo, hi), loop.hi, cuts, Part::Last));
    }
    if (loop.downward) std::reverse(parts.begin(), parts.end());
    std::move(parts.begin(), parts.end(), std::back_inserter(out));
  }
};

}  // namespace

Program split_steps(Program p) {
  for (Kernel& k : p.kernels) { Splitter{p, lets_of(k.body)}.run(k.body); }
  return p;
}

}  // namespace ein::loops

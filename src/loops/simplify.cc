#include "loops/simplify.h"

#include <set>

#include "loops/copy.h"
#include "loops/walk.h"

namespace ein::loops {
namespace {

using core::Op;

struct Simplifier {
  Program& p;
  const Answer& answer;

  ExprId truth(bool value) { return p.exprs.add({IntConst{value}, DType::Bool}); }

  static std::optional<bool> compared(Op op, int64_t a, int64_t b) {
    switch (op) {
      case Op::Eq: return a == b;
      case Op::Ne: return a != b;
      case Op::Lt: return a < b;
      case Op::Le: return a <= b;
      case Op::Gt: return a > b;
      case Op::Ge: return a >= b;
      default: return {};
    }
  }

  // Folds `e`, whose operands are already simplified.
  ExprId folded(ExprId e) {
    const auto* a = std::get_if<Apply>(&p.exprs[e].node);
    if (!a) return e;
    if (a->op == Op::Select) {
      auto cond = constant(p, a->args[0]);
      return !cond ? e : *cond ? a->args[1] : a->args[2];
    }
    if (p.exprs[e].type != DType::Bool) return e;
    if (answer) {
      if (auto known = answer(e)) return truth(*known);
    }
    if (a->op == Op::And || a->op == Op::Or) {
      for (size_t i : {0, 1}) {
        auto side = constant(p, a->args[i]);
        if (side) return (*side != 0) == (a->op == Op::And) ? a->args[1 - i] : a->args[i];
      }
    }
    if (a->args.size() != 2) return e;
    auto left = constant(p, a->args[0]), right = constant(p, a->args[1]);
    auto known = left && right ? compared(a->op, *left, *right) : std::nullopt;
    return known ? truth(*known) : e;
  }

  // Accumulators into which nothing is folded any more keep their initial values. True if none is
  // left, so that the reduction has no effect.
  static bool reduces_nothing(Loop& n) {
    if (n.axis.kind != Axis::Kind::Reduce) return false;
    std::set<VarId> folded;
    bool other = false;
    for_each_stmt(n.body, [&](const Stmt& s) {
      if (const auto* f = std::get_if<Fold>(&s.node)) {
        folded.insert(f->acc);
        if (f->arg.valid()) folded.insert(f->arg);
      }
      other |= std::holds_alternative<Check>(s.node) || std::holds_alternative<Invoke>(s.node) ||
               std::holds_alternative<Fetch>(s.node);
    });
    std::erase_if(n.folds, [&](VarId v) { return !folded.contains(v); });
    if (!n.folds.empty()) return false;
    n.axis = {};  // it may still stop the program, in order
    return !other;
  }

  // `by`: variables that are known to be true or false.
  void run(Block& block, Renaming by) {
    Copier rewriting{p, [&](ExprId e) { return folded(e); }};
    Block out;
    for (Stmt& s : block) {
      for_each_expr(s, [&](ExprId& e) { e = rewriting.expr(e, by); });
      if (const auto* n = std::get_if<Let>(&s.node);
          n && p.exprs[n->value].type == DType::Bool && constant(p, n->value)) {
        by[n->var] = n->value;
        continue;
      }
      for_each_block(s, [&](Block& b) { run(b, by); });
      if (auto* loop = std::get_if<Loop>(&s.node); loop && reduces_nothing(*loop)) continue;
      auto* n = std::get_if<If>(&s.node);
      auto cond = n ? constant(p, n->cond) : std::nullopt;
      if (!cond) {
        out.push_back(std::move(s));
        continue;
      }
      Block& side = *cond ? n->then : n->otherwise;
      std::move(side.begin(), side.end(), std::back_inserter(out));
    }
    block = std::move(out);
  }
};

// Goes from the last statement up, so that it is known what is read below.
void drop_unread(const Program& p, Block& block, std::set<VarId>& read) {
  Block out;
  for (auto it = block.rbegin(); it != block.rend(); ++it) {
    const auto* let = std::get_if<Let>(&it->node);
    if (let && !read.contains(let->var)) continue;
    for_each_block(*it, [&](Block& b) { drop_unread(p, b, read); });
    for_each_expr(*it, [&](ExprId e) {
      for_each_node(p, e, [&](const Node& n) {
        if (const auto* get = std::get_if<Get>(&n)) read.insert(get->var);
      });
    });
    out.push_back(std::move(*it));
  }
  block = {std::make_move_iterator(out.rbegin()), std::make_move_iterator(out.rend())};
}

}  // namespace

void simplify(Program& p, Block& block, const Answer& answer) {
  Simplifier{p, answer}.run(block, {});
  std::set<VarId> read;
  drop_unread(p, block, read);
}

}  // namespace ein::loops

// Writes out loops over few cells that are computed in different ways, such as the gates of an LSTM
// cell or the components of a vector field: the loop body tests which cell it is computing, and
// contains long loops. Left as a loop, every cell would compute what any of them needs.
#include "loops/copy.h"
#include "loops/simplify.h"
#include "loops/walk.h"

namespace ein::loops {
namespace {

struct Cells {
  Program& p;

  bool asks_which(const Loop& n) const {
    bool found = false;
    for_each_node(p, n.body, [&](const Node& node) {
      const auto* a = std::get_if<Apply>(&node);
      if (!a || (a->op != core::Op::Eq && a->op != core::Op::Ne)) return;
      for (size_t i : {0, 1}) {
        const auto* get = std::get_if<Get>(&p.exprs[a->args[i]].node);
        found |= get && get->var == n.var && constant(p, a->args[1 - i]);
      }
    });
    return found;
  }

  bool has_long_loop(const Block& body) const {
    bool found = false;
    for_each_stmt(body, [&](const Stmt& s) {
      const auto* n = std::get_if<Loop>(&s.node);
      found |= n && !trips(p, *n);
    });
    return found;
  }

  void run(Block& block) {
    Block out;
    for (Stmt& s : block) {
      auto* n = std::get_if<Loop>(&s.node);
      if (n && n->axis.kind == Axis::Kind::Vector) {
        out.push_back(std::move(s));
        continue;
      }
      for_each_block(s, [&](Block& b) { run(b); });
      auto count = n ? trips(p, *n) : std::nullopt;
      bool few = count && *count <= p.tuning.distinct_cells && n->axis.kind == Axis::Kind::Parallel;
      if (!few || !has_long_loop(n->body) || !asks_which(*n)) {
        out.push_back(std::move(s));
        continue;
      }
      Block cells;
      for (int64_t i = *constant(p, n->lo); i < *constant(p, n->hi); ++i) {
        Block cell = Copier{p}.at(*n, i);
        simplify(p, cell);
        std::move(cell.begin(), cell.end(), std::back_inserter(cells));
      }
      if (nodes_in(p, cells) > p.tuning.distinct_growth * nodes_in(p, n->body)) {
        out.push_back(std::move(s));
        continue;
      }
      std::move(cells.begin(), cells.end(), std::back_inserter(out));
    }
    block = std::move(out);
  }
};

}  // namespace

Program write_out_cells(Program p) {
  for (Kernel& k : p.kernels) Cells{p}.run(k.body);
  return p;
}

}  // namespace ein::loops

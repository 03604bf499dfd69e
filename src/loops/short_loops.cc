#include "loops/short_loops.h"

#include "loops/copy.h"
#include "loops/simplify.h"
#include "loops/walk.h"

namespace ein::loops {

namespace {

bool is_short(const Program& p, const Loop& n) {
  auto count = trips(p, n);
  return count && *count <= p.tuning.unrolled_iterations && n.axis.width == 1 && !n.poll &&
         !n.leave;
}

}  // namespace

std::optional<Block> written_out(Program& p, const Block& block, int64_t& room) {
  Block out;
  for (Stmt s : block) {
    const auto* n = std::get_if<Loop>(&s.node);
    if (n && is_short(p, *n)) {
      int64_t lo = *constant(p, n->lo), count = *trips(p, *n);
      for (int64_t i = 0; i < count; ++i) {
        Block cell = Copier{p}.at(*n, n->downward ? lo + count - 1 - i : lo + i);
        simplify(p, cell);
        auto made = written_out(p, cell, room);
        if (!made) return {};
        std::move(made->begin(), made->end(), std::back_inserter(out));
      }
      continue;
    }
    bool fits = true;
    for_each_block(s, [&](Block& b) {
      auto made = fits ? written_out(p, b, room) : std::nullopt;
      fits = made.has_value();
      if (fits) b = std::move(*made);
    });
    if (!std::holds_alternative<Loop>(s.node) && !std::holds_alternative<If>(s.node)) {
      room -= nodes_in(p, {s});
    }
    if (!fits || room < 0) return {};
    out.push_back(std::move(s));
  }
  return out;
}

}  // namespace ein::loops

// Loops over rows, each row computed by a block or by a warp; and whole kernels that one block
// runs.
#include <algorithm>

#include "device/block.h"
#include "device/code.h"
#include "loops/copy.h"

namespace ein::device {

using core::Op;
using loops::Axis;
using loops::Block;
using loops::Buffer;
using loops::ExprId;
using loops::Loop;
using loops::Stmt;
using loops::VarId;

namespace {

constexpr int64_t kShortLoop = 32;  // loops with fewer iterations are not worth sharing

// The loops of a row that threads can share.
void shared_loops(const loops::Program& p, const Block& body, std::vector<const Loop*>& out) {
  for (const Stmt& s : body) {
    if (const auto* n = std::get_if<loops::If>(&s.node)) {
      shared_loops(p, n->then, out);
      shared_loops(p, n->otherwise, out);
    }
    const auto* n = std::get_if<Loop>(&s.node);
    if (!n) continue;
    if (is_parallel(*n) || splits(p, *n)) {
      auto known = loops::trips(p, *n);
      if (!known || *known >= kShortLoop) out.push_back(n);
    } else {
      shared_loops(p, n->body, out);
    }
  }
}

// How often the innermost loops of a kernel run in total. More than kFewCells if that is not known,
// or if the caller may interrupt the kernel.
int64_t cells_of(const loops::Program& p, const Block& body) {
  int64_t out = 0;
  for (const Stmt& s : body) {
    int64_t inside = 0;
    loops::for_each_block(s, [&](const Block& b) { inside += cells_of(p, b); });
    if (const auto* n = std::get_if<Loop>(&s.node)) {
      auto known = loops::trips(p, *n);
      if (!known || *known > kFewCells || n->poll) return kFewCells + 1;
      inside = *known * std::max<int64_t>(inside, 1);
    }
    out = std::min(out + inside, kFewCells + 1);
  }
  return out;
}

bool mentions(const loops::Program& p, ExprId e, VarId v) {
  bool out = false;
  loops::for_each_node(p, e, [&](const loops::Node& n) {
    const auto* get = std::get_if<loops::Get>(&n);
    out |= get && get->var == v;
  });
  return out;
}

// Whether neighbouring rows are adjacent in memory but the cells of one row are not. Then one
// thread for each row is better: neighbouring threads read adjacent cells.
bool are_columns(const loops::Program& p, const Nest& nest,
                 const std::vector<const Loop*>& inside) {
  VarId row = nest.loops.back()->var;
  int64_t along = 0, across = 0;
  for (const Loop* n : inside) {
    loops::for_each_node(p, n->body, [&](const loops::Node& node) {
      const auto* load = std::get_if<loops::Load>(&node);
      if (!load || load->at.empty()) return;
      along += mentions(p, load->at.back(), n->var);
      across += mentions(p, load->at.back(), row);
    });
  }
  return across > along;
}

}  // namespace

bool Mapping::rows(Block& out, const Loop& n) {
  Nest nest = nest_of(n, Axis::Kind::Parallel);
  std::vector<const Loop*> inside;
  shared_loops(p, *nest.body, inside);
  if (inside.empty() || are_columns(p, nest, inside)) return false;
  if (draws && draw(4) == 0) return false;
  std::set<VarId> moving;
  for (const Loop* l : nest.loops) moving.insert(l->var);
  loops::for_each_stmt(n.body, [&](const Stmt& s) {
    loops::Effects e = loops::effects(p, s);
    moving.insert(e.binds.begin(), e.binds.end());
  });
  // The length of the longest shared loop, if the host can compute it.
  ExprId longest = integer(0);
  bool known = true, scratch_rows = false;
  for (const Loop* l : inside) {
    known &= stands_still(p, l->lo, moving) && stands_still(p, l->hi, moving);
    if (known) longest = larger(longest, length(*l));
  }
  loops::Effects touched = loops::effects(p, Stmt{n});
  for (const auto* set : {&touched.loads, &touched.stores}) {
    for (loops::BufferId b : *set) scratch_rows |= p.buffers[b].space == Buffer::Space::Row;
  }
  const int64_t most = draws ? 1 << draw(12) : kShortRow;
  auto number = loops::constant(p, longest);
  // Rows with scratch memory are run by blocks, since only blocks have memory of their own.
  if (!known || scratch_rows || (number && *number > most)) return rows_by(out, nest, false);
  if (number) return rows_by(out, nest, true);
  Block by_block, by_warp;
  if (!rows_by(by_block, nest, false) || !rows_by(by_warp, nest, true)) return false;
  ExprId is_short = op(Op::Le, longest, integer(most), DType::Bool);
  out.push_back({loops::If{is_short, std::move(by_warp), std::move(by_block)}});
  return true;
}

bool Mapping::rows_by(Block& out, const Nest& nest, bool warps) {
  uint32_t threads = draws ? 32u << draw(6) : kThreads;
  int64_t in_block = warps ? threads / loops::kLanes : 1;
  std::vector<ExprId> lengths;
  Block before;
  ExprId total = count(nest, before, lengths);
  VarId index = variable("block", DType::I64), warp = variable("warp", DType::I64);
  Block code, row;
  ExprId number = get(index);
  if (warps) number = let(code, "number", plus(times(number, integer(in_block)), get(warp)));
  place(row, nest, lengths, number);
  Together together{*this, warps, warps ? int64_t{loops::kLanes} : int64_t{threads}};
  Block body = loops::Copier{p}.block(*nest.body, {});
  if (!move_rows(body, Buffer::Space::Shared) || !together.block(body, row)) return false;
  if (warps) {
    code.push_back({loops::If{op(Op::Lt, number, total, DType::Bool), std::move(row), {}}});
    Loop all{warp, integer(0), integer(in_block), {Axis::Kind::Thread}, false, {}, std::move(code)};
    row = {Stmt{std::move(all)}};
  }
  out.insert(out.end(), before.begin(), before.end());
  out.push_back(launch(warps ? "rows by warps" : "rows by blocks", index, up(total, in_block),
                       threads, warps, std::move(row)));
  return true;
}

bool Mapping::one_block(Block& out, const Block& body) {
  int64_t cells = cells_of(p, body);
  if (cells > kFewCells || loops::nodes_in(p, body) > kFewNodes) return false;
  uint32_t threads = cells > loops::kLanes ? kThreads : loops::kLanes;
  Together together{*this, false, threads};
  Block copy = loops::Copier{p}.block(body, {}), code;
  if (!move_rows(copy, Buffer::Space::Shared) || !together.block(copy, code)) return false;
  VarId index = variable("block", DType::I64);
  out.push_back(launch("one block", index, integer(1), threads, false, std::move(code)));
  return true;
}

}  // namespace ein::device

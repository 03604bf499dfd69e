// Launches as loops of the processor (device.h).
#include <map>

#include "base/check.h"
#include "core/build.h"
#include "device/device.h"
#include "loops/copy.h"
#include "loops/walk.h"

namespace ein::device {

using core::Op;
using loops::Axis;
using loops::Block;
using loops::Buffer;
using loops::BufferId;
using loops::ExprId;
using loops::Loop;
using loops::Stmt;
using loops::VarId;

namespace {

struct Emulator {
  plan::Plan& plan;
  loops::Program& p;
  const Emulation& how;
  const loops::Launch* launch = nullptr;
  ExprId thread = {};  // the thread whose code is being written
  // The array that replaces each buffer private to a thread.
  std::map<BufferId, BufferId> arrays = {};

  ExprId integer(int64_t v) { return p.exprs.add({loops::IntConst{v}, DType::I64}); }
  ExprId op(Op o, ExprId a, ExprId b) {
    return p.exprs.add({loops::Apply{o, {a, b}}, p.exprs[a].type});
  }
  ExprId get(VarId v) { return p.exprs.add({loops::Get{v}, p.vars[v].type}); }

  BufferId array_of(BufferId id) {
    auto [it, fresh] = arrays.try_emplace(id);
    if (!fresh) return it->second;
    Buffer b = p.buffers[id];
    b.space = Buffer::Space::Row;
    b.dims.insert(b.dims.begin(), core::int_lit(plan.module, launch->threads));
    b.known.insert(b.known.begin(), int64_t{launch->threads});
    return it->second = p.buffers.add(std::move(b));
  }

  bool local(BufferId b) const { return p.buffers[b].space == Buffer::Space::Local; }

  std::vector<ExprId> own_cell(const std::vector<ExprId>& at) {
    std::vector<ExprId> out{thread};
    out.insert(out.end(), at.begin(), at.end());
    return out;
  }

  ExprId expr(ExprId e) {
    loops::Copier copier{p, [&](ExprId x) {
                           const auto* load = std::get_if<loops::Load>(&p.exprs[x].node);
                           if (!load || !local(load->buffer)) return x;
                           DType type = p.exprs[x].type;
                           BufferId from = load->buffer;
                           std::vector<ExprId> at = own_cell(load->at);
                           return p.exprs.add({loops::Load{array_of(from), std::move(at)}, type});
                         }};
    return copier.expr(e, {});
  }

  // A loop over the threads of a block, or over the lanes of a warp.
  void loop(Loop& n) {
    bool by_block = n.axis.kind == Axis::Kind::Thread, by_lane = n.axis.kind == Axis::Kind::Lane;
    ExprId around = thread;
    if (by_block) thread = get(n.var);
    if (by_lane) thread = op(Op::Add, op(Op::Mul, around, integer(loops::kLanes)), get(n.var));
    block(n.body);
    block(n.state);
    thread = around;
    if (!by_block && !by_lane) return;
    n.axis = {how.backwards ? Axis::Kind::Seq : Axis::Kind::Parallel};
    n.downward = how.backwards;
  }

  // acc = op(acc, parts), combined as a tree: the upper half is folded onto the lower half until
  // one cell is left.
  void combine(Block& out, const loops::Combine& n) {
    BufferId array = array_of(n.parts);
    DType type = p.vars[n.acc].type;
    auto cell = [&](ExprId i) { return p.exprs.add({loops::Load{array, {i}}, type}); };
    ExprId first = integer(0);
    if (n.scope == loops::Scope::Lane) first = op(Op::Mul, thread, integer(loops::kLanes));
    // Combines `count` cells that start at `at` and lie `step` apart. One loop runs over the pairs
    // of all levels, because a separate loop for each level would be unrolled.
    auto tree = [&](ExprId at, int64_t count, int64_t step, Block& to) {
      VarId pair = p.vars.add({"pair", DType::I64});
      ExprId begin = integer(0), half = integer(count / 2);
      for (int64_t h = count / 4, first_of = count / 2; h > 0; first_of += h, h /= 2) {
        ExprId later =
            p.exprs.add({loops::Apply{Op::Ge, {get(pair), integer(first_of)}}, DType::Bool});
        begin =
            p.exprs.add({loops::Apply{Op::Select, {later, integer(first_of), begin}}, DType::I64});
        half = p.exprs.add({loops::Apply{Op::Select, {later, integer(h), half}}, DType::I64});
      }
      Block code;
      auto let = [&](const char* name, ExprId value) {
        VarId v = p.vars.add({name, DType::I64});
        code.push_back({loops::Let{v, value}});
        return get(v);
      };
      ExprId i = let("i", op(Op::Sub, get(pair), begin));
      ExprId low = let("low", op(Op::Add, at, op(Op::Mul, i, integer(step))));
      ExprId high = let("high", op(Op::Add, low, op(Op::Mul, half, integer(step))));
      VarId both = p.vars.add({"both", type});
      code.push_back({loops::Declare{both, cell(low)}});
      code.push_back({loops::Fold{n.op, both, cell(high), {}, {}}});
      code.push_back({loops::Store{array, {low}, get(both)}});
      to.push_back({Loop{pair, integer(0), integer(count - 1), {}, false, {}, std::move(code)}});
    };
    if (n.scope == loops::Scope::Threads) {
      int64_t warps = launch->threads / loops::kLanes;
      VarId warp = p.vars.add({"warp", DType::I64});
      Block inside;
      tree(op(Op::Mul, get(warp), integer(loops::kLanes)), loops::kLanes, 1, inside);
      out.push_back({Loop{warp, integer(0), integer(warps), {}, false, {}, std::move(inside)}});
      tree(first, warps, loops::kLanes, out);
    } else {
      tree(first, loops::kLanes, 1, out);
    }
    out.push_back({loops::Fold{n.op, n.acc, cell(first), {}, {}}});
  }

  void block(Block& body) {
    Block out;
    for (Stmt& s : body) {
      if (std::holds_alternative<loops::Barrier>(s.node)) continue;
      if (const auto* n = std::get_if<loops::Combine>(&s.node)) {
        combine(out, *n);
        continue;
      }
      loops::for_each_expr(s, [&](ExprId& e) { e = expr(e); });
      auto own = [&](auto& n) {
        if (!local(n.buffer)) return;
        n.at = own_cell(n.at);
        n.buffer = array_of(n.buffer);
      };
      if (auto* n = std::get_if<loops::Store>(&s.node)) own(*n);
      if (auto* n = std::get_if<loops::Update>(&s.node)) own(*n);
      if (auto* n = std::get_if<Loop>(&s.node)) {
        loop(*n);
      } else {
        loops::for_each_block(s, [&](Block& inner) { block(inner); });
      }
      out.push_back(std::move(s));
    }
    body = std::move(out);
  }

  Stmt run(loops::Launch n) {
    launch = &n;
    arrays.clear();
    thread = integer(0);
    block(n.body);
    launch = nullptr;
    return {
        Loop{n.index, integer(0), n.blocks, {Axis::Kind::Parallel}, false, {}, std::move(n.body)}};
  }

  void host(Block& body) {
    Block out;
    for (Stmt& s : body) {
      if (std::holds_alternative<loops::Touch>(s.node)) continue;
      if (auto* n = std::get_if<loops::Launch>(&s.node)) {
        out.push_back(run(std::move(*n)));
        continue;
      }
      loops::for_each_block(s, [&](Block& inner) { host(inner); });
      out.push_back(std::move(s));
    }
    body = std::move(out);
  }
};

}  // namespace

loops::Program emulate(plan::Plan& plan, loops::Program p, const Emulation& how) {
  for (Buffer& b : p.buffers) {
    if (b.space == Buffer::Space::Shared) b.space = Buffer::Space::Row;
  }
  for (loops::Kernel& k : p.kernels) Emulator{plan, p, how}.host(k.body);
  return p;
}

}  // namespace ein::device

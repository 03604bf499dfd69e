#include <fmt/format.h>

#include <algorithm>

#include "core/build.h"
#include "device/block.h"
#include "device/code.h"
#include "device/device.h"
#include "device/mapping.h"
#include "loops/copy.h"

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

// ---- building ----------------------------------------------------------------------------------

ExprId Mapping::integer(int64_t v) { return p.exprs.add({loops::IntConst{v}, DType::I64}); }

ExprId Mapping::op(Op o, ExprId a, ExprId b, DType type) {
  return p.exprs.add({loops::Apply{o, {a, b}}, type});
}

ExprId Mapping::get(VarId v) { return p.exprs.add({loops::Get{v}, p.vars[v].type}); }

VarId Mapping::variable(const std::string& name, DType type) { return p.vars.add({name, type}); }

ExprId Mapping::let(Block& to, const std::string& name, ExprId value) {
  const auto& node = p.exprs[value].node;
  if (std::holds_alternative<loops::IntConst>(node) || std::holds_alternative<loops::Get>(node)) {
    return value;
  }
  VarId v = variable(name, p.exprs[value].type);
  to.push_back({loops::Let{v, value}});
  return get(v);
}

ExprId Mapping::times(ExprId a, ExprId b) {
  auto x = loops::constant(p, a), y = loops::constant(p, b);
  if (x && y) return integer(*x * *y);
  return x == 1 ? b : y == 1 ? a : op(Op::Mul, a, b);
}

ExprId Mapping::plus(ExprId a, ExprId b) {
  auto x = loops::constant(p, a), y = loops::constant(p, b);
  if (x && y) return integer(*x + *y);
  return x == 0 ? b : y == 0 ? a : op(Op::Add, a, b);
}

ExprId Mapping::minus(ExprId a, ExprId b) {
  auto x = loops::constant(p, a), y = loops::constant(p, b);
  if (x && y) return integer(*x - *y);
  return y == 0 ? a : op(Op::Sub, a, b);
}

ExprId Mapping::larger(ExprId a, ExprId b) {
  auto x = loops::constant(p, a), y = loops::constant(p, b);
  return x && y ? integer(std::max(*x, *y)) : x == 0 ? b : op(Op::Max, a, b);
}

ExprId Mapping::up(ExprId a, int64_t by) {
  if (auto x = loops::constant(p, a)) return integer((*x + by - 1) / by);
  return op(Op::Div, plus(a, integer(by - 1)), integer(by));
}

ExprId Mapping::length(const Loop& n) {
  if (auto known = loops::trips(p, n)) return integer(*known);
  return op(Op::Max, minus(n.hi, n.lo), integer(0));
}

ExprId Mapping::product(const std::vector<ExprId>& factors) {
  ExprId out = integer(1);
  for (ExprId f : factors) out = times(out, f);
  return out;
}

ExprId Mapping::count(const Nest& nest, Block& to, std::vector<ExprId>& lengths) {
  for (const Loop* l : nest.loops) lengths.push_back(let(to, "count", length(*l)));
  return let(to, "total", product(lengths));
}

BufferId Mapping::scratch(const std::string& name, DType type, std::vector<int64_t> extents,
                          Buffer::Space space) {
  Buffer b{name, family, type, {}, space};
  for (int64_t extent : extents) {
    b.dims.push_back(core::int_lit(plan.module, extent));
    b.known.emplace_back(extent);
  }
  return p.buffers.add(std::move(b));
}

uint64_t Mapping::draw(uint64_t below) {
  draws = draws * 6364136223846793005u + 1442695040888963407u;
  return (draws >> 33) % below;
}

// ---- loops -------------------------------------------------------------------------------------

bool is_parallel(const Loop& n) {
  return (n.axis.kind == Axis::Kind::Parallel || n.axis.kind == Axis::Kind::Vector) &&
         n.folds.empty();
}

void in_a_thread(Block& body) {
  loops::for_each_stmt(body, [](Stmt& s) {
    auto* n = std::get_if<Loop>(&s.node);
    if (!n) return;
    n->axis.width = 1;
    if (n->axis.kind == Axis::Kind::Vector) n->axis.kind = Axis::Kind::Parallel;
    n->poll = {};
    n->grain = n->steps = n->team = {};
  });
}

bool stands_still(const loops::Program& p, ExprId e, const std::set<VarId>& moving) {
  bool still = true;
  loops::for_each_node(p, e, [&](const loops::Node& n) {
    const auto* v = std::get_if<loops::Get>(&n);
    still &= !v || !moving.contains(v->var);
    still &= !std::holds_alternative<loops::Load>(n);
  });
  return still;
}

Nest Mapping::nest_of(const Loop& n, Axis::Kind outermost) const {
  bool sums = outermost == Axis::Kind::Reduce;
  Nest out{{&n}, {}, &n.body};
  std::set<VarId> moving{n.var};
  for (;;) {
    const Block& body = *out.body;
    if (body.empty()) return out;
    const auto* inner = std::get_if<Loop>(&body.back().node);
    if (!inner || inner->leave || !inner->state.empty()) return out;
    bool like = sums ? inner->axis.kind == Axis::Kind::Reduce && inner->folds == n.folds
                     : is_parallel(*inner);
    if (!like) return out;
    for (size_t i = 0; i + 1 < body.size(); ++i) {
      const auto* let = std::get_if<loops::Let>(&body[i].node);
      if (!let) return out;
      moving.insert(let->var);
    }
    if (!stands_still(p, inner->lo, moving) || !stands_still(p, inner->hi, moving)) return out;
    moving.insert(inner->var);
    out.loops.push_back(inner);
    out.between.push_back(&body);
    out.body = &inner->body;
  }
}

void Mapping::place(Block& to, const Nest& nest, const std::vector<ExprId>& lengths,
                    ExprId number) {
  std::vector<ExprId> at(nest.loops.size());
  ExprId rest = number;
  for (size_t k = nest.loops.size(); k-- > 0;) {
    if (k == 0) {
      at[k] = rest;
    } else {
      at[k] = op(Op::Mod, rest, lengths[k]);
      rest = let(to, "rest", op(Op::Div, rest, lengths[k]));
    }
  }
  for (size_t k = 0; k < nest.loops.size(); ++k) {
    if (k > 0) {
      const Block& between = *nest.between[k - 1];
      to.insert(to.end(), between.begin(), between.end() - 1);
    }
    to.push_back({loops::Let{nest.loops[k]->var, plus(nest.loops[k]->lo, at[k])}});
  }
}

bool Mapping::move_rows(Block& body, Buffer::Space space) {
  std::set<BufferId> rows;
  for (const Stmt& s : body) {
    loops::Effects e = loops::effects(p, s);
    for (const auto* set : {&e.loads, &e.stores}) {
      for (BufferId b : *set) {
        if (p.buffers[b].space == Buffer::Space::Row) rows.insert(b);
      }
    }
  }
  if (rows.empty()) return true;
  std::map<BufferId, BufferId> now;
  int64_t bytes = 0;
  for (BufferId b : rows) {
    Buffer own = p.buffers[b];
    int64_t cells = 1;
    for (const auto& extent : own.known) {
      if (space == Buffer::Space::Local && (!extent || *extent > kThreadBytes)) return false;
      cells *= extent.value_or(1);
    }
    bytes += cells * static_cast<int64_t>(size_of(own.dtype));
    if (space == Buffer::Space::Local && bytes > kThreadBytes) return false;
    own.space = space;
    now[b] = p.buffers.add(std::move(own));
  }
  loops::Copier copier{p, [&](ExprId e) {
                         const auto* load = std::get_if<loops::Load>(&p.exprs[e].node);
                         if (!load || !now.contains(load->buffer)) return e;
                         loops::Load moved{now.at(load->buffer), load->at};
                         return p.exprs.add({std::move(moved), p.exprs[e].type});
                       }};
  body = copier.block(body, {});
  loops::for_each_stmt(body, [&](Stmt& s) {
    if (auto* n = std::get_if<loops::Store>(&s.node); n && now.contains(n->buffer))
      n->buffer = now.at(n->buffer);
    if (auto* n = std::get_if<loops::Update>(&s.node); n && now.contains(n->buffer))
      n->buffer = now.at(n->buffer);
  });
  return true;
}

Stmt Mapping::launch(const std::string& how, VarId index, ExprId blocks, uint32_t threads,
                     bool warps, Block body) {
  loops::Launch out{kernel + " " + how, 0, index, blocks, threads, warps, std::move(body)};
  return {std::move(out)};
}

// One thread for every iteration.
bool Mapping::each(Block& out, const Loop& n) {
  Nest nest = nest_of(n, Axis::Kind::Parallel);
  why = not_on_device(p, {Stmt{n}});
  if (!why.empty()) return false;
  uint32_t threads = draws ? 32u << draw(5) : kThreads;
  std::vector<ExprId> lengths;
  Block before;
  ExprId total = count(nest, before, lengths);
  VarId block = variable("block", DType::I64), thread = variable("thread", DType::I64);
  Block code;
  ExprId number = let(code, "number", plus(times(get(block), integer(threads)), get(thread)));
  Block cell;
  place(cell, nest, lengths, number);
  cell.insert(cell.end(), nest.body->begin(), nest.body->end());
  in_a_thread(cell);
  if (!move_rows(cell, Buffer::Space::Local)) {
    why = "scratch of an iteration";
    return false;
  }
  code.push_back({loops::If{op(Op::Lt, number, total, DType::Bool), std::move(cell), {}}});
  Loop all{thread, integer(0), integer(threads), {Axis::Kind::Thread}, false, {}, std::move(code)};
  out.insert(out.end(), before.begin(), before.end());
  out.push_back(launch("each", block, up(total, threads), threads, false, {{std::move(all)}}));
  return true;
}

namespace {

// Whether a loop over steps does so little work that launching a kernel for each step would take
// longer than running all steps on the host.
bool is_small(const loops::Program& p, const Loop& n) {
  return n.axis.kind == Axis::Kind::Seq && loops::does_little(p, n.body, kFewNodes);
}

}  // namespace

void Mapping::map(Block& body) {
  Block out;
  for (size_t i = 0; i < body.size(); ++i) {
    Stmt& s = body[i];
    if (auto* n = std::get_if<loops::If>(&s.node)) {
      map(n->then);
      map(n->otherwise);
    }
    auto* n = std::get_if<Loop>(&s.node);
    if (n && is_parallel(*n) && (rows(out, *n) || each(out, *n))) continue;
    if (auto* c = std::get_if<loops::Contract>(&s.node); c && contract(out, *c)) continue;
    bool took_rest = false;
    if (n && splits(p, *n)) {
      Block rest(body.begin() + static_cast<ptrdiff_t>(i) + 1, body.end());
      Block before(body.begin(), body.begin() + static_cast<ptrdiff_t>(i));
      if (sum(out, *n, before, rest, took_rest)) {
        if (took_rest) break;
        continue;
      }
    }
    if (n && n->axis.kind == Axis::Kind::Seq && !is_small(p, *n)) map(n->body);
    out.push_back(std::move(s));
  }
  body = std::move(out);
}

// ---- programs ----------------------------------------------------------------------------------

loops::Program map_device(plan::Plan& plan, loops::Program p) {
  p.exact = true;
  uint64_t draws = plan.mapping / 2;  // the lowest bit chooses the order of threads
  for (loops::Kernel& k : p.kernels) {
    loops::Effects touched = loops::effects(p, k.body);
    if (touched.stores.empty()) continue;
    Mapping mapping{plan, p, p.buffers[*touched.stores.begin()].family, k.name};
    mapping.draws = draws;
    Block whole;
    if (mapping.one_block(whole, k.body)) {
      k.body = std::move(whole);
    } else {
      mapping.map(k.body);
    }
    draws = mapping.draws;
  }
  return p;
}

}  // namespace ein::device

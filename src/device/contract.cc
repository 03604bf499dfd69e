// Sums of products: one thread for each cell of the result. Neighbouring threads share a row of the
// first operand and read neighbouring cells of the second.
#include "device/block.h"
#include "device/mapping.h"

namespace ein::device {

using core::Op;
using loops::Axis;
using loops::Block;
using loops::Contract;
using loops::ExprId;
using loops::Loop;
using loops::VarId;

namespace {

// Where a cell of an operand lies: its distance, in elements, from the cell whose indices are all
// 0.
struct Offset {
  const Contract::Operand* of;
  ExprId Contract::Index::*step;
  ExprId elements = {};

  void add(Mapping& m, const Contract::Index& i, ExprId at) {
    if (!(i.*step)) return;
    ExprId more = m.times(at, i.*step);
    elements = elements ? m.plus(elements, more) : more;
  }
  // The last coordinate is contiguous in memory, so the offset is counted along it.
  std::vector<ExprId> at(Mapping& m) const {
    std::vector<ExprId> out = of->at;
    if (elements) out.back() = m.plus(out.back(), elements);
    return out;
  }
};

}  // namespace

bool Mapping::contract(Block& out, const Contract& n) {
  if (n.factor >= 0) {
    why = "a matrix function";
    return false;
  }
  Block before, code;
  std::vector<const Contract::Index*> cells;
  for (const auto* set : {&n.batch, &n.m, &n.n}) {
    for (const Contract::Index& i : *set) cells.push_back(&i);
  }
  std::vector<ExprId> lengths;
  for (const Contract::Index* i : cells) lengths.push_back(let(before, "count", i->extent));
  ExprId total = let(before, "total", product(lengths));
  VarId block = variable("block", DType::I64), thread = variable("thread", DType::I64);
  const uint32_t threads = draws ? 32u << draw(5) : kThreads;
  ExprId number = let(code, "number", plus(times(get(block), integer(threads)), get(thread)));
  Offset a{&n.a, &Contract::Index::a}, b{&n.b, &Contract::Index::b},
      c{&n.out, &Contract::Index::out};
  Block cell;
  ExprId rest = number;
  for (size_t k = cells.size(); k-- > 0;) {
    ExprId at = k == 0 ? rest : let(cell, "at", op(Op::Mod, rest, lengths[k]));
    if (k > 0) rest = let(cell, "rest", op(Op::Div, rest, lengths[k]));
    for (Offset* o : {&a, &b, &c}) o->add(*this, *cells[k], at);
  }
  for (Offset* o : {&a, &b, &c}) {
    if (o->elements) o->elements = let(cell, "from", o->elements);
  }
  VarId sum = variable("sum", n.type);
  cell.push_back({loops::Declare{sum, start_of(*this, core::ReduceOp::Sum, n.type)}});
  std::vector<VarId> steps;
  for (const Contract::Index& i : n.k) {
    steps.push_back(variable("k", DType::I64));
    a.add(*this, i, get(steps.back()));
    b.add(*this, i, get(steps.back()));
  }
  auto load = [&](const Offset& o) {
    ExprId v = p.exprs.add({loops::Load{o.of->buffer, o.at(*this)}, n.operands});
    if (n.operands == n.type) return v;
    return p.exprs.add({loops::Apply{Op::Cast, {v}}, n.type});
  };
  Block inner{
      {loops::Fold{core::ReduceOp::Sum, sum, op(Op::Mul, load(a), load(b), n.type), {}, {}}}};
  for (size_t k = n.k.size(); k-- > 0;) {
    Loop loop{steps[k], integer(0), n.k[k].extent,   {Axis::Kind::Reduce},
              false,    {sum},      std::move(inner)};
    inner.clear();
    inner.push_back({std::move(loop)});
  }
  cell.insert(cell.end(), inner.begin(), inner.end());
  cell.push_back({loops::Store{n.out.buffer, c.at(*this), get(sum)}});
  code.push_back({loops::If{op(Op::Lt, number, total, DType::Bool), std::move(cell), {}}});
  Loop all{thread, integer(0), integer(threads), {Axis::Kind::Thread}, false, {}, std::move(code)};
  out.insert(out.end(), before.begin(), before.end());
  out.push_back(launch("products", block, up(total, threads), threads, false, {{std::move(all)}}));
  return true;
}

}  // namespace ein::device

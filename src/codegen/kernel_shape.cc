#include "codegen/kernel_shape.h"

#include <bit>

#include "base/match.h"
#include "loops/walk.h"

namespace ein::codegen {

uint32_t KernelNames::number(loops::BufferId id) {
  auto [it, fresh] = buffer_numbers.try_emplace(id, static_cast<uint32_t>(buffers.size()));
  if (fresh) buffers.push_back(id);
  return it->second;
}

uint32_t KernelNames::number(loops::SiteId id) {
  auto [it, fresh] = site_numbers.try_emplace(id, static_cast<uint32_t>(sites.size()));
  if (fresh) sites.push_back(id);
  return it->second;
}

namespace {

// The kernel as text: everything that its code depends on, variables, buffers and sites by number.
struct Writer {
  const loops::Program& p;
  KernelNames& names;
  std::string out = {};
  std::unordered_map<loops::VarId, uint32_t> vars = {};

  void put(uint64_t v) {
    out += std::to_string(v);
    out += ' ';
  }
  void put(DType t) { put(static_cast<uint64_t>(t)); }

  void var(loops::VarId v) {
    if (!v.valid()) return put(~uint64_t{0});
    auto [it, fresh] = vars.try_emplace(v, static_cast<uint32_t>(vars.size()));
    put(it->second);
    if (fresh) put(p.vars[v].type);
  }

  void buffer(loops::BufferId id) {
    size_t before = names.buffers.size();
    put(names.number(id));
    if (names.buffers.size() == before) return;
    const loops::Buffer& b = p.buffers[id];
    put(b.dtype);
    put(static_cast<uint64_t>(b.space));
    put(b.dims.size());
    for (const auto& n : b.known) put(n ? static_cast<uint64_t>(*n) : ~uint64_t{0});
  }

  void site(loops::SiteId id) {
    put(id.valid());
    if (id.valid()) put(names.number(id));
  }

  void expr(loops::ExprId e) {
    const loops::Expr& x = p.exprs[e];
    put(x.node.index());
    put(x.type);
    match(
        x.node, [&](const loops::FloatConst& n) { put(std::bit_cast<uint64_t>(n.value)); },
        [&](const loops::IntConst& n) { put(static_cast<uint64_t>(n.value)); },
        [&](const loops::Param& n) { put(n.index); }, [&](const loops::Get& n) { var(n.var); },
        [&](const loops::Apply& n) { operation(n.op, n.args); },
        [&](const loops::Overflows& n) { operation(n.op, n.args); },
        [&](const loops::Load& n) {
          buffer(n.buffer);
          put(n.at.size());
          for (loops::ExprId a : n.at) expr(a);
        });
  }
  void operation(core::Op op, const std::vector<loops::ExprId>& args) {
    put(static_cast<uint64_t>(op));
    put(args.size());
    for (loops::ExprId a : args) expr(a);
  }

  void stmt(const loops::Stmt& s) {
    put(s.node.index());
    uint64_t count = 0;
    loops::for_each_expr(s, [&](loops::ExprId) { ++count; });
    put(count);
    loops::for_each_expr(s, [&](loops::ExprId e) { expr(e); });
    match(
        s.node, [&](const loops::Let& n) { var(n.var); },
        [&](const loops::Declare& n) { var(n.var); }, [&](const loops::Assign& n) { var(n.var); },
        [&](const loops::Store& n) { buffer(n.buffer); },
        [&](const loops::Update& n) { buffer(n.buffer); },
        [&](const loops::Fold& n) {
          put(static_cast<uint64_t>(n.op));
          var(n.acc);
          var(n.arg);
        },
        [](const loops::If&) {},
        [&](const loops::Loop& n) {
          var(n.var);
          put(static_cast<uint64_t>(n.axis.kind));
          put(n.axis.width);
          put(n.downward);
          put(n.folds.size());
          for (loops::VarId v : n.folds) var(v);
          site(n.poll);
          put(n.grain.valid());
          put(n.steps.valid());
          put(n.leave.valid());
          put(n.team.valid());
          put(n.state.empty());
        },
        [&](const loops::Check& n) { site(n.site); },
        [&](const loops::Contract& n) { contract(n); },
        [&](const loops::Invoke& n) {
          var(n.var);
          put(n.function);
          site(n.site);
        },
        [&](const loops::Fetch& n) {
          buffer(n.buffer);
          put(n.from.valid());
          if (n.from.valid()) buffer(n.from);
          site(n.site);
        },
        [&](const loops::Launch& n) {  // no two are one: each has a number of its own
          var(n.index);
          put(n.number);
        },
        [](const loops::Barrier&) {}, [](const loops::Combine&) {},
        [&](const loops::Touch& n) {
          for (const auto* set : {&n.loads, &n.stores}) {
            put(set->size());
            for (loops::BufferId b : *set) put(b.v);  // by its own number: the code has it too
          }
        });
    loops::for_each_block(s, [&](const loops::Block& b) { block(b); });
  }

  void contract(const loops::Contract& n) {
    put(n.type);
    put(n.operands);
    put(n.drops_subnormals);
    put(static_cast<uint64_t>(n.factor));
    for (const auto* set : {&n.batch, &n.m, &n.n, &n.k}) {
      put(set->size());
      for (const auto& i : *set) put(i.a.valid()), put(i.b.valid()), put(i.out.valid());
    }
    for (const auto* o : {&n.a, &n.b, &n.out}) buffer(o->buffer), put(o->at.size());
  }

  void block(const loops::Block& body) {
    put(body.size());
    for (const loops::Stmt& s : body) stmt(s);
  }
};

}  // namespace

std::string shape_of(const loops::Program& p, const loops::Kernel& k, KernelNames& names) {
  Writer w{p, names};
  w.block(k.body);
  return std::move(w.out);
}

}  // namespace ein::codegen

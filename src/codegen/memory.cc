#include "codegen/memory.h"

#include <algorithm>
#include <functional>

#include "base/match.h"

namespace ein::codegen {
namespace {

struct Mentions {
  const loops::Program& p;
  const std::function<void(loops::BufferId)>& f;

  void expr(loops::ExprId e) const {
    if (!e) return;
    match(
        p.exprs[e].node, [](const loops::FloatConst&) {}, [](const loops::IntConst&) {},
        [](const loops::Param&) {}, [](const loops::Get&) {},
        [&](const loops::Apply& n) { all(n.args); },
        [&](const loops::Overflows& n) { all(n.args); },
        [&](const loops::Load& n) {
          f(n.buffer);
          all(n.at);
        });
  }
  void all(const std::vector<loops::ExprId>& es) const {
    for (loops::ExprId e : es) expr(e);
  }
  void block(const loops::Block& body) const {
    for (const loops::Stmt& s : body) stmt(s);
  }
  void stmt(const loops::Stmt& s) const {
    match(
        s.node, [&](const loops::Let& n) { expr(n.value); },
        [&](const loops::Declare& n) { expr(n.init); },
        [&](const loops::Assign& n) { expr(n.value); },
        [&](const loops::Store& n) {
          f(n.buffer);
          all(n.at);
          expr(n.value);
        },
        [&](const loops::Update& n) {
          f(n.buffer);
          all(n.at);
          expr(n.value);
        },
        [&](const loops::Fold& n) {
          expr(n.value);
          expr(n.index);
        },
        [&](const loops::If& n) {
          expr(n.cond);
          block(n.then);
          block(n.otherwise);
        },
        [&](const loops::Loop& n) {
          expr(n.lo);
          expr(n.hi);
          block(n.body);
        },
        [&](const loops::Check& n) {
          expr(n.ok);
          all(n.values);
        },
        [&](const loops::Contract& n) {
          for (const auto* o : {&n.a, &n.b, &n.out}) {
            f(o->buffer);
            all(o->at);
          }
          for (const auto* set : {&n.batch, &n.m, &n.n, &n.k}) {
            for (const auto& i : *set) all({i.extent, i.a, i.b, i.out});
          }
        },
        [&](const loops::Invoke& n) { all(n.args); });
  }
};

}  // namespace

std::vector<Lifetime> lifetimes(const loops::Program& p) {
  std::vector<Lifetime> out(p.buffers.size());
  for (uint32_t k = 0; k < p.kernels.size(); ++k) {
    Mentions{p,
             [&](loops::BufferId b) {
               out[b.v].first = std::min(out[b.v].first, k);
               out[b.v].last = std::max(out[b.v].last, k);
             }}
        .block(p.kernels[k].body);
  }
  return out;
}

}  // namespace ein::codegen

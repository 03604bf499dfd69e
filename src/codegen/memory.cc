#include "codegen/memory.h"

#include <algorithm>
#include <functional>

#include "lower/walk.h"

namespace ein::codegen {
namespace {

void for_each_buffer(const loops::Program& p, const loops::Block& block,
                     const std::function<void(loops::BufferId)>& f) {
  loops::for_each_stmt(block, [&](const loops::Stmt& s) {
    loops::for_each_expr(s, [&](loops::ExprId e) {
      loops::for_each_node(p, e, [&](const loops::Node& n) {
        if (const auto* load = std::get_if<loops::Load>(&n)) f(load->buffer);
      });
    });
    if (const auto* n = std::get_if<loops::Store>(&s.node)) f(n->buffer);
    if (const auto* n = std::get_if<loops::Update>(&s.node)) f(n->buffer);
    if (const auto* n = std::get_if<loops::Contract>(&s.node)) {
      for (const auto* o : {&n->a, &n->b, &n->out}) f(o->buffer);
    }
  });
}

}  // namespace

std::vector<Lifetime> lifetimes(const loops::Program& p) {
  std::vector<Lifetime> out(p.buffers.size());
  for (uint32_t k = 0; k < p.kernels.size(); ++k) {
    for_each_buffer(p, p.kernels[k].body, [&](loops::BufferId b) {
      out[b.v].first = std::min(out[b.v].first, k);
      out[b.v].last = std::max(out[b.v].last, k);
    });
  }
  return out;
}

}  // namespace ein::codegen

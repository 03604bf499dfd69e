// Adds to the host's statements which buffers they access between launches.
#include <algorithm>
#include <set>

#include "device/device.h"
#include "loops/effects.h"
#include "loops/walk.h"

namespace ein::device {
namespace {

using loops::Block;
using loops::Buffer;
using loops::BufferId;
using loops::Stmt;

struct Host {
  loops::Program& p;
  uint32_t launches = 0;
  std::set<BufferId> loads = {}, stores = {};  // accessed by the host since the last launch

  static bool launches_inside(const Stmt& s) {
    bool out = false;
    loops::for_each_block(s, [&](const Block& b) {
      loops::for_each_stmt(
          b, [&](const Stmt& inner) { out |= std::holds_alternative<loops::Launch>(inner.node); });
    });
    return out;
  }

  // Scratch memory of an iteration is never copied to the device.
  std::vector<BufferId> shared(const std::set<BufferId>& all,
                               const std::set<BufferId>& known) const {
    std::vector<BufferId> out;
    for (BufferId b : all) {
      if (p.buffers[b].space != Buffer::Space::Row && !known.contains(b)) out.push_back(b);
    }
    return out;
  }

  void touch(const loops::Effects& e, Block& out) {
    loops::Touch fresh{shared(e.loads, loads), shared(e.stores, stores)};
    loads.insert(fresh.loads.begin(), fresh.loads.end());
    stores.insert(fresh.stores.begin(), fresh.stores.end());
    if (!fresh.loads.empty() || !fresh.stores.empty()) out.push_back({std::move(fresh)});
  }

  void forget() {
    loads.clear();
    stores.clear();
  }

  void block(Block& body) {
    Block out;
    for (Stmt& s : body) {
      if (auto* n = std::get_if<loops::Launch>(&s.node)) {
        n->number = launches++;
        forget();
      } else if (launches_inside(s)) {
        loops::Effects e;
        loops::for_each_expr(s, [&](loops::ExprId x) {
          loops::for_each_node(p, x, [&](const loops::Node& node) {
            if (const auto* load = std::get_if<loops::Load>(&node)) e.loads.insert(load->buffer);
          });
        });
        touch(e, out);
        loops::for_each_block(s, [&](Block& inner) {
          forget();
          block(inner);
        });
        forget();
      } else {
        touch(loops::effects(p, s), out);
      }
      out.push_back(std::move(s));
    }
    body = std::move(out);
  }
};

}  // namespace

loops::Program note_touches(loops::Program p) {
  bool any = std::any_of(p.kernels.begin(), p.kernels.end(), [](const loops::Kernel& k) {
    return Host::launches_inside(Stmt{loops::If{{}, k.body, {}}});
  });
  if (!any) return p;
  Host host{p};
  for (loops::Kernel& k : p.kernels) {
    host.forget();
    host.block(k.body);
  }
  return p;
}

}  // namespace ein::device

#include "codegen/launches.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "loops/effects.h"
#include "loops/walk.h"

namespace ein::codegen {

LaunchArguments arguments_of(const loops::Program& p, const loops::Launch& n) {
  LaunchArguments out;
  loops::Effects touched;
  for (const loops::Stmt& s : n.body) {
    loops::Effects e = loops::effects(p, s);
    touched.loads.merge(e.loads);
    touched.stores.merge(e.stores);
    out.stops |= e.checks;
  }
  std::set<loops::BufferId> all = touched.loads;
  all.insert(touched.stores.begin(), touched.stores.end());
  for (loops::BufferId b : all) {
    const loops::Buffer& buffer = p.buffers[b];
    if (buffer.space == loops::Buffer::Space::Local) {
      out.local.push_back(b);
      continue;
    }
    out.buffers.push_back(b);
    if (touched.stores.contains(b)) out.written.push_back(b);
    for (uint32_t k = 0; k < buffer.dims.size(); ++k) {
      if (!buffer.known[k]) out.extents.emplace_back(b, k);
    }
  }
  std::set<uint32_t> params;
  loops::for_each_node(p, n.body, [&](const loops::Node& node) {
    if (const auto* param = std::get_if<loops::Param>(&node)) params.insert(param->index);
  });
  out.params.assign(params.begin(), params.end());
  out.vars = loops::free_variables(p, n.body, {n.index});
  return out;
}

std::vector<const loops::Launch*> launches_of(const loops::Program& p) {
  std::vector<const loops::Launch*> out;
  for (const loops::Kernel& k : p.kernels) {
    loops::for_each_stmt(k.body, [&](const loops::Stmt& s) {
      if (const auto* n = std::get_if<loops::Launch>(&s.node)) out.push_back(n);
    });
  }
  return out;
}

std::string launch_name(const loops::Launch& n) {
  std::string out = "k" + std::to_string(n.number) + "_";
  for (char c : n.name) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return out;
}

}  // namespace ein::codegen

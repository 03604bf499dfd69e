#include "codegen/kernel_parts.h"

#include <unordered_map>

#include "loops/walk.h"

namespace ein::codegen {
namespace {

constexpr size_t kMostStatements = 128;  // at the top of one function, where it can be cut

// By variable: the last statement at the top of the kernel in which it is mentioned.
std::unordered_map<loops::VarId, size_t> last_uses(const loops::Program& p,
                                                   const loops::Block& body) {
  std::unordered_map<loops::VarId, size_t> out;
  for (size_t i = 0; i < body.size(); ++i) {
    auto note = [&](const loops::Stmt& s) {
      loops::for_each_expr(s, [&](loops::ExprId e) {
        loops::for_each_node(p, e, [&](const loops::Node& n) {
          if (const auto* get = std::get_if<loops::Get>(&n)) out[get->var] = i;
        });
      });
      if (const auto* n = std::get_if<loops::Assign>(&s.node)) out[n->var] = i;
      if (const auto* n = std::get_if<loops::Fold>(&s.node)) {
        out[n->acc] = i;
        if (n->arg) out[n->arg] = i;
      }
      if (const auto* n = std::get_if<loops::Loop>(&s.node)) {
        for (loops::VarId v : n->folds) out[v] = i;
      }
    };
    note(body[i]);
    loops::for_each_block(body[i],
                          [&](const loops::Block& inner) { loops::for_each_stmt(inner, note); });
  }
  return out;
}

}  // namespace

std::vector<loops::Block> independent_parts(const loops::Program& p, const loops::Block& body) {
  if (body.size() <= kMostStatements) return {body};
  auto last = last_uses(p, body);
  std::vector<loops::Block> out;
  loops::Block part;
  size_t needed = 0;  // one past the last statement that mentions a variable of this part
  auto bind = [&](loops::VarId v) {
    if (auto it = last.find(v); it != last.end()) needed = std::max(needed, it->second + 1);
  };
  for (size_t i = 0; i < body.size(); ++i) {
    const loops::Stmt& s = body[i];
    part.push_back(s);
    if (const auto* n = std::get_if<loops::Let>(&s.node)) bind(n->var);
    if (const auto* n = std::get_if<loops::Declare>(&s.node)) bind(n->var);
    if (const auto* n = std::get_if<loops::Invoke>(&s.node)) bind(n->var);
    if (part.size() < kMostStatements || needed > i + 1) continue;
    out.push_back(std::move(part));
    part = {};
  }
  if (!part.empty()) out.push_back(std::move(part));
  return out;
}

std::vector<KernelPart> parts_of(const loops::Program& p, std::deque<loops::Kernel>& cut) {
  std::vector<KernelPart> out;
  for (size_t k = 0; k < p.kernels.size(); ++k) {
    const loops::Kernel& whole = p.kernels[k];
    if (whole.body.size() <= kMostStatements) {
      out.push_back({&whole, k});
      continue;
    }
    for (loops::Block& part : independent_parts(p, whole.body)) {
      out.push_back({&cut.emplace_back(loops::Kernel{whole.name, std::move(part)}), k});
    }
  }
  return out;
}

}  // namespace ein::codegen

#include "loops/cut.h"

#include <unordered_map>

#include "loops/walk.h"

namespace ein::loops {
namespace {

// For each variable, the last top-level statement of the kernel that mentions it.
std::unordered_map<VarId, size_t> last_uses(const Program& p, const Block& body) {
  std::unordered_map<VarId, size_t> out;
  for (size_t i = 0; i < body.size(); ++i) {
    auto note = [&](const Stmt& s) {
      for_each_expr(s, [&](ExprId e) {
        for_each_node(p, e, [&](const Node& n) {
          if (const auto* get = std::get_if<Get>(&n)) out[get->var] = i;
        });
      });
      if (const auto* n = std::get_if<Assign>(&s.node)) out[n->var] = i;
      if (const auto* n = std::get_if<Fold>(&s.node)) {
        out[n->acc] = i;
        if (n->arg) out[n->arg] = i;
      }
      if (const auto* n = std::get_if<Loop>(&s.node)) {
        for (VarId v : n->folds) out[v] = i;
      }
      if (const auto* n = std::get_if<Combine>(&s.node)) out[n->acc] = i;
    };
    note(body[i]);
    for_each_block(body[i], [&](const Block& inner) { for_each_stmt(inner, note); });
  }
  return out;
}

}  // namespace

std::vector<Block> independent_parts(const Program& p, const Block& body) {
  const auto most = static_cast<size_t>(p.tuning.kernel_statements);
  if (body.size() <= most) return {body};
  auto last = last_uses(p, body);
  std::vector<Block> out;
  Block part;
  size_t needed = 0;  // one past the last statement that mentions a variable of this part
  auto bind = [&](VarId v) {
    if (auto it = last.find(v); it != last.end()) needed = std::max(needed, it->second + 1);
  };
  for (size_t i = 0; i < body.size(); ++i) {
    const Stmt& s = body[i];
    part.push_back(s);
    if (const auto* n = std::get_if<Let>(&s.node)) bind(n->var);
    if (const auto* n = std::get_if<Declare>(&s.node)) bind(n->var);
    if (const auto* n = std::get_if<Invoke>(&s.node)) bind(n->var);
    if (part.size() < most || needed > i + 1) continue;
    out.push_back(std::move(part));
    part = {};
  }
  if (!part.empty()) out.push_back(std::move(part));
  return out;
}

Program cut_kernels(Program p) {
  std::vector<Kernel> out;
  for (Kernel& k : p.kernels) {
    if (k.body.size() <= static_cast<size_t>(p.tuning.kernel_statements)) {
      out.push_back(std::move(k));
      continue;
    }
    std::vector<Block> parts = independent_parts(p, k.body);
    for (size_t i = 0; i < parts.size(); ++i) out.push_back({k.name, std::move(parts[i]), i > 0});
  }
  p.kernels = std::move(out);
  return p;
}

}  // namespace ein::loops

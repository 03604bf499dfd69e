#include "ide/bindings.h"

#include <algorithm>
#include <set>

namespace ein::ide {

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::Value: return "value";
    case Kind::Input: return "input";
    case Kind::Constant: return "constant";
    case Kind::Parameter: return "parameter";
    case Kind::Local: return "local name";
    case Kind::Index: return "index";
    case Kind::Extent: return "extent";
    case Kind::Coordinate: return "coordinate";
    case Kind::Pack: return "pack";
    case Kind::Function: return "function";
    case Kind::Module: return "module";
    case Kind::Type: return "type";
    case Kind::Field: return "field";
    case Kind::Builtin: return "built-in function";
  }
  return "";
}

void add_argument_names(Bindings& b, const ast::Ast& ast, const sema::Meanings& meanings) {
  std::vector<Occurrence> more;
  for (const ast::Expr& e : ast.exprs) {
    const auto* call = std::get_if<ast::Call>(&e.node);
    for (size_t i = 0; call && i < call->names.size(); ++i) {
      Span span = call->names[i].span;
      if (!call->names[i].symbol) continue;
      const Occurrence* known = occurrence_at(b, span.file, span.begin);
      auto it = meanings.definitions.find(sema::Meanings::place(span));
      if ((known && known->span == span) || it == meanings.definitions.end()) continue;
      const Occurrence* definition = occurrence_at(b, it->second.file, it->second.begin);
      if (definition && definition->span == it->second) {
        more.push_back({span, definition->entity, false});
      }
    }
  }
  if (more.empty()) return;
  b.occurrences.insert(b.occurrences.end(), more.begin(), more.end());
  std::sort(b.occurrences.begin(), b.occurrences.end(), [](const auto& x, const auto& y) {
    return std::pair(x.span.file, x.span.begin) < std::pair(y.span.file, y.span.begin);
  });
}

const Occurrence* occurrence_at(const Bindings& b, FileId file, uint32_t offset) {
  auto after = std::upper_bound(
      b.occurrences.begin(), b.occurrences.end(), offset, [&](uint32_t at, const Occurrence& o) {
        return o.span.file == file ? at < o.span.begin : file < o.span.file;
      });
  if (after == b.occurrences.begin()) return nullptr;
  const Occurrence& o = *(after - 1);
  return o.span.file == file && o.span.begin <= offset && offset <= o.span.end ? &o : nullptr;
}

std::vector<uint32_t> visible_at(const Bindings& b, FileId file, uint32_t offset) {
  std::vector<uint32_t> out;
  std::set<std::pair<bool, Symbol>> taken;  // functions and values have separate names
  for (size_t i = b.regions.size(); i-- > 0;) {
    const Region& r = b.regions[i];
    if (r.span.file != file || offset < r.span.begin || offset > r.span.end) continue;
    for (uint32_t id : r.entities) {
      const Entity& e = b.entities[id];
      if (taken.insert({e.kind == Kind::Function, e.name}).second) out.push_back(id);
    }
  }
  return out;
}

}  // namespace ein::ide

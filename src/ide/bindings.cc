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
  std::set<std::pair<bool, Symbol>> taken;  // functions and values have names of their own
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

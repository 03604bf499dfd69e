#include "sema/state/meanings.h"

#include <algorithm>

#include "sema/state/state.h"

namespace ein::sema {
namespace {

constexpr size_t kMost = 16;  // values of one place that are kept apart

// Without the expression that it is computed by.
Value outline_of(const Value& v) {
  Value out;
  out.kind = v.kind;
  out.type = v.type;
  out.typing = v.typing;
  out.coords = v.coords;
  out.fields = v.fields;
  if (v.kind != Value::Kind::Text) {
    for (const Value& item : v.items) out.items.push_back(outline_of(item));
  }
  return out;
}

bool same_outline(const Value& a, const Value& b) {
  auto same = [](const core::Coord& x, const core::Coord& y) {
    return x.name == y.name && x.extent == y.extent;
  };
  return a.kind == b.kind && a.type == b.type && a.typing == b.typing && a.fields == b.fields &&
         std::equal(a.coords.begin(), a.coords.end(), b.coords.begin(), b.coords.end(), same) &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same_outline);
}

void note_seen(std::vector<Value>& seen, const Value& v) {
  if (v.poison() || seen.size() == kMost) return;
  for (const Value& other : seen) {
    if (same_outline(other, v)) return;
  }
  seen.push_back(outline_of(v));
}

}  // namespace

void note_definition(Sema& s, const ast::Name& use, Span definition) {
  if (!s.meanings || !s.meanings->uses || use.made || !use.span.valid() || !definition.valid())
    return;
  s.meanings->definitions.try_emplace(Meanings::place(use.span), definition);
}

void note_value(Sema& s, const ast::Name& name, const Value& v) {
  if (s.meanings && s.meanings->uses) note_defined(s, name, v);
}

void note_defined(Sema& s, const ast::Name& name, const Value& v) {
  if (!s.meanings || name.made || !name.span.valid()) return;
  note_seen(s.meanings->seen[Meanings::place(name.span)], v);
}

void note_tree(Sema& s, TreeId tree, const Value& v) {
  if (s.meanings && s.meanings->uses) note_seen(s.meanings->seen_trees[tree], v);
}

}  // namespace ein::sema

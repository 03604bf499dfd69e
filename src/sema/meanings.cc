// The end of what state/meanings.h begins: definitions and indices, and everything in words.
#include "sema/state/meanings.h"

#include <algorithm>
#include <unordered_map>

#include "base/match.h"
#include "sema/finish.h"
#include "sema/ranges/ranges.h"
#include "sema/state/definition_state.h"
#include "sema/state/name_state.h"
#include "sema/state/report.h"

namespace ein::sema {
namespace {

// An extent as text. The same few are asked for again and again.
struct ExtentWords {
  Sema& s;
  std::unordered_map<CoreId, std::string> known = {};

  const std::string& operator()(CoreId extent) {
    auto [it, fresh] = known.try_emplace(extent);
    if (fresh) it->second = show(s, resolve(s, extent));
    return it->second;
  }
};

Shown in_words(ExtentWords& words, const Value& v) {
  Shown out;
  switch (v.kind) {
    case Value::Kind::Poison: break;
    case Value::Kind::Data:
    case Value::Kind::Table:
      out.type = name_of(v.type);
      out.literal = v.typing != Typing::Fixed;
      break;
    case Value::Kind::Tuple: out.type = v.record() ? "record" : "tuple"; break;
    case Value::Kind::Function: out.type = "function"; break;
    case Value::Kind::Text:
    case Value::Kind::Texts: out.type = "str"; break;
  }
  for (const core::Coord& c : v.coords) {
    out.coords.push_back({c.name ? text(c.name) : "", c.extent ? words(c.extent) : "?"});
  }
  for (Symbol field : v.fields) out.fields.push_back(text(field));
  for (const Value& item : v.items) out.items.push_back(in_words(words, item));
  return out;
}

template <class T>
void add_once(std::vector<T>& list, T item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(std::move(item));
}

// What a definition has become; poison where it has become nothing.
Value outcome_of(Sema& s, const Definition& d) {
  if (!d.leaves.empty()) return d.shape;
  if (d.inlined) return *d.inlined;
  Value out;
  if (!d.family) return out;
  const core::Family& f = s.m[d.family];
  out.kind = Value::Kind::Data;
  out.type = f.dtype;
  size_t prefix = std::min(d.carries.size(), f.coords.size());
  out.coords.assign(f.coords.begin() + static_cast<ptrdiff_t>(prefix), f.coords.end());
  return out;
}

// A clause of the definition may spell its name as one of several.
void note_clauses(Sema& s, const Definition& d) {
  Value v = outcome_of(s, d);
  for (ast::StmtId clause : d.clauses) {
    match(
        s.ast[clause].node,
        [&](const ast::Let& l) {
          for (const ast::Name& n : l.names) {
            if (n.symbol == d.name.symbol) note_defined(s, n, v);
          }
        },
        [&](const ast::Const& c) { note_defined(s, c.name, v); }, [](const auto&) {});
  }
}

}  // namespace

void finish_meanings(Sema& s) {
  if (!s.meanings) return;
  Meanings& m = *s.meanings;
  for (const Scope& scope : s.names.scopes) {
    for (const Definition& d : scope.definitions) note_clauses(s, d);
    for (const auto& [name, value] : scope.frame.values) note_defined(s, name, value);
    for (const auto& [name, extent] : scope.extents) {
      if (!extent.named.valid() || !extent.extent) continue;
      CoreId resolved = resolve(s, extent.extent);
      if (has_unsolved(s, resolved)) continue;
      add_once(m.extents[Meanings::place(extent.named)], show(s, resolved));
    }
  }
  for (const Index& i : s.names.indices) {
    if (!i.named.valid() || !i.range.lo || !i.range.hi) continue;
    core::Range r = resolve(s, i.range);
    if (has_unsolved(s, r.lo) || has_unsolved(s, r.hi)) continue;
    add_once(m.ranges[Meanings::place(i.named)], {show(s, r.lo), show(s, r.hi), i.inferred});
  }
  ExtentWords words{s};
  auto put_into_words = [&](const auto& seen, auto& out) {
    out.reserve(seen.size());
    for (const auto& [where, values] : seen) {
      auto& list = out[where];
      for (const Value& v : values) add_once(list, in_words(words, v));
    }
  };
  put_into_words(m.seen, m.values);
  put_into_words(m.seen_trees, m.trees);
  m.seen.clear();
  m.seen_trees.clear();
}

}  // namespace ein::sema

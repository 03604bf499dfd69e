#include "ide/navigate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sema/builtins.h"
#include "syntax/lexer.h"

namespace ein::ide {
namespace {

Place place_of(const Analysis& a, Span span, bool defines = false, bool field = false) {
  return {a.sources.name(span.file), span.begin, span.end, defines, field};
}

bool meets_by_name(Kind kind) {
  return kind == Kind::Index || kind == Kind::Extent || kind == Kind::Coordinate;
}

void in_order(std::vector<Place>& places) {
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end(),
                           [](const Place& x, const Place& y) {
                             return x.path == y.path && x.begin == y.begin;
                           }),
               places.end());
}

}  // namespace

std::vector<Place> definition(const Analysis& a, uint32_t offset) {
  const Occurrence* o = occurrence_at(a.bindings, a.root, offset);
  if (!o) return {};
  const Entity& e = entity_of(a, *o);
  if (e.kind == Kind::Field) {  // all records that have a field of this name
    std::vector<Place> out;
    for (const Occurrence& other : a.bindings.occurrences) {
      if (other.entity == o->entity && other.defines) out.push_back(place_of(a, other.span, true));
    }
    return out;
  }
  Span span = e.span;
  // A coordinate in brackets: where its name first occurs.
  if (o->span == span && meets_by_name(e.kind)) { span = a.bindings.entities[e.group].span; }
  if (!span.valid()) return {};
  return {place_of(a, span, true)};
}

std::vector<Place> highlights(const Analysis& a, uint32_t offset) {
  const Occurrence* at = occurrence_at(a.bindings, a.root, offset);
  std::vector<Place> out;
  if (!at) return out;
  for (const Occurrence& o : a.bindings.occurrences) {
    if (o.span.file == a.root && o.entity == at->entity) {
      out.push_back(place_of(a, o.span, o.defines));
    }
  }
  return out;
}

std::optional<Target> target_at(const Analysis& a, uint32_t offset) {
  const Occurrence* o = occurrence_at(a.bindings, a.root, offset);
  if (!o) return std::nullopt;
  const Entity& e = a.bindings.entities[entity_of(a, *o).group];
  if (!e.span.valid()) return Target{"", 0, text(e.name), false};
  return Target{a.sources.name(e.span.file), e.span.begin, text(e.name),
                e.exported || e.kind == Kind::Module};
}

std::vector<Place> references(const Analysis& a, const Target& target) {
  std::vector<Place> out;
  for (const Occurrence& o : a.bindings.occurrences) {
    const Entity& e = a.bindings.entities[entity_of(a, o).group];
    bool same = e.span.valid()
                    ? e.span.begin == target.begin && a.sources.name(e.span.file) == target.path
                    : target.path.empty();
    if (!same || text(e.name) != target.name) continue;
    if (a.sources.text(o.span) != target.name) continue;  // `use m::{f as g}`: g has its own name
    out.push_back(place_of(a, o.span, o.defines, o.field));
  }
  in_order(out);
  return out;
}

std::string why_not_renamed(const Analysis& a, uint32_t offset) {
  const Occurrence* o = occurrence_at(a.bindings, a.root, offset);
  if (!o) return "there is no name here";
  const Entity& e = a.bindings.entities[entity_of(a, *o).group];
  std::string name = text(e.name);
  if (e.kind == Kind::Builtin) return fmt::format("`{}` is built in", name);
  if (e.kind == Kind::Module) return fmt::format("`{}` is the name of a file", name);
  if (e.kind == Kind::Field)
    return "fields of records are not renamed: files are written with them";
  for (const Occurrence& other : a.bindings.occurrences) {
    if (other.defines && other.field && entity_of(a, other).group == e.group) {
      return fmt::format("`{0}` takes the field of a record by its name: write `let {0} = ….{0};`",
                         name);
    }
  }
  if (e.span.valid() && a.sources.name(e.span.file).starts_with("std/")) {
    return fmt::format("`{}` is defined in the standard library", name);
  }
  if (a.sources.text(o->span) != name) {
    return fmt::format("`{}` stands for `{}` by a `use … as`", a.sources.text(o->span), name);
  }
  return "";
}

std::string why_not_a_name(const std::string& name) {
  SourceMap sources;
  Diagnostics diags;
  auto tokens = ast::lex(sources.add("name", name), sources, diags).tokens;
  bool one = tokens.size() == 2 && tokens[0].kind == ast::Tok::Name && !diags.has_errors() &&
             tokens[0].span.end == name.size() && tokens[0].span.begin == 0;
  if (!one) return fmt::format("`{}` is not a name", name);
  return name == "_" ? "`_` is no name: it stands for what is not used" : "";
}

namespace {

// The names without those of fields, which are not renamed: `{ a }` may have become `{ a: b }`.
std::vector<Occurrence> names_in(const Analysis& a) {
  std::vector<Occurrence> out;
  for (const Occurrence& o : a.bindings.occurrences) {
    if (entity_of(a, o).kind != Kind::Field) out.push_back(o);
  }
  return out;
}

}  // namespace

std::string what_changes(const Analysis& before, const Analysis& after) {
  std::string other = "names would mean something else";
  std::vector<Occurrence> x = names_in(before), y = names_in(after);
  if (x.size() != y.size()) return other;
  std::map<uint32_t, uint32_t> entities, groups, back;
  for (size_t i = 0; i < x.size(); ++i) {
    const Occurrence &p = x[i], &q = y[i];
    const Entity &e = entity_of(before, p), &f = entity_of(after, q);
    if (p.defines != q.defines || e.kind != f.kind) return other;
    if (entities.try_emplace(p.entity, q.entity).first->second != q.entity) return other;
    if (groups.try_emplace(e.group, f.group).first->second != f.group) return other;
    if (back.try_emplace(f.group, e.group).first->second != e.group) return other;
  }
  std::map<std::string, int> mistakes;
  for (const Diagnostic& d : before.diags.all()) ++mistakes[info(d.code).name];
  for (const Diagnostic& d : after.diags.all()) {
    if (--mistakes[info(d.code).name] < 0) return "there would be a mistake: " + d.message;
  }
  bool fewer =
      std::any_of(mistakes.begin(), mistakes.end(), [](const auto& m) { return m.second; });
  return fewer ? other : "";
}

}  // namespace ein::ide

#include <fmt/format.h>

#include <algorithm>

#include "ide/features.h"
#include "syntax/format.h"
#include "syntax/parser.h"

namespace ein::ide {
namespace {

bool overlaps(Span span, FileId file, uint32_t begin, uint32_t end) {
  return span.file == file && span.begin <= end && begin <= span.end;
}

bool can_be_written(const std::string& extent) {
  return extent.find('?') == std::string::npos && extent.find("…") == std::string::npos;
}

void add_fixes(const Analysis& a, uint32_t begin, uint32_t end, std::vector<Action>& out) {
  for (const Diagnostic& d : a.diags.all()) {
    bool here = std::any_of(d.labels.begin(), d.labels.end(), [&](const Label& l) {
      return l.primary && overlaps(l.span, a.root, begin, end);
    });
    if (!here) continue;
    for (const Fix& fix : d.fixes) {
      bool own = std::all_of(fix.edits.begin(), fix.edits.end(),
                             [&](const Edit& e) { return e.span.file == a.root; });
      if (own) out.push_back({fix.title, fix.edits, &d, fix.safe});
    }
  }
}

// Offers to write the range of the index at this place, if it is inferred and the same in all
// calls.
void add_range(const Analysis& a, uint32_t at, std::vector<Action>& out) {
  const Occurrence* o = occurrence_at(a.bindings, a.root, at);
  if (!o) return;
  const Entity& e = entity_of(a, *o);
  if (e.kind != Kind::Index || e.span.file != a.root) return;
  auto it = a.meanings.ranges.find(sema::Meanings::place(e.span));
  if (it == a.meanings.ranges.end() || it->second.size() != 1) return;
  const sema::ShownRange& r = it->second[0];
  if (!r.inferred || !can_be_written(r.lo) || !can_be_written(r.hi)) return;
  std::string range = fmt::format(" in {}..{}", r.lo, r.hi);
  out.push_back({fmt::format("write the range: `{}{}`", text(e.name), range),
                 {{{a.root, e.span.end, e.span.end}, range}}});
}

// Offers to write the type of the definition at this place, if it has none.
void add_type(const Analysis& a, uint32_t at, std::vector<Action>& out) {
  const Occurrence* o = occurrence_at(a.bindings, a.root, at);
  if (!o || !o->defines) return;
  const Entity& e = entity_of(a, *o);
  const auto* let = e.stmt ? std::get_if<ast::Let>(&a.ast()[e.stmt].node) : nullptr;
  if (!let || let->type || !let->value || let->names.size() != 1) return;
  if (let->names[0].span != o->span) return;  // a further clause
  const auto& values = values_of(a, *o);
  if (values.size() != 1) return;
  sema::Shown v = values[0];
  uint32_t behind = o->span.end;
  if (let->has_slots) {
    if (let->slots.empty()) return;
    size_t own = std::min(let->slots.size(), v.coords.size());
    v.coords.erase(v.coords.begin(), v.coords.begin() + static_cast<ptrdiff_t>(own));
    size_t close = a.text().find(']', let->slots.back().span.end);
    if (close == std::string::npos) return;
    behind = static_cast<uint32_t>(close + 1);
  }
  std::string type = as_type(v);
  if (type.empty()) return;
  out.push_back(
      {fmt::format("write the type: `{}`", type), {{{a.root, behind, behind}, ": " + type}}});
}

}  // namespace

std::vector<Action> actions(const Analysis& a, uint32_t begin, uint32_t end) {
  std::vector<Action> out;
  add_fixes(a, begin, end, out);
  add_range(a, begin, out);
  add_type(a, begin, out);
  if (auto slice = name_slice(a, begin, end)) out.push_back(std::move(*slice));
  return out;
}

std::optional<std::string> formatted(const Analysis& a) {
  SourceMap sources;
  Diagnostics diags;
  ast::Ast tree;
  ast::Lexed lexed;
  tree.file = sources.add(a.sources.name(a.root), a.text());
  tree.items = ast::parse_into(tree, tree.file, sources, diags, &lexed);
  if (diags.has_errors()) return std::nullopt;
  return ast::format(tree, sources, std::move(lexed));
}

}  // namespace ein::ide

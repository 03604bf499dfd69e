// Gives `W[s - 1]` a name: inserts `let w = W[s - 1];` before the first statement of the block that
// reads it, and replaces it by `w` throughout the block. A step can then be differentiated with
// respect to the value that it starts from.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "ide/features.h"

namespace ein::ide {
namespace {

bool inside(Span inner, Span outer) {
  return inner.file == outer.file && inner.begin >= outer.begin && inner.end <= outer.end;
}

// The statements of a block or file; the value of a block is the last piece.
struct Pieces {
  Span whole;
  std::vector<Span> spans;
};

std::vector<Span> spans_of(const Analysis& a, const std::vector<ast::StmtId>& stmts) {
  std::vector<Span> out;
  for (ast::StmtId id : stmts) {
    if (a.ast()[id].span.file == a.root) out.push_back(a.ast()[id].span);
  }
  return out;
}

Pieces pieces_around(const Analysis& a, Span at) {
  Pieces best{{a.root, 0, static_cast<uint32_t>(a.text().size())}, spans_of(a, a.ast().items)};
  for (const ast::Expr& e : a.ast().exprs) {
    const auto* block = std::get_if<ast::Block>(&e.node);
    if (!block || e.span.file != a.root || !inside(at, e.span)) continue;
    if (e.span.end - e.span.begin >= best.whole.end - best.whole.begin) continue;
    std::vector<Span> spans = spans_of(a, block->stmts);
    if (block->value) spans.push_back(a.ast()[block->value].span);
    bool has = std::any_of(spans.begin(), spans.end(), [&](Span s) { return inside(at, s); });
    // A comprehension's block, made by the parser.
    bool made = !spans.empty() && spans[0] == e.span;
    if (has && !made) best = {e.span, std::move(spans)};
  }
  return best;
}

// The entities of the names in a piece of text; nothing if a name would mean something else in
// front of the statement.
bool known_before(const Analysis& a, Span piece, Span statement, std::vector<uint32_t>& entities) {
  for (const Occurrence& o : a.bindings.occurrences) {
    if (!inside(o.span, piece)) continue;
    if (inside(entity_of(a, o).span, statement)) return false;
    entities.push_back(o.entity);
  }
  return true;
}

// The leading indices of an access, as far as they mean the same in front of the statement.
struct Slice {
  size_t slots = 0;
  std::string text;  // from the name to the last of these indices
  std::vector<uint32_t> entities;
  friend bool operator==(const Slice&, const Slice&) = default;
};

Slice slice_of(const Analysis& a, const ast::Index& access, Span statement, size_t most) {
  Slice out;
  Span span = a.ast()[access.base].span;
  if (!known_before(a, span, statement, out.entities)) return {};
  for (ast::ExprId at : access.at) {
    std::vector<uint32_t> more;
    if (out.slots == most || !known_before(a, a.ast()[at].span, statement, more)) break;
    out.entities.insert(out.entities.end(), more.begin(), more.end());
    span.end = a.ast()[at].span.end;
    ++out.slots;
  }
  out.text = a.sources.text(span);
  return out;
}

std::string fresh_name(const Analysis& a, const std::string& base) {
  auto spelled = [&](const std::string& name) {
    return std::any_of(a.lexed.tokens.begin(), a.lexed.tokens.end(),
                       [&](const ast::Token& t) { return a.sources.text(t.span) == name; });
  };
  std::string lower = base;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (!spelled(lower)) return lower;
  std::string name = base + "_slice";
  for (int n = 2; spelled(name); ++n) name = fmt::format("{}_slice_{}", base, n);
  return name;
}

// Where to insert a line before the statement: above its comments and attributes.
uint32_t line_before(const std::string& text, uint32_t at, std::string& indent) {
  size_t line = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
  size_t first = text.find_first_not_of(" \t", line);
  indent = text.substr(line, first - line);
  if (first != at) return ~0u;  // something else precedes it on its line
  while (line > 0) {
    size_t above = line == 1 ? 0 : text.rfind('\n', line - 2) + 1;
    size_t word = text.find_first_not_of(" \t", above);
    bool belongs = text.compare(word, 2, "//") == 0 || text.compare(word, 2, "#[") == 0;
    if (!belongs) break;
    line = above;
  }
  return static_cast<uint32_t>(line);
}

}  // namespace

std::optional<Action> name_slice(const Analysis& a, uint32_t begin, uint32_t end) {
  ast::ExprId id = tree_at(a, begin, [&](const ast::Expr& e) {
    const auto* index = std::get_if<ast::Index>(&e.node);
    return index && end <= e.span.end &&
           std::holds_alternative<ast::Path>(a.ast()[index->base].node);
  });
  if (!id) return std::nullopt;
  Span at = a.ast()[id].span;
  Pieces pieces = pieces_around(a, at);
  auto statement = [&](Span s) {
    auto it = std::find_if(pieces.spans.begin(), pieces.spans.end(),
                           [&](Span piece) { return inside(s, piece); });
    return it == pieces.spans.end() ? Span{} : *it;
  };
  Span home = statement(at);
  if (!home.valid()) return std::nullopt;
  for (const ast::Stmt& s : a.ast().stmts) {  // it already has a name: `let w = W[s - 1];`
    const auto* let = std::get_if<ast::Let>(&s.node);
    if (let && let->value == id) return std::nullopt;
  }
  const auto& chosen = std::get<ast::Index>(a.ast()[id].node);
  Slice wanted = slice_of(a, chosen, home, chosen.at.size());
  if (wanted.slots == 0) return std::nullopt;
  std::string name = fresh_name(a, std::string(a.sources.text(a.ast()[chosen.base].span)));

  Action out;
  uint32_t first = ~0u;
  for (const ast::Expr& e : a.ast().exprs) {
    const auto* access = std::get_if<ast::Index>(&e.node);
    if (!access || !inside(e.span, pieces.whole)) continue;
    Span around = statement(e.span);
    if (!around.valid()) continue;
    if (!(slice_of(a, *access, around, wanted.slots) == wanted)) continue;
    first = std::min(first, around.begin);
    if (access->at.size() == wanted.slots) {
      out.edits.push_back({e.span, name});
    } else {
      uint32_t rest = a.ast()[access->at[wanted.slots]].span.begin;
      out.edits.push_back({{e.span.file, e.span.begin, rest}, name + "["});
    }
  }
  std::string indent;
  uint32_t line = first == ~0u ? first : line_before(a.text(), first, indent);
  if (line == ~0u) return std::nullopt;
  out.edits.push_back(
      {{a.root, line, line}, fmt::format("{}let {} = {}];\n", indent, name, wanted.text)});
  std::sort(out.edits.begin(), out.edits.end(),
            [](const Edit& x, const Edit& y) { return x.span.begin < y.span.begin; });
  out.edits.erase(std::unique(out.edits.begin(), out.edits.end(),
                              [](const Edit& x, const Edit& y) { return x.span == y.span; }),
                  out.edits.end());
  out.title = fmt::format("name the slice: `let {} = {}];`", name, wanted.text);
  return out;
}

}  // namespace ein::ide

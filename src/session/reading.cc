#include "session/reading.h"

#include <algorithm>
#include <set>

#include "base/diag.h"
#include "base/match.h"
#include "syntax/lexer.h"
#include "syntax/parser.h"

namespace ein::session {
namespace {

constexpr const char* kBlanks = " \t\r\n";

bool is_error(const Diagnostic& d) { return info(d.code).severity == Severity::Error; }

// Whether more text may repair a mistake: the entry ended too early.
bool wants_more(const Diagnostic& d, const ast::Lexed& lexed, uint32_t end) {
  if (d.code == Code::E0103) return true;
  for (const Label& l : d.labels) {
    if (l.primary && l.span.begin >= end) return true;
    bool attribute = d.code == Code::E0114;  // `#[checkpoint]`: its statement may still follow
    if (attribute && l.primary && l.span.end >= end) return true;
  }
  return std::any_of(lexed.tokens.begin(), lexed.tokens.end(), [&](const ast::Token& t) {
    auto here = [&](const Label& l) { return l.primary && l.span.begin == t.span.begin; };
    return t.unclosed && std::any_of(d.labels.begin(), d.labels.end(), here);
  });
}

std::vector<std::string> names_in(const ast::Stmt& s) {
  std::vector<std::string> out;
  auto add = [&](const ast::Name& n) {
    if (text(n.symbol) != "_") out.push_back(text(n.symbol));
  };
  match(
      s.node, [&](const ast::Let& n) { std::for_each(n.names.begin(), n.names.end(), add); },
      [&](const ast::Const& n) { add(n.name); },
      [&](const ast::Fn& n) { out.push_back((n.rule ? "@" : "") + text(n.name.symbol)); },
      [&](const ast::Use& n) {
        for (const ast::UseItem& item : n.items) add(item.alias.value_or(item.name));
        if (n.items.empty() && !n.glob) add(n.alias.value_or(n.path.back()));
      },
      [&](const ast::Mod& n) { add(n.name); }, [&](const ast::TypeDef& n) { add(n.name); },
      [](const auto&) {});
  return out;
}

// Blanks and newlines that keep the text after `before` at its line and column.
std::string place_keeping(std::string_view before) {
  auto lines = static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  size_t last = before.rfind('\n');
  std::string_view line = last == std::string_view::npos ? before : before.substr(last + 1);
  std::string out(lines, '\n');
  for (char c : line) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) out += c == '\t' ? '\t' : ' ';
  }
  return out;
}

bool is_definition(const ast::Stmt& s) {
  return !std::holds_alternative<ast::ExprStmt>(s.node) &&
         !std::holds_alternative<ast::Test>(s.node) &&
         !std::holds_alternative<ast::ErrorStmt>(s.node);
}

// `leth` for `let h[0] = 1.0`: the beginning that all clauses of one value share. Empty for other
// statements.
std::string clause_head(const std::string& statement) {
  size_t begin = statement.find("let ");
  if (begin == std::string::npos || statement.find_first_not_of(kBlanks) != begin) return "";
  size_t end = statement.find_first_of("[=:;{", begin);
  if (end == std::string::npos || statement[end] != '[') return "";
  std::string out = statement.substr(begin, end - begin);
  std::erase_if(out, [](char c) { return std::string_view(kBlanks).find(c) != std::string::npos; });
  return out;
}

// The clause head of the last statement.
std::string last_head(const std::string& entry) {
  SourceMap sources;
  Diagnostics diags;
  FileId file = sources.add("", entry);
  ast::Ast tree = ast::parse(file, sources, diags);
  if (tree.items.empty()) return "";
  const ast::Stmt& last = tree[tree.items.back()];
  const auto* let = std::get_if<ast::Let>(&last.node);
  if (!let || let->names.empty()) return "";
  size_t begin = entry.rfind("let", let->names[0].span.begin);  // after the attributes
  return begin == std::string::npos ? "" : clause_head(entry.substr(begin));
}

}  // namespace

bool ends_with_clause(const std::string& entry) { return !last_head(entry).empty(); }

bool more_clauses(const std::string& entry, const std::string& next_line) {
  std::string next = clause_head(next_line);
  return !next.empty() && next == last_head(entry);
}

Reading read_entry(const std::string& text) {
  size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return Reading::Nothing;
  if (text[begin] == ':') return Reading::Finished;
  SourceMap sources;
  Diagnostics diags, again;
  FileId file = sources.add("", text);
  ast::Ast tree = ast::parse(file, sources, diags);
  ast::Lexed lexed = ast::lex(file, sources, again);
  bool empty = lexed.tokens.size() < 2;
  bool documents = !lexed.comments.empty() && lexed.comments.back().doc;
  if (empty) return documents ? Reading::Unfinished : Reading::Nothing;
  uint32_t end = lexed.tokens[lexed.tokens.size() - 2].span.end;
  bool more = false;
  for (const Diagnostic& d : diags.all()) {
    if (!is_error(d)) continue;
    if (!wants_more(d, lexed, end)) return Reading::Finished;
    more = true;
  }
  return more ? Reading::Unfinished : Reading::Finished;
}

bool goes_on(const std::string& next_line) {
  if (next_line.empty()) return false;
  char c = next_line[0];
  if (c == ' ' || c == '\t') return next_line.find_first_not_of(kBlanks) != std::string::npos;
  static constexpr std::string_view kNever = "+*/%.,)]}<>=&|^?";
  if (next_line.starts_with("//")) return false;
  return kNever.find(c) != std::string_view::npos || next_line.starts_with("where ") ||
         next_line.starts_with("until ") || next_line.starts_with("else");
}

std::shared_ptr<const ast::Ast> tree_of(const std::string& text) {
  SourceMap sources;
  Diagnostics ignored;  // the entry has been read without mistakes
  return std::make_shared<ast::Ast>(ast::parse(sources.add("", text), sources, ignored));
}

std::vector<Piece> pieces_of(const ast::Ast& tree, FileId file, const SourceMap& sources) {
  std::vector<Piece> out;
  const std::string& text = sources.text(file);
  uint32_t from = 0;
  for (ast::StmtId id : tree.items) {
    const ast::Stmt& s = tree[id];
    if (s.span.file != file) continue;
    uint32_t begin = from;
    while (begin < s.span.end && (text[begin] == ';' || text[begin] == ' ')) ++begin;
    from = s.span.end;
    if (!is_definition(s)) continue;
    Piece piece;
    piece.entry = sources.name(file);
    piece.text = place_keeping(std::string_view(text).substr(0, begin)) +
                 text.substr(begin, s.span.end - begin);
    piece.names = names_in(s);
    piece.value = std::holds_alternative<ast::Let>(s.node);
    piece.import =
        std::holds_alternative<ast::Use>(s.node) || std::holds_alternative<ast::Mod>(s.node);
    piece.stmt = id;
    if (const auto* let = std::get_if<ast::Let>(&s.node)) {
      auto shift = static_cast<uint32_t>(piece.text.size() - s.span.end);
      for (const ast::Name& n : let->names) piece.places.push_back(n.span.begin + shift);
      for (Piece& other : out) other.joined |= other.value && other.names == piece.names;
    }
    out.push_back(std::move(piece));
  }
  return out;
}

std::string plain_text(const Piece& piece) {
  size_t begin = piece.text.find_first_not_of(kBlanks);
  size_t end = piece.text.find_last_not_of(kBlanks);
  if (begin == std::string::npos) return "";
  std::string out = piece.text.substr(begin, end + 1 - begin);
  if (out.back() != ';' && out.back() != '}') out += ';';
  return out;
}

}  // namespace ein::session

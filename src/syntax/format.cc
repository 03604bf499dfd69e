#include "syntax/format.h"

#include <algorithm>

#include "base/diag.h"
#include "base/match.h"
#include "syntax/format_impl.h"

namespace ein::ast {

namespace {

constexpr size_t kWidth = 100;
}  // namespace

std::string format(const Ast& ast, const SourceMap& sources) {
  Diagnostics diags;
  return format(ast, sources, lex(ast.file, sources, diags));
}

std::string format(const Ast& ast, const SourceMap& sources, Lexed lexed) {
  const std::string& source = sources.text(ast.file);
  if (!ast.complete) return source;
  Formatter f{ast, sources, std::move(lexed), {}, 0};
  std::string script;  // `#!` line
  size_t mark = source.compare(0, 3, "\xEF\xBB\xBF") == 0 ? 3 : 0;
  if (source.compare(mark, 2, "#!") == 0 && source.compare(mark, 3, "#![") != 0) {
    script = source.substr(mark, source.find('\n', mark) - mark) + "\n";
  }
  DocId root = f.file();
  return script + f.out.print(root, kWidth);
}

bool Formatter::pending(uint32_t before) const {
  return comment < lexed.comments.size() && lexed.comments[comment].span.begin < before;
}

bool Formatter::pending_trailing(uint32_t before) const {
  return pending(before) && !lexed.comments[comment].own_line;
}

DocId Formatter::take_comment() { return out.text(sources.text(lexed.comments[comment++].span)); }

DocId Formatter::comments_before(uint32_t place) {
  std::vector<DocId> parts;
  while (pending(place)) {
    parts.push_back(take_comment());
    parts.push_back(out.hard());
  }
  return out.cat(parts);
}

DocId Formatter::trailing_comments(uint32_t before) {
  std::vector<DocId> parts;
  while (pending_trailing(before)) {
    if (!parts.empty()) parts.push_back(out.hard());
    if (parts.empty()) parts.push_back(out.text(" "));
    parts.push_back(take_comment());
    parts.push_back(out.broken());
  }
  return out.cat(parts);
}

uint32_t Formatter::next_token(uint32_t place) const {
  auto it = std::lower_bound(lexed.tokens.begin(), lexed.tokens.end(), place,
                             [](const Token& t, uint32_t p) { return t.span.begin < p; });
  return it == lexed.tokens.end() ? place : it->span.begin;
}

std::string_view Formatter::literal(const Expr& e) const {
  auto it = std::lower_bound(lexed.tokens.begin(), lexed.tokens.end(), e.span.begin,
                             [](const Token& t, uint32_t p) { return t.span.begin < p; });
  while (it != lexed.tokens.end() && it->kind == Tok::LParen) ++it;
  return sources.text(it->span);
}

bool Formatter::blank_between(uint32_t from, uint32_t to) const {
  std::string_view text =
      std::string_view(sources.text(ast.file)).substr(from, to > from ? to - from : 0);
  return std::count(text.begin(), text.end(), '\n') >= 2;
}

bool Formatter::one_line(Span span) const {
  return sources.text(span).find('\n') == std::string_view::npos;
}

DocId Formatter::names(const std::vector<Name>& parts, const char* between) {
  std::string s;
  for (const Name& part : parts) s += (s.empty() ? "" : between) + text(part.symbol);
  return out.text(s);
}

DocId Formatter::list(const std::string& open, const std::vector<Item>& items,
                      const std::string& close, uint32_t end, bool filled, bool spaced) {
  if (pending(end)) filled = false;  // a comment ends its line
  std::vector<DocId> inner;
  DocId opening = items.empty() ? out.cat({}) : trailing_comments(items[0].span.begin);
  if (!items.empty()) inner.push_back(spaced ? out.line() : out.soft());
  for (size_t i = 0; i < items.size(); ++i) {
    DocId before = comments_before(items[i].span.begin);
    DocId item = items[i].write();
    bool last = i + 1 == items.size();
    if (i > 0) inner.push_back(filled ? out.fill(item) : out.line());
    inner.push_back(before);
    inner.push_back(item);
    if (!last) inner.push_back(out.text(","));
    inner.push_back(trailing_comments(last ? end : items[i + 1].span.begin));
  }
  while (pending(end)) {
    inner.push_back(out.hard());
    inner.push_back(take_comment());
  }
  DocId body = out.indent(out.cat(inner));
  DocId closing = spaced ? out.line() : out.soft();
  return out.group(out.cat({out.text(open), opening, body, closing, out.text(close)}));
}

DocId Formatter::file() {
  auto end = static_cast<uint32_t>(sources.text(ast.file).size());
  std::vector<DocId> parts;
  statements(parts, ast.items, {}, 0, end);
  if (!parts.empty()) parts.push_back(out.hard());
  return out.cat(parts);
}

// Statements and the comments around them, a line break between two. `begin` and `end` bound the
// text that belongs to them.
void Formatter::statements(std::vector<DocId>& parts, const std::vector<StmtId>& stmts,
                           ExprId value, uint32_t begin, uint32_t end) {
  uint32_t last = begin;  // where the previous thing ended
  bool first = true;
  auto separate = [&](uint32_t next) {
    if (!first && blank_between(last, next)) parts.push_back(out.blank());
    if (!first) parts.push_back(out.hard());
    first = false;
  };
  auto own_line_comments = [&](uint32_t before) {
    while (pending(before)) {
      Span span = lexed.comments[comment].span;
      separate(span.begin);
      parts.push_back(take_comment());
      last = span.end;
    }
  };
  auto place = [&](Span span, const std::function<DocId()>& write) {
    own_line_comments(span.begin);
    separate(span.begin);
    parts.push_back(write());
    last = span.end;
    // Comments inside that found no place, then one after the statement on its line.
    bool behind = false;
    while (pending(span.end) || (pending_trailing(end) &&
                                 one_line({ast.file, last, lexed.comments[comment].span.begin}))) {
      last = lexed.comments[comment].span.end;
      parts.push_back(behind ? out.hard() : out.text(" "));
      parts.push_back(take_comment());
      behind = true;
    }
  };
  for (StmtId id : stmts) place(ast[id].span, [&] { return stmt(ast[id]); });
  if (value.valid()) place(ast[value].span, [&] { return expr(value); });
  own_line_comments(end);
}

DocId Formatter::stmt(const Stmt& s) {
  std::vector<DocId> parts;
  for (const Attribute& a : s.attributes) {
    parts.push_back(comments_before(a.span.begin));
    parts.push_back(out.text("#[" + text(a.name.symbol)));
    if (!a.args.empty()) parts.push_back(args(a.args, "(", ")", a.span.end));
    parts.push_back(out.text("]"));
    parts.push_back(out.hard());
  }
  if (!s.attributes.empty())
    parts.push_back(comments_before(next_token(s.attributes.back().span.end)));
  parts.push_back(stmt_node(s));
  return out.cat(parts);
}

DocId Formatter::stmt_node(const Stmt& s) {
  auto ended = [&](DocId doc) { return out.cat({doc, out.text(";")}); };
  return match(
      s.node, [&](const Let& n) { return ended(let(n)); },
      [&](const Const& n) {
        return ended(out.cat({out.text(n.pub ? "pub const " : "const "), name(n.name),
                              typed(n.type), value(n.value)}));
      },
      [&](const Fn& n) { return fn(n, s.span); },
      [&](const Use& n) { return ended(use(n, s.span)); },
      [&](const Mod& n) { return out.text("mod " + text(n.name.symbol) + ";"); },
      [&](const TypeDef& n) {
        return ended(out.cat({out.text(n.pub ? "pub type " : "type "), name(n.name),
                              out.text(" = "), type(n.type)}));
      },
      [&](const ExprStmt& n) {
        // `if … { }` needs no `;`, but one that is there may keep it from being a block's value.
        const ExprNode& node = ast[n.value].node;
        bool block_like = std::holds_alternative<If>(node) || std::holds_alternative<Match>(node) ||
                          std::holds_alternative<Block>(node);
        bool open =
            block_like && !ast.parenthesised.count(n.value) && sources.text(s.span).back() != ';';
        DocId doc = expr(n.value);
        return open ? doc : ended(doc);
      },
      [&](const Test& n) {
        uint32_t at = next_token(
            next_token(s.attributes.empty() ? s.span.begin : s.attributes.back().span.end) + 1);
        Expr title{Error{}, {ast.file, at, at}};
        std::string word = "test " + std::string(literal(title)) + " ";
        return out.cat({out.text(word), out.group(block(n.body))});
      },
      [&](const ErrorStmt&) { return out.text(""); });
}

DocId Formatter::let(const Let& n) {
  std::vector<DocId> parts{out.text(n.record  ? "let { "
                                    : n.tuple ? "let ("
                                              : "let "),
                           names(n.names, ", ")};
  if (n.tuple) parts.push_back(out.text(n.record ? " }" : ")"));
  if (n.has_slots) {
    std::vector<Item> items;
    for (const Slot& slot : n.slots) {
      items.push_back({slot.span, [this, &slot] {
                         return slot.kind == Slot::Kind::Literal
                                    ? expr(slot.at)
                                    : ranged(slot.name, slot.kind == Slot::Kind::Pack, slot.range);
                       }});
    }
    uint32_t end = n.slots.empty() ? 0 : next_token(n.slots.back().span.end);
    parts.push_back(list("[", items, "]", end));
  }
  parts.push_back(typed(n.type));
  if (n.value.valid()) parts.push_back(value(n.value));
  if (n.until.valid()) {
    // After a block the condition stays on the line of the `}`.
    bool block = std::holds_alternative<Block>(ast[n.value].node);
    DocId word = out.cat({out.text("until "), out.group(expr(n.until))});
    parts.push_back(block ? out.cat({out.text(" "), word})
                          : out.indent(out.cat({out.line(), word})));
  }
  return out.group(out.cat(parts));
}

// A value that can break inside begins on the line of the left side; an operator chain that does
// not fit there moves to the next line as a whole.
DocId Formatter::value(ExprId id) {
  bool wrapped = ast.parenthesised.count(id) > 0;
  const ExprNode& node = ast[id].node;
  if (!wrapped && std::holds_alternative<Where>(node)) {
    return out.cat({out.text(" ="), where(id, true)});
  }
  bool chain =
      !wrapped && (std::holds_alternative<Binary>(node) || std::holds_alternative<Unary>(node) ||
                   std::holds_alternative<Range>(node));
  if (!chain || pending(ast[id].span.begin)) return out.cat({out.text(" = "), expr(id)});
  return out.cat(
      {out.text(" ="), out.group(out.indent(out.cat({out.line(), out.group(expr(id))})))});
}

DocId Formatter::fn(const Fn& n, Span span) {
  std::vector<DocId> parts{out.text(n.rule ? "@fn " : n.pub ? "pub fn " : "fn "), name(n.name)};
  if (!n.coords.empty()) {
    std::string s;
    for (const FnCoord& c : n.coords)
      s += (s.empty() ? "" : ", ") + std::string(c.pack ? ".." : "") + text(c.name.symbol);
    parts.push_back(out.text("[" + s + "]"));
  }
  std::vector<Item> items;
  for (const Param& p : n.params) {
    Span at = p.type.valid() ? join(p.name.span, ast[p.type].span) : p.name.span;
    if (p.value.valid()) at = join(at, ast[p.value].span);
    items.push_back({at, [this, &p] {
                       DocId own = out.cat({name(p.name), typed(p.type)});
                       if (!p.value.valid()) return own;
                       return out.cat({own, out.text(" = "), expr(p.value)});
                     }});
  }
  uint32_t end = n.params.empty() ? span.begin : next_token(items.back().span.end);
  parts.push_back(list("(", items, ")", end));
  if (n.result.valid()) {
    parts.push_back(out.text(" -> "));
    parts.push_back(type(n.result));
  }
  parts.push_back(out.text(" "));
  parts.push_back(out.group(block(n.body)));
  return out.cat(parts);
}

DocId Formatter::use(const Use& n, Span span) {
  std::vector<DocId> parts{out.text(n.pub ? "pub use " : "use "), names(n.path, "::")};
  if (n.glob) parts.push_back(out.text("::*"));
  if (!n.items.empty()) {
    std::vector<Item> items;
    for (const UseItem& item : n.items) {
      std::string s =
          text(item.name.symbol) + (item.alias ? " as " + text(item.alias->symbol) : "");
      items.push_back({item.name.span, [this, s] { return out.text(s); }});
    }
    parts.push_back(list("::{", items, "}", span.end));
  }
  if (n.alias) parts.push_back(out.text(" as " + text(n.alias->symbol)));
  return out.cat(parts);
}

}  // namespace ein::ast

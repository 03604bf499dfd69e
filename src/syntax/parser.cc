#include "syntax/parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "syntax/parser_impl.h"

namespace ein::ast {

std::vector<StmtId> parse_into(Ast& ast, FileId file, const SourceMap& sources, Diagnostics& diags,
                               Lexed* lexed) {
  std::vector<StmtId> items;
  size_t errors_before = diags.errors();
  Parser p(file, sources, diags, ast, lex(file, sources, diags));
  p.statements(items, nullptr);
  ast.complete &= diags.errors() == errors_before;
  for (size_t i = 0; i < p.comments.size(); ++i) {
    if (!p.comments[i].doc || p.doc_used[i]) continue;
    diags.warning(Code::W0101, "doc comment documents nothing")
        .primary(p.comments[i].span, "no definition follows")
        .help("start an ordinary comment with `//`");
  }
  if (lexed) *lexed = {std::move(p.tokens), std::move(p.comments)};
  return items;
}

Ast parse(FileId file, const SourceMap& sources, Diagnostics& diags) {
  Ast ast;
  ast.file = file;
  ast.items = parse_into(ast, file, sources, diags);
  return ast;
}

bool Parser::is_word(std::string_view word, size_t ahead) const {
  return is(Tok::Name, ahead) && text(peek(ahead)) == word;
}

Token Parser::take() {
  const Token& t = peek();
  if (at + 1 < tokens.size()) ++at;
  return t;
}

bool Parser::accept(Tok kind) {
  if (!is(kind) || panic) return false;
  take();
  return true;
}

bool Parser::expect(Tok kind, const char* after, const char* help) {
  if (accept(kind)) return true;
  if (panic) return false;
  Diagnostic& d = fail_expected(fmt::format("{} {}", describe(kind), after));
  if (help) d.help(help);
  if (kind == Tok::Eq && is(Tok::EqEq)) d.fix({"write `=`", {{peek().span, "="}}});
  return false;
}

Span Parser::span_from(size_t begin) const {
  Span first = tokens[begin].span;
  if (at == begin) return {file, first.begin, first.begin};
  return join(first, tokens[at - 1].span);
}

Span Parser::gap() const {
  uint32_t end = at == 0 ? peek().span.begin : tokens[at - 1].span.end;
  return {file, end, end};
}

Diagnostic& Parser::fail(Code code, std::string message) {
  Diagnostic& d = panic || quiet ? (scratch = {code, {}, {}, {}, {}, {}})
                                 : diags.error(code, std::move(message));
  panic = true;
  return d;
}

std::string Parser::found() const {
  const Token& t = peek();
  if (t.kind == Tok::End) return describe(t.kind);
  if (is_keyword(text(t))) return fmt::format("the keyword `{}`", text(t));
  if (t.kind == Tok::Str) return "a string";
  return fmt::format("`{}`", text(t));
}

Diagnostic& Parser::fail_expected(std::string_view what) {
  const Token& t = peek();
  if (t.kind == Tok::Bad || t.kind == Tok::Junk) panic = true;  // the lexer has reported it
  Diagnostic& d = fail(Code::E0101, fmt::format("expected {}, found {}", what, found()));
  bool behind = t.kind == Tok::End || t.newline_before;
  d.primary(behind ? gap() : t.span, behind ? "expected here" : "not expected here");
  advise(d);
  return d;
}

void Parser::skip_to_separator() {
  while (at < limit && !is(Tok::Comma)) {
    const Token& t = peek();
    at = opens(t) ? std::max<size_t>(t.close, at + 1) : at + 1;
  }
  at = std::min(at, limit);
}

void Parser::skip_to_statement() {
  while (at < limit) {
    if (begins_item() && peek().newline_before) return;
    const Token& t = peek();
    if (opens(t)) {
      bool block = t.kind == Tok::LBrace;
      at = std::max<size_t>(t.close, at + 1);
      if (!t.unclosed && at < limit) ++at;
      // What stands after the block of a broken definition is the next statement.
      if (block && at < limit && peek().newline_before) return;
      continue;
    }
    ++at;
    if (t.kind == Tok::Semi) return;
  }
}

void Parser::after_item(const Token& open) {
  if (!panic && at >= limit) return;
  if (accept(Tok::Comma)) return;
  if (!panic) {
    Tok close = open.kind == Tok::LParen     ? Tok::RParen
                : open.kind == Tok::LBracket ? Tok::RBracket
                                             : Tok::RBrace;
    fail_expected(fmt::format("`,` or {}", describe(close)));
  }
  skip_to_separator();
  panic = false;
  if (at < limit) take();
}

bool Parser::chain(size_t links, size_t most, const char* what) {
  if (links <= most) return true;
  fail(Code::E0111, "the program nests too deeply here")
      .primary(peek().span, fmt::format("more than {} {} in a row", most, what))
      .help("give the inner parts names with `let`");
  return false;
}

bool Parser::enter() {
  if (++depth <= kMaxDepth) return true;
  fail(Code::E0111, "the program nests too deeply here")
      .primary(peek().span, fmt::format("more than {} levels", kMaxDepth))
      .help("give the inner parts names with `let`");
  return false;
}

bool is_block_like(const Ast& ast, ExprId id) {
  const ExprNode& node = ast[id].node;
  return !ast.parenthesised.count(id) &&
         (std::holds_alternative<If>(node) || std::holds_alternative<Match>(node) ||
          std::holds_alternative<Block>(node));
}

}  // namespace ein::ast

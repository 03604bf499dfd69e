// Statements: where they end, `let`, expressions, attributes and doc comments.
#include <fmt/format.h>

#include <algorithm>

#include "syntax/parser_impl.h"

namespace ein::ast {

// Up to `limit`. In a block (`value` given) a last expression without `;` is the block's value.
void Parser::statements(std::vector<StmtId>& out, ExprId* value) {
  const bool outer = quiet;
  for (; at < limit; quiet = outer) {
    if (is(Tok::Semi)) {
      take();
      continue;
    }
    size_t begin = at;
    bool is_value = false;
    Stmt stmt = statement(is_value);
    if (panic) {
      skip_to_statement();
      panic = false;
      if (at == begin) take();  // never twice at the same place
    }
    stmt.span = span_from(begin);
    if (is_value && value != nullptr && stmt.attributes.empty()) {
      *value = std::get<ExprStmt>(stmt.node).value;
      quiet = outer;
      return;
    }
    out.push_back(ast.stmts.add(std::move(stmt)));
  }
}

Stmt Parser::statement(bool& is_value) {
  Stmt stmt;
  stmt.doc = doc();
  stmt.attributes = attributes();
  if (stmt.doc.empty()) stmt.doc = doc();  // between attributes and the definition
  if (panic) {
    stmt.node = ErrorStmt{};
    return stmt;
  }
  if (at >= limit && !stmt.attributes.empty()) {
    fail(Code::E0114, "attribute without a statement")
        .primary(stmt.attributes.back().span, "there is nothing after it to apply to");
    stmt.node = ErrorStmt{};
    return stmt;
  }
  bool pub = false;
  if (is(Tok::Pub)) {
    const Token word = take();
    pub = is(Tok::Fn) || is(Tok::Const) || is(Tok::Use) || begins_type_def();
    if (!pub) {
      fail(Code::E0114, "`pub` is only allowed before `fn`, `const`, `use` or `type`")
          .primary(word.span, "cannot be exported")
          .fix({"remove `pub`", {{{file, word.span.begin, peek().span.begin}, ""}}, false});
      panic = false;  // what follows stands on its own
    }
  }
  if (is(Tok::Let)) {
    stmt.node = let();
  } else if (is(Tok::Const)) {
    stmt.node = const_stmt(pub);
  } else if (is(Tok::Fn) || (is(Tok::At) && is(Tok::Fn, 1))) {
    bool rule = accept(Tok::At);
    stmt.node = fn(pub, rule);
  } else if (is(Tok::Use)) {
    stmt.node = use(pub);
  } else if (is_word("mod") && is(Tok::Name, 1) && same_line(1)) {
    stmt.node = mod();
  } else if (begins_type_def()) {
    stmt.node = type_def(pub);
  } else if (is_word("test") && is(Tok::Str, 1) && same_line(1)) {
    stmt.node = test();
  } else {
    stmt.node = expr_stmt(is_value);
  }
  if (panic) {
    // The names of a definition whose value went wrong are known: using them is not
    // a second mistake.
    auto* broken = std::get_if<Let>(&stmt.node);
    if (broken && broken->value) {
      broken->value = add(Error{broken->value}, ast[broken->value].span);
    } else {
      const auto* expression = std::get_if<ExprStmt>(&stmt.node);
      stmt.node = ErrorStmt{expression ? expression->value : ExprId{}};
    }
  }
  return stmt;
}

bool Parser::begins_type_def(size_t ahead) const {
  return is_word("type", ahead) && is(Tok::Name, ahead + 1) && same_line(ahead + 1) &&
         is(Tok::Eq, ahead + 2);
}

// Tokens that only a statement begins with: the one before them needs no `;`.
bool Parser::begins_item(size_t ahead) const {
  switch (peek(ahead).kind) {
    case Tok::Let:
    case Tok::Const:
    case Tok::Fn:
    case Tok::Pub:
    case Tok::Use:
    case Tok::Hash: return true;
    case Tok::At: return is(Tok::Fn, ahead + 1);
    case Tok::Name:
      return (is_word("mod", ahead) && is(Tok::Name, ahead + 1) && same_line(ahead + 1)) ||
             (is_word("test", ahead) && is(Tok::Str, ahead + 1) && same_line(ahead + 1)) ||
             begins_type_def(ahead);
    default: return false;
  }
}

bool Parser::ends_statement() {
  if (accept(Tok::Semi)) return true;
  if (at < limit && !peek().newline_before) return begins_item();
  warn_comment();
  return true;
}

// `let w = 7 // 2;`: what ends the statement stands in a comment.
void Parser::warn_comment() {
  auto it = std::lower_bound(comments.begin(), comments.end(), static_cast<uint32_t>(at),
                             [](const Comment& c, uint32_t token) { return c.token < token; });
  if (it == comments.end() || it->token != at || it->own_line) return;
  std::string_view comment = sources.text(it->span);
  if (comment.back() != ';') return;
  Diagnostic& d = diags.warning(Code::W0102, "`//` starts a comment, so the statement ends here");
  d.primary(it->span, "this is not part of the statement");
  d.help(
      "to divide, use `/`, which drops the remainder of integers; or end the statement with `;` "
      "before the comment");
}

void Parser::end_statement(bool block_like) {
  if (panic || ends_statement() || block_like) return;
  if (is(Tok::Eq) || is(Tok::EqEq) || is(Tok::Bad) || is(Tok::Junk) || is(Tok::Else) ||
      is(Tok::Comma) || is(Tok::Ellipsis)) {
    fail_expected("`;` after the statement");
    return;
  }
  Span behind = gap();
  Diagnostic& d =
      fail(Code::E0108, fmt::format("expected `;` after the statement, found {}", found()));
  d.primary(peek().span, "not part of the statement before it");
  advise_end(d, behind);
}

// let x: T = e; let C[i, j] = e; let (a, b)[t in 1..T] = e; let { a, b } = e; let x: T;
decltype(Stmt::node) Parser::let() {
  const Token word = take();
  Let node;
  if (is(Tok::LParen) || is(Tok::LBrace)) {
    node.tuple = true;
    node.record = is(Tok::LBrace);
    list([&] { node.names.push_back(name("a name")); });
  } else if (is(Tok::Name) && !(is_word("mut") && is(Tok::Name, 1))) {
    node.names.push_back(name_of(take()));
  } else {
    Diagnostic& d =
        fail(Code::E0112, fmt::format("expected a name or `(` after `let`, found {}", found()));
    d.primary(peek().span);
    if (is_keyword(text(peek())))
      d.help(fmt::format("`{}` is a keyword and cannot be a name", text(peek())));
    if (is_word("mut")) d.help("values never change; remove `mut`");
    return ErrorStmt{};
  }
  const bool bare = !node.tuple && !panic && is(Tok::Comma) && at < limit;
  if (bare) pattern_without_parens(node);
  if (!panic && is(Tok::LBracket)) {
    node.has_slots = true;
    node.slots = slots();
  }
  if (accept(Tok::Colon)) node.type = type();
  if (panic) return ErrorStmt{};
  if (is(Tok::AssignOp)) {
    const std::string name(ein::text(node.names[0].symbol));
    report_assignment(name, {});
    if (defined_before(name, at)) return ErrorStmt{};
    node.value = error_expr();
    return node;
  }
  if (!is(Tok::Eq)) {
    bool over = is(Tok::Semi) || at >= limit || peek().newline_before || begins_item();
    if (!over) {
      bool sized = node.type.valid() && is(Tok::LBracket);                       // `let x: f32[3]`
      bool function = !node.type.valid() && !node.has_slots && is(Tok::LParen);  // `let f(x) = …`
      if (!expect(Tok::Eq, node.type.valid() ? "after the type" : "after the name",
                  sized      ? "a tensor type is written `[f32; 3]`"
                  : function ? "a function is written `fn f(x) { … }`"
                             : nullptr)) {
        return ErrorStmt{};
      }
    }
    if (!node.type.valid()) {
      fail(Code::E0115,
           fmt::format("`{}` has neither a value nor a type",
                       ein::text(node.names.empty() ? Symbol{} : node.names[0].symbol)))
          .primary(join(word.span, tokens[at - 1].span))
          .help("give it a value, `let x = …;`, or a type to make it an input, `let x: [f32; n];`");
      accept(Tok::Semi);
      return ErrorStmt{};
    }
    end_statement(false);
    return node;
  }
  take();
  size_t begin = at;
  node.value = expr(WhereItems::Many);
  if (!panic && is(Tok::Comma) && at < limit) {
    node.value = tuple_without_parens(node.value, begin, bare);
    node.tuple |= bare;
  }
  if (!panic && is_word("until") && at < limit) {
    take();
    node.until = expr(WhereItems::One);
  }
  end_statement(!node.until && is_block_like(ast, node.value));
  return node;
}

std::vector<Slot> Parser::slots() {
  std::vector<Slot> out;
  list([&] { out.push_back(slot()); });
  return out;
}

Slot Parser::slot() {
  size_t begin = at;
  Slot s{Slot::Kind::Index, {}, {}, {}, {}};
  if (accept(Tok::DotDot)) {
    s.kind = Slot::Kind::Pack;
    s.name = name("the name of a pack");
  } else if (is(Tok::Name) && is_word("in", 1)) {
    s.name = name_of(take());
    take();
    s.range = binary();
  } else if (is(Tok::Name) && (is(Tok::Comma, 1) || at + 1 >= limit)) {
    s.name = name_of(take());
  } else {
    s.kind = Slot::Kind::Literal;
    s.at = expr(WhereItems::One);
    bool is_range = !panic && std::holds_alternative<Range>(ast[s.at].node);
    if (is_range || (!panic && is(Tok::Eq))) {
      Diagnostic& d = fail(Code::E0112, is_range ? "a range on the left needs a name"
                                                 : "an index on the left cannot have `=`");
      d.primary(is_range ? span_from(begin) : peek().span)
          .help("write an index `i`, a range `t in 1..T`, a fixed cell `0`, or a pack `..b`");
      s.at = make(Error{}, begin);
    }
  }
  s.span = span_from(begin);
  return s;
}

decltype(Stmt::node) Parser::expr_stmt(bool& is_value) {
  size_t begin = at;
  ExprId value = expr(WhereItems::Many);
  if (panic) return ErrorStmt{};
  if ((is(Tok::Eq) || is(Tok::AssignOp)) && at < limit) return assignment(value, begin);
  bool closed = at < limit && is(Tok::Semi);
  is_value = !closed && at >= limit;
  end_statement(is_block_like(ast, value));
  return ExprStmt{value};
}

// `C[i] = …` without `let`: the target begins with token `begin`.
decltype(Stmt::node) Parser::assignment(ExprId target, size_t begin) {
  const auto* path = std::get_if<Path>(&ast[target].node);
  bool cells = std::holds_alternative<Index>(ast[target].node);
  std::string_view name = path || cells ? text(tokens[begin]) : "";
  // A clause more of an array is fine; a second value for a name is not.
  bool fresh = cells || (path && !defined_before(name, begin));
  if (const auto* field = std::get_if<Field>(&ast[target].node); field && field->name.symbol) {
    const std::string part(ein::text(field->name.symbol));
    report_assignment(
        name, {},
        fmt::format("a record with another part is a new one: `let q = {{ ..p, {}: … }};`", part));
    return ErrorStmt{};
  }
  report_assignment(name, fresh ? std::optional(tokens[begin].span.begin) : std::nullopt);
  return ErrorStmt{};
}

// `x = 2`, `x += 1` or `let x += 1`; the cursor is on the operator, and `start` is where a `let` is
// all that is missing. The right side is read for its own mistakes.
void Parser::report_assignment(std::string_view name, std::optional<uint32_t> start,
                               const std::string& instead) {
  const Token op = take();
  bool plain = op.kind == Tok::Eq;
  Diagnostic& d =
      fail(Code::E0116, plain ? "`=` without `let`" : fmt::format("`{}` does not exist", text(op)));
  d.primary(op.span, "values are defined once and never assigned");
  if (plain && start) {
    d.fix({"define it with `let`", {{{file, *start, *start}, "let "}}, false});
  } else if (!instead.empty()) {
    d.help(instead);
  } else {
    advise_assignment(d, plain ? "" : text(op).substr(0, text(op).size() - 1), name);
  }
  panic = false;
  expr(WhereItems::Many);
  end_statement(false);
}

std::vector<Attribute> Parser::attributes() {
  std::vector<Attribute> out;
  while (!panic && is(Tok::Hash)) {
    size_t begin = at;
    take();
    if (!is(Tok::LBracket)) {
      fail_expected("`[` after `#`")
          .help("a comment starts with `//`; an attribute is written `#[name]`");
      break;
    }
    Attribute a;
    bool first = true;
    list([&] {
      if (!first) {
        fail_expected("`]` after the attribute");
        return;
      }
      first = false;
      a.name = name("the name of an attribute");
      if (!panic && is(Tok::LParen)) list([&] { a.args.push_back(expr(WhereItems::One)); });
    });
    a.span = span_from(begin);
    out.push_back(std::move(a));
  }
  return out;
}

std::string Parser::doc() {
  auto token = static_cast<uint32_t>(at);
  auto it = std::lower_bound(comments.begin(), comments.end(), token,
                             [](const Comment& c, uint32_t t) { return c.token < t; });
  std::string out;
  bool any = false;
  for (; it != comments.end() && it->token == token; ++it) {
    if (!it->doc) continue;
    doc_used[static_cast<size_t>(it - comments.begin())] = true;
    std::string_view line = sources.text(it->span).substr(3);
    if (!line.empty() && line[0] == ' ') line.remove_prefix(1);
    if (any) out += '\n';
    any = true;
    out += line;
  }
  return out;
}

}  // namespace ein::ast

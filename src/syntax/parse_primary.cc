// Expressions that stand by themselves: literals, names, parentheses, requests, lambdas, `if`,
// `match`, blocks.
#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>

#include "syntax/parser_impl.h"

namespace ein::ast {

ExprId Parser::primary() {
  size_t begin = at;
  switch (peek().kind) {
    case Tok::Name:
      if (!at_prefixed_string()) return path();
      report_prefix();
      return string();
    case Tok::Int:
    case Tok::Float: return number();
    case Tok::Str: return string();
    case Tok::True:
    case Tok::False: {
      bool value = take().kind == Tok::True;
      return make(BoolLit{value}, begin);
    }
    case Tok::LParen: return parens();
    case Tok::LBracket: return array();
    case Tok::LBrace: return begins_record() ? record() : block();
    case Tok::At: return request();
    case Tok::Pipe:
    case Tok::PipePipe: return lambda();
    case Tok::If: return if_expr();
    case Tok::Match: return match_expr();
    case Tok::Bad:  // a literal that the lexer has reported
      take();
      return make(Error{}, begin);
    default: break;
  }
  if (behind_increment()) {
    report_increment();
  } else {
    fail_expected("an expression");
  }
  return error_expr();
}

ExprId Parser::path() {
  size_t begin = at;
  Path node{{name_of(take())}};
  while (!panic && is(Tok::ColonColon)) {
    take();
    Name part = name("a name after `::`");
    if (!panic) node.parts.push_back(part);
  }
  return make(std::move(node), begin);
}

ExprId Parser::number() {
  size_t begin = at;
  const Token token = take();
  std::string digits;
  for (char c : text(token)) {
    if (c != '_') digits += c;
  }
  errno = 0;
  if (token.kind == Tok::Float) {
    double value = std::strtod(digits.c_str(), nullptr);
    if (errno != ERANGE || value < 1.0) return make(FloatLit{value}, begin);  // underflow rounds
  } else {
    bool prefixed = digits.size() > 2 && (digits[1] == 'x' || digits[1] == 'b');
    int base = !prefixed ? 10 : digits[1] == 'x' ? 16 : 2;
    char* end = nullptr;
    uint64_t value = std::strtoull(digits.c_str() + (prefixed ? 2 : 0), &end, base);
    if (*end != '\0') {
      diags.error(Code::E0107, "malformed number").primary(token.span, "a binary digit is 0 or 1");
      return make(Error{}, begin);
    }
    if (errno != ERANGE) return make(IntLit{value}, begin);
  }
  diags.error(Code::E0107, "number is too large").primary(token.span, "does not fit in 64 bits");
  return make(Error{}, begin);
}

// `(x)`, `(a, b)`, `(a,)`, `()`. The span of `(x)` includes the parentheses.
ExprId Parser::parens() {
  size_t begin = at;
  bool closed = !peek().unclosed;
  Tuple tuple;
  list([&] { tuple.items.push_back(expr(WhereItems::One)); });
  bool comma = closed && at >= 2 && tokens[at - 2].kind == Tok::Comma;
  if (tuple.items.size() != 1 || comma) return make(std::move(tuple), begin);
  ExprId id = tuple.items[0];
  ast.exprs[id].span = span_from(begin);
  ast.parenthesised.insert(id);
  return id;
}

ExprId Parser::array() {
  size_t begin = at;
  Array node;
  std::optional<ExprId> comprehended;
  list([&] {
    node.items.push_back(expr(WhereItems::One));
    if (!panic && node.items.size() == 1 && is(Tok::Pipe) && at < limit) {
      comprehended = comprehension(node.items[0], begin);
      return;
    }
    if (!panic && node.items.size() == 1 && is_word("for") && is_word("in", 2) && at < limit) {
      comprehended = python_comprehension(node.items[0], begin);
      return;
    }
    if (!panic && at < limit && is(Tok::Semi)) {
      fail_expected("`,` or `]`").help("to repeat a value, write `let z[i in 0..n] = 0.0;`");
    }
  });
  if (comprehended) {
    ast.exprs[*comprehended].span = span_from(begin);
    return *comprehended;
  }
  return make(std::move(node), begin);
}

// '@' atom, or '@' atom '/' '@' atom.
ExprId Parser::request() {
  size_t begin = at;
  take();
  Request node;
  node.num = request_atom();
  if (!panic && is(Tok::Slash) && is(Tok::At, 1)) {
    take();
    take();
    node.den = request_atom();
  }
  return make(node, begin);
}

// NAME with indices and fields, or '(' expr ')'. More than that is read as the author meant it,
// after the message.
ExprId Parser::request_atom() {
  size_t begin = at;
  if (!is(Tok::Name) && !is(Tok::LParen)) {
    fail(Code::E0110, fmt::format("expected a name or `(` after `@`, found {}", found()))
        .primary(peek().span)
        .help("a derivative is written `@loss / @W`, or `@(x * x) / @x`");
    return error_expr();
  }
  ExprId id = postfix();
  if (panic) return id;
  ExprId base = id;
  while (!ast.parenthesised.count(base)) {
    const auto* access = std::get_if<Index>(&ast[base].node);
    const auto* field = std::get_if<Field>(&ast[base].node);
    if (access == nullptr && field == nullptr) break;
    base = access != nullptr ? access->base : field->base;
  }
  const auto* path = std::get_if<Path>(&ast[base].node);
  bool named = path != nullptr && path->parts.size() == 1 && !ast.parenthesised.count(base);
  if (named || ast.parenthesised.count(id)) return id;
  Span span = span_from(begin);
  fail(Code::E0110, fmt::format("`@{}` needs parentheses", sources.text(span)))
      .primary(span, "`@` takes a name, a name with indices, or an expression in parentheses")
      .fix({fmt::format("write `@({})`", sources.text(span)),
            {{{file, span.begin, span.begin}, "("}, {{file, span.end, span.end}, ")"}}});
  panic = false;  // the operand has been read
  return id;
}

// |x, y: f32| body. The body goes as far as it can.
ExprId Parser::lambda() {
  size_t begin = at;
  Lambda node;
  if (take().kind == Tok::Pipe) {
    while (!panic && at < limit && !is(Tok::Pipe)) {
      LambdaParam param{name("the name of a parameter"), {}};
      if (accept(Tok::Colon)) param.type = type();
      node.params.push_back(param);
      if (!accept(Tok::Comma)) break;
    }
    if (!panic && is(Tok::PipePipe)) {  // `|x||y| …`: the first half closes, the second opens
      tokens[at].kind = Tok::Pipe;
      ++tokens[at].span.begin;
    } else {
      expect(Tok::Pipe, "after the parameters");
    }
  }
  if (panic) return make(Error{}, begin);
  node.body = expr(where_items);
  return make(std::move(node), begin);
}

// A chain of `else if` is collected and folded from the back: it may be long.
ExprId Parser::if_expr() {
  struct Arm {
    size_t begin;
    ExprId cond, then_block;
  };
  std::vector<Arm> arms;
  ExprId otherwise;
  for (;;) {
    Arm& arm = arms.emplace_back();
    arm.begin = at;
    take();
    arm.cond = expr(WhereItems::Many);
    if (panic) {  // go on at the block, if there is one
      while (at < limit && !is(Tok::LBrace) && !is(Tok::Semi) && !begins_item()) ++at;
      if (is(Tok::LBrace)) panic = false;
    }
    arm.then_block = block();
    if (!accept(Tok::Else)) break;
    if (is(Tok::If)) {
      if (chain(arms.size(), kMaxChain, "`else if`s")) continue;
      break;
    }
    otherwise = block();
    break;
  }
  for (size_t i = arms.size(); i-- > 0;) {
    otherwise = make(If{arms[i].cond, arms[i].then_block, otherwise}, arms[i].begin);
  }
  return otherwise;
}

ExprId Parser::match_expr() {
  size_t begin = at;
  take();
  Match node;
  node.subject = expr(WhereItems::Many);
  if (panic || !is(Tok::LBrace)) {
    fail_expected("`{` and the arms of the `match`");
    return make(Error{}, begin);
  }
  const Token open = take();
  size_t outer = std::exchange(limit, open.close);
  while (at < limit) {
    node.arms.push_back(match_arm());
    // Between arms a `,` may be left out after `}` and at the end of a line.
    bool apart =
        !panic && at < limit && (peek().newline_before || tokens[at - 1].kind == Tok::RBrace);
    if (!apart || is(Tok::Comma)) after_item(open);
  }
  limit = outer;
  if (!open.unclosed) take();
  return make(std::move(node), begin);
}

MatchArm Parser::match_arm() {
  MatchArm arm;
  arm.pattern = pattern();
  if (accept(Tok::If)) arm.guard = expr(WhereItems::One);
  if (expect(Tok::FatArrow, "after the pattern")) arm.body = expr(WhereItems::One);
  if (!arm.body.valid()) arm.body = error_expr();
  return arm;
}

// Patterns with `|` between them; `n @` stands for all of them.
ExprId Parser::pattern() {
  Nested nested(*this);
  if (!nested.ok) return error_expr();
  size_t begin = at;
  if (is(Tok::Name) && is(Tok::At, 1)) {
    Name bound = name_of(take());
    take();
    ExprId inner = pattern();
    return make(NamedPattern{bound, inner}, begin);
  }
  ExprId first = pattern_atom();
  if (panic || !is(Tok::Pipe)) return first;
  Alternatives node;
  auto add_item = [&](ExprId id) {  // `(1 | 2) | 3` is `1 | 2 | 3`
    const auto* inner = std::get_if<Alternatives>(&ast[id].node);
    if (!inner) return node.items.push_back(id);
    node.items.insert(node.items.end(), inner->items.begin(), inner->items.end());
  };
  add_item(first);
  while (!panic && accept(Tok::Pipe)) add_item(pattern_atom());
  for (ExprId item : node.items) {
    if (!std::holds_alternative<NamedPattern>(ast[item].node)) continue;
    fail(Code::E0113, "`@` stands before all alternatives, not before one of them")
        .primary(ast[item].span)
        .help("write `n @ 1 | 2`");
    panic = false;  // the pattern has been read
    return make(Error{}, begin);
  }
  return make(std::move(node), begin);
}

// A literal, a range of numbers, a name, `_`, or a tuple of patterns.
ExprId Parser::pattern_atom() {
  size_t begin = at;
  if (is(Tok::LParen)) {
    Tuple tuple;
    list([&] { tuple.items.push_back(pattern()); });
    if (tuple.items.size() == 1) return tuple.items[0];
    return make(std::move(tuple), begin);
  }
  if (is(Tok::Minus) || is(Tok::Int) || is(Tok::Float)) {
    ExprId lo = pattern_number();
    if (panic || !(is(Tok::DotDot) || is(Tok::DotDotEq))) return lo;
    bool inclusive = take().kind == Tok::DotDotEq;
    ExprId hi = pattern_number();
    return make(Range{lo, hi, inclusive}, begin);
  }
  switch (peek().kind) {
    case Tok::Name:
    case Tok::Str:
    case Tok::True:
    case Tok::False:
    case Tok::Bad: return primary();
    default: break;
  }
  fail(Code::E0113, fmt::format("expected a pattern, found {}", found()))
      .primary(peek().span)
      .help("a pattern is a literal, a range `0..10`, a name, `_`, or a tuple of patterns");
  return error_expr();
}

// `{ a: x }`, `{ a, b }` and `{ ..p, … }` are records; `{ a }` is a block.
bool Parser::begins_record() const {
  return is(Tok::DotDot, 1) || (is(Tok::Name, 1) && (is(Tok::Colon, 2) || is(Tok::Comma, 2)));
}

ExprId Parser::record() {
  size_t begin = at;
  Record node;
  list([&] {
    if (is(Tok::DotDot)) {
      const Token dots = take();
      ExprId base = expr(WhereItems::One);
      if (panic) return;
      if (node.base.valid() || !node.fields.empty()) {
        fail(Code::E0101, "`..` must come first in a record, and once")
            .primary(dots.span, "not expected here")
            .help("write `{ ..p, a: x }`: the fields after it replace those of `p`");
        return;
      }
      node.base = base;
      return;
    }
    RecordField field{name("the name of a field"), {}};
    if (panic) return;
    field.value =
        accept(Tok::Colon) ? expr(WhereItems::One) : add(Path{{field.name}}, field.name.span);
    node.fields.push_back(field);
  });
  return make(std::move(node), begin);
}

ExprId Parser::pattern_number() {
  size_t begin = at;
  bool minus = accept(Tok::Minus);
  if (panic || !(is(Tok::Int) || is(Tok::Float))) {
    fail(Code::E0113, fmt::format("expected a number, found {}", found()))
        .primary(peek().span)
        .help(
            "the ends of a range in a pattern are literals; compare names in a guard, as in `x if "
            "x < n`");
    return error_expr();
  }
  ExprId value = number();
  return minus ? make(Unary{UnaryOp::Neg, value}, begin) : value;
}

ExprId Parser::block() {
  size_t begin = at;
  if (panic || !is(Tok::LBrace)) {
    advise_block(fail_expected("a block `{ … }`"));
    return error_expr();
  }
  Nested nested(*this);
  if (!nested.ok) return error_expr();
  if (begins_record()) {  // a body that is a record needs no braces of its own
    ExprId value = record();
    return make(Block{{}, value}, begin);
  }
  const Token open = take();
  size_t outer = std::exchange(limit, open.close);
  Block node;
  statements(node.stmts, &node.value);
  limit = outer;
  if (!open.unclosed) take();
  return make(std::move(node), begin);
}

}  // namespace ein::ast

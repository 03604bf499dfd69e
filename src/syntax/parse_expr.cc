// Expressions with operators: gates, binary and unary operators, casts, and what follows a primary.
// Chains are loops, never recursion: to its author a sum of thousands of terms is flat.
#include <fmt/format.h>

#include <algorithm>

#include "syntax/parser_impl.h"

namespace ein::ast {

namespace {

struct Level {
  int level;  // 0: not a binary operator
  BinaryOp op;
};

constexpr int kCompare = 3, kRange = 4;

Level level_of(Tok kind) {
  switch (kind) {
    case Tok::PipePipe: return {1, BinaryOp::Or};
    case Tok::AmpAmp: return {2, BinaryOp::And};
    case Tok::Lt: return {kCompare, BinaryOp::Lt};
    case Tok::LtEq: return {kCompare, BinaryOp::Le};
    case Tok::Gt: return {kCompare, BinaryOp::Gt};
    case Tok::GtEq: return {kCompare, BinaryOp::Ge};
    case Tok::EqEq: return {kCompare, BinaryOp::Eq};
    case Tok::BangEq: return {kCompare, BinaryOp::Ne};
    case Tok::DotDot:
    case Tok::DotDotEq: return {kRange, BinaryOp::Add};  // a Range node, not a Binary
    case Tok::Pipe: return {5, BinaryOp::BitOr};
    case Tok::Caret: return {6, BinaryOp::BitXor};
    case Tok::Amp: return {7, BinaryOp::BitAnd};
    case Tok::LtLt: return {8, BinaryOp::Shl};
    case Tok::GtGt: return {8, BinaryOp::Shr};
    case Tok::Plus: return {9, BinaryOp::Add};
    case Tok::Minus: return {9, BinaryOp::Sub};
    case Tok::Star: return {10, BinaryOp::Mul};
    case Tok::Slash: return {10, BinaryOp::Div};
    case Tok::Percent: return {10, BinaryOp::Mod};
    default: return {0, BinaryOp::Add};
  }
}

}  // namespace

ExprId Parser::expr(WhereItems items) {
  Nested nested(*this);
  if (!nested.ok) return error_expr();
  WhereItems outer = std::exchange(where_items, items);
  size_t begin = at;
  ExprId id = binary();
  for (size_t links = 0; !panic && is(Tok::Where); id = where(id, begin)) {
    if (!chain(++links, kMaxDepth, "conditions")) break;
  }
  where_items = outer;
  return id;
}

ExprId Parser::where(ExprId body, size_t begin) {
  Where node;
  node.body = body;
  node.where_span = take().span;
  do {
    node.items.push_back(where_item());
  } while (where_items == WhereItems::Many && accept(Tok::Comma));
  if (accept(Tok::Else)) node.otherwise = binary();
  return make(std::move(node), begin);
}

WhereItem Parser::where_item() {
  if (is(Tok::Name) && is(Tok::Eq, 1)) {
    Name bound = name_of(take());
    take();
    return {bound, binary()};
  }
  return {std::nullopt, binary()};
}

// `in` is a name elsewhere, but no operand follows another: behind one it compares, on the next line too.
bool Parser::at_in() const { return is_word("in"); }

ExprId Parser::binary(int min_level) {
  size_t begin = at;
  ExprId lhs = unary();
  auto next = [&] { return at_in() ? Level{kCompare, BinaryOp::In} : level_of(peek().kind); };
  for (size_t links = 1; !panic; ++links) {
    auto [level, op] = next();
    if (level == 0 || level < min_level || begins_generator()) break;
    if (!chain(links, kMaxChain, "operators")) break;
    const Token op_token = take();
    ExprId rhs = binary(level + 1);
    if (level == kRange) {
      lhs = make(Range{lhs, rhs, op_token.kind == Tok::DotDotEq}, begin);
    } else {
      lhs = make(Binary{op, lhs, rhs, op_token.span}, begin);
    }
    if ((level == kCompare || level == kRange) && !panic && next().level == level) {
      return binary_chained(begin, op_token, level);
    }
  }
  return lhs;
}

// `[e | i in 0..n]`: the bar before a name and `in` separates, it combines no bits.
bool Parser::begins_generator() const {
  return is(Tok::Pipe) && is(Tok::Name, 1) && is_word("in", 2);
}

// `a < b < c`: one message for the whole chain, with the conjunction spelled out.
ExprId Parser::binary_chained(size_t begin, const Token& first_op, int level) {
  const Token second_op = peek();
  uint32_t middle_begin = first_op.span.end, middle_end = tokens[at - 1].span.end;
  while (!panic && (level_of(peek().kind).level == level || (at_in() && level == kCompare))) {
    take();
    binary(level + 1);
  }
  ExprId id = make(Error{}, begin);
  if (panic) return id;  // the chain itself is broken, and that has been reported
  if (level == kRange) {
    fail(Code::E0101, "a range has two ends").primary(second_op.span, "a third one starts here");
  } else {
    std::string middle(sources.text({file, middle_begin, middle_end}));
    middle.erase(0, middle.find_first_not_of(" \t\r\n"));
    fail(Code::E0109, "comparisons cannot be chained")
        .primary(second_op.span, "second comparison")
        .label(first_op.span, "first comparison")
        .help("compare twice and join with `&&`")
        .fix({"compare twice",
              {{{file, second_op.span.begin, second_op.span.begin},
                fmt::format("&& {} ", middle)}}});
  }
  panic = false;  // the whole chain has been read
  return id;
}

// Signs, `!`, `~` and `**` together: `-x ** 2` is -(x ** 2), `2 ** -x ** 3` is 2 ** (-(x ** 3)).
// Each sign applies to the power that begins after it, so the chain folds from the right.
ExprId Parser::unary() {
  struct Prefix {
    UnaryOp op;
    size_t begin;
  };
  struct Operand {
    std::vector<Prefix> prefixes;
    size_t begin;
    ExprId value;
    Span pow;  // the `**` after it
  };
  std::vector<Operand> operands;
  size_t links = 0;  // each one nests the tree a level deeper
  do {
    Operand& o = operands.emplace_back();
    while (is(Tok::Minus) || is(Tok::Plus) || is(Tok::Bang) || is(Tok::Tilde)) {
      UnaryOp op = is(Tok::Minus)  ? UnaryOp::Neg
                   : is(Tok::Plus) ? UnaryOp::Plus
                   : is(Tok::Bang) ? UnaryOp::Not
                                   : UnaryOp::BitNot;
      o.prefixes.push_back({op, at});
      take();
    }
    links += o.prefixes.size() + 1;
    if (!chain(links, kMaxDepth, "operators")) return error_expr();
    o.begin = at;
    o.value = cast();
    o.pow = peek().span;
  } while (accept(Tok::StarStar));

  ExprId id;
  for (size_t i = operands.size(); i-- > 0;) {
    const Operand& o = operands[i];
    id = i + 1 == operands.size() ? o.value
                                  : make(Binary{BinaryOp::Pow, o.value, id, o.pow}, o.begin);
    for (size_t k = o.prefixes.size(); k-- > 0;)
      id = make(Unary{o.prefixes[k].op, id}, o.prefixes[k].begin);
  }
  return id;
}

ExprId Parser::cast() {
  size_t begin = at;
  ExprId id = postfix();
  for (size_t links = 1; !panic && is(Tok::As); ++links) {
    if (!chain(links, kMaxDepth, "conversions")) break;
    take();
    TypeId to = type();
    id = make(Cast{id, to}, begin);
  }
  return id;
}

// `(` and `[` continue an expression only on its own line: on the next one they begin a statement.
ExprId Parser::postfix() {
  size_t begin = at;
  ExprId id = primary();
  bool is_request = std::holds_alternative<Request>(ast[id].node) && !ast.parenthesised.count(id);
  if (is_block_like(ast, id) || is_request) return id;
  for (size_t links = 0; !panic; ++links) {
    if (!chain(links, kMaxDepth, "brackets")) break;
    bool lone_name = std::holds_alternative<Path>(ast[id].node) && !ast.parenthesised.count(id);
    if (is(Tok::LParen) && same_line()) {
      id = call(id, false, begin);
    } else if (is(Tok::LBracket) && same_line()) {
      const Token& open = peek();
      const Token& behind = tokens[std::min<size_t>(open.close + 1, tokens.size() - 1)];
      bool calls =
          lone_name && !open.unclosed && behind.kind == Tok::LParen && !behind.newline_before;
      id = calls ? call(id, true, begin) : index(id, begin);
    } else if (is(Tok::Dot)) {
      id = field(id, begin);
    } else {
      break;
    }
  }
  return id;
}

ExprId Parser::index(ExprId base, size_t begin) {
  Index node{base, {}};
  list([&] { node.at.push_back(index_item()); });
  return make(std::move(node), begin);
}

ExprId Parser::index_item() {
  if (!is(Tok::DotDot)) return expr(WhereItems::One);
  size_t begin = at;
  take();
  Name pack = name("the name of a pack");
  return panic ? make(Error{}, begin) : make(PackRef{pack}, begin);
}

ExprId Parser::call(ExprId callee, bool brackets, size_t begin) {
  Call node;
  node.callee = callee;
  node.has_brackets = brackets;
  if (brackets) list([&] { node.brackets.push_back(bracket()); });
  list([&] {
    if (is(Tok::Name) && is(Tok::Eq, 1)) {
      node.names.resize(node.args.size());
      node.names.push_back(name_of(take()));
      take();
    }
    ExprId arg = index_item();  // a pack: the addresses of `uniform(seed, ..b)`
    node.args.push_back(arg);
    if (!node.names.empty()) node.names.resize(node.args.size());
    const auto* gate = std::get_if<Where>(&ast[arg].node);
    bool binds = gate && !ast.parenthesised.count(arg) && gate->items.back().bind;
    if (binds && !panic && is(Tok::Comma) && is(Tok::Name, 1) && is(Tok::Eq, 2)) {
      take();
      fail_expected("one condition")
          .help(
              "in an argument list a `where` takes one condition; put the `where` after the `)`, "
              "or in parentheses with the argument if what follows is another argument");
    }
  });
  return make(std::move(node), begin);
}

Bracket Parser::bracket() {
  size_t begin = at;
  Bracket b;
  if (accept(Tok::DotDot)) {
    b.pack = true;
    b.name = name("the name of a pack");
  } else if (is(Tok::LParen)) {
    list([&] { b.group.push_back(name("the name of a coordinate")); });
  } else {
    b.name = coordinate_name();
    if (!panic && is_word("in")) {
      take();
      b.range = binary();
    } else if (!panic && is(Tok::Eq)) {
      equals_in_brackets(b);
    }
  }
  b.span = span_from(begin);
  return b;
}

// `x.len` is `len(x)`, `x.shape` is `shape(x)`, `x.extent(c)` is `extent(x, c)`.
ExprId Parser::property(ExprId base, size_t begin) {
  size_t name_at = at;
  Path callee{{name_of(take())}};
  bool arguments = text(tokens[name_at]) == "extent";
  Call node;
  node.callee = make(std::move(callee), name_at);
  node.args.push_back(base);
  node.method = true;
  if (arguments) list([&] { node.args.push_back(expr(WhereItems::One)); });
  if (!arguments && is(Tok::LParen) && peek().close == at + 1 && same_line()) {  // `x.len()`
    Span parens = join(peek().span, peek(1).span);
    fail(Code::E0101, fmt::format("`.{}` takes no parentheses", text(tokens[name_at])))
        .primary(parens, "not expected here")
        .fix({"remove them", {{parens, ""}}});
    panic = false;
    take();
    take();
  }
  return make(std::move(node), begin);
}

ExprId Parser::field(ExprId base, size_t begin) {
  const Token dot = take();
  if (is_word("len") || is_word("shape") || (is_word("extent") && is(Tok::LParen, 1))) {
    return property(base, begin);
  }
  if (is(Tok::Int)) {
    const Token number = peek();
    std::string digits(text(number));
    if (digits.size() <= 6 && digits.find_first_not_of("0123456789") == std::string::npos) {
      take();
      return make(Field{base, static_cast<uint32_t>(std::stoul(digits)), {}}, begin);
    }
  }
  if (is(Tok::Name)) {
    Name field = name_of(take());
    return make(Field{base, 0, field}, begin);
  }
  fail(Code::E0101,
       fmt::format("expected the name or number of a field after `.`, found {}", found()))
      .primary(join(dot.span, peek().span), "not a field");
  return make(Error{}, begin);
}

}  // namespace ein::ast

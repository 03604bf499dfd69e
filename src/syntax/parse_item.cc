// Definitions other than `let`: `const`, `fn`, `@fn`, `use`, `mod`, `type`, `test`.
#include <fmt/format.h>

#include "syntax/parser_impl.h"

namespace ein::ast {

decltype(Stmt::node) Parser::const_stmt(bool pub) {
  take();
  Const node;
  node.pub = pub;
  node.name = name("a name after `const`");
  if (accept(Tok::Colon)) node.type = type();
  if (!expect(Tok::Eq, "and a value after the constant's name")) return ErrorStmt{};
  node.value = expr(WhereItems::Many);
  end_statement(is_block_like(ast, node.value));
  return node;
}

// fn name[coords](x, y: T, k: T = default) -> type { … }
decltype(Stmt::node) Parser::fn(bool pub, bool rule) {
  take();
  Fn node;
  node.pub = pub;
  node.rule = rule;
  size_t begin = at;
  node.name = name("the name of the function");
  if (!panic && is(Tok::LBracket)) {
    list([&] {
      FnCoord coord;
      coord.pack = accept(Tok::DotDot);
      coord.name = name("the name of a coordinate");
      node.coords.push_back(coord);
    });
  }
  if (panic || !is(Tok::LParen)) {
    fail_expected("`(` and the parameters");
    return ErrorStmt{};
  }
  list([&] {
    Param param{name("the name of a parameter"), {}};
    if (accept(Tok::Colon)) param.type = type();
    if (accept(Tok::Eq)) param.value = expr(WhereItems::One);
    node.params.push_back(param);
  });
  if (accept(Tok::Arrow)) node.result = type();
  node.signature = span_from(begin);
  if (panic && is(Tok::LBrace)) panic = false;  // the body stands on its own
  if (!panic && is(Tok::Eq)) {
    node.body = body_without_braces();
    end_statement(false);
    return node;
  }
  if (!panic && !is(Tok::LBrace)) {
    fail_expected("`{` and the function's body");
    return ErrorStmt{};
  }
  node.body = block();
  if (!panic) accept(Tok::Semi);
  return node;
}

// use a::b; use a::b as c; use a::*; use a::{b, c as d}; pub use a::b;
decltype(Stmt::node) Parser::use(bool pub) {
  take();
  Use node;
  node.pub = pub;
  node.path.push_back(name("the path of a module"));
  while (accept(Tok::ColonColon)) {
    if (accept(Tok::Star)) {
      node.glob = true;
      break;
    }
    if (is(Tok::LBrace)) {
      list([&] {
        UseItem item{name("a name to import"), std::nullopt};
        if (accept(Tok::As)) item.alias = name("a name after `as`");
        node.items.push_back(item);
      });
      break;
    }
    node.path.push_back(name("a name, `*` or `{` after `::`"));
  }
  if (accept(Tok::As)) node.alias = name("a name after `as`");
  if (panic) return ErrorStmt{};
  end_statement(false);
  return node;
}

decltype(Stmt::node) Parser::mod() {
  take();
  Mod node{name_of(take())};
  end_statement(false);
  return node;
}

// type Name = T;
decltype(Stmt::node) Parser::type_def(bool pub) {
  take();
  TypeDef node{name_of(take()), {}, pub};
  take();
  node.type = type();
  if (panic) return ErrorStmt{};
  end_statement(std::holds_alternative<TupleType>(ast[node.type].node));
  return node;
}

decltype(Stmt::node) Parser::test() {
  take();
  const Token token = take();
  Test node;
  for (const StrPiece& piece : string_pieces(token)) {
    if (piece.value.valid()) {
      diags.error(Code::E0106, "the name of a test cannot contain placeholders")
          .primary(ast[piece.value].span, "placeholder in the name")
          .help("write `{{` and `}}` for braces");
    }
    node.name += piece.text;
  }
  node.body = block();
  if (panic) return ErrorStmt{};
  accept(Tok::Semi);
  return node;
}

}  // namespace ein::ast

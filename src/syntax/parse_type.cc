// Names and types: `f32`, `[f32; ..left, j, ?, *]`, `(f32, [f32; n])`, `{ a: f32 }`, `fn(f32) -> f32`.
#include <fmt/format.h>

#include "syntax/parser_impl.h"

namespace ein::ast {

Name Parser::name(const char* what) {
  if (is(Tok::Name) && !panic) return name_of(take());
  Diagnostic& d = fail_expected(what);
  if (is_keyword(text(peek())) && same_line()) {
    d.help(fmt::format("`{}` is a keyword and cannot be a name", text(peek())));
  }
  return {};
}

TypeId Parser::type() {
  Nested nested(*this);
  if (!nested.ok) return ast.types.add({ErrorType{}, peek().span});
  return type_rule();
}

TypeId Parser::type_rule() {
  size_t begin = at;
  if (is(Tok::Name)) return make_type(NamedType{name_of(take())}, begin);
  if (is(Tok::LBracket)) return tensor_type();
  if (is(Tok::LParen)) {
    TupleType tuple;
    list([&] { tuple.items.push_back(type()); });
    bool comma = tokens[at - 1].kind == Tok::RParen && at >= 2 && tokens[at - 2].kind == Tok::Comma;
    if (tuple.items.size() == 1 && !comma) return tuple.items[0];
    return make_type(std::move(tuple), begin);
  }
  bool word = is(Tok::Name, 1) || is_keyword(text(peek(1)));  // name() reports a keyword
  bool named = word && is(Tok::Colon, 2);
  bool renamed = is(Tok::Str, 1) && is(Tok::As, 2);
  if (is(Tok::LBrace) && (named || renamed)) {
    TupleType record;
    list([&] {
      ExprId member = is(Tok::Str) ? part_name() : ExprId{};
      Name field = field_name();
      if (!panic && expect(Tok::Colon, "and the type of the field")) {
        record.names.push_back(field);
        record.members.push_back(member);
        record.items.push_back(type());
      }
    });
    if (panic) return make_type(ErrorType{}, begin);
    return make_type(std::move(record), begin);
  }
  if (accept(Tok::Fn)) {
    FnType fn;
    if (!is(Tok::LParen)) {
      fail_expected("`(` after `fn`");
    } else {
      list([&] { fn.params.push_back(type()); });
      if (expect(Tok::Arrow, "and the result's type")) fn.result = type();
    }
    if (panic) return make_type(ErrorType{}, begin);
    return make_type(std::move(fn), begin);
  }
  fail_expected("a type");
  return make_type(ErrorType{}, begin);
}

Name Parser::field_name() {
  if (is(Tok::Name) || !is_keyword(text(peek()))) return name("the name of a field");
  std::string keyword(text(peek()));
  fail_expected("the name of a field")
      .help(fmt::format("`{0}` is a keyword and cannot be a name; if files call the part so, give "
                        "the field another name: `\"{0}\" as …: …`",
                        keyword));
  return {};
}

// `"0.weight" as`: what the part is called in files.
ExprId Parser::part_name() {
  ExprId member = string();
  const auto& pieces = std::get<StrLit>(ast[member].node).pieces;
  if (pieces.size() != 1 || pieces[0].value.valid()) {
    diags.error(Code::E0106, "the name of a part in files is a plain string that is not empty")
        .primary(ast[member].span, "")
        .help("as in `{ \"0.weight\" as w: [f32; n] }`");
  }
  expect(Tok::As, "and the name of the field");
  return member;
}

// Not a list(): the element type and its `;` come before the items.
TypeId Parser::tensor_type() {
  size_t begin = at;
  TensorType tensor;
  const Token open = take();
  size_t outer = std::exchange(limit, open.close);
  if (open.unclosed) quiet = true;
  tensor.elem = type();
  if (!panic && !accept(Tok::Semi)) {
    fail_expected("`;` and the coordinates after the element type")
        .help("a tensor type is written `[f32; n, m]`");
  }
  bool ok = !panic;
  if (panic) {
    at = limit;
    panic = false;
  }
  while (at < limit) {
    tensor.dims.push_back(dim());
    after_item(open);
  }
  limit = outer;
  if (!open.unclosed) take();
  if (!ok) return make_type(ErrorType{}, begin);
  return make_type(std::move(tensor), begin);
}

Dim Parser::dim() {
  size_t begin = at;
  Dim d{Dim::Kind::Extent, {}, {}, {}};
  if (accept(Tok::DotDot)) {
    d.kind = Dim::Kind::Pack;
    d.name = name("the name of a pack");
  } else if (accept(Tok::Question)) {
    d.kind = Dim::Kind::Unknown;
  } else if (accept(Tok::Star)) {
    d.kind = Dim::Kind::AnyRank;
  } else {
    d.extent = expr(WhereItems::One);
  }
  d.span = span_from(begin);
  return d;
}

}  // namespace ein::ast

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
  if (is(Tok::LBrace) && is(Tok::Name, 1) && is(Tok::Colon, 2)) {
    TupleType record;
    list([&] {
      Name field = name("the name of a field");
      if (!panic && expect(Tok::Colon, "and the type of the field")) {
        record.names.push_back(field);
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

#include <algorithm>
#include <set>

#include "ide/features.h"
#include "sema/types/types.h"

namespace ein::ide {
namespace {

using ast::Tok;

Colour colour_of(Kind kind) {
  switch (kind) {
    case Kind::Value:
    case Kind::Constant:
    case Kind::Local: return Colour::Value;
    case Kind::Input: return Colour::Input;
    case Kind::Parameter: return Colour::Parameter;
    case Kind::Index: return Colour::Index;
    case Kind::Extent:
    case Kind::Coordinate:
    case Kind::Pack: return Colour::Coordinate;
    case Kind::Function:
    case Kind::Builtin: return Colour::Function;
    case Kind::Module: return Colour::Module;
    case Kind::Type: return Colour::Type;
    case Kind::Field: return Colour::Field;
  }
  return Colour::Value;
}

// The colour of a token, known from the token alone; `at` is its place.
void add_token(Tok kind, std::string_view word, Span at, std::vector<Coloured>& out) {
  if (ast::is_keyword(word)) {
    out.push_back({at, Colour::Keyword});
  } else if (kind == Tok::Int || kind == Tok::Float) {
    out.push_back({at, Colour::Number});
  } else if (kind == Tok::At) {
    out.push_back({at, Colour::Request});
  } else if (kind == Tok::Name && sema::scalar_type(intern(word))) {
    out.push_back({at, Colour::Type});
  }
}

// Colours the code in a placeholder; the lexer sees the whole string as one token.
void add_placeholder(const Analysis& a, Span code, std::vector<Coloured>& out) {
  SourceMap sources;
  Diagnostics ignored;
  FileId file = sources.add("placeholder", std::string(a.sources.text(code)));
  for (const ast::Token& t : ast::lex(file, sources, ignored).tokens) {
    Span at{a.root, code.begin + t.span.begin, code.begin + t.span.end};
    add_token(t.kind, sources.text(t.span), at, out);
  }
}

void add_tokens(const Analysis& a, std::vector<Coloured>& out) {
  for (const ast::Token& t : a.lexed.tokens) {
    add_token(t.kind, a.sources.text(t.span), t.span, out);
  }
  for (const ast::Comment& c : a.lexed.comments) out.push_back({c.span, Colour::Comment});
}

// Colours strings, except the placeholders in them, which are code. Strings that are not values,
// such as the name of a test, have no placeholders.
void add_strings(const Analysis& a, std::vector<Coloured>& out) {
  std::set<uint32_t> values;
  for (const ast::Expr& e : a.ast().exprs) {
    if (std::holds_alternative<ast::StrLit>(e.node) && e.span.file == a.root) {
      values.insert(e.span.begin);
    }
  }
  for (const ast::Token& t : a.lexed.tokens) {
    if (t.kind == Tok::Str && !values.contains(t.span.begin)) {
      out.push_back({t.span, Colour::String});
    }
  }
  for (const ast::Expr& e : a.ast().exprs) {
    const auto* s = std::get_if<ast::StrLit>(&e.node);
    if (!s || e.span.file != a.root) continue;
    uint32_t from = e.span.begin;
    for (const ast::StrPiece& p : s->pieces) {
      if (!p.value) continue;
      Span inside = a.ast()[p.value].span;
      if (inside.begin > from) out.push_back({{a.root, from, inside.begin}, Colour::String});
      add_placeholder(a, inside, out);
      from = inside.end;
    }
    if (from < e.span.end) out.push_back({{a.root, from, e.span.end}, Colour::String});
  }
}

}  // namespace

const std::vector<const char*>& colour_names() {
  static const std::vector<const char*> names = {
      "keyword",  "comment",  "string",    "number", "operator",   "function", "namespace", "type",
      "property", "variable", "parameter", "index",  "coordinate", "input",    "request"};
  return names;
}

std::vector<Coloured> coloured(const Analysis& a) {
  std::vector<Coloured> out;
  for (const Occurrence& o : a.bindings.occurrences) {
    if (o.span.file != a.root) continue;
    const Entity& e = entity_of(a, o);
    bool library = e.kind == Kind::Builtin ||
                   (e.span.valid() && a.sources.name(e.span.file).starts_with("std/"));
    out.push_back({o.span, colour_of(e.kind), o.defines, e.kind == Kind::Constant, library});
  }
  add_tokens(a, out);
  add_strings(a, out);
  auto place = [](const Coloured& x, const Coloured& y) { return x.span.begin < y.span.begin; };
  std::stable_sort(out.begin(), out.end(), place);
  // The most specific colour wins: names, then words of the language, then the text around them.
  std::vector<Coloured> kept;
  for (const Coloured& c : out) {
    if (kept.empty() || c.span.begin >= kept.back().span.end) kept.push_back(c);
  }
  return kept;
}

}  // namespace ein::ide

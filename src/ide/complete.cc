#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "ide/features.h"
#include "ide/library_index.h"
#include "sema/builtins.h"
#include "sema/names/attributes.h"
#include "sema/types/types.h"

namespace ein::ide {
namespace {

using ast::Tok;
using Made = Completion::Kind;

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

Made kind_of(Kind kind) {
  switch (kind) {
    case Kind::Constant: return Made::Constant;
    case Kind::Index:
    case Kind::Extent:
    case Kind::Coordinate:
    case Kind::Pack: return Made::Index;
    case Kind::Function:
    case Kind::Builtin: return Made::Function;
    case Kind::Module: return Made::Module;
    case Kind::Type: return Made::Type;
    case Kind::Field: return Made::Field;
    default: return Made::Value;
  }
}

struct Completing {
  const Analysis& a;
  Span word;
  std::string prefix;
  size_t before = 0;  // how many tokens end before the word
  std::vector<Completion> out = {};
  std::set<std::string> taken = {};

  const ast::Token* token(size_t back) const {
    return before >= back ? &a.lexed.tokens[before - back] : nullptr;
  }
  bool is(size_t back, Tok kind) const { return token(back) && token(back)->kind == kind; }
  std::string spelled(size_t back) const {
    return token(back) ? std::string(a.sources.text(token(back)->span)) : "";
  }

  Completion* add(const std::string& label, Made kind, int rank, std::string detail = {},
                  std::string doc = {}) {
    if (!taken.insert(label).second) return nullptr;
    out.push_back({label, std::move(detail), std::move(doc), kind, word, {}, rank});
    return &out.back();
  }

  void entity(const Entity& e, int rank) {
    std::string detail = name_of(e.kind), doc;
    if (const ast::Fn* fn = function_of(a, e)) detail = signature_of(a, *fn);
    auto it = a.meanings.values.find(sema::Meanings::place(e.span));
    if (it != a.meanings.values.end() && !it->second.empty()) detail = describe(it->second[0]);
    if (e.stmt) doc = a.ast()[e.stmt].doc;
    add(text(e.name), kind_of(e.kind), rank, detail, doc);
  }

  // The names before the last `::` of the path, as in `std::nn::`.
  std::vector<std::string> path() const {
    std::vector<std::string> names;
    for (size_t back = 1; is(back, Tok::ColonColon) && is(back + 1, Tok::Name); back += 2) {
      names.insert(names.begin(), spelled(back + 1));
    }
    return names;
  }

  void in_path(const std::vector<std::string>& names) {
    std::string module = fmt::format("{}", fmt::join(names, "::"));
    for (uint32_t id : visible_at(a.bindings, a.root, word.begin)) {
      const Entity& e = a.bindings.entities[id];
      if (e.kind != Kind::Module || names.size() != 1 || text(e.name) != names[0]) continue;
      const std::string& file = a.sources.name(e.span.file);
      for (const Entity& item : a.bindings.entities) {
        if (item.exported && item.span.file == e.span.file) entity(item, 0);
      }
      if (file.starts_with("std/")) {
        module = "std::" + file.substr(4, file.rfind(".ein") - 4);
        for (size_t at; (at = module.find('/')) != std::string::npos;) module.replace(at, 1, "::");
      }
    }
    for (const LibraryItem& item : library_index()) {
      if (item.module != module) continue;
      add(item.name, item.function ? Made::Function : Made::Constant, 0, item.signature, item.doc);
    }
    for (const std::string& known : library_modules()) {
      if (!known.starts_with(module + "::")) continue;
      std::string rest = known.substr(module.size() + 2);
      add(rest.substr(0, rest.find("::")), Made::Module, 1);
    }
  }

  // What `p.b` stands for in front of a dot, even if the tree lacks it because nothing follows the
  // dot yet.
  std::vector<sema::Shown> before_dot() const {
    std::vector<std::string> names;
    size_t back = 2;
    for (; is(back, Tok::Name); back += 2) {
      names.insert(names.begin(), spelled(back));
      if (!is(back + 1, Tok::Dot)) break;
    }
    if (names.empty()) return {};
    for (uint32_t id : visible_at(a.bindings, a.root, word.begin)) {
      const Entity& e = a.bindings.entities[id];
      if (text(e.name) != names[0] || e.kind == Kind::Function) continue;
      auto it = a.meanings.values.find(sema::Meanings::place(e.span));
      std::vector<sema::Shown> values;
      if (it != a.meanings.values.end()) values = it->second;
      for (size_t n = 1; n < names.size(); ++n) {
        std::vector<sema::Shown> parts;
        for (const sema::Shown& v : values) {
          auto at = std::find(v.fields.begin(), v.fields.end(), names[n]) - v.fields.begin();
          if (at < std::ssize(v.fields)) parts.push_back(v.items[static_cast<size_t>(at)]);
        }
        values = std::move(parts);
      }
      return values;
    }
    return {};
  }

  void fields(uint32_t dot) {
    const Occurrence* o = occurrence_at(a.bindings, a.root, dot);
    std::vector<sema::Shown> values;
    if (o && o->span.end == dot) values = values_of(a, *o);
    for (const auto& [tree, shown] : a.meanings.trees) {
      Span span = a.ast()[tree].span;
      if (span.file == a.root && span.end == dot) values = shown;
    }
    if (values.empty()) values = before_dot();
    for (const sema::Shown& v : values) {
      for (size_t i = 0; i < v.fields.size(); ++i) {
        add(v.fields[i], Made::Field, 0, describe(v.items[i]));
      }
    }
    for (const char* property : {"len", "shape", "extent"}) {
      auto doc = builtin_doc(property);
      add(property, Made::Function, 1, doc ? doc->signature : "", doc ? doc->doc : "");
    }
  }

  // In `x[…]`: the coordinate of x that belongs at this place.
  void coordinates() {
    int depth = 0;
    size_t commas = 0;
    for (size_t back = 1; back <= before; ++back) {
      Tok k = token(back)->kind;
      if (k == Tok::Semi || k == Tok::LBrace || k == Tok::RBrace) return;
      if (k == Tok::RParen || k == Tok::RBracket) ++depth;
      if (k == Tok::Comma && depth == 0) ++commas;
      if (k != Tok::LParen && k != Tok::LBracket) continue;
      if (depth-- > 0) continue;
      if (k == Tok::LParen || !is(back + 1, Tok::Name)) return;
      Span base = token(back + 1)->span;
      const Occurrence* o = occurrence_at(a.bindings, a.root, base.begin);
      if (!o) return;
      for (const sema::Shown& v : values_of(a, *o)) {
        if (commas < v.coords.size() && !v.coords[commas].name.empty()) {
          add(v.coords[commas].name, Made::Index, -1,
              "coordinate of " + text(entity_of(a, *o).name));
        }
      }
      return;
    }
  }

  // In `f(x, b`: the parameters that can be passed by name.
  void arguments() {
    auto signature =
        is(1, Tok::LParen) || is(1, Tok::Comma) ? signature_help(a, word.begin) : std::nullopt;
    const ast::Fn* fn =
        signature && signature->entity ? function_of(a, *signature->entity) : nullptr;
    if (!fn || signature->brackets) return;
    for (size_t i = signature->active; i < fn->params.size(); ++i) {
      // A parameter without a default is usually passed by position.
      int rank = fn->params[i].value ? 0 : 2;
      add(text(fn->params[i].name.symbol) + " = ", Made::Value, rank,
          "argument of " + text(fn->name.symbol));
    }
  }

  // Whether the place is in the brackets of a type, and whether it is after the `;`.
  enum class InType : uint8_t { No, Element, Extents };
  InType in_type() const {
    bool extents = false;
    for (size_t back = 1; back <= before; ++back) {
      Tok k = token(back)->kind;
      if (k == Tok::LBracket) {
        bool type = is(back + 1, Tok::Colon) || is(back + 1, Tok::As) || is(back + 1, Tok::Arrow);
        return !type ? InType::No : extents ? InType::Extents : InType::Element;
      }
      extents |= k == Tok::Semi;
      bool inside = k == Tok::Semi || k == Tok::Comma || k == Tok::Name || k == Tok::Int ||
                    k == Tok::Star || k == Tok::Plus || k == Tok::Minus || k == Tok::DotDot;
      if (!inside) return InType::No;
    }
    return InType::No;
  }

  // Extents: a number, or the name of an extent in another type.
  void extents() {
    for (uint32_t id : visible_at(a.bindings, a.root, word.begin)) {
      const Entity& e = a.bindings.entities[id];
      bool number = e.kind == Kind::Constant || e.kind == Kind::Input || e.kind == Kind::Value;
      auto it = a.meanings.values.find(sema::Meanings::place(e.span));
      bool known = it != a.meanings.values.end() && !it->second.empty();
      number &= known && it->second[0].coords.empty() && it->second[0].type.starts_with("i");
      if (number || e.kind == Kind::Extent || e.kind == Kind::Coordinate) entity(e, number);
    }
  }

  void library() {
    if (prefix.empty()) return;
    for (const LibraryItem& item : library_index()) {
      if (!item.name.starts_with(prefix)) continue;
      Completion* c = add(item.name, item.function ? Made::Function : Made::Constant, 4,
                          item.signature, item.doc);
      if (!c) continue;
      c->detail = fmt::format("use {} · {}", item.module, c->detail);
      c->edits.push_back(use_of(item));
    }
  }

  Edit use_of(const LibraryItem& item) const {
    const auto& items = a.ast().items;
    std::string line = fmt::format("use {}::{{{}}};\n", item.module, item.name);
    uint32_t at = 0;
    bool found = false;
    for (ast::StmtId id : items) {
      const ast::Stmt& s = a.ast()[id];
      if (!std::holds_alternative<ast::Use>(s.node) || s.span.file != a.root) continue;
      size_t end = a.text().find('\n', s.span.end);
      at = static_cast<uint32_t>(end == std::string::npos ? a.text().size() : end + 1);
      if (end == std::string::npos) line = "\n" + line;
      found = true;
    }
    if (!found) {  // below the comment at the top of the file
      const std::string& text = a.text();
      while (text.compare(at, 2, "//") == 0 && text.compare(at, 3, "///") != 0) {
        size_t end = text.find('\n', at);
        if (end == std::string::npos) break;
        at = static_cast<uint32_t>(end + 1);
      }
      if (at > 0) line = "\n" + line;
    }
    return {{a.root, at, at}, line};
  }

  void anything() {
    int rank = 0;
    for (uint32_t id : visible_at(a.bindings, a.root, word.begin)) {
      const Entity& e = a.bindings.entities[id];
      bool library = e.span.valid() && a.sources.name(e.span.file).starts_with("std/");
      bool near = e.kind == Kind::Index || e.kind == Kind::Parameter || e.kind == Kind::Local;
      rank = near ? 0 : library ? 3 : 1;
      entity(e, rank);
    }
    for (const sema::Builtin& b : sema::builtins()) {
      auto doc = builtin_doc(b.spelling);
      add(b.spelling, Made::Function, 2, doc ? doc->signature : "", doc ? doc->doc : "");
    }
#define EIN_OP(op, name, arity, cls)                                              \
  if (sema::primitive_named(intern(name))) {                                      \
    auto doc = builtin_doc(name);                                                 \
    add(name, Made::Function, 2, doc ? doc->signature : "", doc ? doc->doc : ""); \
  }
#include "core/ops.def"
#undef EIN_OP
    for (std::string_view word_of : ast::keywords()) add(std::string(word_of), Made::Keyword, 3);
    for (std::string_view word_of : ast::soft_keywords())
      add(std::string(word_of), Made::Keyword, 3);
    library();
  }

  void types() {
    for (const char* name :
         {"f32", "f64", "f16", "bf16", "bool", "i8", "i16", "i32", "i64", "u8", "str"}) {
      if (sema::scalar_type(intern(name))) add(name, Made::Type, 0);
    }
    for (uint32_t id : visible_at(a.bindings, a.root, word.begin)) {
      const Entity& e = a.bindings.entities[id];
      if (e.kind == Kind::Type) entity(e, 0);
    }
  }
};

// Whether a place in a string is code, as in `"{x"`: doubled braces are text.
bool in_placeholder(const std::string& text, uint32_t from, uint32_t to) {
  int depth = 0;
  for (uint32_t i = from + 1; i < to; ++i) {
    if (text[i] == '\\' || (depth == 0 && text.compare(i, 2, "{{") == 0)) {
      ++i;
    } else if (text[i] == '{') {
      ++depth;
    } else if (text[i] == '}' && depth > 0) {
      --depth;
    }
  }
  return depth > 0;
}

}  // namespace

std::vector<Completion> complete(const Analysis& a, uint32_t offset) {
  for (const ast::Comment& c : a.lexed.comments) {
    if (c.span.begin < offset && offset <= c.span.end) return {};
  }
  uint32_t begin = offset, end = offset;
  const std::string& text = a.text();
  while (begin > 0 && in_word(text[begin - 1])) --begin;
  while (end < text.size() && in_word(text[end])) ++end;
  bool number = begin < offset && std::isdigit(static_cast<unsigned char>(text[begin]));
  if (number) return {};
  Completing c{a, {a.root, begin, end}, text.substr(begin, offset - begin)};
  const auto& tokens = a.lexed.tokens;
  while (c.before < tokens.size() && tokens[c.before].kind != Tok::End &&
         tokens[c.before].span.end <= begin) {
    ++c.before;
  }
  bool in_string = c.before < tokens.size() && tokens[c.before].kind == Tok::Str &&
                   tokens[c.before].span.begin < offset;
  if (in_string) {
    if (!in_placeholder(text, tokens[c.before].span.begin, begin)) return {};
    c.anything();
    return std::move(c.out);
  }
  if (c.is(1, Tok::ColonColon)) {
    c.in_path(c.path());
  } else if (c.is(1, Tok::LBrace) && c.is(2, Tok::ColonColon)) {  // use std::math::{
    --c.before;
    c.in_path(c.path());
  } else if (c.is(1, Tok::Dot)) {
    c.fields(c.token(1)->span.begin);
  } else if (c.is(1, Tok::Use)) {
    c.add("std", Made::Module, 0);
    for (const std::string& m : library_modules()) c.add(m, Made::Module, 1);
  } else if (c.is(1, Tok::Colon) || c.is(1, Tok::As) || c.is(1, Tok::Arrow)) {
    c.types();
  } else if (auto where = c.in_type(); where != Completing::InType::No) {
    where == Completing::InType::Element ? c.types() : c.extents();
  } else if (c.is(1, Tok::LBracket) && c.is(2, Tok::Hash)) {
    for (const char* name : sema::attribute_names()) c.add(name, Made::Keyword, 0);
  } else if (c.is(1, Tok::Let) || c.is(1, Tok::Fn) || c.is(1, Tok::Const)) {
    return {};  // a new name
  } else {
    c.coordinates();
    c.arguments();
    c.anything();
  }
  return std::move(c.out);
}

}  // namespace ein::ide

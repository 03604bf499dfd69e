#include <fmt/format.h>

#include <map>

#include "ide/features.h"
#include "sema/builtins.h"

namespace ein::ide {
namespace {

using ast::Tok;

// The call around a place. It is found in the tokens, because the tree of an unfinished call may be
// anything.
struct Open {
  size_t callee = 0;  // the token of the function's name
  bool brackets = false;
  size_t commas = 0;
  std::string named;  // the argument that is being passed by name
};

std::optional<Open> call_around(const Analysis& a, uint32_t offset) {
  const auto& tokens = a.lexed.tokens;
  size_t at = 0;
  while (at < tokens.size() && tokens[at].kind != Tok::End && tokens[at].span.end <= offset) ++at;
  Open open;
  int depth = 0;
  for (size_t i = at; i-- > 0;) {
    Tok k = tokens[i].kind;
    if (k == Tok::RParen || k == Tok::RBracket || k == Tok::RBrace) ++depth;
    bool opens = k == Tok::LParen || k == Tok::LBracket || k == Tok::LBrace;
    if (opens && depth > 0) {
      --depth;
      continue;
    }
    if (k == Tok::Semi && depth == 0) return std::nullopt;
    if (depth == 0 && k == Tok::Comma) ++open.commas;
    bool first = open.commas == 0 && depth == 0;
    if (first && k == Tok::Eq && i > 0) open.named = a.sources.text(tokens[i - 1].span);
    if (!opens) continue;
    if (k == Tok::LBrace || i == 0) return std::nullopt;
    open.brackets = k == Tok::LBracket;
    size_t name = i - 1;
    if (!open.brackets && tokens[name].kind == Tok::RBracket) {  // f[k](
      int nested = 0;
      do {
        if (tokens[name].kind == Tok::RBracket) ++nested;
        if (tokens[name].kind == Tok::LBracket) --nested;
        if (name == 0) return std::nullopt;
        --name;
      } while (nested > 0);
    }
    if (tokens[name].kind == Tok::Name) {
      open.callee = name;
      return open;
    }
    open = {};  // brackets without a name, as in `(a + b)`: look further out
    open.commas = 0;
  }
  return std::nullopt;
}

const Entity* function_named(const Analysis& a, Span name) {
  if (const Occurrence* o = occurrence_at(a.bindings, a.root, name.begin)) {
    if (entity_of(a, *o).kind == Kind::Function) return &entity_of(a, *o);
  }
  Symbol symbol = intern(a.sources.text(name));
  for (uint32_t id : visible_at(a.bindings, a.root, name.begin)) {
    const Entity& e = a.bindings.entities[id];
    if (e.kind == Kind::Function && e.name == symbol) return &e;
  }
  return nullptr;
}

// Records the parameters in the brackets that begin at `from` in the label.
void parameters_in(Signature& s, char opening, char closing) {
  size_t from = s.label.find(opening);
  if (from == std::string::npos) return;
  int depth = 0;
  size_t begin = from + 1;
  for (size_t i = from; i < s.label.size(); ++i) {
    char c = s.label[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    bool closes = c == ')' || c == ']' || c == '}';
    bool last = closes && depth == 1;
    if ((c == ',' && depth == 1) || last) {
      while (begin < i && s.label[begin] == ' ') ++begin;
      if (i > begin) s.parameters.push_back({uint32_t(begin), uint32_t(i)});
      begin = i + 1;
    }
    if (closes) --depth;
    if (last && c == closing) return;
  }
}

}  // namespace

std::optional<BuiltinDoc> builtin_doc(const std::string& name) {
  static const std::map<std::string, BuiltinDoc> docs = {
#define EIN_BUILTIN_DOC(name, signature, doc) {name, {signature, doc}},
#include "ide/builtin_docs.def"
  };
  if (auto it = docs.find(name); it != docs.end()) return it->second;
  auto op = sema::primitive_named(intern(name));
  if (!op) return std::nullopt;
  return BuiltinDoc{name + (core::info(*op).arity == 1 ? "(x)" : "(x, y)"),
                    "A function of single numbers, applied cell by cell."};
}

std::optional<Signature> signature_help(const Analysis& a, uint32_t offset) {
  auto open = call_around(a, offset);
  if (!open) return std::nullopt;
  Span name = a.lexed.tokens[open->callee].span;
  Signature out;
  out.active = open->commas;
  out.brackets = open->brackets;
  if (const Entity* e = function_named(a, name)) {
    const ast::Fn* fn = function_of(a, *e);
    if (!fn || (open->brackets && fn->coords.empty())) return std::nullopt;
    out.entity = e;
    out.label = signature_of(a, *fn);
    out.doc = a.ast()[e->stmt].doc;
    for (size_t i = 0; i < fn->params.size() && !open->brackets; ++i) {
      if (!open->named.empty() && text(fn->params[i].name.symbol) == open->named) out.active = i;
    }
  } else if (auto doc = builtin_doc(std::string(a.sources.text(name)))) {
    bool value = open->brackets && doc->signature.find('[') == std::string::npos;
    if (value) return std::nullopt;
    out.label = doc->signature;
    out.doc = doc->doc;
  } else {
    return std::nullopt;
  }
  if (open->brackets) {
    parameters_in(out, '[', ']');
  } else {
    parameters_in(out, '(', ')');
  }
  return out;
}

}  // namespace ein::ide

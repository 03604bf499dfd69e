#include <fmt/format.h>

#include "ide/features.h"

namespace ein::ide {
namespace {

std::string code(const std::string& text) { return "```ein\n" + text + "\n```\n"; }

std::string others(size_t count, const char* what) {
  if (count < 2) return "";
  return fmt::format("\nand {} other {}{} in other calls\n", count - 1, what,
                     count == 2 ? "" : "s");
}

std::string doc_of(const Analysis& a, const Entity& e) {
  return e.stmt && !a.ast()[e.stmt].doc.empty() ? "\n" + a.ast()[e.stmt].doc + "\n" : "";
}

std::string where(const Analysis& a, const Entity& e) {
  if (e.span.file == a.root || !e.span.valid()) return "";
  return fmt::format("\n*{}*\n", a.sources.name(e.span.file));
}

// For a function that is called here: what this call returns.
std::string result_at(const Analysis& a, const Occurrence& o) {
  ast::ExprId call = tree_at(a, o.span.begin, [&](const ast::Expr& e) {
    const auto* c = std::get_if<ast::Call>(&e.node);
    return c && a.ast()[c->callee].span.end == o.span.end;
  });
  auto it = call ? a.meanings.trees.find(call) : a.meanings.trees.end();
  if (it == a.meanings.trees.end() || it->second.empty()) return "";
  return fmt::format("\nhere: `{}`\n", describe(it->second[0])) + others(it->second.size(), "type");
}

const char* word_of(Kind kind) {
  switch (kind) {
    case Kind::Constant: return "const ";
    case Kind::Value:
    case Kind::Input: return "let ";
    default: return "";
  }
}

// The range that a comprehension gives its index; for other indices sema knows more than the text.
std::string written_range(const Analysis& a, const Entity& e) {
  for (const ast::Expr& x : a.ast().exprs) {
    const auto* c = std::get_if<ast::Comprehension>(&x.node);
    for (size_t i = 0; c && i < c->generators.size(); ++i) {
      const ast::Generator& g = c->generators[i];
      if (!(g.name.span == e.span) || !g.value) continue;
      return " in " + std::string(a.sources.text(a.ast()[g.value].span));
    }
  }
  return "";
}

std::string index_text(const Analysis& a, const Entity& e) {
  auto it = a.meanings.ranges.find(sema::Meanings::place(e.span));
  if (it == a.meanings.ranges.end() || it->second.empty()) {
    return code(text(e.name) + written_range(a, e)) + name_of(e.kind);
  }
  const sema::ShownRange& r = it->second[0];
  return code(fmt::format("{} in {}..{}", text(e.name), r.lo, r.hi)) + name_of(e.kind) +
         (r.inferred ? ", its range is inferred\n" : "\n") + others(it->second.size(), "range");
}

std::string extent_text(const Analysis& a, const Entity& e) {
  const std::string& name = text(e.name);
  auto it = a.meanings.extents.find(sema::Meanings::place(e.span));
  bool fixed = it != a.meanings.extents.end() && !it->second.empty() && it->second[0] != name;
  return code(fixed ? name + " = " + it->second[0] : name) +
         "extent: how many addresses the coordinate has" +
         (fixed ? "\n" + others(it->second.size(), "extent")
                : "; known when the program gets its inputs\n");
}

// A field, with its value in the record in front of the dot.
std::string field_text(const Analysis& a, const Occurrence& o) {
  const std::string& name = text(entity_of(a, o).name);
  ast::ExprId access = tree_at(a, o.span.begin, [&](const ast::Expr& e) {
    return std::holds_alternative<ast::Field>(e.node) && e.span.end == o.span.end;
  });
  auto it = access ? a.meanings.trees.find(access) : a.meanings.trees.end();
  bool known = it != a.meanings.trees.end() && !it->second.empty();
  return code(known ? name + ": " + describe(it->second[0]) : name) + "field\n" +
         (known ? others(it->second.size(), "type") : "");
}

std::string entity_text(const Analysis& a, const Occurrence& o) {
  const Entity& e = entity_of(a, o);
  const std::string& name = text(e.name);
  switch (e.kind) {
    case Kind::Function: {
      const ast::Fn* fn = function_of(a, e);
      return code(fn ? signature_of(a, *fn) : name) + result_at(a, o) + doc_of(a, e) + where(a, e);
    }
    case Kind::Builtin: {
      auto known = builtin_doc(name);
      return code(known ? known->signature : name) + result_at(a, o) +
             (known ? "\n" + known->doc + "\n" : "");
    }
    case Kind::Module: return code("use " + a.sources.name(e.span.file)) + "module\n";
    case Kind::Type:
      return code(e.stmt ? std::string(a.sources.text(a.ast()[e.stmt].span)) : name) +
             doc_of(a, e) + where(a, e);
    case Kind::Pack: return code(".." + name) + "pack: coordinates that go together\n";
    case Kind::Index:
    case Kind::Coordinate: return index_text(a, e);
    case Kind::Extent: return extent_text(a, e);
    case Kind::Field: return field_text(a, o);
    default: break;
  }
  const auto& values = values_of(a, o);
  std::string shown = values.empty() ? "" : ": " + describe(values[0]);
  std::string out = code(word_of(e.kind) + name + shown) + name_of(e.kind) + "\n";
  if (!values.empty() && values[0].literal) out += "\nadapts to the type that it meets\n";
  return out + others(values.size(), "type") + doc_of(a, e) + where(a, e);
}

bool is_request(const ast::Expr& e) {
  const auto* r = std::get_if<ast::Request>(&e.node);
  return r && r->den;
}

}  // namespace

bool in_request(const Analysis& a, uint32_t offset) {
  return tree_at(a, offset, is_request).valid();
}

std::optional<Hover> hover(const Analysis& a, uint32_t offset) {
  const Occurrence* o = occurrence_at(a.bindings, a.root, offset);
  ast::ExprId request = tree_at(a, offset, is_request);
  if (!o && !request) {  // a field, or a call without a name of its own
    ast::ExprId tree = tree_at(
        a, offset, [](const ast::Expr& e) { return std::holds_alternative<ast::Field>(e.node); });
    auto it = tree ? a.meanings.trees.find(tree) : a.meanings.trees.end();
    if (it == a.meanings.trees.end() || it->second.empty()) return std::nullopt;
    return Hover{a.ast()[tree].span, code(describe(it->second[0]))};
  }
  Hover out;
  out.span = o ? o->span : a.ast()[request].span;
  if (o) out.markdown = entity_text(a, *o);
  if (request) {
    auto it = a.meanings.trees.find(request);
    std::string shown =
        it != a.meanings.trees.end() && !it->second.empty() ? ": " + describe(it->second[0]) : "";
    if (o) out.markdown += "\n---\n";
    out.markdown += code(std::string(a.sources.text(a.ast()[request].span)) + shown);
    out.markdown += derivative_text(a, request);
  }
  return out;
}

}  // namespace ein::ide

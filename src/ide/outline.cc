// Symbols, folding and lenses: an overview of a program.
#include <algorithm>
#include <set>

#include "base/match.h"
#include "ide/features.h"

namespace ein::ide {
namespace {

// For a reader the `;` and the doc comment belong to a statement, so its range includes them.
Outline item(const Analysis& a, ast::Name name, Kind kind, const ast::Stmt& s) {
  Outline out;
  out.name = text(name.symbol);
  out.kind = kind;
  out.span = s.span;
  out.name_span = name.span;
  auto it = a.meanings.values.find(sema::Meanings::place(name.span));
  if (it != a.meanings.values.end() && !it->second.empty()) out.detail = describe(it->second[0]);
  return out;
}

void add_locals(const Analysis& a, ast::ExprId body, std::vector<Outline>& out);

void add_items(const Analysis& a, const std::vector<ast::StmtId>& stmts, bool top,
               std::vector<Outline>& out) {
  std::set<Symbol> seen;  // names that had a clause before
  for (ast::StmtId id : stmts) {
    const ast::Stmt& s = a.ast()[id];
    if (s.span.file != a.root) continue;
    match(
        s.node,
        [&](const ast::Let& l) {
          for (const ast::Name& n : l.names) {
            if (text(n.symbol) == "_" || !seen.insert(n.symbol).second) continue;
            out.push_back(item(a, n, l.value || !top ? Kind::Value : Kind::Input, s));
          }
        },
        [&](const ast::Const& c) { out.push_back(item(a, c.name, Kind::Constant, s)); },
        [&](const ast::Fn& f) {
          Outline fn = item(a, f.name, Kind::Function, s);
          if (f.rule) fn.name = "@" + fn.name;
          add_locals(a, f.body, fn.children);
          out.push_back(std::move(fn));
        },
        [&](const ast::TypeDef& t) { out.push_back(item(a, t.name, Kind::Type, s)); },
        [&](const ast::Test& t) {
          Outline test;
          test.name = t.name;
          test.test = true;
          test.span = test.name_span = s.span;
          add_locals(a, t.body, test.children);
          out.push_back(std::move(test));
        },
        [](const auto&) {});
  }
}

void add_locals(const Analysis& a, ast::ExprId body, std::vector<Outline>& out) {
  const auto* block = body ? std::get_if<ast::Block>(&a.ast()[body].node) : nullptr;
  if (block) add_items(a, block->stmts, false, out);
}

// The names in the derivative that a statement asks for.
bool asks(const Analysis& a, Span span, std::string& num, std::string& den) {
  for (const ast::Expr& e : a.ast().exprs) {
    const auto* r = std::get_if<ast::Request>(&e.node);
    bool inside = r && r->den && e.span.file == span.file && e.span.begin >= span.begin &&
                  e.span.end <= span.end;
    if (!inside) continue;
    auto name = [&](ast::ExprId id) {  // `A` of `A[i, k]`
      const auto* index = std::get_if<ast::Index>(&a.ast()[id].node);
      return std::string(a.sources.text(a.ast()[index ? index->base : id].span));
    };
    num = name(r->num);
    den = name(r->den);
    return true;
  }
  return false;
}

}  // namespace

std::vector<Outline> outline(const Analysis& a) {
  std::vector<Outline> out;
  add_items(a, a.ast().items, true, out);
  return out;
}

std::vector<Fold> folds(const Analysis& a) {
  std::vector<Fold> out;
  const auto& tokens = a.lexed.tokens;
  for (const ast::Token& t : tokens) {
    bool opens =
        t.kind == ast::Tok::LBrace || t.kind == ast::Tok::LParen || t.kind == ast::Tok::LBracket;
    if (opens && !t.unclosed) out.push_back({t.span.end, tokens[t.close].span.begin});
  }
  const auto& comments = a.lexed.comments;
  for (size_t i = 0; i < comments.size();) {
    size_t last = i;
    while (last + 1 < comments.size() && comments[last + 1].own_line &&
           comments[last + 1].token == comments[i].token) {
      ++last;
    }
    if (last > i && comments[i].own_line) {
      out.push_back({comments[i].span.begin, comments[last].span.end, Fold::Kind::Comment});
    }
    i = last + 1;
  }
  const auto& items = a.ast().items;
  auto is_use = [&](size_t i) { return std::holds_alternative<ast::Use>(a.ast()[items[i]].node); };
  for (size_t i = 0; i < items.size(); ++i) {
    if (!is_use(i)) continue;
    size_t last = i;
    while (last + 1 < items.size() && is_use(last + 1)) ++last;
    if (last > i) {
      out.push_back(
          {a.ast()[items[i]].span.begin, a.ast()[items[last]].span.end, Fold::Kind::Imports});
    }
    i = last;
  }
  return out;
}

std::vector<Lens> lenses(const Analysis& a) {
  std::vector<Lens> out;
  bool runs = false, tests = false;
  for (ast::StmtId id : a.ast().items) {
    const ast::Stmt& s = a.ast()[id];
    if (!runs && std::holds_alternative<ast::ExprStmt>(s.node)) {
      runs = true;
      out.push_back({s.span, "run", "run", {}});
    }
    if (const auto* t = std::get_if<ast::Test>(&s.node)) {
      tests = true;
      out.push_back({s.span, "test", "test", {t->name}});
    }
    std::string num, den;
    if (!std::holds_alternative<ast::Fn>(s.node) && asks(a, s.span, num, den)) {
      out.push_back({s.span, "show derivative", "grad", {num, den}});
      out.push_back({s.span, "explain", "explain", {num, den}});
    }
  }
  if (!a.ast().items.empty() && (runs || !tests)) {
    out.push_back({a.ast()[a.ast().items[0]].span, "audit", "audit", {}});
  }
  return out;
}

}  // namespace ein::ide

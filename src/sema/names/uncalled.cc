// Functions that nothing calls. A function is checked at each call, with the types it is given
// there; without a call only its names can be looked up. A name that might be a coordinate, or that
// anything in the function binds, is not reported: there must be no false alarm.
#include <fmt/format.h>

#include <algorithm>

#include "sema/builtins.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/state/call_state.h"
#include "sema/state/report.h"

namespace ein::sema {
namespace {

struct Spelled {
  const ast::Ast& ast;
  std::set<Symbol> bound;          // anywhere in the function
  std::vector<ast::Name> values;   // read
  std::vector<ast::Name> callees;  // called
  std::set<TreeId> coordinates;    // paths that may name a coordinate

  void type(ast::TypeId id) {
    if (!id) return;
    if (const auto* t = std::get_if<ast::TensorType>(&ast[id].node)) {
      for (const ast::Dim& d : t->dims) {
        for (Symbol name : free_names(ast, d.extent)) bound.insert(name);
      }
    }
    if (const auto* t = std::get_if<ast::TupleType>(&ast[id].node)) {
      for (ast::TypeId item : t->items) type(item);
    }
  }

  void function(const ast::Fn& fn) {
    bound.insert(fn.name.symbol);
    for (const ast::FnCoord& c : fn.coords) bound.insert(c.name.symbol);
    for (const ast::Param& p : fn.params) {
      bound.insert(p.name.symbol);
      type(p.type);
      tree(p.value);
    }
    type(fn.result);
    tree(fn.body);
  }

  void statement(ast::StmtId id) {
    const auto& n = ast[id].node;
    if (const auto* f = std::get_if<ast::Fn>(&n)) function(*f);
    if (const auto* c = std::get_if<ast::Const>(&n)) {
      bound.insert(c->name.symbol);
      tree(c->value);
    }
    const auto* l = std::get_if<ast::Let>(&n);
    if (!l) return;
    for (const ast::Name& name : l->names) bound.insert(name.symbol);
    for (const ast::Slot& slot : l->slots) {
      if (slot.kind != ast::Slot::Kind::Literal) bound.insert(slot.name.symbol);
      tree(slot.range);
      tree(slot.at);
    }
    type(l->type);
  }

  void call(const ast::Call& c) {
    const auto* path = std::get_if<ast::Path>(&ast[c.callee].node);
    if (!path) tree(c.callee);
    if (path && path->parts.size() == 1) {
      const ast::Name& name = path->parts[0];
      callees.push_back(name);
      // `extent(x, class)` names a coordinate of x.
      const Builtin* builtin = builtin_named(name.symbol);
      if (builtin && builtin->id == Builtin::Id::Extent) {
        coordinates.insert(c.args.begin(), c.args.end());
      }
    }
    for (const ast::Bracket& b : c.brackets) {
      if (b.name.symbol) bound.insert(b.name.symbol);
      for (const ast::Name& n : b.group) bound.insert(n.symbol);
      tree(b.range);
    }
  }

  void tree(TreeId root) {
    for_each_tree(ast, root, [&](TreeId e) {
      const ast::ExprNode& n = ast[e].node;
      if (const auto* c = std::get_if<ast::Call>(&n)) call(*c);
      if (const auto* c = std::get_if<ast::Cast>(&n)) type(c->type);
      if (const auto* i = std::get_if<ast::Index>(&n)) {
        // An index alone in a slot becomes a coordinate of the argument (decisions.md, 1).
        coordinates.insert(i->at.begin(), i->at.end());
      }
      if (const auto* b = std::get_if<ast::Block>(&n)) {
        for (ast::StmtId id : b->stmts) statement(id);
      }
      if (const auto* l = std::get_if<ast::Lambda>(&n)) {
        for (const ast::LambdaParam& p : l->params) bound.insert(p.name.symbol);
      }
      if (const auto* c = std::get_if<ast::Comprehension>(&n)) {
        for (const ast::Generator& g : c->generators) {
          if (g.name.symbol) bound.insert(g.name.symbol);
        }
      }
      if (const auto* w = std::get_if<ast::Where>(&n)) {
        for (const ast::WhereItem& item : w->items) {
          if (item.bind) bound.insert(item.bind->symbol);
        }
      }
      if (const auto* m = std::get_if<ast::Match>(&n)) {
        for (const ast::MatchArm& arm : m->arms) bound.merge(free_names(ast, arm.pattern));
      }
      if (const auto* p = std::get_if<ast::Path>(&n)) {
        if (p->parts.size() == 1 && !coordinates.count(e)) values.push_back(p->parts[0]);
      }
    });
  }
};

bool is_extent(const Env& env, Symbol name) {
  for (const Frame* f = env.frame; f; f = f->up) {
    if (!f->scope) continue;
    if (f->scope->extents.count(name) || f->scope->extent_sources.count(name)) return true;
  }
  return false;
}

bool is_function(const Env& env, Symbol name) {
  Symbol called = primitive_called(env, name);
  return builtin_named(called) || primitive_named(called) || find_function(env, name) ||
         text(name) == "_";
}

}  // namespace

void check_uncalled(Sema& s, Scope& module) {
  std::vector<const Function*> functions;
  for (const auto& [name, f] : module.functions) {
    if (f.home == &module && !s.calls.called.count(f.stmt)) functions.push_back(&f);
  }
  std::sort(functions.begin(), functions.end(),
            [](const Function* a, const Function* b) { return a->stmt < b->stmt; });
  Env env = module.env;
  for (const Function* f : functions) {
    Spelled spelled{s.ast, {}, {}, {}, {}};
    spelled.function(*f->fn);
    std::set<Symbol> reported;
    auto known = [&](const ast::Name& name) {
      return spelled.bound.count(name.symbol) || is_function(env, name.symbol) ||
             value_exists(env, name.symbol) || is_extent(env, name.symbol) ||
             import_failed(env, name.symbol) || !reported.insert(name.symbol).second;
    };
    for (const ast::Name& name : spelled.callees) {
      if (known(name)) continue;
      auto& d = s.diags.error(Code::E0204, "unknown function " + quoted(name.symbol));
      d.primary(name.span, "");
      d.label(f->fn->name.span, "in this function");
      if (std::string import = how_to_import(s, name.symbol); !import.empty()) {
        d.help(import);
        continue;
      }
      const std::string near = did_you_mean(text(name.symbol), function_names(env));
      if (!near.empty()) d.help("did you mean " + quoted(near) + "?");
    }
    for (const ast::Name& name : spelled.values) {
      if (!known(name)) report_unknown(s, env, name);
    }
  }
}

}  // namespace ein::sema

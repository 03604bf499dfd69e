#include "sema/names/trees.h"

#include <algorithm>
#include <functional>

#include "base/match.h"
#include "runtime/members.h"
#include "sema/builtins.h"
#include "sema/state/name_state.h"

namespace ein::sema {
namespace {

struct Walker {
  const ast::Ast& ast;
  std::set<Symbol>& values;
  std::set<Symbol>& calls;
  std::set<Symbol> callees = {};  // those of `calls` that nothing inside binds

  void type(ast::TypeId id, const std::set<Symbol>& bound) {
    if (!id) return;
    match(
        ast[id].node, [](const ast::NamedType&) {},
        [&](const ast::TensorType& t) {
          for (const ast::Dim& d : t.dims) expr(d.extent, bound);
        },
        [&](const ast::TupleType& t) {
          for (ast::TypeId i : t.items) type(i, bound);
        },
        [](const ast::FnType&) {}, [](const ast::ErrorType&) {});
  }

  void let(const ast::Let& l, const std::set<Symbol>& bound) {
    type(l.type, bound);
    if (l.slots.empty()) {  // a block may bind thousands of names
      expr(l.value, bound);
      return expr(l.until, bound);
    }
    std::set<Symbol> inside = bound;
    for (const ast::Slot& slot : l.slots) {
      expr(slot.range, bound);
      expr(slot.at, bound);
      if (slot.kind == ast::Slot::Kind::Index) inside.insert(slot.name.symbol);
    }
    expr(l.value, inside);
    if (!l.until) return;
    // The condition sees the locals of the block that it follows.
    if (const auto* b = std::get_if<ast::Block>(&ast[l.value].node)) {
      for (ast::StmtId id : b->stmts) {
        const auto* local = std::get_if<ast::Let>(&ast[id].node);
        for (size_t i = 0; local && i < local->names.size(); ++i) {
          inside.insert(local->names[i].symbol);
        }
      }
    }
    expr(l.until, inside);
  }

  void stmt(ast::StmtId id, const std::set<Symbol>& bound) {
    match(
        ast[id].node, [&](const ast::Let& l) { let(l, bound); },
        [&](const ast::Const& c) { expr(c.value, bound); },
        [&](const ast::Fn& f) { function(f, bound); }, [](const ast::Use&) {},
        [](const ast::Mod&) {}, [&](const ast::TypeDef& t) { type(t.type, bound); },
        [&](const ast::ExprStmt& e) { expr(e.value, bound); },
        [&](const ast::Test& t) { expr(t.body, bound); }, [](const ast::ErrorStmt&) {});
  }

  void function(const ast::Fn& f, const std::set<Symbol>& bound) {
    std::set<Symbol> inside = bound;
    for (const ast::Param& p : f.params) {
      inside.insert(p.name.symbol);
      if (const auto* dims = p.type ? std::get_if<ast::TensorType>(&ast[p.type].node) : nullptr) {
        for (const ast::Dim& d : dims->dims) {  // shape names are bound by the call
          std::set<Symbol> names, ignored;
          Walker{ast, names, ignored}.expr(d.extent, {});
          inside.insert(names.begin(), names.end());
        }
      }
    }
    for (const ast::FnCoord& c : f.coords) inside.insert(c.name.symbol);
    for (const ast::Param& p : f.params) expr(p.value, bound);
    expr(f.body, inside);
  }

  void block(const ast::Block& b, const std::set<Symbol>& bound) {
    std::set<Symbol> inside = bound;
    for (ast::StmtId id : b.stmts) {
      if (const auto* l = std::get_if<ast::Let>(&ast[id].node)) {
        for (const ast::Name& n : l->names) inside.insert(n.symbol);
      }
    }
    for (ast::StmtId id : b.stmts) stmt(id, inside);
    expr(b.value, inside);
  }

  void comprehension(const ast::Comprehension& c, const std::set<Symbol>& bound) {
    std::set<Symbol> inside = bound;
    for (const ast::Generator& g : c.generators) {
      expr(g.value, g.name.symbol ? bound : inside);
      if (g.name.symbol) inside.insert(g.name.symbol);
    }
    expr(c.body, inside);
  }

  void call(const ast::Call& c, const std::set<Symbol>& bound) {
    if (const auto* p = std::get_if<ast::Path>(&ast[c.callee].node); p && p->parts.size() == 1) {
      calls.insert(p->parts[0].symbol);
      if (!bound.count(p->parts[0].symbol)) callees.insert(p->parts[0].symbol);
    } else {
      expr(c.callee, bound);
    }
    if (c.brackets.empty()) {
      for (TreeId a : c.args) expr(a, bound);
      return;
    }
    std::set<Symbol> inside = bound;
    for (const ast::Bracket& b : c.brackets) {
      expr(b.range, inside);
      if (b.name.symbol) inside.insert(b.name.symbol);
      for (const ast::Name& n : b.group) inside.insert(n.symbol);
    }
    for (TreeId a : c.args) expr(a, inside);
  }

  void expr(TreeId id, const std::set<Symbol>& bound) {
    if (!id) return;
    auto each = [&](const std::vector<TreeId>& list) {
      for (TreeId e : list) expr(e, bound);
    };
    match(
        ast[id].node, [](const ast::IntLit&) {}, [](const ast::FloatLit&) {},
        [](const ast::BoolLit&) {},
        [&](const ast::StrLit& n) {
          for (const ast::StrPiece& p : n.pieces) expr(p.value, bound);
        },
        [&](const ast::Path& n) {
          if (n.parts.size() == 1 && !bound.count(n.parts[0].symbol)) {
            values.insert(n.parts[0].symbol);
          }
        },
        [](const ast::PackRef&) {},
        [&](const ast::Index& n) {
          expr(n.base, bound);
          each(n.at);
        },
        [&](const ast::Call& n) { call(n, bound); },
        [&](const ast::Unary& n) { expr(n.arg, bound); },
        [&](const ast::Binary& n) {
          expr(n.lhs, bound);
          expr(n.rhs, bound);
        },
        [&](const ast::Cast& n) {
          expr(n.arg, bound);
          type(n.type, bound);
        },
        [&](const ast::Range& n) {
          expr(n.lo, bound);
          expr(n.hi, bound);
        },
        [&](const ast::If& n) {
          expr(n.cond, bound);
          expr(n.then_block, bound);
          expr(n.else_block, bound);
        },
        [&](const ast::Block& n) { block(n, bound); }, [&](const ast::Tuple& n) { each(n.items); },
        [&](const ast::Array& n) { each(n.items); },
        [&](const ast::Comprehension& n) { comprehension(n, bound); },
        [&](const ast::Field& n) { expr(n.base, bound); },
        [&](const ast::Record& n) {
          expr(n.base, bound);
          for (const ast::RecordField& f : n.fields) expr(f.value, bound);
        },
        [&](const ast::Lambda& n) {
          std::set<Symbol> inside = bound;
          for (const ast::LambdaParam& p : n.params) inside.insert(p.name.symbol);
          expr(n.body, inside);
        },
        [&](const ast::Alternatives& n) { each(n.items); },
        [&](const ast::NamedPattern& n) {
          if (!bound.count(n.name.symbol)) values.insert(n.name.symbol);
          expr(n.pattern, bound);
        },
        [&](const ast::Match& n) {
          expr(n.subject, bound);
          for (const ast::MatchArm& arm : n.arms) {
            std::set<Symbol> names, ignored, inside = bound;
            Walker{ast, names, ignored}.expr(arm.pattern, {});
            inside.insert(names.begin(), names.end());
            expr(arm.guard, inside);
            expr(arm.body, inside);
          }
        },
        [&](const ast::Where& n) {
          std::set<Symbol> inside = bound;
          for (const ast::WhereItem& item : n.items) {
            expr(item.value, inside);
            if (item.bind) inside.insert(item.bind->symbol);
          }
          expr(n.body, inside);
          expr(n.otherwise, bound);
        },
        [&](const ast::Request& n) {
          expr(n.num, bound);
          expr(n.den, bound);
        },
        [](const ast::Error&) {});
  }
};

// Adds the names that are read by the functions which the tree calls or names.
void add_called(Sema& s, const Scope& scope, Walker& walker);

// Names of `scope` that a function reads, its callees included.
const std::set<Symbol>& names_of_function(Sema& s, const Scope& scope, ast::StmtId id) {
  auto [it, fresh] = s.names.function_names.try_emplace(id);
  if (!fresh) return it->second;  // also ends the recursion of recursive functions
  std::set<Symbol> values, calls;
  Walker walker{s.ast, values, calls};
  walker.stmt(id, {});
  add_called(s, scope, walker);
  return s.names.function_names[id] = std::move(values);
}

void add_called(Sema& s, const Scope& scope, Walker& walker) {
  for (Symbol callee : walker.callees) {  // `let f = |x| …; let y = f(1);`
    bool known =
        scope.functions.count(callee) || scope.primitives.count(callee) || is_builtin(callee);
    if (!known) walker.values.insert(callee);
  }
  // A function is read by calling it or by naming it.
  std::set<Symbol> functions = walker.calls;
  for (Symbol name : walker.values) {
    if (!scope.values.count(name)) functions.insert(name);
  }
  for (Symbol callee : functions) {
    auto f = scope.functions.find(callee);
    if (f == scope.functions.end() || f->second.home != &scope) continue;
    const std::set<Symbol>& more = names_of_function(s, scope, f->second.stmt);
    walker.values.insert(more.begin(), more.end());
  }
}

}  // namespace

void for_each_tree(const ast::Ast& ast, TreeId e, const std::function<void(TreeId)>& f) {
  if (!e) return;
  f(e);
  auto go = [&](TreeId child) { for_each_tree(ast, child, f); };
  auto each = [&](const std::vector<TreeId>& list) {
    for (TreeId child : list) go(child);
  };
  match(
      ast[e].node, [](const ast::IntLit&) {}, [](const ast::FloatLit&) {},
      [](const ast::BoolLit&) {},
      [&](const ast::StrLit& n) {
        for (const ast::StrPiece& p : n.pieces) go(p.value);
      },
      [](const ast::Path&) {}, [](const ast::PackRef&) {},
      [&](const ast::Index& n) {
        go(n.base);
        each(n.at);
      },
      [&](const ast::Call& n) { each(n.args); }, [&](const ast::Unary& n) { go(n.arg); },
      [&](const ast::Binary& n) {
        go(n.lhs);
        go(n.rhs);
      },
      [&](const ast::Cast& n) { go(n.arg); },
      [&](const ast::Range& n) {
        go(n.lo);
        go(n.hi);
      },
      [&](const ast::If& n) {
        go(n.cond);
        go(n.then_block);
        go(n.else_block);
      },
      [&](const ast::Block& n) {
        for (ast::StmtId id : n.stmts) {
          if (const auto* l = std::get_if<ast::Let>(&ast[id].node)) go(l->value), go(l->until);
          if (const auto* x = std::get_if<ast::ExprStmt>(&ast[id].node)) go(x->value);
        }
        go(n.value);
      },
      [&](const ast::Tuple& n) { each(n.items); }, [&](const ast::Array& n) { each(n.items); },
      [&](const ast::Comprehension& n) {
        if (n.block) return go(n.block);
        for (const ast::Generator& g : n.generators) go(g.value);
        go(n.body);
      },
      [&](const ast::Field& n) { go(n.base); },
      [&](const ast::Record& n) {
        go(n.base);
        for (const ast::RecordField& field : n.fields) go(field.value);
      },
      [&](const ast::Lambda& n) { go(n.body); }, [](const ast::Alternatives&) {},
      [](const ast::NamedPattern&) {},  // patterns are not read
      [&](const ast::Match& n) {
        go(n.subject);
        for (const ast::MatchArm& arm : n.arms) {
          go(arm.guard);
          go(arm.body);
        }
      },
      [&](const ast::Where& n) {
        for (const ast::WhereItem& item : n.items) go(item.value);
        go(n.body);
        go(n.otherwise);
      },
      [&](const ast::Request& n) {
        go(n.num);
        go(n.den);
      },
      [](const ast::Error&) {});
}

std::set<Symbol> free_names(const ast::Ast& ast, TreeId e) {
  std::set<Symbol> values, calls;
  Walker{ast, values, calls}.expr(e, {});
  return values;
}

std::set<Symbol> clause_names(Sema& s, const Scope& scope, const ast::Stmt& stmt) {
  std::set<Symbol> values, calls;
  Walker walker{s.ast, values, calls};
  if (const auto* l = std::get_if<ast::Let>(&stmt.node)) walker.let(*l, {});
  if (const auto* c = std::get_if<ast::Const>(&stmt.node)) walker.expr(c->value, {});
  add_called(s, scope, walker);
  return values;
}

std::set<ast::StmtId> named_functions(const Sema& s, const Scope& scope, ast::StmtId function) {
  std::set<Symbol> values, calls;
  Walker walker{s.ast, values, calls};
  walker.stmt(function, {});
  values.insert(walker.callees.begin(), walker.callees.end());
  std::set<ast::StmtId> out;
  for (Symbol name : values) {
    auto f = scope.functions.find(name);
    if (f != scope.functions.end() && f->second.home == &scope) out.insert(f->second.stmt);
  }
  return out;
}

namespace {

bool contains(const ast::Ast& ast, TreeId e, Symbol name) {
  return free_names(ast, e).count(name) > 0;
}

}  // namespace

TreeId sum_body(const ast::Ast& ast, TreeId e, Symbol name) {
  const ast::ExprNode& n = ast[e].node;
  if (const auto* b = std::get_if<ast::Binary>(&n)) {
    bool terms = b->op == ast::BinaryOp::Add || b->op == ast::BinaryOp::Sub;
    bool left = contains(ast, b->lhs, name), right = contains(ast, b->rhs, name);
    if (terms && left != right) return sum_body(ast, left ? b->lhs : b->rhs, name);
  }
  if (const auto* c = std::get_if<ast::Call>(&n); c && !c->has_brackets) {
    // In `tanh(A[i, k] * x[k] + b[i])` the sum belongs inside the call; in `exp(x[k])` around it.
    TreeId only;
    for (TreeId a : c->args) {
      if (!contains(ast, a, name)) continue;
      if (only) return e;
      only = a;
    }
    TreeId inner = only ? sum_body(ast, only, name) : TreeId{};
    const auto* product = inner ? std::get_if<ast::Binary>(&ast[inner].node) : nullptr;
    bool contraction = product && product->op == ast::BinaryOp::Mul &&
                       contains(ast, product->lhs, name) && contains(ast, product->rhs, name);
    if (contraction) return inner;
  }
  return e;
}

std::set<Symbol> reduced_names(const ast::Ast& ast, TreeId e) {
  std::set<Symbol> out;
  for_each_tree(ast, e, [&](TreeId x) {
    const auto* call = std::get_if<ast::Call>(&ast[x].node);
    if (!call || !call->has_brackets) return;
    for (const ast::Bracket& b : call->brackets) {
      if (b.name.symbol) out.insert(b.name.symbol);
      for (const ast::Name& n : b.group) out.insert(n.symbol);
    }
  });
  return out;
}

std::set<Symbol> requested_names(const ast::Ast& ast, TreeId e) {
  std::set<Symbol> out;
  for_each_tree(ast, e, [&](TreeId x) {
    const auto* request = std::get_if<ast::Request>(&ast[x].node);
    if (!request || !request->den) return;  // `@x` alone is a tangent
    for (TreeId operand : {request->num, request->den}) {
      if (Symbol name = rooted_name(ast, operand)) out.insert(name);
    }
  });
  return out;
}

std::set<Symbol> stepped_names(const ast::Ast& ast, TreeId e) {
  std::set<Symbol> out;
  for_each_tree(ast, e, [&](TreeId x) {
    const auto* index = std::get_if<ast::Index>(&ast[x].node);
    if (!index) return;
    for (TreeId at : index->at) {
      if (std::holds_alternative<ast::Path>(ast[at].node)) continue;
      out.merge(free_names(ast, at));
    }
  });
  return out;
}

const ast::Path* as_path(const ast::Ast& ast, TreeId e) {
  const auto* p = e ? std::get_if<ast::Path>(&ast[e].node) : nullptr;
  return p && p->parts.size() == 1 ? p : nullptr;
}

Symbol path_name(const ast::Ast& ast, TreeId e) {
  const ast::Path* p = as_path(ast, e);
  return p ? p->parts[0].symbol : Symbol{};
}

TreeId named_base(const ast::Ast& ast, TreeId e) {
  if (const auto* index = std::get_if<ast::Index>(&ast[e].node)) e = index->base;
  return as_path(ast, e) ? e : TreeId{};
}

Symbol rooted_name(const ast::Ast& ast, TreeId e) {
  for (;;) {
    if (const auto* index = std::get_if<ast::Index>(&ast[e].node)) {
      e = index->base;
    } else if (const auto* field = std::get_if<ast::Field>(&ast[e].node)) {
      e = field->base;
    } else {
      return path_name(ast, e);
    }
  }
}

std::vector<std::optional<size_t>> argument_places(const ast::Fn& fn, const ast::Call& call) {
  std::vector<std::optional<size_t>> out(fn.params.size());
  for (size_t i = 0; i < call.args.size(); ++i) {
    Symbol name = call.names.empty() ? Symbol{} : call.names[i].symbol;
    for (size_t k = 0; k < out.size(); ++k) {
      if (name ? fn.params[k].name.symbol == name : i == k) out[k] = i;
    }
  }
  return out;
}

const std::vector<ast::Dim>* dims_of(const ast::Ast& ast, ast::TypeId type) {
  const auto* tensor = std::get_if<ast::TensorType>(&ast[type].node);
  return tensor ? &tensor->dims : nullptr;
}

const ast::TupleType* tuple_type(const ast::Ast& ast, ast::TypeId type) {
  return type ? std::get_if<ast::TupleType>(&ast[type].node) : nullptr;
}

namespace {

void add_file_parts(const ast::Ast& ast, ast::TypeId type, const std::string& name,
                    std::vector<FilePart>& out) {
  auto below = [](const std::string& at, const std::string& part) {
    return at.empty() ? part : at + "." + part;
  };
  const ast::TupleType* tuple = tuple_type(ast, type);
  if (!tuple) return out.push_back({name, type});
  std::string each = name;
  for (size_t k = 0; k < tuple->outer; ++k) each = below(each, kNumber);
  for (size_t i = 0; i < tuple->items.size(); ++i) {
    ast::ExprId member = i < tuple->members.size() ? tuple->members[i] : ast::ExprId{};
    std::string part = tuple->names.empty() ? std::to_string(i) : text(tuple->names[i].symbol);
    if (member) {
      const auto& pieces = std::get<ast::StrLit>(ast[member].node).pieces;
      if (!pieces.empty()) part = pieces[0].text;
    }
    add_file_parts(ast, tuple->items[i], below(each, part), out);
  }
}

}  // namespace

std::vector<FilePart> file_parts(const ast::Ast& ast, ast::TypeId type) {
  std::vector<FilePart> out;
  if (tuple_type(ast, type)) add_file_parts(ast, type, "", out);
  return out;
}

bool is_texts_type(const ast::Ast& ast, ast::TypeId type) {
  const auto* tensor = type ? std::get_if<ast::TensorType>(&ast[type].node) : nullptr;
  return tensor && is_text_type(ast, tensor->elem) && tensor->dims.size() == 1;
}

bool is_text_type(const ast::Ast& ast, ast::TypeId type) {
  const auto* named = type ? std::get_if<ast::NamedType>(&ast[type].node) : nullptr;
  return named && text(named->name.symbol) == "str";
}

namespace {

void type_names(const ast::Ast& ast, ast::TypeId type, std::set<Symbol>& out) {
  const auto* tensor = type ? std::get_if<ast::TensorType>(&ast[type].node) : nullptr;
  if (!tensor) return;
  for (const ast::Dim& d : tensor->dims) {
    if (d.extent) spelled_names(ast, d.extent, out);
    if (d.kind == ast::Dim::Kind::Pack) out.insert(d.name.symbol);
  }
}

}  // namespace

void spelled_names(const ast::Ast& ast, TreeId e, std::set<Symbol>& out) {
  for_each_tree(ast, e, [&](TreeId x) {
    const ast::ExprNode& node = ast[x].node;
    if (const auto* path = std::get_if<ast::Path>(&node)) {
      for (const ast::Name& n : path->parts) out.insert(n.symbol);
    } else if (const auto* call = std::get_if<ast::Call>(&node)) {
      for (const ast::Bracket& b : call->brackets) {
        out.insert(b.name.symbol);
        for (const ast::Name& n : b.group) out.insert(n.symbol);
        if (b.range) spelled_names(ast, b.range, out);
      }
    } else if (const auto* where = std::get_if<ast::Where>(&node)) {
      for (const ast::WhereItem& item : where->items) {
        if (item.bind) out.insert(item.bind->symbol);
      }
    } else if (const auto* cast = std::get_if<ast::Cast>(&node)) {
      type_names(ast, cast->type, out);
    } else if (const auto* lambda = std::get_if<ast::Lambda>(&node)) {
      for (const ast::LambdaParam& p : lambda->params) out.insert(p.name.symbol);
    } else if (const auto* block = std::get_if<ast::Block>(&node)) {
      for (ast::StmtId id : block->stmts) {
        const auto* l = std::get_if<ast::Let>(&ast[id].node);
        if (!l) continue;
        for (const ast::Name& n : l->names) out.insert(n.symbol);
        for (const ast::Slot& slot : l->slots) {
          out.insert(slot.name.symbol);
          if (slot.range) spelled_names(ast, slot.range, out);
          if (slot.at) spelled_names(ast, slot.at, out);
        }
        type_names(ast, l->type, out);
      }
    }
  });
}

}  // namespace ein::sema

// Arrays of records. `let s[t] = { a: …, b: … }` defines a record of arrays: every leaf is a
// definition of its own, with the same clauses, of which it takes its part. So recurrences, ranges
// and types are found for each as for any other array.
#include <fmt/format.h>

#include <algorithm>

#include "sema/definitions/definitions.h"
#include "sema/names/trees.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"

namespace ein::sema {
namespace {

// The record that a type describes, with empty values as leaves.
Value shape_of_type(const ast::Ast& ast, ast::TypeId type) {
  Value out;
  out.kind = Value::Kind::Data;
  const ast::TupleType* tuple = tuple_type(ast, type);
  if (!tuple) return out;
  out.kind = Value::Kind::Tuple;
  for (const ast::Name& n : tuple->names) out.fields.push_back(n.symbol);
  for (ast::TypeId item : tuple->items) out.items.push_back(shape_of_type(ast, item));
  return out;
}

void types_of_leaves(const ast::Ast& ast, ast::TypeId type, std::vector<ast::TypeId>& out) {
  const ast::TupleType* tuple = tuple_type(ast, type);
  if (!tuple) return out.push_back(type);
  for (ast::TypeId item : tuple->items) types_of_leaves(ast, item, out);
}

}  // namespace

ast::TypeId leaf_type(const ast::Ast& ast, ast::TypeId type, size_t leaf) {
  std::vector<ast::TypeId> all;
  if (type) types_of_leaves(ast, type, all);
  return leaf < all.size() ? all[leaf] : ast::TypeId{};
}

void make_leaves(Sema& s, Definition& d) {
  if ((spelled_slots(s, d) == 0 && !d.input) || !d.leaves.empty()) return;
  ast::TypeId written = type_of(s.ast, d);
  const ast::TupleType* type = tuple_type(s.ast, written);
  Value like;
  if (type && !type->names.empty()) like = shape_of_type(s.ast, written);
  for (const auto& out : d.outs) {
    if (!like.record() && out && !out->leaves.empty()) like = out->body;
  }
  if (!like.record()) return;
  d.shape = map_leaves(like, [&](const Value&, const std::string& path) {
    Definition& leaf = d.scope->definitions.emplace_back();
    leaf.name = {intern(text(d.name.symbol) + path), d.name.span};
    leaf.clauses = d.clauses;
    leaf.scope = d.scope;
    leaf.group = d.group;
    leaf.recurrent = d.recurrent;
    leaf.input = d.input;
    leaf.ending = d.ending;
    leaf.extents = d.extents;
    leaf.whole = &d;
    leaf.leaf = d.leaves.size();
    d.leaves.push_back(&leaf);
    Value empty;
    empty.kind = Value::Kind::Data;
    return empty;
  });
  d.shape.span = d.name.span;
}

ClauseOut leaf_clause(Sema& s, Definition& d, ast::StmtId stmt) {
  Definition& whole = *d.whole;
  auto at = std::find(whole.clauses.begin(), whole.clauses.end(), stmt) - whole.clauses.begin();
  std::optional<ClauseOut>& out = whole.outs[static_cast<size_t>(at)];
  ClauseOut bad;
  bad.bad = true;
  if (!out) {
    out = bad;  // so that an error comes once, and not for every leaf
    out = elaborate_clause(s, whole, stmt);
  }
  if (!out->bad && out->leaves.empty()) {
    s.diags
        .error(Code::E0403, fmt::format("{} is an array of records, but this clause is {}",
                                        quoted(whole.name.symbol), show_value(s, out->body)))
        .primary(out->body.span, "this is " + show_value(s, out->body))
        .label(whole.name.span, "defined as " + show_value(s, whole.shape));
    out->bad = true;
  }
  return out->bad || d.leaf >= out->leaves.size() ? bad : out->leaves[d.leaf];
}

Value read_leaves(Sema& s, Env& env, Definition& d, Span span) {
  size_t next = 0;
  Value v = map_leaves(d.shape, [&](const Value&, const std::string&) {
    return read_definition(s, env, *d.leaves[next++], span);
  });
  if (!v.poison()) v.span = span;
  return v;
}

}  // namespace ein::sema

// The only traversals of Core. All are memoised by node id: an expression is a DAG, and derivatives
// are exponentially large as trees.
#pragma once

#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "core/core.h"

namespace ein::core {

// The direct children of a node, in evaluation order (ranges, gate, route targets, body for
// Reduce).
void for_each_child(const Module& m, ExprId e, const std::function<void(ExprId)>& f);

// Every node reachable from `e`, children first, each once.
void for_each_node(const Module& m, ExprId e, const std::function<void(ExprId)>& f);
// The same, and those of the functions that are called.
void for_each_node_called(const Module& m, ExprId e, const std::function<void(ExprId)>& f);

// The node rebuilt (through the builders) with its children mapped; `e` itself when nothing
// changed.
ExprId map_children(Module& m, ExprId e, const std::function<ExprId(ExprId)>& f);

// Bottom-up: children first, then `f` on the rebuilt node. `f` returns its argument to keep it.
ExprId rewrite(Module& m, ExprId e, const std::function<ExprId(ExprId)>& f);

// Replaces free slots: slot n becomes with[n] where that is valid, binders of reductions inside are
// renumbered to start at `first_binder` (one above everything the replacements may mention).
ExprId substitute(Module& m, ExprId e, const std::vector<ExprId>& with, uint32_t first_binder);
// Replaces one slot and leaves every other slot and binder alone (`by` must not be captured: its
// level is below every binder inside `e`, or it is closed).
ExprId substitute_slot(Module& m, ExprId e, uint32_t slot, ExprId by);
// Replaces params (extents) by expressions; used when an inferred extent becomes known.
ExprId substitute_params(Module& m, ExprId e, const std::unordered_map<ParamId, ExprId>& with);

// The body of a function with its parameters replaced.
ExprId with_arguments(Module& m, ExprId body, const std::vector<ExprId>& args);

bool mentions_slot(const Module& m, ExprId e, uint32_t slot);
// Whether some cell of a family is read in it.
bool reads_values(const Module& m, ExprId e);
bool has_reduce(const Module& m, ExprId e);
// Evaluating it may fail, so it relies on the conditions around it: it reads a family, calls a
// function that calls itself, or divides integers.
bool may_fail(const Module& m, ExprId e);

// The bodies of a family's clauses and the cells of its table: everything it computes.
void for_each_body(const Module& m, FamilyId family, const std::function<void(ExprId)>& f);

// Applies `f` to every expression a module holds (boxes, extents, bodies, cells, constraints).
void rewrite_all(Module& m, const std::function<ExprId(ExprId)>& f);
void rewrite_family(Module& m, FamilyId family, const std::function<ExprId(ExprId)>& f);

size_t node_count(const Module& m);  // distinct nodes reachable from all families

}  // namespace ein::core

// Moving a subexpression into a family of its own: a definition, not storage (what is kept in
// memory is the plan's business). tidy.h moves it back.
#pragma once

#include <string>
#include <vector>

#include "core/core.h"
#include "core/prove.h"

namespace ein::core {

// Defines a generated family whose coordinates are the free slots of `e` (in slot order) and whose
// cells are `e`, for the slot values that `facts.slots` allows and where `gate` (may be invalid)
// holds; other cells are 0. `names` gives a name per slot. Returns the access that replaces `e`. A
// slot whose range has no closed bound gets all addresses of a value that `e` reads at that slot;
// if there is no such value, the result is invalid.
ExprId hoist(Module& m, const std::string& base, ExprId e, ExprId gate, const Facts& facts,
             const std::vector<Symbol>& names, Span span);

// Whether the slots of `e` (may be invalid), and those that their ranges mention, run over the same in
// two places: only then can one family stand for it in both. Slots are numbered by depth, so in
// `sum[p in 0..9](f(p)) + sum[p in 5..20](f(p))` the two `f(p)` are one node.
bool same_ranges(const Module& m, ExprId e, const std::vector<Range>& a,
                 const std::vector<Range>& b);

// Adds those ranges to a list, so that a map can find an expression by where it stands: lists are equal
// where `same_ranges` holds.
void note_ranges(const Module& m, ExprId e, const std::vector<Range>& slots,
                 std::vector<ExprId>& out);

// The name of each slot at an expression: coordinates of the family, then binders on the way.
std::vector<Symbol> coordinate_names(const Family& family);

// A reduction in an end of a range, `sum[k in 0..sum[j](n[j])](x[k])`, gets a family of its own.
// Its binders are numbered differently from those of the sum's body, and every pass that adds or
// drops a binder would have to know.
void isolate_range_ends(Module& m);

// A routed Reduce runs as one pass only where it is the whole body of a clause: every other one
// gets a family of its own, gated by the conditions under which it stood. (Where they mention the
// routed coordinates it stays, and lowering tests its routes cell by cell.) The evaluator does not
// need this; planning does.
void isolate_routes(Module& m);

}  // namespace ein::core

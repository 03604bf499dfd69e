// Builders: the only way to make Core nodes. Each computes the type and refuses (internal error) to
// build an ill-typed node, and each performs the local algebra that never changes a result:
// i64 arithmetic goes to Affine normal form, constant integer and boolean expressions fold,
// `true && c` is c, Select on a constant picks its arm. Floats are never folded or reordered here.
#pragma once

#include <optional>
#include <vector>

#include "core/core.h"

namespace ein::core {

ExprId float_lit(Module& m, double value, DType type, Span span = {});
ExprId int_lit(Module& m, int64_t value, DType type = DType::I64, Span span = {});
ExprId bool_lit(Module& m, bool value, Span span = {});
ExprId number(Module& m, double value, DType type, Span span = {});  // literal of any numeric type
ExprId slot(Module& m, uint32_t n, Span span = {});
ExprId param(Module& m, ParamId p, Span span = {});

// Any op of ops.def except Cast. Argument types must agree; i64 Add/Sub/Mul/Neg become Affine where
// they are affine.
ExprId apply(Module& m, Op op, std::vector<ExprId> args, Span span = {});
ExprId cast(Module& m, ExprId value, DType to, Span span = {});

ExprId access(Module& m, FamilyId family, std::vector<ExprId> at, Span span = {});
ExprId call(Module& m, FunctionId function, std::vector<ExprId> args, Span span = {});
ExprId argument(Module& m, uint32_t n, DType type, Span span = {});  // parameter n
ExprId request(Module& m, Request request, Span span = {});

// A Reduce without binders becomes its body (gated: Select(gate, body, identity)).
ExprId reduce(Module& m, Reduce reduce, Span span = {});
// The value of an empty reduction at this type. ArgMax and ArgMin: −1, always i32.
ExprId identity(Module& m, ReduceOp op, DType type);

// Shorthands.
ExprId add(Module& m, ExprId a, ExprId b, Span span = {});
ExprId sub(Module& m, ExprId a, ExprId b, Span span = {});
ExprId mul(Module& m, ExprId a, ExprId b, Span span = {});
ExprId neg(Module& m, ExprId a, Span span = {});
ExprId all_of(Module& m, const std::vector<ExprId>& conds);  // invalid (true) when empty
ExprId both(Module& m, ExprId a, ExprId b);                  // either may be invalid (true)
ExprId negate(Module& m, ExprId cond);               // !cond, comparisons of integers inverted
ExprId gated(Module& m, ExprId cond, ExprId value);  // Select(cond, value, 0); cond may be invalid
void conjuncts(const Module& m, ExprId cond, std::vector<ExprId>& out);  // flattens &&

// i64 helpers.
struct AffineForm {
  std::vector<Affine::Term> terms;  // sorted by atom id, no zeros
  int64_t constant = 0;
};
AffineForm affine_form(const Module& m,
                       ExprId e);  // any i64 expression; at worst it is one atom itself
ExprId from_form(Module& m, const AffineForm& form);
std::optional<int64_t> const_int(const Module& m, ExprId e);
int64_t coefficient(const AffineForm& form, ExprId atom);
inline uint32_t slot_of(const Module& m, ExprId e) {  // ~0u when e is not a bare slot
  const auto* s = get_if<Slot>(m, e);
  return s ? s->n : ~0u;
}

// The slots `first`, `first + 1`, …
std::vector<ExprId> slots_from(Module& m, uint32_t first, size_t count);

// Adds coordinates, each under a name that is not among them yet: `d_i` where `i` is taken.
void add_coords(std::vector<Coord>& coords, const std::vector<Coord>& more);
// Adds the coordinates of a denominator to those of a numerator: `d_i` where the numerator has `i`. A
// gradient keeps the names of its input, even if that has one of them twice (`[f32; n, n]`).
void add_denominator(std::vector<Coord>& coords, const std::vector<Coord>& den);

// A name not yet taken in the module: `base`, `base_1`, `base_2`, …
Symbol fresh_name(const Module& m, const std::string& base);

}  // namespace ein::core

// The operands of a product that is to become a contraction: plain reads whose addresses move by
// fixed steps. An operand that is not one yet gets a family of its own.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/core.h"
#include "core/product.h"
#include "core/prove.h"

namespace ein::optimise {

// A factor of the product, or several that one operand holds.
struct Term {
  core::Product product;
  uint64_t slots = 0;
  std::vector<core::ExprId> conds;  // under which it counts
};

inline uint64_t bit(uint32_t slot) { return uint64_t{1} << slot; }

// The access, if `e` is one or widens one from f16 or bf16 to f32: kernels read either.
core::ExprId operand_read(const core::Module& m, core::ExprId e);

struct Operands {
  core::Module& m;
  std::string name;           // of the family
  std::vector<Symbol> names;  // of the slots
  core::Facts facts;          // with the binders
  DType type;
  Span span;
  const std::set<core::FamilyId>* steps = nullptr;  // what the recurrence around it computes
  uint64_t sequential = 0;  // coordinates that are fixed while the reduction runs
  uint64_t binders = 0;
  std::set<core::FamilyId> ordered = {};  // copies made only to change the order of coordinates

  core::ExprId value(const Term& t);
  // F16 or BF16 if all of its values are of that type, widened; otherwise the type of the sum.
  DType stored_as(const Term& t) const;
  // What a family holds that stands for the term, if it holds such values.
  core::ExprId value_as(const Term& t, DType stored);
  // One read of such values, whose address moves by fixed steps.
  bool plain(const Term& t, DType stored) const;
  bool make_plain(Term& t, DType stored);  // false: it cannot be
  // Both operands of a product. A kernel wants both in the same type.
  bool make_plain(Term& a, Term& b);
  DType common(const Term& a, const Term& b) const;
  // An operand that every step of a recurrence multiplies by and none changes, such as weights:
  // worth copying into the order in which the product reads it, the summed coordinates first.
  bool wants_order(const Term& t) const;
  void give_order(Term& t);
  Term read_of(core::ExprId access);
  core::ExprId hoisted(core::ExprId e, const char* suffix);

  core::ExprId over_expressions(const Term& t, DType stored);
  core::ExprId in_order_of_reads(core::ExprId read, const Term& t);
  core::ExprId in_order(core::ExprId read, const std::vector<uint32_t>& order);
};

}  // namespace ein::optimise

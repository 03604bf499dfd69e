// The operands of a product that is to become a contraction: plain reads whose addresses move by
// fixed steps. An operand that is not yet plain gets a family of its own.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/core.h"
#include "core/product.h"
#include "core/prove.h"

namespace ein::optimise {

// A factor of the product, or several factors that become one operand.
struct Term {
  core::Product product;
  uint64_t slots = 0;
  std::vector<core::ExprId> conds;  // conditions under which it counts
};

inline uint64_t bit(uint32_t slot) { return uint64_t{1} << slot; }

// The access, if `e` is an access, or an access of f16 or bf16 widened to f32, which kernels read
// directly.
core::ExprId operand_read(const core::Module& m, core::ExprId e);

struct Operands {
  core::Module& m;
  std::string name;           // name of the family
  std::vector<Symbol> names;  // names of the slots
  core::Facts facts;          // including those about the binders
  DType type;
  Span span;
  // Families that the recurrence around it computes.
  const std::set<core::FamilyId>* steps = nullptr;
  uint64_t sequential = 0;  // coordinates that are fixed while the reduction runs
  uint64_t binders = 0;
  std::set<core::FamilyId> ordered = {};  // copies made only to change the order of coordinates

  core::ExprId value(const Term& t);
  // F16 or BF16 if all values of the term are of that type and widened; otherwise the type of the
  // sum.
  DType stored_as(const Term& t) const;
  // The body of a family that holds the values of the term in this type.
  core::ExprId value_as(const Term& t, DType stored);
  // Whether the term is a single read of such values whose address moves by fixed steps.
  bool plain(const Term& t, DType stored) const;
  bool make_plain(Term& t, DType stored);  // false if that is impossible
  // Both operands of a product. A kernel needs both in the same type.
  bool make_plain(Term& a, Term& b);
  DType common(const Term& a, const Term& b) const;
  // Whether the operand is the same at every step of a recurrence that multiplies by it, such as
  // weights. Then it is worth copying it into the order in which the product reads it, the summed
  // coordinates first.
  bool wants_order(const Term& t) const;
  void give_order(Term& t);
  Term read_of(core::ExprId access);
  core::ExprId hoisted(core::ExprId e, const char* suffix);

  core::ExprId over_expressions(const Term& t, DType stored);
  core::ExprId in_order_of_reads(core::ExprId read, const Term& t);
  core::ExprId in_order(core::ExprId read, const std::vector<uint32_t>& order);
};

}  // namespace ein::optimise

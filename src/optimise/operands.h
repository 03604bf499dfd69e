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
  bool plain(const Term& t) const;  // one read, whose address moves by fixed steps
  bool make_plain(Term& t);         // false: it cannot be
  // An operand that every step of a recurrence multiplies by and none changes, such as weights:
  // worth copying into the order in which the product reads it, the summed coordinates first.
  bool wants_order(const Term& t) const;
  void give_order(Term& t);
  Term read_of(core::ExprId access) const;
  core::ExprId hoisted(core::ExprId e, const char* suffix);

  core::ExprId over_expressions(const Term& t);
  core::ExprId in_order_of_reads(core::ExprId read, const Term& t);
  core::ExprId in_order(core::ExprId read, const std::vector<uint32_t>& order);
};

}  // namespace ein::optimise

// Range inference, shared by its two files: infer.cc finds the ranges, range_report.cc says what
// is wrong with them and records the solution.
#pragma once

#include <map>

#include "sema/state/definition_state.h"
#include "sema/state/range_state.h"
#include "sema/state/state.h"

namespace ein::sema {

// An index that stands alone on a coordinate of this extent.
struct Bare {
  CoreId extent;
  FamilyId family;  // invalid when a whole value was taken over from the right side
  size_t position = 0;
  CoreId access;
  bool weak = false;  // a condition around it guarantees the bound: it need not agree
};

// form ≥ 0 must hold for an access to be in bounds.
struct Need {
  core::AffineForm form;
  core::Facts facts;
  std::vector<uint32_t> slots;  // of the indices in the slot
  FamilyId family;
  size_t position = 0;
  CoreId access;
};

struct Variable {
  Unknown unknown;
  bool left = false;
  bool present = false;  // occurs in this clause
  std::vector<Bare> bares;
  std::vector<Bare> group;  // on other families of the recurrence; used when `bares` is empty
  core::Range bare_range;
  core::Range now;
  std::vector<const Need*> narrowed_by;

  bool bared() const { return !bares.empty(); }
};

struct Problem {
  Sema& s;
  ClauseOut& clause;
  std::map<ParamId, Variable> variables;  // by the placeholder of the lower end
  std::vector<Need> needs;
  const Need* ambiguous = nullptr;
  uint32_t prefix = 0;  // slots below belong to enclosing clauses

  Variable* variable(const core::Facts& facts, uint32_t slot);  // null when it is not unknown
  core::Range range(const core::Facts& facts, uint32_t slot);   // invalid ends when not known
  bool seeks(const core::Facts& facts);  // whether an index there has an unknown range
  // Null when the range is written, or solved with another name of the same tuple clause.
  Variable* left_variable(const Index& index) {
    if (!index.inferred) return nullptr;
    auto it = variables.find(core::get_if<core::ParamRef>(s.m, index.range.lo)->param);
    return it == variables.end() ? nullptr : &it->second;
  }
  // Whether the clauses of the family that are elaborated already fix its extent there.
  bool fixed_by_base(FamilyId family, size_t position) const;
  bool own_group(FamilyId family) const {
    const Definition* d = clause.site->definition;
    auto it = s.definitions.owner.find(family);
    return d && it != s.definitions.owner.end() && d->recurrent && it->second->scope == d->scope &&
           it->second->group == d->group;
  }
};

// Reports conflicts and missing ranges; puts what was found into s.ranges.solved.
void report_and_record(Problem& p);

}  // namespace ein::sema

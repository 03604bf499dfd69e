// The marks of `dbg`, taken out of a program whose ranges are known.
#pragma once

#include "sema/state/state.h"

namespace ein::sema {

// A marked value in one clause, in the slots of that place: the coordinates of the family, then the
// binders of the reductions around it.
struct Marked {
  struct Binder {
    core::Range range;
    Symbol name;
  };
  size_t dbg = 0;  // which one of Definitions::dbgs
  FamilyId family;
  std::vector<core::Range> box;  // of the clause
  std::vector<Binder> binders;
  CoreId value;
  CoreId cond;  // under which it is evaluated; invalid: always
};

// Finds what is marked, and takes out all marks. Reports those in recursive functions.
std::vector<Marked> take_marks(Sema& s);

}  // namespace ein::sema

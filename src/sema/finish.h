// The end of elaboration: placeholders are replaced everywhere, lifted locals get their zero
// clauses, and the checks that need the whole module run: bounds and the order of recurrences.
#pragma once

#include "sema/state/state.h"

namespace ein::sema {

void finish(Sema& s);
void finish_meanings(Sema& s);  // meanings.cc; does nothing unless somebody asked

}  // namespace ein::sema

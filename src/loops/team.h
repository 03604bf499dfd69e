// Loops over steps that threads run together (runtime/team.h), and what each member does with the
// statements inside.
#pragma once

#include "loops/loops.h"

namespace ein::loops {

enum class Role : uint8_t {
  All,       // every member executes it for itself: it changes nothing but variables
  First,     // only the first member executes it: it writes memory
  Together,  // a shared loop or a contraction
  Inside,    // a branch or a loop over steps that contains a shared loop or contraction
};
Role role_of(const Program& p, const Stmt& s);

// Whether a team may run the loop: every statement in it has a role, and it changes no variable of
// the code around.
bool fits_a_team(const Program& p, const Loop& loop);

}  // namespace ein::loops

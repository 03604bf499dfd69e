// What `dbg` reports. `dbg(e)` is `e` with a mark that goes wherever the value goes: into families,
// reductions and functions. When all ranges are known, every mark is taken out again and the program
// is what it would be without it. What was marked becomes a line on standard error: an effect over
// statistics that are families of their own, one cell for each step of the recurrence around it.
#pragma once

#include "sema/effects/marks.h"
#include "sema/state/state.h"

namespace ein::sema {

// After all checks: what is reported was checked where it stands.
void make_reports(Sema& s, std::vector<Marked> found);

}  // namespace ein::sema

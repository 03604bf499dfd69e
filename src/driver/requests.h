// Derivatives that the command line asks for, `ein grad --of loss --wrt W`, as requests of the
// program. The pass `add-requests`.
#pragma once

#include "base/diag.h"
#include "core/core.h"
#include "driver/compile.h"

namespace ein {

// Adds `d_<of>_d_<wrt>` for each `wrt`, as if the program had asked for it; of a record, for each of
// its parts.
void add_requests(core::Module& m, const ExtraRequest& extra, Diagnostics& diags);

}  // namespace ein

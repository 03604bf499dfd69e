// Derivatives that the command line asks for, `ein grad --of loss --wrt W`, as requests of the
// program. The pass `add-requests`.
#pragma once

#include <string>
#include <vector>

#include "base/diag.h"
#include "core/core.h"
#include "driver/compile.h"

namespace ein {

// Adds `d_<of>_d_<wrt>` for each `wrt`, as if the program had asked for it; of a record, for each
// of its parts.
void add_requests(core::Module& m, const ExtraRequest& extra, Diagnostics& diags);

// The floats that a name stands for: one value, or the parts of a record that have derivatives.
// None, and an error, when there is none.
std::vector<core::FamilyId> float_values(const core::Module& m, const std::string& name,
                                         Diagnostics& diags);

// `net.w`, a part of a record, as the name of a family: `net_w`.
std::string flat(std::string path);

// The family `d_<num>_d_<den>` with the coordinates of both.
core::FamilyId add_request(core::Module& m, core::FamilyId num, core::FamilyId den);

}  // namespace ein

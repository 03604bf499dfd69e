// `type Net = { w: [f32; n] };` names a type. Every use of the name is replaced by the type itself before
// anything is elaborated, so the names of its shape mean what they mean where it is used.
//
// An array of records, `[Net; layer]`, becomes a record of arrays: `{ w: [f32; layer, n] }`.
#pragma once

#include "base/diag.h"
#include "sema/modules.h"

namespace ein::sema {

void resolve_type_names(Program& program, Diagnostics& diags);

}  // namespace ein::sema

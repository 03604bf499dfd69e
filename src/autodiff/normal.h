// Family normal form: in the families that are differentiated, every reduction is the whole body of
// its clause. Reductions inside larger expressions move into generated families of their own, so a
// derivative refers to their values instead of repeating them; `max` and `min` over several indices
// become nested ones over one index each. core::tidy inlines what turns out to be read once.
#pragma once

#include "core/core.h"

namespace ein::autodiff {

void to_normal_form(core::Module& m, core::FamilyId family);

}  // namespace ein::autodiff

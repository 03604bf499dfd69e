// Family normal form: in the families that are differentiated, every reduction is the whole body of
// its clause. Reductions inside larger expressions move into generated families of their own, so a
// derivative refers to their values instead of repeating them; `max`, `min` and `prod` over several
// indices become nested ones over one index each. core::tidy inlines what turns out to be read
// once.
#pragma once

#include "autodiff/linearise.h"
#include "core/core.h"

namespace ein::autodiff {

void to_normal_form(core::Module& m, core::FamilyId family);

// Several active reads below one nonlinear operation share its slope: tanh(w * a + b * x) sends
// g · (1 - tanh²) to each. The operand becomes a family of its own, whose adjoint is that product,
// computed once. Returns the families made (they may need the same).
std::vector<core::FamilyId> split_shared_slopes(core::Module& m, core::FamilyId family,
                                                const Active& active);

}  // namespace ein::autodiff

// Findings of a compilation besides those of its passes: what `--strict` and derivatives asked for
// on the command line add, and which findings belong to a test or to the library.
#pragma once

#include "base/diag.h"
#include "base/source.h"
#include "core/core.h"
#include "driver/compile.h"

namespace ein {

// Adds `d_<of>_d_<wrt>` as if the program had asked for it.
void add_request(core::Module& m, const ExtraRequest& extra, Diagnostics& diags);

// An error for each equality of extents that holds only for some inputs. Inequalities stay: `T >= 1`
// follows from a base case and no annotation could prove it.
void reject_unproven(const core::Module& m, Diagnostics& diags);

// What compiling a test found. The file has no errors, so every error is the test's, even one
// inside a function that it calls; warnings are its own only where they stand in it.
void keep_findings(const Diagnostics& found, Span test, Diagnostics& diags);

// A warning that stands in the standard library: whoever calls it cannot do anything about it.
bool is_library_warning(const Diagnostic& d, const SourceMap& sources, FileId root);

}  // namespace ein

// Findings of a compilation besides those of its passes: what `--strict` adds, which findings
// belong to a test or to the library, and which wishes cannot be met without extents.
#pragma once

#include <string>
#include <vector>

#include "base/diag.h"
#include "base/source.h"
#include "core/core.h"
#include "sema/modules.h"

namespace ein {

// An error for each equality of extents that holds only for some inputs. Inequalities stay: `T >=
// 1` follows from a base case and no annotation could prove it.
void reject_unproven(const core::Module& m, Diagnostics& diags);

// What compiling a test found. The file has no errors, so every error is the test's, even one
// inside a function that it calls; warnings are its own only where they stand in it.
void keep_findings(const Diagnostics& found, Span test, Diagnostics& diags);

// What to say of recurrences marked `#[checkpoint]` where a program is compiled for all extents;
// `when`: "building".
struct Uncut {
  std::string message;
  Span span;
};
std::vector<Uncut> uncut_recurrences(const core::Module& m, const char* when);

// A warning that stands in the standard library: whoever calls it cannot do anything about it.
bool is_library_warning(const Diagnostic& d, const SourceMap& sources, FileId root);

// A warning about an earlier text, which was shown when that was compiled.
bool is_earlier_warning(const Diagnostic& d, const std::vector<sema::EarlierText>& earlier);

}  // namespace ein

// Private to src/codegen: the name under which a compiled program is kept.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/native.h"

namespace ein::codegen {

// Two programs with one key have the same image, byte for byte: it is a digest of the module with
// its positions in the source, what is wanted of it, the options, the processor and this compiler
// itself. Nothing when some of that is not known, or when a test draws its own plan.
std::optional<std::string> cache_key(const core::Module& m,
                                     const std::vector<core::FamilyId>& wanted,
                                     const NativeOptions& options);

}  // namespace ein::codegen

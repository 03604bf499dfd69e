// Private to src/codegen: the name under which a compiled program is cached.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/native.h"

namespace ein::codegen {

// Two programs with the same key have the same image, byte for byte. The key is a digest of the
// module with its source positions, the wanted values, the options, the processor and this compiler
// itself. Nothing if part of that is not known, or if a test draws its own plan.
std::optional<std::string> cache_key(const core::Module& m,
                                     const std::vector<core::FamilyId>& wanted,
                                     const NativeOptions& options);

}  // namespace ein::codegen

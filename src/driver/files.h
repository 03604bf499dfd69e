// The files of a program: where `load` finds them, and reading them when it runs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/source.h"
#include "core/core.h"
#include "core/eval.h"
#include "runtime/paths.h"
#include "runtime/row_file.h"
#include "sema/file_lookup.h"

namespace ein {

// A path is looked for beside the program that names it, then in the current folder, as far as
// `access` allows; without one, anywhere. `sources` must outlive the result.
sema::FileLookup files_on_disk(const SourceMap& sources,
                               std::shared_ptr<const FileAccess> access = nullptr);

// `wanted` and everything they read.
std::set<core::FamilyId> reached(const core::Module& m, const std::vector<core::FamilyId>& wanted);

// Reads what `wanted` reach and `inputs` does not have yet into `inputs`, by family name; nothing
// else is read (decisions.md, 30), and nothing that is `streamed`.
std::optional<RuntimeError> read_loaded(const core::Module& m,
                                        const std::vector<core::FamilyId>& wanted,
                                        core::Inputs& inputs,
                                        const std::map<std::string, RowFile>& streamed = {});

}  // namespace ein

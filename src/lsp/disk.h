// What the server sees of the disk. A page has none (src/web/wasm/lacks.cc).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/source.h"
#include "sema/file_lookup.h"

namespace ein::lsp {

std::optional<std::string> text_on_disk(const std::string& path);
// What `load` finds for the program at `path`: files beside it and in the current folder.
sema::FileLookup files_for(const std::string& path, const SourceMap& sources);
// The .ein files below the folders, at most some thousands.
std::vector<std::string> files_below(const std::vector<std::string>& folders);
// The folder in which the library stands as files, so that an editor can open them: the texts of this very
// compiler, written when this is called. Empty: there can be none.
std::string library_folder(const std::string& version);

}  // namespace ein::lsp

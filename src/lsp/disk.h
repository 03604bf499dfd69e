// What the server reads from the disk. In a web page there is no disk (src/web/wasm/lacks.cc).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/source.h"
#include "sema/file_lookup.h"

namespace ein::lsp {

std::optional<std::string> text_on_disk(const std::string& path);
// Answers `load` for the program at `path`: looks beside that file and in the current folder.
sema::FileLookup files_for(const std::string& path, const SourceMap& sources);
// The .ein files below the folders, a few thousand at most.
std::vector<std::string> files_below(const std::vector<std::string>& folders);
// A folder with the standard library as files, so that an editor can open them. Writes the texts
// that this compiler embeds. Empty if no such folder can be made.
std::string library_folder(const std::string& version);

}  // namespace ein::lsp

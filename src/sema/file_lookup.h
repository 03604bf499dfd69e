// What elaboration asks about files: nothing in sema reads one. The caller says what it found.
#pragma once

#include <functional>
#include <string>
#include <variant>

#include "base/source.h"
#include "runtime/files.h"

namespace ein::sema {

struct FoundFile {
  std::string path;
  FileHeader header;
};

// `from` is the file in which `load(path, member)` stands. Empty: there are no files.
using FileLookup = std::function<std::variant<FoundFile, RuntimeError>(
    FileId from, const std::string& path, const std::string& member)>;

}  // namespace ein::sema

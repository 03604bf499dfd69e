// What elaboration asks about files: nothing in sema reads one. The caller says what it found.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/source.h"
#include "runtime/files.h"

namespace ein::sema {

struct FoundFile {
  std::string path;
  FileHeader header;
  std::vector<std::string> members = {};  // their names, when they are asked for
};

// `from` is the file in which `load(path, member)` stands; kAllMembers asks which there are. Empty:
// there are no files.
inline constexpr const char* kAllMembers = "*";
using FileLookup = std::function<std::variant<FoundFile, RuntimeError>(
    FileId from, const std::string& path, const std::string& member)>;

// The shapes of inputs that the caller knows already, by name: `let x: [f32; *];` takes its rank
// from here. Other inputs may still be given when the program runs.
using InputShapes = std::map<std::string, std::vector<int64_t>>;

}  // namespace ein::sema

// Where paths lead, and what an untrusted program may read and write.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/tensor.h"

namespace ein {

// The absolute path with all links followed, including a last one that leads to nothing yet. Parts
// that do not exist stay as they are. Empty if the links cannot be followed.
std::string resolved(const std::string& path);

// Both paths must be resolved. A path is within itself.
bool is_within(const std::string& path, const std::string& folder);

// The file descriptor of standard output or error that this path names, or -1.
int standard_stream(const std::string& path);

// The folders or single files, resolved, that `load` and `save` of a program may access. Without
// such a list the program is trusted.
struct FileAccess {
  std::vector<std::string> read, write;
};

// Why a program may not access this path; nothing if it may.
std::optional<RuntimeError> refuse_read(const FileAccess& access, const std::string& path);
std::optional<RuntimeError> refuse_write(const FileAccess& access, const std::string& path);

}  // namespace ein

// Where paths lead, and what a program that is not trusted may read and write.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/tensor.h"

namespace ein {

// The absolute path with all links followed, also a last one that leads nowhere yet. What does not
// exist stays as it is named. Empty where the links cannot be followed.
std::string resolved(const std::string& path);

// Both paths must be resolved. A path counts as within itself.
bool is_within(const std::string& path, const std::string& folder);

// The file descriptor of standard output or error that this path names, or -1.
int standard_stream(const std::string& path);

// The folders, or single files, that the `load` and `save` of a program may reach, resolved.
// Without such a list the program is trusted.
struct FileAccess {
  std::vector<std::string> read, write;
};

// The refusal of a path that a program names; nothing when it may.
std::optional<RuntimeError> refuse_read(const FileAccess& access, const std::string& path);
std::optional<RuntimeError> refuse_write(const FileAccess& access, const std::string& path);

}  // namespace ein

// Where modules come from: the standard library is part of the binary, everything else is a file.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sema/modules.h"

namespace ein {

// The text of a file, or nothing when it cannot be read. The driver itself reads no files.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;

// Paths resolve from the folder of the importing file, then from that of the program.
sema::ReadModule module_reader(const ReadFile& read_file, const std::string& program);

// The modules of the standard library, by the paths of their files below its folder
// (`nn/conv.ein`), in that order.
struct LibraryFile {
  std::string_view path, text;
};
std::vector<LibraryFile> library_files();

// Those that export a function of this name, as they are spelled in a program: `std::optim`.
std::vector<std::string> library_exporters(const std::string& function);

}  // namespace ein

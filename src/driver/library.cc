#include "driver/library.h"

#include <filesystem>
#include <string_view>

namespace ein {
namespace {

struct Embedded {
  std::string_view name, text;
};

constexpr Embedded kLibrary[] = {
#include "stdlib.inc"
};

std::optional<sema::ModuleText> standard(const std::string& file, std::vector<std::string>& tried) {
  for (const Embedded& e : kLibrary) {
    if (e.name == file) return sema::ModuleText{"std/" + file, std::string(e.text)};
  }
  tried.push_back("std/" + file + " in the standard library");
  return std::nullopt;
}

}  // namespace

sema::ReadModule module_reader(const ReadFile& read_file, const std::string& program) {
  return [=](const std::string& importer, const std::string& path,
             std::vector<std::string>& tried) -> std::optional<sema::ModuleText> {
    std::string file;
    for (size_t i = 0; i < path.size(); ++i) {
      bool separator = path.compare(i, 2, "::") == 0;
      file += separator ? '/' : path[i];
      i += separator ? 1 : 0;
    }
    file += ".ein";
    if (file.starts_with("std/")) return standard(file.substr(4), tried);
    if (!read_file) return std::nullopt;
    namespace fs = std::filesystem;
    for (const std::string& from : {importer, program}) {
      std::string place = (fs::path(from).parent_path() / file).lexically_normal().string();
      if (!tried.empty() && tried.back() == place) continue;
      if (auto text = read_file(place)) return sema::ModuleText{place, std::move(*text)};
      tried.push_back(place);
    }
    return std::nullopt;
  };
}

}  // namespace ein

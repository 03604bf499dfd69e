#include "driver/library.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

namespace ein {
namespace {

constexpr LibraryFile kLibrary[] = {
#include "stdlib.inc"
};

std::optional<sema::ModuleText> standard(const std::string& file, std::vector<std::string>& tried) {
  for (const LibraryFile& e : kLibrary) {
    if (e.path == file) return sema::ModuleText{"std/" + file, std::string(e.text), true};
  }
  tried.push_back("std/" + file + " in the standard library");
  return std::nullopt;
}

}  // namespace

std::vector<LibraryFile> library_files() {
  std::vector<LibraryFile> out(std::begin(kLibrary), std::end(kLibrary));
  std::sort(out.begin(), out.end(),
            [](const LibraryFile& a, const LibraryFile& b) { return a.path < b.path; });
  return out;
}

std::vector<std::string> library_exporters(const std::string& function) {
  std::vector<std::string> out;
  for (const LibraryFile& e : library_files()) {
    for (const char* follows : {"(", "["}) {
      if (e.text.find("\npub fn " + function + follows) == std::string_view::npos) continue;
      std::string path = "std::" + std::string(e.path.substr(0, e.path.rfind(".ein")));
      for (size_t at = path.find('/'); at != std::string::npos; at = path.find('/')) {
        path.replace(at, 1, "::");
      }
      out.push_back(path);
    }
  }
  return out;
}

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

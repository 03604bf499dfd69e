#include "lsp/disk.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "driver/cache.h"
#include "driver/files.h"
#include "driver/library.h"
#include "runtime/files.h"
#include "runtime/paths.h"

namespace ein::lsp {

namespace fs = std::filesystem;

std::optional<std::string> text_on_disk(const std::string& path) { return read_text(path); }

sema::FileLookup files_for(const std::string& path, const SourceMap& sources) {
  auto beside = fs::path(path).parent_path().string();
  auto access = std::make_shared<FileAccess>();
  access->read = {resolved("."), resolved(beside.empty() ? "." : beside)};
  return files_on_disk(sources, access);
}

std::vector<std::string> files_below(const std::vector<std::string>& folders) {
  constexpr size_t kMost = 5000, kMostEntries = 200'000;
  std::vector<std::string> out;
  for (const std::string& folder : folders) {
    std::error_code error;
    auto options = fs::directory_options::skip_permission_denied;
    fs::recursive_directory_iterator at(folder, options, error), end;
    size_t seen = 0;
    while (!error && at != end && out.size() < kMost && ++seen < kMostEntries) {
      std::string name = at->path().filename().string();
      std::error_code kind;
      if (at->is_directory(kind)) {
        if (name.starts_with(".") || name == "node_modules") at.disable_recursion_pending();
      } else if (name.ends_with(".ein")) {
        out.push_back(at->path().lexically_normal().string());
      }
      at.increment(error);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string library_folder(const std::string& version) {
  std::string cache = cache_folder();
  if (cache.empty()) return "";
  std::string folder = fmt::format("{}/library-{}", cache, version);
  std::error_code error;
  for (const LibraryFile& f : library_files()) {
    std::filesystem::path path = folder + "/" + std::string(f.path);
    if (auto known = read_text(path.string()); known && *known == f.text) continue;
    std::filesystem::create_directories(path.parent_path(), error);
    write_text(path.string(), std::string(f.text));
  }
  return folder;
}

}  // namespace ein::lsp

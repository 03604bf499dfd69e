// What a session holds, and what entries are compiled over.
#include "driver/files.h"
#include "runtime/files.h"
#include "session/session.h"

namespace ein::session {
namespace {

constexpr size_t kMostUndone = 100;

}  // namespace

ide::Documents documents_of(State& state, const Options& options, bool fresh_files) {
  ide::Documents out;
  Seen& seen = state.seen;
  out.read = [&seen](const std::string& path) -> std::optional<std::string> {
    if (auto it = seen.modules.find(path); it != seen.modules.end()) return it->second;
    auto read = read_text(path);
    if (read) seen.modules[path] = *read;
    return read;
  };
  out.files = [&seen, &options, fresh_files](const SourceMap& sources) {
    sema::FileLookup disk = files_on_disk(sources, options.access);
    return [&seen, &sources, disk, fresh_files](
               FileId from, const std::string& path,
               const std::string& member) -> std::variant<sema::FoundFile, RuntimeError> {
      std::string key = sources.name(from) + "\n" + path + "\n" + member;
      bool again = fresh_files && from.v == 0;  // the text of the entry itself
      auto it = seen.files.find(key);
      if (it != seen.files.end() && !again) return it->second;
      auto found = disk(from, path, member);
      if (auto* file = std::get_if<sema::FoundFile>(&found)) seen.files[key] = *file;
      return found;
    };
  };
  for (const auto& piece : state.pieces) {
    out.earlier.push_back({piece->entry, piece->text, piece->joined, piece->tree});
  }
  return out;
}

std::string rendered(const Diagnostics& diags, const SourceMap& sources, const Options& options) {
  return render(diags, sources, options.render);
}

void remember(Session& s) {
  s.before.push_back(s.state);
  if (s.before.size() > kMostUndone) s.before.pop_front();
}

std::string program_text(const State& state) {
  std::string out;
  for (const auto& piece : state.pieces) out += plain_text(*piece) + "\n";
  return out;
}

std::optional<Tensor> value_of(const Session& s, const std::string& name) {
  auto it = s.state.kept.find(name);
  if (it == s.state.kept.end()) return std::nullopt;
  return it->second.value;
}

}  // namespace ein::session

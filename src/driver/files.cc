#include "driver/files.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "core/rewrite.h"
#include "runtime/members.h"

namespace ein {
namespace {

using core::FamilyId;

// What is different now, in words.
std::string difference(const FileHeader& then, const FileHeader& now) {
  if (then.dtype != now.dtype || then.shape != now.shape) {
    return fmt::format("it contained {}, now {}", show_type(then), show_type(now));
  }
  if (then.size != now.size) { return fmt::format("it had {} bytes, now {}", then.size, now.size); }
  return "it was overwritten";
}

}  // namespace

std::set<FamilyId> reached(const core::Module& m, const std::vector<FamilyId>& wanted) {
  std::set<FamilyId> seen(wanted.begin(), wanted.end());
  std::vector<FamilyId> work(seen.begin(), seen.end());
  for (size_t i = 0; i < work.size(); ++i) {
    for (FamilyId other : m[work[i]].with) {
      if (seen.insert(other).second) work.push_back(other);
    }
    core::for_each_body(m, work[i], [&](core::ExprId body) {
      core::for_each_node(m, body, [&](core::ExprId e) {
        const auto* a = core::get_if<core::Access>(m, e);
        if (a && seen.insert(a->family).second) work.push_back(a->family);
      });
    });
  }
  return seen;
}

sema::FileLookup files_on_disk(const SourceMap& sources, std::shared_ptr<const FileAccess> access) {
  return [&sources, access = std::move(access)](
             FileId from, const std::string& path,
             const std::string& member) -> std::variant<sema::FoundFile, RuntimeError> {
    namespace fs = std::filesystem;
    std::string beside = (fs::path(sources.name(from)).parent_path() / path).string();
    std::optional<RuntimeError> refused;
    std::string found;
    for (const std::string& place : {beside, path}) {
      // A program must not even learn whether a file exists in a folder that it may not read.
      auto no = access ? refuse_read(*access, place) : std::nullopt;
      if (no && !refused) refused = no;
      std::error_code error;
      if (no || !fs::exists(place, error)) continue;
      found = place;
      break;
    }
    if (found.empty() && refused) return *refused;
    if (found.empty()) found = path;  // reading it reports that it is not there
    if (member == sema::kAllMembers) {
      auto members = file_members(found);
      if (auto* e = std::get_if<RuntimeError>(&members)) return *e;
      return sema::FoundFile{found, {}, std::move(std::get<std::vector<std::string>>(members))};
    }
    auto header = inspect_file(found, member);
    if (auto* e = std::get_if<RuntimeError>(&header)) return *e;
    return sema::FoundFile{found, std::get<FileHeader>(header)};
  };
}

std::optional<RuntimeError> read_loaded(const core::Module& m, const std::vector<FamilyId>& wanted,
                                        core::Inputs& inputs,
                                        const std::map<std::string, RowFile>& streamed) {
  std::map<std::pair<std::string, std::string>, Tensor> read;  // a file loaded twice is read once
  for (FamilyId id : reached(m, wanted)) {
    const core::Family& f = m[id];
    if (!f.file || inputs.contains(text(f.name)) || streamed.contains(text(f.name))) continue;
    auto fail = [&](const std::string& why) { return RuntimeError{Code::E0808, why, f.span}; };
    auto [it, fresh] = read.try_emplace({f.file->path, f.file->member});
    if (fresh) {
      auto header = inspect_file(f.file->path, f.file->member);
      if (auto* e = std::get_if<RuntimeError>(&header)) return fail(e->message);
      const auto& now = std::get<FileHeader>(header);
      if (!(now == f.file->header)) {
        return fail(fmt::format("`{}` changed after the program was compiled: {}", f.file->path,
                                difference(f.file->header, now)));
      }
      auto tensor = read_tensor(f.file->path, f.file->member);
      if (auto* e = std::get_if<RuntimeError>(&tensor)) return fail(e->message);
      it->second = std::move(std::get<Tensor>(tensor));
    }
    if (it->second.shape() != f.file->header.shape || it->second.dtype() != f.file->header.dtype) {
      return fail(fmt::format("`{}` changed while it was read", f.file->path));
    }
    inputs[text(f.name)] = it->second;
  }
  return std::nullopt;
}

}  // namespace ein

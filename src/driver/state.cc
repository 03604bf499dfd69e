#include "driver/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "base/blake2.h"
#include "codegen/jit.h"
#include "core/groups.h"
#include "driver/files.h"
#include "runtime/bytes.h"

namespace ein {
namespace {

// The last byte is the version of the format.
constexpr std::string_view kStateMagic = "ein state\n\x01";
constexpr size_t kDigest = sizeof(Digest);

std::string_view view_of(const Digest& d) {
  return {reinterpret_cast<const char*>(d.data()), d.size()};
}

std::string content_of(const Tensor& t) {
  std::string text = fmt::format("{} [{}] ", name_of(t.dtype()), fmt::join(t.shape(), ", "));
  text.append(static_cast<const char*>(t.data()),
              static_cast<size_t>(t.size()) * size_of(t.dtype()));
  return hex(blake2(text));
}

// For a file that is too large to be read completely: its length, its beginning and its end.
std::string content_of(const RowFile& file) {
  constexpr int64_t kEnd = 1 << 20;
  std::ifstream in(file.path, std::ios::binary | std::ios::ate);
  int64_t size = in ? static_cast<int64_t>(in.tellg()) : 0;
  std::string text = fmt::format("{} {} ", file.member, size);
  for (int64_t from : {int64_t{0}, std::max<int64_t>(0, size - kEnd)}) {
    std::string part(static_cast<size_t>(std::min(size, kEnd)), '\0');
    in.seekg(from);
    in.read(part.data(), static_cast<std::streamsize>(part.size()));
    text += part;
  }
  return hex(blake2(text));
}

std::vector<RunIdentity::Piece> take_pieces(ByteReader& in) {
  std::vector<RunIdentity::Piece> out;
  for (uint64_t n = in.number(); n > 0 && !in.bad; --n) {
    RunIdentity::Piece& piece = out.emplace_back();
    piece.name = in.text();
    piece.digest = in.text();
  }
  return out;
}

const std::string* find(const std::vector<RunIdentity::Piece>& in, const std::string& name) {
  for (const auto& piece : in) {
    if (piece.name == name) return &piece.digest;
  }
  return nullptr;
}

}  // namespace

RunIdentity identity_of(core::Module& m, const std::vector<core::FamilyId>& wanted,
                        const core::Inputs& inputs, const std::map<std::string, RowFile>& streamed,
                        const RunOptions& options) {
  RunIdentity out;
  for (core::FamilyId id : reached(m, wanted)) {
    const core::Family& f = m[id];
    if (f.kind == core::Family::Kind::Input) {
      auto it = inputs.find(text(f.name));
      if (it != inputs.end()) out.inputs.push_back({f.spelled(), content_of(it->second)});
      auto file = streamed.find(text(f.name));
      if (file != streamed.end()) out.inputs.push_back({f.spelled(), content_of(file->second)});
    }
    out.families.push_back({text(f.name), fmt::format("{:016x}", core::hash(m, id))});
  }
  // Other settings that may change the last bit.
  out.settings = {{"--precision", name_of(options.operands)},
                  {"--check-overflow", options.check_overflow ? "on" : "off"},
                  {"--cpu", codegen::processor_text(options.processor)},
                  {"-O", options.opt_level > 0 ? "1 or more" : "0"}};
  for (const Tunable& t : tunables()) {
    out.settings.push_back(
        {fmt::format("--tune {}", t.name), std::to_string(options.tuning.*t.field)});
  }
  return out;
}

std::string pack_run(const RunIdentity& identity, std::string_view state) {
  std::string out(kStateMagic);
  for (const auto* pieces : {&identity.families, &identity.inputs, &identity.settings}) {
    add_little<uint64_t>(out, pieces->size());
    for (const auto& piece : *pieces) {
      add_text(out, piece.name);
      add_text(out, piece.digest);
    }
  }
  add_text(out, state);
  out += view_of(blake2(out));
  return out;
}

std::variant<KeptRun, std::string> unpack_run(std::string_view bytes) {
  std::string_view kind = kStateMagic.substr(0, kStateMagic.size() - 1);
  if (!bytes.starts_with(kind)) return "it is not a state that `ein run --save-state` wrote";
  if (!bytes.starts_with(kStateMagic)) return "it was written by another version of `ein`";
  if (bytes.size() < kStateMagic.size() + kDigest) return "it is damaged: it is too short";
  std::string_view body = bytes.substr(0, bytes.size() - kDigest);
  if (view_of(blake2(body)) != bytes.substr(body.size())) {
    return "it is damaged: its checksum is wrong";
  }
  body.remove_prefix(kStateMagic.size());
  KeptRun out;
  ByteReader in{body};
  out.identity.families = take_pieces(in);
  out.identity.inputs = take_pieces(in);
  out.identity.settings = take_pieces(in);
  const std::string state = in.text();
  auto read = in.bad || !in.in.empty() ? std::nullopt : unpack_state(state);
  if (!read) return "it is damaged";
  out.state = std::move(*read);
  return out;
}

std::string difference(const KeptRun& kept, core::Module& m, const RunIdentity& now) {
  std::vector<core::FamilyId> of_state;
  for (const KeptState::Part& part : kept.state.parts) {
    core::FamilyId id = m.find(intern(part.name));
    if (!find(kept.identity.families, part.name)) continue;  // it was made for native code only
    if (!id) return fmt::format("the program has no `{}` any more", part.name);
    of_state.push_back(id);
  }
  std::string changed;
  for (core::FamilyId id : reached(m, of_state)) {
    const core::Family& f = m[id];
    const std::string* had = find(kept.identity.families, text(f.name));
    const std::string* has = find(now.families, text(f.name));
    if (has && had && *had == *has) continue;
    if (changed.empty() || !f.generated) changed = f.spelled();
    if (!f.generated) break;
  }
  if (!changed.empty()) {
    return fmt::format("`{}` is not defined as it was when the state was saved", changed);
  }
  for (const auto& [name, digest] : kept.identity.inputs) {
    const std::string* has = find(now.inputs, name);
    if (has && *has != digest) return fmt::format("the input `{}` has another value", name);
  }
  for (const auto& [name, value] : kept.identity.settings) {
    const std::string* has = find(now.settings, name);
    if (!has || *has != value) {
      return fmt::format("it was saved with {} ({}), now it is {}", name, value,
                         has ? *has : "gone");
    }
  }
  return {};
}

}  // namespace ein

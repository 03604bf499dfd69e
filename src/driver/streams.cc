#include "driver/streams.h"

#include <fmt/format.h>

#include "driver/compile.h"
#include "driver/files.h"
#include "optimise/checkpoint.h"
#include "runtime/files.h"

namespace ein {
namespace {

using core::FamilyId;

bool is_large(const RowFile& file, const RunOptions& options) {
  return file.bytes() >= static_cast<uint64_t>(options.tuning.stream_bytes);
}

std::string size_text(uint64_t bytes) {
  const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  auto value = static_cast<double>(bytes);
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return fmt::format("{:.4g} {}", value, units[unit]);
}

// The file of an input, where it is known, and why it has no rows.
struct Origin {
  std::optional<RowFile> rows;
  uint64_t size = 0;
  std::string why;
};
Origin origin_of(const core::Family& f, const RunOptions& options) {
  Origin out;
  if (auto given = options.files.find(text(f.name)); given != options.files.end()) {
    out.rows = given->second;
  } else if (f.file) {
    out.rows = find_rows(f.file->path, f.file->member, out.why);
    out.size = f.file->header.size;
  }
  if (out.rows) out.size = out.rows->bytes();
  return out;
}

StreamFact fact_of(const core::Module& m, FamilyId id, const plan::Plan& plan,
                   const RunOptions& options) {
  const core::Family& f = m[id];
  StreamFact out{f.spelled()};
  const Origin from = origin_of(f, options);
  const std::string least = size_text(static_cast<uint64_t>(options.tuning.stream_bytes));
  const bool large = from.size >= static_cast<uint64_t>(options.tuning.stream_bytes);
  auto stream = plan.streams.find(id);
  if (stream == plan.streams.end()) {
    auto why = plan.whole.find(id);
    if (large && why != plan.whole.end()) {
      out.text = fmt::format("{} does not stream: {}", out.input, why->second);
    }
    return out;
  }
  out.window = stream->second.window;
  const std::string rows = out.window == 1 ? "1 row" : fmt::format("{} rows", out.window);
  if (!from.rows && large) {
    out.text = fmt::format("{} does not stream: {}", out.input, from.why);
  } else if (!large) {
    out.text = fmt::format(
        "{} does not stream: only .npy, .idx and .safetensors files of at least {} do (with {} in "
        "memory at a time)",
        out.input, least, rows);
  } else {
    out.streams = true;
    const auto& shape = from.rows->header.shape;
    const auto count = static_cast<uint64_t>(std::max<int64_t>(shape[0], 1));
    out.text = fmt::format(
        "{} streams: {} of {} in memory at a time, {} of {}", out.input, rows, shape[0],
        size_text(from.size / count * static_cast<uint64_t>(out.window)), size_text(from.size));
  }
  return out;
}

}  // namespace

std::map<std::string, RowFile> streamable(const core::Module& m,
                                          const std::vector<FamilyId>& wanted,
                                          const RunOptions& options) {
  std::map<std::string, RowFile> out;
  if (!options.streams || optimise::wants_segments(m, options.grad_memory)) return out;
  out = options.files;
  for (FamilyId id : reached(m, wanted)) {
    const core::Family& f = m[id];
    if (!f.file || f.file->header.size < static_cast<uint64_t>(options.tuning.stream_bytes))
      continue;
    std::string why;
    auto rows = find_rows(f.file->path, f.file->member, why);
    // A file that has changed is reported when it is read whole.
    if (rows && rows->header == f.file->header) out.emplace(text(f.name), std::move(*rows));
  }
  std::erase_if(out, [&](const auto& item) { return !is_large(item.second, options); });
  return out;
}

std::vector<FamilyId> families_of(const core::Module& m,
                                  const std::map<std::string, RowFile>& files) {
  std::vector<FamilyId> out;
  for (const auto& [name, file] : files) out.push_back(m.find(intern(name)));
  return out;
}

std::optional<RuntimeError> read_others(const core::Module& m, const std::vector<FamilyId>& wanted,
                                        const RunOptions& options,
                                        const std::map<std::string, RowFile>& streamed,
                                        core::Inputs& inputs) {
  for (const auto& [name, file] : options.files) {
    if (streamed.contains(name) || inputs.contains(name)) continue;
    auto tensor = read_tensor(file.path, file.member);
    if (auto* e = std::get_if<RuntimeError>(&tensor)) return *e;
    inputs[name] = std::move(std::get<Tensor>(tensor));
  }
  return read_loaded(m, wanted, inputs, streamed);
}

std::vector<StreamFact> stream_facts(core::Module& m, const RunOptions& options) {
  std::vector<StreamFact> out;
  if (optimise::wants_segments(m, options.grad_memory)) return out;
  plan::Choices choices = native_options(options).choices;
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    const core::Family& f = m[FamilyId(i)];
    if (f.kind == core::Family::Kind::Input && f.rank() > 0) choices.streams.push_back(FamilyId(i));
  }
  if (choices.streams.empty()) return out;
  const plan::Plan plan = plan_of(m, wanted_families(m, options, Else::Unread), choices);
  for (FamilyId id : choices.streams) {
    StreamFact fact = fact_of(m, id, plan, options);
    if (!fact.text.empty()) out.push_back(std::move(fact));
  }
  return out;
}

}  // namespace ein

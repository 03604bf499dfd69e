#include "driver/build.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/native.h"
#include "driver/compile.h"
#include "driver/files.h"
#include "driver/findings.h"
#include "driver/run.h"
#include "runtime/execute.h"

namespace ein {
namespace {

using core::FamilyId;

// The code addresses its data by 32-bit distances.
constexpr uint64_t kMostData = uint64_t{1} << 30;

void want(std::vector<FamilyId>& wanted, FamilyId f) {
  if (f && std::find(wanted.begin(), wanted.end(), f) == wanted.end()) wanted.push_back(f);
}

// Makes the files that the program loads part of the library.
std::optional<RuntimeError> embed_files(const core::Module& m, const std::vector<FamilyId>& wanted,
                                        Image& image) {
  core::Inputs loaded;
  if (auto wrong = read_loaded(m, wanted, loaded)) return wrong;
  uint64_t bytes = 0;
  std::vector<uint32_t> new_number(image.inputs.size());
  std::vector<Image::Input> kept;
  for (uint32_t i = 0; i < image.inputs.size(); ++i) {
    new_number[i] = static_cast<uint32_t>(kept.size());
    auto it = loaded.find(image.inputs[i].name);
    if (it == loaded.end()) {
      kept.push_back(std::move(image.inputs[i]));
      continue;
    }
    for (const Image::Param& p : image.params) {
      if (p.input == i) {
        return RuntimeError{Code::E0701,
                            fmt::format("an extent depends on `{}`, which is loaded from a file; "
                                        "`ein build` does not support that yet",
                                        it->first),
                            image.inputs[i].span};
      }
    }
    for (Image::Buffer& b : image.buffers) {
      if (b.space != Image::Buffer::Space::Input || b.input != i) continue;
      b.space = Image::Buffer::Space::Constant;
      b.constant = it->second;
      bytes += byte_size(it->second.shape(), it->second.dtype());
    }
  }
  if (bytes > kMostData) {
    return RuntimeError{Code::E0701,
                        fmt::format("the program loads {} MiB from files, more than the {} MiB "
                                    "that may become part of a library; make them inputs",
                                    bytes >> 20, kMostData >> 20)};
  }
  for (Image::Buffer& b : image.buffers) {
    if (b.space == Image::Buffer::Space::Input) b.input = new_number[b.input];
  }
  for (Image::Param& p : image.params) {
    if (p.input != Image::Param::kNone) p.input = new_number[p.input];
  }
  image.inputs = std::move(kept);
  return std::nullopt;
}

// As with `ein run`, a caller may supply every input of the program, even one that is not needed.
void add_unused(const core::Module& m, Image& image) {
  for (const core::Family& f : m.families) {
    if (f.kind != core::Family::Kind::Input || f.file || f.generated) continue;
    std::string name = text(f.name);
    if (std::any_of(image.inputs.begin(), image.inputs.end(),
                    [&](const Image::Input& i) { return i.name == name; })) {
      continue;
    }
    Image::Input input{name, f.path, f.dtype, {}, f.span};
    for (const core::Coord& c : f.coords) input.coords.push_back({text(c.name), {}});
    image.unused.push_back(std::move(input));
  }
}

uint32_t buffer_of(const Image& image, uint32_t family) {
  for (uint32_t i = 0; i < image.buffers.size(); ++i) {
    if (image.buffers[i].family == family && image.buffers[i].wanted) return i;
  }
  return Effect::kNoValue;
}

void add_effects(const core::Module& m, bool all, Image& image) {
  for (const core::Effect& e : m.effects) {
    if (!e.users.empty()) continue;
    Effect to = plain_effect(m, e);
    if (!all && to.kind != Effect::Kind::Assert) continue;
    if (to.cond != Effect::kNoValue) to.cond = buffer_of(image, to.cond);
    for (Effect::Piece& p : to.pieces) {
      if (p.value != Effect::kNoValue) p.value = buffer_of(image, p.value);
    }
    image.effects.push_back(std::move(to));
  }
}

// Every place that a message may mention, as text.
void add_places(const core::Module& m, const std::vector<FamilyId>& wanted,
                const SourceMap& sources, Image& image) {
  auto add = [&](Span at) {
    if (!at.valid() || !place_text(image, at).empty()) return;
    LineCol place = sources.position(at.file, at.begin);
    image.places.push_back(
        {at, fmt::format("{}:{}:{}", sources.name(at.file), place.line, place.col)});
  };
  for (Image::Site& s : image.sites) {
    // As in `ein run`, an expression's own place only if it is certain.
    if (s.statement.valid() && !is_certain(m, wanted, s.span)) s.span = {};
    add(s.span);
    add(s.statement);
  }
  for (const Image::Input& i : image.inputs) add(i.span);
  for (const Image::Constraint& c : image.constraints) add(c.span);
  for (const Image::Buffer& b : image.buffers) add(b.span);
  for (const Effect& e : image.effects) add(e.span);
}

}  // namespace

std::vector<FamilyId> defined_values(const core::Module& m) {
  std::vector<FamilyId> out;
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    const core::Family& f = m[FamilyId(i)];
    if (f.generated || f.kind == core::Family::Kind::Input || f.dtype == DType::Str) continue;
    out.push_back(FamilyId(i));
  }
  return out;
}

std::variant<Built, RuntimeError> build(core::Module& m, const SourceMap& sources,
                                        const BuildOptions& options) {
  Built out;
  std::vector<FamilyId> shown, wanted;
  for (const std::string& name : options.show) want(shown, m.find(intern(name)));
  if (options.show.empty() && !options.executable) shown = defined_values(m);
  if (options.executable) shown.clear();
  for (FamilyId f : shown) want(wanted, f);
  for (const core::Effect& e : m.effects) {
    if (!options.executable && e.kind != core::Effect::Kind::Assert) continue;
    if (!e.users.empty()) continue;  // reports are for the author of the program
    want(wanted, e.cond);
    for (const core::Piece& p : e.pieces) want(wanted, p.value);
  }
  for (const Uncut& r : uncut_recurrences(m, "building")) out.warnings.push_back(r.message);
  RunOptions run;
  run.opt_level = options.opt_level;
  run.processor = options.processor;
  const NativeOptions how = native_options(run);
  auto made = lower_native(m, wanted, how);
  if (auto* why = std::get_if<std::string>(&made)) return RuntimeError{Code::E0701, *why};
  auto& [plan, program, image] = std::get<Lowered>(made);
  if (auto wrong = embed_files(m, wanted, image)) return *wrong;
  for (FamilyId f : shown) image.outputs.push_back(buffer_of(image, f.v));
  if (options.executable) add_unused(m, image);
  add_effects(m, options.executable, image);
  add_places(m, wanted, sources, image);
  std::string run_name = "main", free_name;
  if (!options.executable) {
    run_name = options.name + "_run";
    free_name = options.name + "_free";
    out.header = header_text(image, options.name, sources.name(FileId(0)));
  }
  out.object =
      codegen::standalone_object(program, jit_options(how), pack(image), run_name, free_name);
  return out;
}

}  // namespace ein

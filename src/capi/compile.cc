// Compiling programs, and what is known about them.
#include "driver/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <set>

#include "base/check.h"
#include "base/deep_stack.h"
#include "base/render.h"
#include "capi/handles.h"
#include "core/print.h"
#include "driver/build.h"
#include "driver/cache.h"
#include "driver/files.h"
#include "driver/findings.h"
#include "driver/run.h"
#include "session/values.h"

namespace ein::capi {
namespace {

using core::FamilyId;

std::unique_ptr<Value> value_of(const core::Module& m, FamilyId id) {
  auto out = std::make_unique<Value>();
  const core::Family& f = m[id];
  out->name = text(f.name);
  out->dtype = f.dtype;
  out->family = id;
  out->coords = coordinate_texts(f);
  for (const core::Coord& c : f.coords) {
    const auto* literal = core::get_if<core::IntLit>(m, c.extent);
    out->extents.push_back(literal ? literal->value : -1);
    out->extent_texts.push_back(core::print(m, std::vector<Symbol>(), c.extent));
  }
  out->path = f.spelled();
  out->finish();
  return out;
}

// Writes an unknown output to `error`.
bool choose_outputs(ein_program& p, const ein_options& options, const Derived& derived,
                    const std::vector<sema::EarlierText>& earlier, ein_error* error) {
  std::vector<FamilyId> chosen;
  auto choose = [&](FamilyId id) {
    if (std::find(chosen.begin(), chosen.end(), id) == chosen.end()) chosen.push_back(id);
  };
  for (const std::string& name : names(options.outputs, options.output_count)) {
    std::vector<FamilyId> found = session::families_of(p.module, name);
    if (found.empty()) {
      std::vector<std::string> known;
      for (const core::Family& f : p.module.families) {
        if (!f.generated) known.push_back(f.spelled());
      }
      std::string near = did_you_mean(name, known);
      report(error, "",
             fmt::format("the program defines no value `{}`{}", name,
                         near.empty() ? "" : fmt::format("; did you mean `{}`?", near)));
      return false;
    }
    for (FamilyId id : found) choose(id);
  }
  if (!derived.derivatives.empty()) {
    if (!options.outputs) {
      for (Symbol s : derived.values) choose(p.module.find(s));
    }
    for (Symbol s : derived.derivatives) choose(p.module.find(s));
  } else if (!options.outputs) {
    chosen = defined_values(p.module);
    std::erase_if(chosen,
                  [&](FamilyId id) { return sema::is_earlier(earlier, p.module[id].span.file); });
  }
  p.wanted = chosen;
  auto want = [&](FamilyId f) {
    if (f && std::find(p.wanted.begin(), p.wanted.end(), f) == p.wanted.end())
      p.wanted.push_back(f);
  };
  for (const core::Effect& e : p.module.effects) {
    if (e.kind != core::Effect::Kind::Assert) continue;
    p.asserts.push_back(plain_effect(p.module, e));
    want(e.cond);
    for (const core::Piece& piece : e.pieces) want(piece.value);
  }
  for (FamilyId id : chosen) p.outputs.push_back(value_of(p.module, id));
  for (uint32_t i = 0; i < p.module.families.size(); ++i) {
    const core::Family& f = p.module[FamilyId(i)];
    if (f.kind == core::Family::Kind::Input && !f.file) {
      p.inputs.push_back(value_of(p.module, FamilyId(i)));
    }
  }
  return true;
}

void connect(const ein_program& p, Way& way) {
  const Image& image = image_of(*way.native);
  for (const Image::Input& input : image.inputs) {
    uint32_t from = ein_program::kLoaded;
    for (uint32_t i = 0; i < p.inputs.size(); ++i) {
      if (p.inputs[i]->name == input.name) from = i;
    }
    way.from.push_back(from);
    way.views.push_back(from == ein_program::kLoaded ? view_of(p.loaded.at(input.name)) : View{});
  }
  way.has_steps = std::any_of(image.sites.begin(), image.sites.end(), [](const Image::Site& s) {
    return s.kind == Image::Site::Kind::Step || s.kind == Image::Site::Kind::Rows;
  });
  auto buffer_of = [&](uint32_t family) {
    for (uint32_t i = 0; i < image.buffers.size(); ++i) {
      if (image.buffers[i].family == family && image.buffers[i].wanted) return i;
    }
    EIN_UNREACHABLE("an output without a buffer");
  };
  for (const auto& o : p.outputs) way.output_buffers.push_back(buffer_of(o->family.v));
  way.asserts = p.asserts;
  for (Effect& e : way.asserts) {
    if (e.cond != Effect::kNoValue) e.cond = buffer_of(e.cond);
    for (Effect::Piece& piece : e.pieces) {
      if (piece.value != Effect::kNoValue) piece.value = buffer_of(piece.value);
    }
  }
}

NativeOptions options_of(const ein_program& p) {
  RunOptions run;
  run.opt_level = p.opt_level;
  run.cache = p.cache.get();
  run.operands = p.operands;
  return native_options(run);
}

bool read_precision(const std::string& name, DType& out) {
  if (name == "f32") out = DType::F32;
  if (name == "bf16-mixed") out = DType::BF16;
  if (name == "f16-mixed") out = DType::F16;
  return name == "f32" || name == "bf16-mixed" || name == "f16-mixed";
}

// Where modules come from: those that are already known, then files, which are remembered.
ReadFile module_files(ein_program& p) {
  return [&p](const std::string& path) -> std::optional<std::string> {
    for (const auto& [known, text] : p.files) {
      if (known == path) return text;
    }
    auto text = read_file(path);
    if (text) p.files.emplace_back(path, *text);
    return text;
  };
}

ein_status compile_text(std::string source, const std::string& name, const ein_options& options,
                        ein_program& p, ein_error* error) {
  p.name = name;
  p.text = source;
  FileId file = p.sources.add(name, std::move(source));
  CompileOptions compile_options;
  for (size_t i = 0; options.files && i < options.file_count; ++i) {
    p.files.emplace_back(options.files[i].path, options.files[i].text);
  }
  for (size_t i = 0; options.earlier && i < options.earlier_count; ++i) {
    const ein_earlier& e = options.earlier[i];
    p.earlier.push_back({e.name, e.text, e.hidden != 0});
  }
  compile_options.earlier = add_earlier(p, p.sources);
  compile_options.read_file = module_files(p);
  compile_options.files = files_on_disk(p.sources);
  if (options.grad_of) p.extra = {options.grad_of, names(options.grad_wrt, options.grad_wrt_count)};
  for (size_t i = 0; options.derivations && i < options.derivation_count; ++i) {
    const ein_derivation& d = options.derivations[i];
    if (d.form == EIN_VALUES) continue;
    if (d.form < EIN_VALUES || d.form > EIN_HESSIAN) {
      report(error, "", fmt::format("there is no form {} of a derivative", int{d.form}));
      return EIN_USAGE;
    }
    p.derivations.push_back({static_cast<Derivation::Form>(d.form), names(d.of, d.of_count),
                             names(d.wrt, d.wrt_count)});
  }
  compile_options.extra = p.extra;
  compile_options.derivations = p.derivations;
  p.threads = options.threads;
  if (options.precision && !read_precision(options.precision, p.operands)) {
    report(error, "",
           fmt::format("there is no precision `{}`: it is f32, bf16-mixed or f16-mixed",
                       options.precision));
    return EIN_USAGE;
  }
  Diagnostics diags;
  Compiled compiled = compile(file, p.sources, compile_options, diags);
  if (compiled.ok) {  // one program serves all extents
    for (const Uncut& r : uncut_recurrences(compiled.module, "compiling")) {
      diags.warning(Code::W0603, r.message).primary(r.span, "`#[checkpoint]` has no effect here");
    }
  }
  p.diagnostics = render(diags, p.sources, {.format = ErrorFormat::Human, .color = false});
  p.diagnostics_json = render(diags, p.sources, {.format = ErrorFormat::Json, .color = false});
  p.diagnostics_coloured = render(diags, p.sources, {.format = ErrorFormat::Human, .color = true});
  if (!compiled.derived.wrong.empty()) {
    report(error, "", compiled.derived.wrong);
    return EIN_USAGE;
  }
  if (!compiled.ok) {
    for (const Diagnostic& d : diags.all()) {
      if (info(d.code).severity != Severity::Error) continue;
      report(error, info(d.code).name, d.message);
      break;
    }
    return EIN_PROGRAM_WRONG;
  }
  p.module = std::move(compiled.module);
  if (!choose_outputs(p, options, compiled.derived, compile_options.earlier, error))
    return EIN_USAGE;
  if (auto wrong = read_loaded(p.module, p.wanted, p.loaded)) {
    report(error, info(wrong->code).name, error_text(p, *wrong));
    return EIN_FAILED;
  }
  if (!options.no_cache) p.cache = open_cache();
  p.opt_level = options.opt_level;
  auto native = compile_native(p.module, p.wanted, options_of(p));
  if (auto* made = std::get_if<std::shared_ptr<Native>>(&native)) {
    p.way.native = *made;
    connect(p, p.way);
    for (uint32_t i = 0; i < p.inputs.size(); ++i) {
      bool needed = std::find(p.way.from.begin(), p.way.from.end(), i) != p.way.from.end();
      p.inputs[i]->plain.needed = p.inputs[i]->needed = needed;
    }
    p.grad_memory = options.grad_memory;
    p.cuts = p.grad_memory > 0 && optimise::wants_segments(p.module, p.grad_memory);
  }
  // A program without outputs is only run for its effects, and the run itself reports missing
  // inputs.
  for (auto& i : p.inputs) {
    if (p.wanted.empty()) i->plain.needed = i->needed = false;
  }
  for (const core::Family& f : p.module.families) {
    if (f.file) p.loaded_paths.push_back(f.file->path);
  }
  for (const auto& [path, text] : p.files) p.plain_files.push_back({path.c_str(), text.c_str()});
  p.ok = true;
  return EIN_OK;
}

ein_status compile_source(const std::function<std::optional<std::string>()>& source,
                          const std::string& name, const ein_options* options,
                          ein_program** program, ein_error* error) {
  if (!program) {
    report(error, "", "ein_compile needs somewhere to put the program");
    return EIN_USAGE;
  }
  *program = nullptr;
  return guarded(
      [&] {
        ein_options known;
        ein_options_init(&known);
        if (options) std::memcpy(&known, options, std::min(options->size, sizeof known));
        auto text = source();
        if (!text) {
          report(error, "", fmt::format("cannot read `{}`", name));
          return EIN_USAGE;
        }
        auto made = std::make_unique<ein_program>();
        ein_status status = EIN_INTERNAL;
        on_deep_stack([&] {
          status = guarded(
              [&] { return compile_text(std::move(*text), name, known, *made, error); }, error);
        });
        *program = made.release();
        return status;
      },
      error);
}

}  // namespace

void Value::finish() {
  for (const std::string& c : coords) coord_texts.push_back(c.c_str());
  for (const std::string& e : extent_texts) extent_pointers.push_back(e.c_str());
  plain = {name.c_str(),
           static_cast<ein_dtype>(dtype),
           static_cast<int32_t>(coords.size()),
           coord_texts.data(),
           extents.data(),
           path.c_str(),
           extent_pointers.data(),
           needed};
}

std::optional<std::string> read_file(const std::string& path) { return read_text(path); }

std::vector<sema::EarlierText> add_earlier(const ein_program& p, SourceMap& sources) {
  std::vector<sema::EarlierText> out;
  for (const auto& e : p.earlier) out.push_back({sources.add(e.name, e.text), e.hidden});
  return out;
}

std::vector<std::string> names(const char* const* list, size_t count) {
  std::vector<std::string> out;
  for (size_t i = 0; list && i < count; ++i) out.push_back(list[i] ? list[i] : "");
  return out;
}

core::Module copy_of(ein_program& p) {
  core::Module out = p.module;
  std::unique_lock<std::mutex> lock;
  if (!p.way.native) lock = p.evaluator.take();  // evaluation adds nodes
  out.arena = std::make_shared<core::Arena>(*p.module.arena);
  return out;
}

Way& way_for(ein_program& p, const std::vector<int64_t>& params) {
  if (!p.cuts) return p.way;
  std::lock_guard lock(p.cutting);
  std::unique_ptr<Way>& found = p.cut[params];
  if (found) return *found;
  auto made = std::make_unique<Way>();
  on_deep_stack([&] {
    core::Module m = copy_of(p);
    optimise::Checkpointed planned = checkpoint_of(m, p.wanted, params, p.grad_memory);
    const core::Module& whole = planned.plans.empty() ? m : planned.module;
    auto native = compile_native(whole, p.wanted, options_of(p));
    // Segments come from a program that compiled; if compiling the segments fails, the program runs
    // without them.
    auto* code = std::get_if<std::shared_ptr<Native>>(&native);
    made->native = code ? *code : p.way.native;
    connect(p, *made);
  });
  found = std::move(made);
  return *found;
}

void report(ein_error* to, const char* code, const std::string& message) {
  if (!to) return;
  std::memset(to, 0, sizeof *to);
  std::strncpy(to->code, code, sizeof to->code - 1);
  std::strncpy(to->message, message.c_str(), sizeof to->message - 1);
}

std::string error_text(const ein_program& program, const RuntimeError& error) {
  Span at = error.at;
  if (error.statement.valid() && !is_certain(program.module, program.wanted, at)) {
    at = error.statement;
  }
  if (!at.valid()) return error.message;
  LineCol place = program.sources.position(at.file, at.begin);
  return fmt::format("{}:{}:{}: {}", program.sources.name(at.file), place.line, place.col,
                     error.message);
}

}  // namespace ein::capi

extern "C" {

void ein_options_init(ein_options* options) {
  *options = ein_options{};
  options->size = sizeof *options;
  options->opt_level = 2;
}

ein_status ein_compile(const char* source, const char* name, const ein_options* options,
                       ein_program** program, ein_error* error) {
  if (!source) {
    ein::capi::report(error, "", "ein_compile needs a source");
    return EIN_USAGE;
  }
  return ein::capi::compile_source([&] { return std::optional<std::string>(source); },
                                   name ? name : "<program>", options, program, error);
}

ein_status ein_compile_file(const char* path, const ein_options* options, ein_program** program,
                            ein_error* error) {
  if (!path) {
    ein::capi::report(error, "", "ein_compile_file needs a path");
    return EIN_USAGE;
  }
  return ein::capi::compile_source([&] { return ein::capi::read_file(path); }, path, options,
                                   program, error);
}

void ein_program_free(ein_program* program) { delete program; }

const char* ein_diagnostics(const ein_program* program, ein_diagnostics_format format) {
  if (!program) return "";
  return format == EIN_JSON ? program->diagnostics_json.c_str() : program->diagnostics.c_str();
}

size_t ein_input_count(const ein_program* program) { return program ? program->inputs.size() : 0; }
size_t ein_output_count(const ein_program* program) {
  return program ? program->outputs.size() : 0;
}
const ein_value* ein_input(const ein_program* program, size_t number) {
  return number < ein_input_count(program) ? &program->inputs[number]->plain : nullptr;
}
const ein_value* ein_output(const ein_program* program, size_t number) {
  return number < ein_output_count(program) ? &program->outputs[number]->plain : nullptr;
}
const ein_file* ein_module(const ein_program* program, size_t number) {
  bool there = program && number < program->plain_files.size();
  return there ? &program->plain_files[number] : nullptr;
}
const char* ein_loaded(const ein_program* program, size_t number) {
  bool there = program && number < program->loaded_paths.size();
  return there ? program->loaded_paths[number].c_str() : nullptr;
}
int64_t ein_find_input(const ein_program* program, const char* name) {
  for (size_t i = 0; name && i < ein_input_count(program); ++i) {
    if (program->inputs[i]->name == name) return static_cast<int64_t>(i);
  }
  return -1;
}
int64_t ein_find_output(const ein_program* program, const char* name) {
  for (size_t i = 0; name && i < ein_output_count(program); ++i) {
    if (program->outputs[i]->name == name) return static_cast<int64_t>(i);
  }
  return -1;
}

uint32_t ein_api_version(void) { return EIN_API_VERSION; }
const char* ein_version(void) { return EIN_VERSION; }
size_t ein_dtype_size(ein_dtype dtype) {
  return dtype >= EIN_BOOL && dtype <= EIN_F64 ? ein::size_of(static_cast<ein::DType>(dtype)) : 0;
}
const char* ein_dtype_name(ein_dtype dtype) {
  return dtype >= EIN_BOOL && dtype <= EIN_F64 ? ein::name_of(static_cast<ein::DType>(dtype))
                                               : nullptr;
}

}  // extern "C"

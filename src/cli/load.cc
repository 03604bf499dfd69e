#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/cli.h"
#include "driver/doc_examples.h"
#include "driver/files.h"
#include "driver/run.h"
#include "runtime/files.h"
#include "runtime/pool.h"

namespace ein::cli {
namespace {

// The shapes of the inputs given with --in. `problem` gets the error of the first file that has
// none.
sema::InputShapes input_shapes(const std::vector<std::string>& in, const CommonOptions& options,
                               std::optional<RuntimeError>& problem) {
  sema::InputShapes out;
  for (const std::string& given : in) {
    auto pair = split(given);
    if (!pair) continue;  // reported later, when inputs are read
    auto header = inspect_file(pair->value, member_for(*pair, options));
    if (auto* h = std::get_if<FileHeader>(&header)) {
      out[pair->name] = h->shape;
    } else if (!problem) {
      problem = std::get<RuntimeError>(header);
    }
  }
  return out;
}

// The bytes in `512MiB`, `2GB` or `4096`; nothing if the text is not a size.
std::optional<uint64_t> parse_size(const std::string& text) {
  static const std::pair<const char*, double> units[] = {
      {"", 1},     {"B", 1},        {"kB", 1e3},        {"KB", 1e3},          {"MB", 1e6},
      {"GB", 1e9}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
  double value = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || !(value >= 0)) return std::nullopt;
  for (const auto& [unit, bytes] : units) {
    if (std::string(stop, end) == unit && value * bytes < 9e18)
      return static_cast<uint64_t>(value * bytes);
  }
  return std::nullopt;
}

}  // namespace

RenderOptions render_options(const CommonOptions& options) {
  RenderOptions out;
  if (options.error_format == "short") out.format = ErrorFormat::Short;
  if (options.error_format == "json") out.format = ErrorFormat::Json;
  const char* no_color = std::getenv("NO_COLOR");
  bool allowed = !(no_color && *no_color) && isatty(STDERR_FILENO) != 0;
  out.color = options.color == "always" || (options.color == "auto" && allowed);
  return out;
}

std::optional<int> read_tuning(const std::vector<std::string>& written, Tuning& out) {
  for (const std::string& text : written) {
    size_t equals = text.find('=');
    std::string name = text.substr(0, equals);
    std::vector<std::string> names;
    const Tunable* found = nullptr;
    for (const Tunable& t : tunables()) {
      names.push_back(t.name);
      if (name == t.name) found = &t;
    }
    if (!found) {
      std::string near = did_you_mean(name, names);
      return usage_error(fmt::format("--tune {}: there is no such number{}", name,
                                     near.empty() ? "" : fmt::format("; did you mean {}?", near)));
    }
    int64_t value = 0;
    const char* first = text.data() + std::min(equals + 1, text.size());
    const char* last = text.data() + text.size();
    auto [end, error] = std::from_chars(first, last, value);
    if (error != std::errc{} || end != last || value < found->least || value > found->most) {
      return usage_error(
          fmt::format("--tune {}: expected a number from {} to {}, for example {}={}", text,
                      found->least, found->most, name, found->most));
    }
    out.*found->field = value;
  }
  return std::nullopt;
}

DType operands_named(const std::string& precision) {
  return precision == "bf16-mixed"  ? DType::BF16
         : precision == "f16-mixed" ? DType::F16
                                    : DType::F32;
}

std::optional<int> read_mesh(const std::string& mesh, const std::string& rules,
                             const CommonOptions& common, shard::Spec& spec) {
  if (mesh.empty()) {
    return rules.empty() ? std::nullopt
                         : std::optional(usage_error("--shard needs a mesh: --mesh data=4"));
  }
  auto made = shard::parse_mesh(mesh);
  if (auto* e = std::get_if<RuntimeError>(&made)) return runtime_error(*e, common);
  spec.mesh = std::get<Mesh>(made);
  auto read = shard::parse_rules(spec.mesh, rules);
  if (auto* e = std::get_if<RuntimeError>(&read)) return runtime_error(*e, common);
  spec.rules = std::get<std::vector<shard::Rule>>(read);
  return std::nullopt;
}

std::optional<int> read_grad_memory(const std::string& text, std::optional<uint64_t>& bytes) {
  if (text.empty()) return std::nullopt;
  bytes = parse_size(text);
  if (bytes) return std::nullopt;
  return usage_error(
      fmt::format("--grad-memory needs a size such as 512MiB, 2GB or 4096, got `{}`", text));
}

std::optional<Pair> split(const std::string& text) {
  size_t at = text.find('=');
  if (at == std::string::npos || at == 0) return std::nullopt;
  return Pair{text.substr(0, at), text.substr(at + 1)};
}

std::string member_for(const Pair& given, const CommonOptions& options) {
  if (is_csv(given.value)) {
    return options.csv_headings ? fmt::format("{}; {}", kCsvHeadings, options.csv) : options.csv;
  }
  auto only = has_members(given.value) ? inspect_file(given.value, "") : FileHeader{};
  return std::holds_alternative<RuntimeError>(only) ? given.name : "";
}

std::optional<std::string> read_file(const std::string& path) { return read_text(path); }

int usage_error(const std::string& message) {
  print_error("ein: {}\n", message);
  return kUsage;
}

void show_thread_note() {
  Shortage few = thread_shortage();
  if (few.wanted == 0) return;
  print_error("note: ran with {} thread{} instead of {}: {}\n", few.started,
              few.started == 1 ? "" : "s", few.wanted, few.why);
}

int runtime_error(const RuntimeError& error, const CommonOptions& options, const SourceMap* sources,
                  const std::string& help) {
  flush_output();
  Diagnostics diags;
  Diagnostic& d = diags.error(error.code, error.message);
  if (sources && error.at.valid()) d.primary(error.at, "");
  if (!help.empty()) d.help(help);
  RenderOptions how = render_options(options);
  const SourceMap& map = sources ? *sources : SourceMap();
  std::string text = how.format == ErrorFormat::Human   ? render_human(d, map, how.color)
                     : how.format == ErrorFormat::Short ? render_short(d, map)
                                                        : render_json(d, map);
  put_error(text);
  return kRuntimeFailure;
}

std::string place_text(const SourceMap& sources, Span at) {
  LineCol place = sources.position(at.file, at.begin);
  return fmt::format("{}:{}:{}", sources.name(at.file), place.line, place.col);
}

Text read_source(const CommonOptions& options) {
  if (options.code && !options.file.empty()) {
    return {
        {},
        {},
        usage_error(fmt::format(
            "the program is either the file `{}` or the text after -c, not both", options.file))};
  }
  if (options.code) return {"<command line>", *options.code};
  if (options.file == "-") {
    if (auto read = read_text(STDIN_FILENO)) return {"<standard input>", std::move(*read)};
    return {
        {}, {}, usage_error(fmt::format("cannot read standard input: {}", std::strerror(errno)))};
  }
  if (options.file.empty()) {
    return {
        {}, {}, usage_error("no program given: name a file, `-` for standard input, or -c 'code'")};
  }
  if (auto read = read_file(options.file)) return {options.file, std::move(*read)};
  return {
      {}, {}, usage_error(fmt::format("cannot read `{}`: {}", options.file, std::strerror(errno)))};
}

int write_file(const std::string& path, const std::string& text) {
  auto written = write_text(path, text);
  if (auto* e = std::get_if<RuntimeError>(&written)) return usage_error(e->message);
  return kFine;
}

std::shared_ptr<const FileAccess> access_of(const CommonOptions& options,
                                            std::optional<int>& wrong) {
  auto out = std::make_shared<FileAccess>();
  bool named = !options.code && options.file != "-" && !options.file.empty();
  std::string beside = named ? std::filesystem::path(options.file).parent_path().string() : "";
  out->read = {resolved("."), resolved(beside.empty() ? "." : beside)};
  out->write = {resolved(".")};
  auto add = [&](const std::vector<std::string>& from, std::vector<std::string>& to,
                 const char* option) {
    for (const std::string& path : from) {
      std::error_code error;
      std::string real = resolved(path);
      if (real.empty() || !std::filesystem::exists(real, error)) {
        wrong = usage_error(
            fmt::format("{} needs a folder or a file that exists, got `{}`", option, path));
      }
      to.push_back(std::move(real));
    }
  };
  add(options.allow_read, out->read, "--allow-read");
  add(options.allow_write, out->write, "--allow-write");
  return out;
}

void show_diagnostics(const Diagnostics& diags, const SourceMap& sources,
                      const CommonOptions& options) {
  put_error(render(diags, sources, render_options(options)));
}

void print_times(const Trace& trace) {
  for (const PassTime& t : trace.times) print_error("{:>18}  {:8.3f} ms\n", t.pass, t.milliseconds);
}

Program load(const CommonOptions& options, const LoadOptions& what) {
  Program p;
  Text source = read_source(options);
  p.status = source.status;
  if (p.status != kFine) return p;
  if (what.doc_examples) source.text = doc_examples_as_tests(source.text);
  std::optional<int> wrong;
  p.access = access_of(options, wrong);
  if (wrong) {
    p.status = *wrong;
    return p;
  }
  FileId file = p.root = p.sources.add(source.name, std::move(source.text));
  CompileOptions compile_options{read_file,   options.dump_after,
                                 what.extra,  what.tests,
                                 what.strict, files_on_disk(p.sources, p.access)};
  if (what.direction == "forward") compile_options.direction = autodiff::Direction::Forward;
  if (what.direction == "reverse") compile_options.direction = autodiff::Direction::Reverse;
  std::optional<RuntimeError> unread;
  compile_options.inputs = input_shapes(what.in, options, unread);
  compile_options.keep_asked = what.keep_asked;
  compile_options.record = what.record;
  p.compiled = compile(file, p.sources, compile_options, p.diags);
  p.options = std::move(compile_options);
  auto rank_missing = [](const Diagnostic& d) { return d.code == Code::E0407; };
  if (unread && std::any_of(p.diags.all().begin(), p.diags.all().end(), rank_missing)) {
    p.status = runtime_error(*unread, options);  // the rank should have come from this file
    return p;
  }
  show_diagnostics(p.diags, p.sources, options);
  if (!p.compiled.ok) p.status = kProgramWrong;
  if (!p.compiled.trace.dump.empty()) put(p.compiled.trace.dump);
  if (p.compiled.ok && !what.runs) {
    RunOptions run;
    run.grad_memory = what.grad_memory;
    if (auto status = dump_native(p.compiled.module, {}, run, options)) p.status = *status;
  }
  if (options.time_passes) print_times(p.compiled.trace);
  return p;
}

std::optional<int> dump_native(core::Module& m, const core::Inputs& inputs,
                               const RunOptions& options, const CommonOptions& common) {
  if (!is_native_pass(common.dump_after)) return std::nullopt;
  auto text = native_dump(m, inputs, common.dump_after, options);
  if (auto* e = std::get_if<RuntimeError>(&text)) return runtime_error(*e, common);
  put(std::get<std::string>(text));
  return std::nullopt;
}

}  // namespace ein::cli

#include "web/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/render.h"
#include "core/core.h"
#include "ide/position.h"
#include "runtime/tensor.h"

namespace ein::web {
namespace {

constexpr size_t kLongest = size_t{1} << 20;  // the longest program, in bytes

// Offsets in UTF-16 units, as a page counts, for offsets in bytes of UTF-8.
size_t utf16_offset(const std::string& text, size_t byte) {
  size_t out = 0;
  for (size_t i = 0; i < std::min(byte, text.size()); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    if ((c & 0xc0) == 0x80) continue;  // inside a character
    out += c >= 0xf0 ? 2 : 1;
  }
  return out;
}

Json label_json(const Program& p, const Label& l) {
  Json out{{"text", l.text}, {"primary", l.primary}, {"at", place_json(p, l.span)}};
  if (l.span.valid() && l.span.file != p.file) out["file"] = p.sources.name(l.span.file);
  return out;
}

// The text of a file that came with the request.
std::optional<std::string> text_of(const Json& files, const std::string& path) {
  for (const Json& f : files) {
    if (text_in(f, "name") == path) return ide::valid_utf8(text_in(f, "text"));
  }
  return std::nullopt;
}

// The answer to `load` where there are no files.
sema::FileLookup no_files() {
  return [](FileId, const std::string& path,
            const std::string&) -> std::variant<sema::FoundFile, RuntimeError> {
    return RuntimeError{
        Code::E0808,
        fmt::format("there are no files here, so `{}` cannot be loaded; save the program and run "
                    "it with `ein run`, or open it with `ein explore FILE`",
                    path)};
  };
}

}  // namespace

std::string text_in(const Json& request, const char* name, const std::string& otherwise) {
  auto it = request.find(name);
  if (it == request.end() || it->is_null()) return otherwise;
  if (!it->is_string()) throw BadRequest{fmt::format("`{}` is not a text", name)};
  return it->get<std::string>();
}

std::vector<std::string> names_in(const Json& request, const char* name) {
  auto it = request.find(name);
  if (it == request.end() || it->is_null()) return {};
  if (it->is_string()) return {it->get<std::string>()};
  bool texts = it->is_array() &&
               std::all_of(it->begin(), it->end(), [](const Json& j) { return j.is_string(); });
  if (!texts) throw BadRequest{fmt::format("`{}` is not a list of names", name)};
  return it->get<std::vector<std::string>>();
}

bool compile_program(const Surroundings& around, const Json& request, const What& what,
                     Program& out, Json& answer) {
  if (!request.contains("source")) throw BadRequest{"`source` is missing: the text of the program"};
  std::string source = ide::valid_utf8(text_in(request, "source"));
  if (source.size() > kLongest) throw BadRequest{"the program is longer than 1 MiB"};
  Json files = request.value("files", Json::array());
  if (!files.is_array()) throw BadRequest{"`files` is not a list"};
  out.file = out.sources.add(text_in(request, "name", around.name), std::move(source));
  CompileOptions options;
  options.read_file = [&](const std::string& path) {
    auto text = text_of(files, path);
    return text || !around.read_file ? text : around.read_file(path);
  };
  options.files = around.files ? around.files(out.sources) : no_files();
  options.tests = what.tests;
  options.keep_asked = true;
  options.record = &out.record;
  if (what.reverse) options.direction = autodiff::Direction::Reverse;
  if (what.extra) {
    options.extra = {text_in(request, "of"), names_in(request, "wrt")};
    if (options.extra.of.empty() != options.extra.wrt.empty())
      throw BadRequest{"`of` and `wrt` are given together: what is differentiated, and by what"};
  }
  out.compiled = compile(out.file, out.sources, options, out.diags);
  answer["stderr"] = render(out.diags, out.sources, {});
  for (const Diagnostic* d : out.diags.sorted())
    answer["diagnostics"].push_back(diagnostic_json(out, *d));
  if (!out.compiled.ok) answer["status"] = kProgramWrong;
  return out.compiled.ok;
}

Json place_json(const Program& p, Span span) {
  if (!span.valid() || span.file != p.file) return nullptr;
  const std::string& text = p.sources.text(p.file);
  return {utf16_offset(text, span.begin), utf16_offset(text, span.end)};
}

Json diagnostic_json(const Program& p, const Diagnostic& d) {
  const CodeInfo& code = info(d.code);
  Json out{
      {"code", code.name},     {"severity", code.severity == Severity::Error ? "error" : "warning"},
      {"message", d.message},  {"labels", Json::array()},
      {"notes", d.notes},      {"help", d.help_text},
      {"fixes", Json::array()}};
  for (const Label& l : d.labels) out["labels"].push_back(label_json(p, l));
  for (const Fix& fix : d.fixes) {
    Json edits = Json::array();
    for (const Edit& e : fix.edits) {
      edits.push_back({{"at", place_json(p, e.span)}, {"text", e.replacement}});
    }
    out["fixes"].push_back({{"title", fix.title}, {"edits", edits}, {"safe", fix.safe}});
  }
  return out;
}

void add_runtime_error(const Program& p, const RuntimeError& error, Json& answer) {
  Diagnostics diags;
  Diagnostic& d = diags.error(error.code, error.message);
  if (error.at.valid()) d.primary(error.at, "");
  answer["status"] = kRuntimeFailure;
  answer["stderr"] = answer["stderr"].get<std::string>() + render_human(d, p.sources);
  answer["diagnostics"].push_back(diagnostic_json(p, d));
}

Json values_json(const Program& p, const core::Module& m) {
  Json out = Json::array();
  for (const core::Family& f : m.families) {
    if (f.generated) continue;
    Json coords = Json::array();
    for (const core::Coord& c : f.coords) coords.push_back(c.name ? text(c.name) : "");
    out.push_back({{"name", f.spelled()},
                   {"input", f.kind == core::Family::Kind::Input},
                   {"float", is_float(f.dtype)},
                   {"dtype", name_of(f.dtype)},
                   {"coords", coords},
                   {"at", place_json(p, f.span)}});
  }
  return out;
}

}  // namespace ein::web

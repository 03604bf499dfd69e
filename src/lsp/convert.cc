#include <fmt/format.h>

#include "lsp/disk.h"
#include "lsp/server.h"

namespace ein::lsp {
namespace {

// Places are most of what large answers consist of, and braces would make a list of pairs before each object.
Json position_json(ide::Position p) {
  Json::object_t out;
  out.emplace("character", p.character);
  out.emplace("line", p.line);
  return out;
}

const Label* primary_of(const Diagnostic& d) {
  for (const Label& l : d.labels) {
    if (l.primary) return &l;
  }
  return d.labels.empty() ? nullptr : &d.labels[0];
}

// The place in the root file for a mistake that lies in another file: a label of the mistake, or
// the import that leads there.
Span place_in_root(const ide::Analysis& a, const Diagnostic& d) {
  const Label* first = primary_of(d);
  if (first && first->span.file == a.root) return first->span;
  for (const Label& l : d.labels) {
    if (l.span.file == a.root) return l.span;
  }
  for (ast::StmtId id : a.ast().items) {
    const ast::Stmt& s = a.ast()[id];
    if (std::holds_alternative<ast::Use>(s.node) || std::holds_alternative<ast::Mod>(s.node))
      return s.span;
  }
  return {a.root, 0, 0};
}

Json diagnostic_json(Server& s, const ide::Analysis& a, const ide::Lines& lines,
                     const Diagnostic& d) {
  const CodeInfo& code = info(d.code);
  Span at = place_in_root(a, d);
  std::string message = d.message;
  const Label* first = primary_of(d);
  if (first && !first->text.empty()) message += "\n" + first->text;
  for (const std::string& note : d.notes) message += "\nnote: " + note;
  if (!d.help_text.empty()) message += "\nhelp: " + d.help_text;
  Json related = Json::array();
  for (const Label& l : d.labels) {
    if (!l.span.valid() || (l.span == at && l.primary)) continue;
    const std::string& path = a.sources.name(l.span.file);
    auto range = [&](const ide::Lines& there) {
      return range_json(there, l.span.begin, l.span.end, s.units);
    };
    bool here = l.span.file == a.root;
    related.push_back(
        {{"location",
          {{"uri", uri_for(s, path)},
           {"range", here ? range(lines) : range(ide::Lines(a.sources.text(l.span.file)))}}},
         {"message", l.text.empty() ? d.message : l.text}});
  }
  Json out{{"range", range_json(lines, at.begin, at.end, s.units)},
           {"severity", code.severity == Severity::Error ? 1 : 2},
           {"code", code.name},
           {"source", "ein"},
           {"message", message}};
  if (!related.empty()) out["relatedInformation"] = std::move(related);
  if (std::string_view(code.slug).find("unused") != std::string_view::npos)
    out["tags"] = Json::array({1});
  return out;
}

}  // namespace

Json range_json(const ide::Lines& lines, uint32_t begin, uint32_t end, ide::Units units) {
  Json::object_t out;
  out.emplace("end", position_json(lines.position(end, units)));
  out.emplace("start", position_json(lines.position(begin, units)));
  return out;
}

uint32_t offset_of(const Server& s, const std::string& text, const Json& position) {
  auto number = [&](const char* name) {
    double v = position.at(name).get<double>();
    return static_cast<uint32_t>(std::min(std::max(v, 0.0), 4e9));
  };
  return ide::Lines(text).offset({number("line"), number("character")}, s.units);
}

std::string uri_for(Server& s, const std::string& path) {
  if (path.starts_with("std/")) {
    static const std::string folder = library_folder(s.version);  // written to disk once
    return uri_of(folder.empty() ? path : folder + path.substr(3));
  }
  return s.documents.uri_for(path);
}

std::string path_text(Server& s, const ide::Analysis& a, const std::string& path) {
  for (const sema::ModuleTree& m : a.compiled.program.modules) {
    if (a.sources.name(m.file) == path) return a.sources.text(m.file);
  }
  return s.documents.read(path).value_or("");
}

void publish(Server& s, const std::string& uri, Known& k) {
  const ide::Analysis& a = *k.analysis;
  ide::Lines lines(a.text());
  Json list = Json::array();
  for (const Diagnostic* d : a.diags.sorted()) list.push_back(diagnostic_json(s, a, lines, *d));
  Json params{{"uri", uri}, {"diagnostics", std::move(list)}};
  if (auto doc = s.documents.find(uri)) params["version"] = doc->version;
  s.send({{"jsonrpc", "2.0"},
          {"method", "textDocument/publishDiagnostics"},
          {"params", std::move(params)}});
}

}  // namespace ein::lsp

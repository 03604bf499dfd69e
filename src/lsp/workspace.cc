// Requests about several files: references, rename, symbols.
#include <fmt/format.h>

#include <algorithm>

#include "ide/features.h"
#include "ide/navigate.h"
#include "lsp/disk.h"
#include "lsp/server.h"

namespace ein::lsp {
namespace {

using ide::Depth;

// The files that may use a name of this document: those whose text contains one of the words.
std::vector<std::string> candidates(Server& s, const Item& item, const ide::Target& target,
                                    const std::vector<std::string>& words) {
  std::string own = path_of(item.uri);
  std::vector<std::string> out{own}, all;
  bool here = target.path == own && !target.shared;
  if (here || target.path.empty()) return out;
  if (!target.path.starts_with("std/")) out.push_back(target.path);
  all = files_below(s.folders);
  for (const auto& d : s.documents.all()) all.push_back(d->path);
  for (const std::string& path : all) {
    if (std::find(out.begin(), out.end(), path) != out.end()) continue;
    auto text = s.documents.read(path);
    bool spells = text && std::any_of(words.begin(), words.end(), [&](const std::string& w) {
                    return text->find(w) != std::string::npos;
                  });
    if (spells) out.push_back(path);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void stop_if_cancelled(Server& s, const Item& item) {
  std::lock_guard<std::mutex> lock(s.mutex);
  if (s.cancelled.contains(item.message["id"].dump())) throw Refusal{kCancelled, "cancelled"};
}

struct Found {
  std::vector<std::string> paths;  // paths of the candidates
  std::map<std::string, std::shared_ptr<const ide::Analysis>> analyses;
  std::map<std::string, std::vector<ide::Place>> places;  // the uses, by file
};

Found find_all(Server& s, const Item& item, const ide::Target& target,
               const std::vector<std::string>& words, Depth depth) {
  Found out;
  out.paths = candidates(s, item, target, words);
  for (const std::string& path : out.paths) {
    stop_if_cancelled(s, item);
    auto text = s.documents.read(path);
    if (!text) continue;
    auto a = ide::analyse(path, *text, depth, texts_of(s, path));
    for (const ide::Place& p : ide::references(*a, target)) out.places[p.path].push_back(p);
    out.analyses[path] = std::move(a);
  }
  for (auto& [path, list] : out.places) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end(),
                           [](const auto& x, const auto& y) { return x.begin == y.begin; }),
               list.end());
  }
  return out;
}

}  // namespace

Json all_references(Server& s, const Item& item, const Json& params) {
  auto a = analysis_of(s, item, Depth::Quick);
  auto target = ide::target_at(*a, offset_of(s, a->text(), params.at("position")));
  Json out = Json::array();
  if (!target) return out;
  bool with_definition = params.value("context", Json::object()).value("includeDeclaration", true);
  Found found = find_all(s, item, *target, {target->name}, Depth::Quick);
  for (const auto& [path, places] : found.places) {
    std::string text = path_text(s, *a, path);
    ide::Lines lines(text);
    for (const ide::Place& p : places) {
      if (p.defines && !with_definition) continue;
      out.push_back(
          {{"uri", uri_for(s, path)}, {"range", range_json(lines, p.begin, p.end, s.units)}});
    }
  }
  return out;
}

Json prepare_rename(Server& s, const Item& item, const Json& params) {
  auto a = analysis_of(s, item, Depth::Quick);
  uint32_t at = offset_of(s, a->text(), params.at("position"));
  std::string why = ide::why_not_renamed(*a, at);
  if (!why.empty()) throw Refusal{kFailed, why};
  Span span = ide::occurrence_at(a->bindings, a->root, at)->span;
  return {{"range", range_json(ide::Lines(a->text()), span.begin, span.end, s.units)},
          {"placeholder", std::string(a->sources.text(span))}};
}

Json rename(Server& s, const Item& item, const Json& params) {
  auto a = analysis_of(s, item, Depth::Quick);
  uint32_t at = offset_of(s, a->text(), params.at("position"));
  std::string name = params.at("newName").get<std::string>();
  for (const std::string& why : {ide::why_not_renamed(*a, at), ide::why_not_a_name(name)}) {
    if (!why.empty()) throw Refusal{kFailed, why};
  }
  auto target = ide::target_at(*a, at);
  Found found = find_all(s, item, *target, {target->name, name}, Depth::Quick);
  std::map<std::string, std::string> texts;  // the texts after the change
  Json changes = Json::object();
  for (const auto& [path, places] : found.places) {
    if (path.starts_with("std/")) throw Refusal{kFailed, "the standard library cannot be changed"};
    const std::string before = s.documents.read(path).value_or("");
    ide::Lines lines(before);
    Json edits = Json::array();
    std::string after = before;
    for (auto p = places.rbegin(); p != places.rend(); ++p) {
      std::string text = p->field ? fmt::format("{}: {}", target->name, name) : name;
      after.replace(p->begin, p->end - p->begin, text);
      edits.push_back({{"range", range_json(lines, p->begin, p->end, s.units)}, {"newText", text}});
    }
    texts[path] = std::move(after);
    changes[uri_for(s, path)] = std::move(edits);
  }
  for (const auto& [path, before] : found.analyses) {
    stop_if_cancelled(s, item);
    ide::Documents documents = texts_of(s, path);
    documents.read = [&](const std::string& p) {
      auto it = texts.find(p);
      return it != texts.end() ? std::optional(it->second) : s.documents.read(p);
    };
    auto after = ide::analyse(path, documents.read(path).value_or(""), Depth::Quick, documents);
    std::string why = ide::what_changes(*before, *after);
    if (why.empty()) continue;
    throw Refusal{kFailed,
                  fmt::format("`{}` cannot become `{}`: in {}, {}", target->name, name, path, why)};
  }
  return {{"changes", std::move(changes)}};
}

Json workspace_symbols(Server& s, const Json& params) {
  std::string query = params.value("query", std::string());
  Json out = Json::array();
  std::vector<std::string> paths = files_below(s.folders);
  for (const auto& d : s.documents.all()) paths.push_back(d->path);
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  for (const std::string& path : paths) {
    auto text = s.documents.read(path);
    if (!text || (!query.empty() && text->find(query) == std::string::npos)) continue;
    auto a = ide::analyse(path, *text, Depth::Names, {});
    ide::Lines lines(*text);
    for (const ide::Outline& o : ide::outline(*a)) {
      if (o.name.find(query) == std::string::npos) continue;
      int kind = o.test ? 24 : o.kind == ide::Kind::Function ? 12 : 13;
      out.push_back(
          {{"name", o.name},
           {"kind", kind},
           {"location",
            {{"uri", uri_for(s, path)},
             {"range", range_json(lines, o.name_span.begin, o.name_span.end, s.units)}}}});
    }
  }
  return out;
}

}  // namespace ein::lsp

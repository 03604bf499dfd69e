// Requests about one document. Each asks the engine (ide/features.h) and converts the answer to the
// protocol.
#include "ide/features.h"

#include <fmt/format.h>

#include <algorithm>

#include "ide/navigate.h"
#include "lsp/server.h"

namespace ein::lsp {
namespace {

using ide::Depth;

struct Asked {
  Server& s;
  const Item& item;
  const Json& params;
  std::shared_ptr<const ide::Analysis> a;
  ide::Lines lines;

  Asked(Server& server, const Item& i, const Json& p, Depth depth)
      : s(server), item(i), params(p), a(analysis_of(server, i, depth)), lines(a->text()) {}
  uint32_t at() const { return offset_of(s, a->text(), params.at("position")); }
  uint32_t end_of(const char* which) const {
    return offset_of(s, a->text(), params.at("range").at(which));
  }
  Json range(uint32_t begin, uint32_t end) const { return range_json(lines, begin, end, s.units); }
  Json range(Span span) const { return range(span.begin, span.end); }
  Json edit(const Edit& e) const { return {{"range", range(e.span)}, {"newText", e.replacement}}; }
};

Json hover(Server& s, const Item& item, const Json& params) {
  Asked q(s, item, params, Depth::Quick);
  if (ide::in_request(*q.a, q.at())) q.a = analysis_of(s, item, Depth::Full);
  auto h = ide::hover(*q.a, q.at());
  if (!h) return nullptr;
  return {{"contents", {{"kind", "markdown"}, {"value", h->markdown}}},
          {"range", q.range(h->span)}};
}

Json definition(Server& s, const Item& item, const Json& params) {
  Asked q(s, item, params, Depth::Quick);
  Json out = Json::array();
  for (const ide::Place& p : ide::definition(*q.a, q.at())) {
    std::string text = path_text(s, *q.a, p.path);
    out.push_back({{"uri", uri_for(s, p.path)},
                   {"range", range_json(ide::Lines(text), p.begin, p.end, s.units)}});
  }
  return out;
}

Json highlights(Server& s, const Item& item, const Json& params) {
  Asked q(s, item, params, Depth::Quick);
  Json out = Json::array();
  for (const ide::Place& p : ide::highlights(*q.a, q.at())) {
    out.push_back({{"range", q.range(p.begin, p.end)}, {"kind", p.defines ? 3 : 2}});
  }
  return out;
}

Json hints(Server& s, const Item& item, const Json& params) {
  Asked q(s, item, params, Depth::Quick);
  Json out = Json::array();
  for (const ide::Hint& h : ide::inlay_hints(*q.a, q.end_of("start"), q.end_of("end"))) {
    Json hint{{"position", q.range(h.offset, h.offset)["start"]}, {"label", h.text}};
    if (h.type) hint["kind"] = 1;
    out.push_back(std::move(hint));
  }
  return out;
}

Json completion(Server& s, const Item& item, const Json& params) {
  Asked q(s, item, params, Depth::Quick);
  // The protocol's numbers, in the order of Completion::Kind.
  static const int kinds[] = {6, 21, 23, 3, 9, 22, 5, 14};
  Json items = Json::array();
  for (const ide::Completion& c : ide::complete(*q.a, q.at())) {
    Json one{{"label", c.label},
             {"kind", kinds[static_cast<size_t>(c.kind)]},
             {"sortText", fmt::format("{:02}{}", c.rank + 5, c.label)},
             {"textEdit", q.edit({c.replaced, c.label})}};
    if (!c.detail.empty()) one["detail"] = c.detail;
    if (!c.doc.empty()) one["documentation"] = {{"kind", "markdown"}, {"value", c.doc}};
    for (const Edit& e : c.edits) one["additionalTextEdits"].push_back(q.edit(e));
    items.push_back(std::move(one));
  }
  return {{"isIncomplete", true}, {"items", std::move(items)}};
}

Json signature(Server& s, const Item& item, const Json& params) {
  Asked q(s, item, params, Depth::Quick);
  auto found = ide::signature_help(*q.a, q.at());
  if (!found) return nullptr;
  Json parameters = Json::array();
  for (auto [begin, end] : found->parameters) {
    parameters.push_back({{"label", found->label.substr(begin, end - begin)}});
  }
  Json one{{"label", found->label}, {"parameters", std::move(parameters)}};
  if (!found->doc.empty()) one["documentation"] = {{"kind", "markdown"}, {"value", found->doc}};
  return {{"signatures", Json::array({one})},
          {"activeSignature", 0},
          {"activeParameter", found->active}};
}

// Whether the program has no new mistakes after these edits.
bool fits(Asked& q, const std::vector<Edit>& edits) {
  std::string text = q.a->text();
  // Backwards, since they are sorted by position.
  for (auto e = edits.rbegin(); e != edits.rend(); ++e) {
    text.replace(e->span.begin, e->span.end - e->span.begin, e->replacement);
  }
  const std::string& path = q.a->sources.name(q.a->root);
  auto after = ide::analyse(path, text, Depth::Quick, texts_of(q.s, path));
  return after && after->diags.all().size() <= q.a->diags.all().size();
}

Json actions(Server& s, const Item& item, const Json& params) {
  Asked q(s, item, params, Depth::Quick);
  Json out = Json::array();
  std::vector<std::string> only;
  const Json context = params.value("context", Json::object());
  if (context.is_object() && context.contains("only"))
    only = context["only"].get<std::vector<std::string>>();
  auto wanted = [&](const std::string& kind) {
    return only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string& k) {
             return kind == k || kind.starts_with(k + ".");
           });
  };
  for (const ide::Action& action : ide::actions(*q.a, q.end_of("start"), q.end_of("end"))) {
    std::string kind = action.fixes ? "quickfix" : "refactor.rewrite";
    if (!wanted(kind) || (!action.fixes && !fits(q, action.edits))) continue;
    Json edits = Json::array();
    for (const Edit& e : action.edits) edits.push_back(q.edit(e));
    Json one{{"title", action.title}, {"kind", kind}, {"edit", {{"changes", {{item.uri, edits}}}}}};
    if (action.fixes) {
      one["isPreferred"] = action.safe;
      for (const Json& d : context.value("diagnostics", Json::array())) {
        if (d.value("code", Json()) == info(action.fixes->code).name)
          one["diagnostics"].push_back(d);
      }
    }
    out.push_back(std::move(one));
  }
  return out;
}

// Sends only the lines that differ, so that the cursor stays where it is.
Json formatting(Server& s, const Item& item, const Json& params) {
  Asked q(s, item, params, Depth::Names);
  auto text = ide::formatted(*q.a);
  const std::string& old = q.a->text();
  if (!text || *text == old) return Json::array();
  size_t begin = 0, most = std::min(old.size(), text->size());
  for (size_t i = 0; i < most && old[i] == (*text)[i]; ++i) {
    if (old[i] == '\n') begin = i + 1;
  }
  size_t same = 0, kept = 0;
  while (same < most - begin && old[old.size() - 1 - same] == (*text)[text->size() - 1 - same]) {
    ++same;
    if (same < old.size() && old[old.size() - 1 - same] == '\n' && same < text->size() &&
        (*text)[text->size() - 1 - same] == '\n') {
      kept = same;
    }
  }
  Span span{q.a->root, uint32_t(begin), uint32_t(old.size() - kept)};
  return Json::array({q.edit({span, text->substr(begin, text->size() - kept - begin)})});
}

int symbol_kind(const ide::Outline& o) {
  if (o.test) return 24;
  switch (o.kind) {
    case ide::Kind::Function: return 12;
    case ide::Kind::Constant: return 14;
    case ide::Kind::Type: return 23;
    case ide::Kind::Input: return 8;
    default: return 13;
  }
}

Json symbol_json(const Asked& q, const ide::Outline& o) {
  Json::object_t out;
  out.emplace("name", o.name.empty() ? "test" : o.name);
  out.emplace("kind", symbol_kind(o));
  out.emplace("range", q.range(o.span));
  out.emplace("selectionRange", q.range(o.name_span));
  if (!o.detail.empty()) out.emplace("detail", o.detail);
  Json::array_t children;
  for (const ide::Outline& c : o.children) children.push_back(symbol_json(q, c));
  if (!children.empty()) out.emplace("children", std::move(children));
  return out;
}

Json symbols(Server& s, const Item& item, const Json& params) {
  Asked q(s, item, params, Depth::Quick);
  Json out = Json::array();
  for (const ide::Outline& o : ide::outline(*q.a)) out.push_back(symbol_json(q, o));
  return out;
}

Json folding(Server& s, const Item& item, const Json& params) {
  Asked q(s, item, params, Depth::Quick);
  Json out = Json::array();
  for (const ide::Fold& f : ide::folds(*q.a)) {
    uint32_t first = q.lines.position(f.begin, s.units).line,
             last = q.lines.position(f.end, s.units).line;
    bool code = f.kind == ide::Fold::Kind::Code;
    if (code && last > first) --last;  // the line of the closing bracket stays visible
    if (last <= first) continue;
    Json one{{"startLine", first}, {"endLine", last}};
    if (!code) one["kind"] = f.kind == ide::Fold::Kind::Comment ? "comment" : "imports";
    out.push_back(std::move(one));
  }
  return out;
}

Json tokens(Server& s, const Item& item, const Json& params) {
  Asked q(s, item, params, Depth::Quick);
  const std::vector<ide::Coloured> all = ide::coloured(*q.a);
  Json::array_t data;
  data.reserve(5 * all.size());
  ide::Position last;
  for (const ide::Coloured& c : all) {
    for (uint32_t from = c.span.begin; from < c.span.end;) {  // one token for each line
      size_t end = q.a->text().find_first_of("\r\n", from);
      uint32_t to =
          std::min<uint32_t>(c.span.end, end == std::string::npos ? c.span.end : uint32_t(end));
      ide::Position p = q.lines.position(from, s.units), e = q.lines.position(to, s.units);
      if (to > from) {
        data.emplace_back(p.line - last.line);
        data.emplace_back(p.line == last.line ? p.character - last.character : p.character);
        data.emplace_back(e.character - p.character);
        data.emplace_back(static_cast<int>(c.colour));
        data.emplace_back((c.defines ? 1 : 0) | (c.constant ? 2 : 0) | (c.library ? 4 : 0));
        last = p;
      }
      from = to + 1;
    }
  }
  return {{"data", std::move(data)}};
}

Json lenses(Server& s, const Item& item, const Json& params) {
  Asked q(s, item, params, Depth::Quick);
  Json out = Json::array();
  for (const ide::Lens& l : ide::lenses(*q.a)) {
    Json arguments = Json::array({item.uri});
    for (const std::string& v : l.values) arguments.push_back(v);
    out.push_back({{"range", q.range(l.span)},
                   {"command",
                    {{"title", l.title}, {"command", "ein." + l.verb}, {"arguments", arguments}}}});
  }
  return out;
}

using Handler = Json (*)(Server&, const Item&, const Json&);
const std::map<std::string, Handler>& handlers() {
  static const std::map<std::string, Handler> table = {
      {"textDocument/hover", hover},
      {"textDocument/definition", definition},
      {"textDocument/documentHighlight", highlights},
      {"textDocument/references", all_references},
      {"textDocument/prepareRename", prepare_rename},
      {"textDocument/rename", rename},
      {"textDocument/inlayHint", hints},
      {"textDocument/completion", completion},
      {"textDocument/signatureHelp", signature},
      {"textDocument/codeAction", actions},
      {"textDocument/formatting", formatting},
      {"textDocument/documentSymbol", symbols},
      {"textDocument/foldingRange", folding},
      {"textDocument/semanticTokens/full", tokens},
      {"textDocument/codeLens", lenses},
      {"workspace/symbol",
       [](Server& s, const Item&, const Json& p) { return workspace_symbols(s, p); }},
  };
  return table;
}

}  // namespace

Json capabilities(const Server& s) {
  Json names = Json::array();
  for (const char* name : ide::colour_names()) names.push_back(name);
  return {
      {"positionEncoding", s.units == ide::Units::Utf8 ? "utf-8" : "utf-16"},
      {"textDocumentSync", {{"openClose", true}, {"change", 2}}},
      {"hoverProvider", true},
      {"definitionProvider", true},
      {"documentHighlightProvider", true},
      {"referencesProvider", true},
      {"renameProvider", {{"prepareProvider", true}}},
      {"inlayHintProvider", true},
      {"completionProvider", {{"triggerCharacters", {":", ".", "["}}}},
      {"signatureHelpProvider", {{"triggerCharacters", {"(", ",", "["}}}},
      {"codeActionProvider", {{"codeActionKinds", {"quickfix", "refactor.rewrite"}}}},
      {"documentFormattingProvider", true},
      {"documentSymbolProvider", true},
      {"workspaceSymbolProvider", true},
      {"foldingRangeProvider", true},
      {"semanticTokensProvider",
       {{"legend",
         {{"tokenTypes", names},
          {"tokenModifiers", {"declaration", "readonly", "defaultLibrary"}}}},
        {"full", true}}},
      {"codeLensProvider", {{"resolveProvider", false}}},
      {"executeCommandProvider",
       {{"commands", {"ein.run", "ein.test", "ein.grad", "ein.explain", "ein.audit"}}}},
  };
}

bool is_known(const std::string& method) { return handlers().contains(method); }

Json answer(Server& s, const Item& item, const std::string& method, const Json& params) {
  return handlers().at(method)(s, item, params);
}

}  // namespace ein::lsp

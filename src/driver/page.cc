#include "driver/page.h"

#include <fmt/format.h>

#include <cctype>

namespace ein {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --text: #1b1f24; --soft: #57606a; --line: #d0d7de; --page: #ffffff; --panel: #f6f8fa;
  --link: #0758b5; --end: #ddf4ff; --sum: #fff1cc; --sum-text: #7a5200; --mark: #fff8dc; --warn: #ffebe9; --warn-line: #cf222e; }
@media (prefers-color-scheme: dark) { :root { --text: #dde3ea; --soft: #9aa5b1; --line: #3b434d; --page: #14181d; --panel: #1d232a;
  --link: #79b8ff; --end: #143a52; --sum: #4a3a10; --sum-text: #f2cc60; --mark: #3a3413; --warn: #4a1d1f; --warn-line: #ff7b72; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0; color: var(--text); background: var(--page); overflow-wrap: anywhere; }
main { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0 2rem; max-width: 90rem; margin: 0 auto; padding: 0 1rem 3rem; }
h1 { font-size: 1.5rem; margin: 2rem 0 0.5rem; } h2 { font-size: 1.15rem; margin: 1.75rem 0 0.5rem; } h3 { font-size: 1rem; margin: 0 0 0.4rem; }
code, pre, .code, svg text { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
code, .code { font-size: 13px; overflow-wrap: anywhere; white-space: pre-wrap; }
h1 code, h2 code, h3 .code { font-size: inherit; }
a { color: var(--link); text-decoration: none; } a:hover, a:focus-visible { text-decoration: underline; }
a:focus-visible { outline: 2px solid var(--link); outline-offset: 1px; }
:target { background: var(--mark); scroll-margin-top: 40vh; }
table { border-collapse: collapse; width: 100%; } th, td { border: 1px solid var(--line); padding: 0.25rem 0.6rem; text-align: left; vertical-align: top; }
th { background: var(--panel); font-weight: 600; } table.fit { width: auto; }
td.has { text-align: center; } td.sum { text-align: center; background: var(--sum); color: var(--sum-text); font-weight: 600; }
.card p { margin: 0.2rem 0; } .names { table-layout: fixed; } .names th { width: 38%; }
.steps th { width: 9.5rem; font-weight: 400; } .note { color: var(--soft); font-size: 13px; font-weight: 400; }
.card { border: 1px solid var(--line); border-radius: 8px; padding: 0.75rem; margin: 0 0 0.9rem; }
.card.warn { border-color: var(--warn-line); background: var(--warn); }
.source { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; margin-top: 1rem; }
.source summary { padding: 0.4rem 0.75rem; cursor: pointer; font-weight: 600; }
.source pre { margin: 0; padding: 0 0 0.6rem; font-size: 12.5px; line-height: 1.55; }
.source .l { display: grid; grid-template-columns: 3.2rem minmax(0, 1fr); }
.source .l > span { white-space: pre-wrap; overflow-wrap: anywhere; padding-right: 0.6rem; }
.source .n { color: var(--soft); text-align: right; padding-right: 0.8rem; user-select: none; }
.source .about { background: var(--mark); }
svg { display: block; max-width: 100%; height: auto; margin: 0.5rem 0; }
svg .box { fill: var(--panel); stroke: var(--soft); } svg .end { fill: var(--end); } svg text { fill: var(--text); }
svg .small { fill: var(--soft); } svg .flow { fill: none; stroke: var(--link); } svg .tip { fill: var(--link); }
svg .sigma { fill: var(--sum-text); paint-order: stroke; stroke: var(--page); stroke-width: 4px; }
@media (max-width: 40rem) { .steps th { width: 6.5rem; } .card { padding: 0.5rem; } th, td { padding: 0.2rem 0.4rem; } }
@media (min-width: 62rem) {
  main { grid-template-columns: minmax(0, 5fr) minmax(0, 6fr); }
  .source { position: sticky; top: 1rem; max-height: calc(100vh - 2rem); overflow-y: auto; }
  aside { padding-top: 1rem; }
}
)";

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool in_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string linked(const std::string& code, const PageNames& names) {
  std::string out;
  for (size_t at = 0; at < code.size();) {
    size_t end = at;
    bool name = begins_name(code[at]);
    if (name) {
      while (end < code.size() && in_a_name(code[end])) ++end;
    } else {
      while (end < code.size() && !begins_name(code[end])) ++end;
    }
    std::string word = code.substr(at, end - at);
    auto it = name ? names.find(word) : names.end();
    bool number = name && at > 0 && std::isdigit(static_cast<unsigned char>(code[at - 1]));
    out += it == names.end() || number
               ? escaped(word)
               : fmt::format("<a href=\"#{}\">{}</a>", it->second, escaped(word));
    at = end;
  }
  return out;
}

std::string names_table(const PageNames& names, const std::map<std::string, std::string>& what) {
  std::string out = "<h2>Names</h2>\n<table class=\"names\">\n";
  for (const auto& [word, meaning] : what) {
    out += fmt::format("<tr id=\"{}\"><th><code>{}</code></th><td>{}</td></tr>\n", names.at(word),
                       escaped(word), meaning);
  }
  return out +
         "</table>\n<p class=\"note\">In brackets stand indices, each a coordinate of the value. "
         "In "
         "<code>0..n</code> a name is the extent of a coordinate.</p>\n";
}

std::string value_text(const std::string& name, const std::string& path, const std::string& place) {
  std::string out = "a value of the program";
  if (!path.empty() && path != name) {
    out = fmt::format("<code>{}</code>, a part of <code>{}</code>", escaped(path),
                      escaped(path.substr(0, path.find('.'))));
  }
  return place.empty() ? out : out + ", " + place;
}

uint32_t PageSource::line_of(Span at) const {
  return at.valid() && at.file == root ? sources.position(root, at.begin).line : 0;
}

std::string PageSource::place(Span at) const {
  if (!at.valid()) return "";
  if (uint32_t line = line_of(at)) return fmt::format("<a href=\"#line-{0}\">line {0}</a>", line);
  LineCol where = sources.position(at.file, at.begin);
  std::string text(sources.line(at.file, where.line));
  size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  return fmt::format("{}:{} <code>{}</code>", escaped(sources.name(at.file)), where.line,
                     escaped(text.substr(begin)));
}

std::string PageSource::listing() const {
  std::string out = fmt::format("<details class=\"source\" open><summary>{}</summary>\n<pre>",
                                escaped(sources.name(root)));
  const std::string& text = sources.text(root);
  uint32_t number = 1;
  for (size_t at = 0; at < text.size(); ++number) {
    size_t end = std::min(text.find('\n', at), text.size());
    auto target = targets.find(number);
    std::string shown = target == targets.end()
                            ? std::to_string(number)
                            : fmt::format("<a href=\"#{}\">{}</a>", target->second, number);
    out += fmt::format(
        "<span class=\"l{}\" id=\"line-{}\"><span class=\"n\">{}</span><span>{}\n</span></span>",
        target == targets.end() ? "" : " about", number, shown, escaped(text.substr(at, end - at)));
    at = end + 1;
  }
  return out + "</pre></details>\n";
}

std::string page(const std::string& title, const PageSource& source, const std::string& body,
                 const std::vector<std::pair<std::string, uint32_t>>& hovers) {
  std::string style = kStyle;
  for (const auto& [id, line] : hovers) {
    if (line == 0) continue;
    style += fmt::format(
        "body:has(#{0}:hover) #line-{1}, body:has(#line-{1}:hover) #{0} {{ outline: 2px solid "
        "var(--link); outline-offset: -2px; }}\n",
        id, line);
  }
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n<aside>\n{}</aside>\n"
      "<article>\n{}</article>\n</main>\n</body>\n</html>\n",
      escaped(title), style, source.listing(), body);
}

}  // namespace ein

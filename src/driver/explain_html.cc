#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "driver/explain.h"
#include "driver/explain_draw.h"
#include "driver/page.h"

namespace ein {
namespace {

using autodiff::Flow;

constexpr size_t kMostColumns = 6;  // of the table of coordinates; more become a list
constexpr size_t kMostHovers = 400;

// One derivative on the page.
struct DerivedPage {
  const Explanation& e;
  PageSource& source;
  std::string id;  // of its elements
  std::vector<std::pair<std::string, uint32_t>>& hovers;
  PageNames links = {};
  std::string names = {};

  std::string code(const std::string& text) const {
    return "<span class=\"code\">" + linked(text, links) + "</span>";
  }
  void define_names();
  std::string coordinates() const;
  std::string step(const Flow& f, size_t number);
  std::string text_of();
};

// What every name is that the steps use: a value of the program, a part of one of its expressions, or a derivative.
void DerivedPage::define_names() {
  std::map<std::string, std::string> what;  // as HTML
  std::map<std::string, std::string> derivatives;
  std::map<std::string, std::vector<std::string>> given;  // by which steps
  for (size_t k = 0; k < e.steps.size(); ++k) {
    const std::string& name = text(e.steps[k].adjoint);
    derivatives[name] = text(e.steps[k].of);
    given[name].push_back(fmt::format("<a href=\"#{}-step-{}\">{}</a>", id, k + 1, k + 1));
  }
  auto link = [&](const std::string& word) { links[word] = fmt::format("{}-{}", id, word); };
  for (const auto& [word, of] : derivatives) link(word);
  for (const auto& [word, part] : e.parts) link(word);
  for (const auto& [word, place] : e.defined) link(word);
  for (const auto& [word, target] : links) {
    if (auto d = derivatives.find(word); d != derivatives.end()) {
      const std::vector<std::string>& steps = given[word];
      what[word] =
          fmt::format("the derivative of {} by {}: {} {}", code(e.of), code(d->second),
                      steps.size() == 1 ? "step" : "the sum of steps", fmt::join(steps, ", "));
    } else if (auto p = e.parts.find(word); p != e.parts.end()) {
      bool function = p->second.starts_with("fn ");
      what[word] = (function ? "a function: " : "a part of an expression: ") + code(p->second);
    } else {
      const Explanation::Place& place = e.defined.at(word);
      what[word] = value_text(word, place.path, source.place(place.span));
    }
  }
  names = names_table(links, what);
}

std::string DerivedPage::coordinates() const {
  std::vector<std::string> coords;
  auto add = [&](const std::string& c) {
    if (std::find(coords.begin(), coords.end(), c) == coords.end()) coords.push_back(c);
  };
  for (const auto& v : e.values) std::for_each(v.coords.begin(), v.coords.end(), add);
  std::map<std::string, std::set<std::string>> summed;
  for (const Flow& f : e.steps) {
    for (const Flow::Summed& s : f.summed) {
      summed[text(f.of)].insert(text(s.name));
      add(text(s.name));
    }
  }
  bool grid = coords.size() <= kMostColumns;
  std::string out = grid ? "<table class=\"fit\">\n<tr><th>value</th>"
                         : "<table>\n<tr><th>value</th><th>coordinates</th><th>summed</th>";
  for (size_t k = 0; grid && k < coords.size(); ++k) out += "<th>" + escaped(coords[k]) + "</th>";
  out += "</tr>\n";
  for (const auto& v : e.values) {
    out += "<tr><td>" + code(v.name) + "</td>";
    if (!grid) {
      out += fmt::format("<td>{}</td><td{}>{}</td></tr>\n",
                         escaped(fmt::format("{}", fmt::join(v.coords, ", "))),
                         summed[v.name].empty() ? "" : " class=\"sum\"",
                         escaped(fmt::format("{}", fmt::join(summed[v.name], ", "))));
      continue;
    }
    for (const std::string& c : coords) {
      bool has = std::find(v.coords.begin(), v.coords.end(), c) != v.coords.end();
      bool sums = summed[v.name].contains(c);
      const char* mark = sums && has ? "● Σ" : sums ? "Σ" : has ? "●" : "";
      out += fmt::format("<td class=\"{}\">{}</td>", sums ? "sum" : "has", mark);
    }
    out += "</tr>\n";
  }
  return out + "</table>\n<p class=\"note\">" +
         (grid ? "● the value has the coordinate; Σ its derivative is summed over it, because what "
                 "reads the value has it and the value does not."
               : "The derivative is summed over coordinates that the value does not have and what "
                 "reads it has.") +
         "</p>\n";
}

std::string DerivedPage::step(const Flow& f, size_t number) {
  std::string card = fmt::format("{}-step-{}", id, number);
  if (uint32_t line = source.line_of(f.span)) {
    source.targets.emplace(line, card);
    if (hovers.size() < kMostHovers) hovers.emplace_back(card, line);
  }
  auto row = [&](const std::string& what, const std::string& value) {
    return fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", what, value);
  };
  std::string out = fmt::format(
      "<section class=\"card\" id=\"{}\">\n<h3>{}. {}, read by {} <span "
      "class=\"note\">{}</span></h3>\n"
      "<table class=\"steps\">\n",
      card, number, code(text(f.of)), code(text(f.reader)), source.place(f.span));
  for (const auto& [what, here] : steps_of(f)) out += row(escaped(what), code(here));
  out += row("so " + code(text(f.adjoint)) + " gets", code(f.added));
  return out + "</table>\n</section>\n";
}

std::string DerivedPage::text_of() {
  std::string out = fmt::format("<h1><code>@{} / @{}</code></h1>\n", escaped(e.of), escaped(e.wrt));
  if (e.steps.empty()) return out + "<p>There is no path: the derivative is zero.</p>\n";
  define_names();
  out += "<h2>The path back</h2>\n" + drawing(e, id);
  out += "<h2>Coordinates</h2>\n" + coordinates() + names;
  out += "<h2>Step by step</h2>\n";
  for (size_t k = 0; k < e.steps.size(); ++k) out += step(e.steps[k], k + 1);
  return out;
}

}  // namespace

std::string explanation_html(const std::vector<Explanation>& all, const SourceMap& sources,
                             FileId root) {
  PageSource source{sources, root};
  std::vector<std::pair<std::string, uint32_t>> hovers;
  std::string body;
  for (size_t k = 0; k < all.size(); ++k) {
    body += DerivedPage{all[k], source, fmt::format("d{}", k + 1), hovers}.text_of();
  }
  return page("Derivatives of " + sources.name(root), source, body, hovers);
}

}  // namespace ein

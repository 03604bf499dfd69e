#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "driver/explain.h"

namespace ein {
namespace {

using autodiff::Flow;

std::string escaped(const std::string& s) {
  std::string out;
  for (char c : s) {
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

constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Derivatives, step by step</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; color: #1b1f24; background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
code, td, svg text { font-family: ui-monospace, monospace; }
table { border-collapse: collapse; margin: 0.5rem 0; }
th, td { border: 1px solid #d0d7de; padding: 0.2rem 0.6rem; text-align: left; font-size: 13px; }
th { background: #f6f8fa; font-weight: 600; }
td.has { text-align: center; } td.sum { text-align: center; background: #fff1cc; }
.steps th { width: 9rem; font-weight: 400; }
.figure { overflow-x: auto; }
</style>
</head>
<body>
)";

// Draws the values in columns by their distance from the denominator, and arrows along which the
// sensitivity comes back, each with what is summed on it.
std::string drawing(const Explanation& e) {
  // A reader that is computed before what it reads closes a recurrence: such arrows go below.
  std::map<std::string, size_t> order;
  for (size_t k = 0; k < e.values.size(); ++k) order[e.values[k].name] = k;
  auto back = [&](const Flow& f) { return order[text(f.reader)] < order[text(f.of)]; };
  std::map<std::string, int> column;
  for (const auto& v : e.values) {
    for (const Flow& f : e.steps) {
      if (text(f.of) != v.name || f.of == f.reader || back(f)) continue;
      int& at = column[text(f.reader)];
      at = std::max(at, column[v.name] + 1);
    }
  }
  // An arrow past other columns goes above them, the higher the further.
  auto skip = [&](const Flow& f) {
    return back(f) ? 0 : column[text(f.reader)] - column[text(f.of)] - 1;
  };
  int top = 34;
  for (const Flow& f : e.steps) top = std::max(top, 34 + 22 * skip(f));
  std::map<int, int> used;  // rows by column
  std::map<std::string, std::pair<int, int>> centre;
  constexpr int kWidth = 136, kHeight = 44, kGapX = 84, kGapY = 60;
  int width = 0, height = 0;
  std::string nodes, arrows;
  for (const auto& v : e.values) {
    int c = column[v.name], row = used[c]++;
    int x = 10 + c * (kWidth + kGapX), y = top + row * (kHeight + kGapY);
    centre[v.name] = {x + kWidth / 2, y + kHeight / 2};
    width = std::max(width, x + kWidth + 10);
    height = std::max(height, y + kHeight + 30);
    bool end = v.name == e.of || v.name == e.wrt;
    nodes += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"{}\" "
        "stroke=\"#57606a\"/>\n"
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"14\">{}</text>\n"
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"11\" "
        "fill=\"#57606a\">[{}]</text>\n",
        x, y, kWidth, kHeight, end ? "#ddf4ff" : "#f6f8fa", x + kWidth / 2, y + 19, escaped(v.name),
        x + kWidth / 2, y + 35, escaped(fmt::format("{}", fmt::join(v.coords, ", "))));
  }
  std::set<std::string> drawn;
  for (const Flow& f : e.steps) {
    std::string label = f.summed.empty() ? "" : "Σ " + summed_text(f);
    if (!drawn.insert(text(f.of) + " " + text(f.reader) + label).second) continue;
    auto [x1, y1] = centre[text(f.reader)];
    auto [x2, y2] = centre[text(f.of)];
    std::string path;
    int lx = (x1 + x2) / 2, ly = (y1 + y2) / 2 - 8;
    if (f.of == f.reader) {
      path = fmt::format("M{} {} c -30 -34, 60 -34, 30 0", x1 - 15, y1 - kHeight / 2);
      ly = y1 - kHeight / 2 - 20;
    } else if (back(f)) {
      int low = std::max(y1, y2) + kHeight / 2;
      path = fmt::format("M{} {} C {} {}, {} {}, {} {}", x1, y1 + kHeight / 2, x1, low + 46, x2,
                         low + 46, x2, y2 + kHeight / 2);
      ly = low + 48;
      height = std::max(height, low + 60);
    } else if (skip(f) > 0) {
      int high = std::min(y1, y2) - kHeight / 2 - 30 * skip(f);
      path = fmt::format("M{} {} C {} {}, {} {}, {} {}", x1, y1 - kHeight / 2, x1, high, x2, high,
                         x2, y2 - kHeight / 2);
      ly = std::min(y1, y2) - kHeight / 2 - 22 * skip(f) - 6;
    } else {
      int from = x1 - kWidth / 2, to = x2 + kWidth / 2;
      path = fmt::format("M{} {} C {} {}, {} {}, {} {}", from, y1, from - kGapX / 2, y1,
                         to + kGapX / 2, y2, to, y2);
    }
    arrows += fmt::format(
        "<path d=\"{}\" fill=\"none\" stroke=\"#0969da\" marker-end=\"url(#tip)\"/>\n"
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"12\" "
        "fill=\"#9a6700\">{}</text>\n",
        path, lx, ly, escaped(label));
  }
  return fmt::format(
      "<div class=\"figure\"><svg width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "role=\"img\" "
      "aria-label=\"how the derivative flows back\">\n"
      "<defs><marker id=\"tip\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" "
      "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 L10 5 L0 10 z\" "
      "fill=\"#0969da\"/></marker></defs>\n"
      "{2}{3}</svg></div>\n",
      width, height, arrows, nodes);
}

std::string coordinate_table(const Explanation& e) {
  std::vector<std::string> coords;
  auto add = [&](const std::string& c) {
    if (std::find(coords.begin(), coords.end(), c) == coords.end()) coords.push_back(c);
  };
  for (const auto& v : e.values) {
    for (const std::string& c : v.coords) add(c);
  }
  std::map<std::string, std::set<std::string>> summed;
  for (const Flow& f : e.steps) {
    for (const Flow::Summed& s : f.summed) {
      summed[text(f.of)].insert(text(s.name));
      add(text(s.name));
    }
  }
  std::string out = "<table>\n<tr><th>value</th>";
  for (const std::string& c : coords) out += "<th>" + escaped(c) + "</th>";
  out += "</tr>\n";
  for (const auto& v : e.values) {
    out += "<tr><td>" + escaped(v.name) + "</td>";
    for (const std::string& c : coords) {
      bool has = std::find(v.coords.begin(), v.coords.end(), c) != v.coords.end();
      bool sums = summed[v.name].contains(c);
      const char* mark = sums && has ? "● Σ" : sums ? "Σ" : has ? "●" : "";
      out += fmt::format("<td class=\"{}\">{}</td>", sums ? "sum" : "has", mark);
    }
    out += "</tr>\n";
  }
  return out +
         "</table>\n<p>● the value has the coordinate; Σ its derivative is summed over it, because "
         "what reads the value has it and the value does not.</p>\n";
}

std::string step(const Flow& f) {
  auto row = [](const std::string& what, const std::string& value) {
    return fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", escaped(what), escaped(value));
  };
  std::string out =
      fmt::format("<h3><code>{}</code>, read by <code>{}</code></h3>\n<table class=\"steps\">\n",
                  escaped(text(f.of)), escaped(text(f.reader)));
  for (const auto& [what, here] : steps_of(f)) out += row(what, here);
  out += row("so " + text(f.adjoint) + " gets", f.added);
  return out + "</table>\n";
}

}  // namespace

std::string explanation_html(const std::vector<Explanation>& all) {
  std::string out = kHead;
  for (const Explanation& e : all) {
    out += fmt::format("<h1><code>@{} / @{}</code></h1>\n", escaped(e.of), escaped(e.wrt));
    if (e.steps.empty()) {
      out += "<p>There is no path: the derivative is zero.</p>\n";
      continue;
    }
    out += "<h2>The path back</h2>\n" + drawing(e);
    out += "<h2>Coordinates</h2>\n" + coordinate_table(e);
    out += "<h2>Step by step</h2>\n";
    for (const Flow& f : e.steps) out += step(f);
  }
  return out + "</body>\n</html>\n";
}

}  // namespace ein

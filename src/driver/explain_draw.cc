#include "driver/explain_draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "driver/page.h"

namespace ein {
namespace {

using autodiff::Flow;

constexpr int kWidth = 140, kHeight = 44, kGapX = 26, kGapY = 46, kMargin = 34, kMostInRow = 3;
constexpr size_t kLongestName = 16;

struct Place {
  int x = 0, y = 0, row = 0;  // the upper left corner
};

struct Picture {
  const Explanation& e;
  const std::string& id;
  std::map<std::string, size_t> order = {};
  std::map<std::string, Place> places = {};
  int width = 0, height = 0;

  // A reader that is computed before what it reads closes a recurrence.
  bool closes(const Flow& f) { return order[text(f.reader)] < order[text(f.of)]; }
  void arrange();
  std::string boxes();
  std::string arrows();
  std::string arrow(const Flow& f, int lane, int& lx, int& ly);
};

// The end of a long name tells more than its beginning, which many share.
std::string shortened(const std::string& name) {
  return name.size() <= kLongestName ? name : "…" + name.substr(name.size() - kLongestName + 1);
}

// By the longest way from the denominator, which stands at the bottom; a level of many values takes several rows.
void Picture::arrange() {
  for (size_t k = 0; k < e.values.size(); ++k) order[e.values[k].name] = k;
  std::map<std::string, int> level;
  int top = 0;
  for (const auto& v : e.values) {
    for (const Flow& f : e.steps) {
      if (text(f.of) != v.name || f.of == f.reader || closes(f)) continue;
      int& at = level[text(f.reader)];
      at = std::max(at, level[v.name] + 1);
      top = std::max(top, at);
    }
  }
  std::map<int, std::vector<std::string>> levels;
  for (const auto& v : e.values) levels[top - level[v.name]].push_back(v.name);
  size_t widest = 1;
  for (const auto& [n, names] : levels) {
    widest = std::max(widest, std::min<size_t>(names.size(), kMostInRow));
  }
  int inside = static_cast<int>(widest) * (kWidth + kGapX) - kGapX;
  width = inside + 2 * kMargin;
  int row = 0;
  for (const auto& [n, names] : levels) {
    for (size_t begin = 0; begin < names.size(); begin += kMostInRow, ++row) {
      size_t count = std::min<size_t>(kMostInRow, names.size() - begin);
      int taken = static_cast<int>(count) * (kWidth + kGapX) - kGapX;
      for (size_t k = 0; k < count; ++k) {
        int x = kMargin + (inside - taken) / 2 + static_cast<int>(k) * (kWidth + kGapX);
        places[names[begin + k]] = {x, 10 + row * (kHeight + kGapY), row};
      }
    }
  }
  height = row * (kHeight + kGapY) - kGapY + 20;
}

std::string Picture::boxes() {
  std::string out;
  for (const auto& v : e.values) {
    Place p = places[v.name];
    bool end = v.name == e.of || v.name == e.wrt;
    int x = p.x + kWidth / 2;
    out += fmt::format(
        "<g><title>{}</title><rect class=\"box{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
        "rx=\"6\"/>\n<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"14\">{}</text>\n"
        "<text class=\"small\" x=\"{}\" y=\"{}\" text-anchor=\"middle\" "
        "font-size=\"12\">{}</text></g>\n",
        escaped(v.name), end ? " end" : "", p.x, p.y, kWidth, kHeight, x, p.y + 19,
        escaped(shortened(v.name)), x, p.y + 36,
        v.coords.empty()
            ? "one number"
            : "[" + escaped(shortened(fmt::format("{}", fmt::join(v.coords, ", ")))) + "]");
  }
  return out;
}

// From the reader to what it reads. Arrows past other rows, and those that close a recurrence, go along the sides.
std::string Picture::arrow(const Flow& f, int lane, int& lx, int& ly) {
  Place from = places[text(f.reader)], to = places[text(f.of)];
  int x1 = from.x + kWidth / 2, x2 = to.x + kWidth / 2;
  if (f.of == f.reader) {
    int right = from.x + kWidth, y = from.y + kHeight / 2;
    lx = right + 14, ly = y - 14;
    return fmt::format("M{0} {1} c 34 -16, 34 30, 0 18", right, y - 9);
  }
  if (to.row == from.row + 1) {
    int y1 = from.y + kHeight, y2 = to.y;
    lx = (x1 + x2) / 2, ly = (y1 + y2) / 2 + 4;
    return fmt::format("M{} {} C {} {}, {} {}, {} {}", x1, y1, x1, y1 + kGapY / 2, x2,
                       y2 - kGapY / 2, x2, y2 - 1);
  }
  bool left = lane % 2 == 0;
  int y1 = from.y + kHeight / 2, y2 = to.y + kHeight / 2, side = 6 + 5 * (lane / 2 % 4);
  int start = left ? from.x : from.x + kWidth, end = left ? to.x : to.x + kWidth;
  int x = left ? side : width - side;
  lx = left ? x + 10 : x - 10, ly = (y1 + y2) / 2;
  return fmt::format("M{} {} C {} {}, {} {}, {} {} S {} {}, {} {}", start, y1, x, y1, x,
                     (3 * y1 + y2) / 4, x, (y1 + y2) / 2, x, y2, end, y2);
}

std::string Picture::arrows() {
  std::string out, labels;
  std::set<std::string> drawn;
  int lane = 0;
  for (const Flow& f : e.steps) {
    std::string label = f.summed.empty() ? "" : "Σ " + summed_text(f);
    if (!drawn.insert(text(f.of) + " " + text(f.reader) + label).second) continue;
    int lx = 0, ly = 0;
    bool aside = f.of != f.reader && places[text(f.of)].row != places[text(f.reader)].row + 1;
    std::string path = arrow(f, aside ? lane++ : 0, lx, ly);
    out += fmt::format("<path class=\"flow\" d=\"{}\" marker-end=\"url(#{}-tip)\"/>\n", path, id);
    if (label.empty()) continue;
    int half = 4 * static_cast<int>(std::min(label.size(), kLongestName)) + 2;
    lx = std::clamp(lx, half, std::max(half, width - half));
    labels += fmt::format(
        "<text class=\"sigma\" x=\"{}\" y=\"{}\" text-anchor=\"middle\" "
        "font-size=\"13\">{}</text>\n",
        lx, ly, escaped(shortened(label)));
  }
  return out + "\n" + boxes() + labels;
}

}  // namespace

std::string drawing(const Explanation& e, const std::string& id) {
  Picture picture{e, id};
  picture.arrange();
  std::string inside = picture.arrows();
  return fmt::format(
      "<svg width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
      "aria-label=\"how the derivative flows back\">\n"
      "<defs><marker id=\"{3}-tip\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" "
      "markerHeight=\"7\" orient=\"auto\"><path class=\"tip\" d=\"M0 0 L10 5 L0 10 z\"/>"
      "</marker></defs>\n{2}</svg>\n",
      picture.width, picture.height, inside, id);
}

}  // namespace ein

#include "base/frame.h"

#include <algorithm>
#include <map>
#include <set>

namespace ein {

namespace {

// A label that stays on its line, in display columns.
struct Mark {
  size_t from, to;
  const Label* label;
};

// A label over several lines; `lane` is its place in the left margin.
struct Tall {
  uint32_t first, last;  // lines
  size_t from, to;       // display columns of its first and last character (`to` exclusive)
  size_t lane;
  const Label* label;
};

struct Frame {
  Canvas& canvas;
  size_t gutter;
  Style mark;
  size_t margin = 0;  // columns for the lanes of tall labels
  std::map<uint32_t, std::vector<Mark>> marks;
  std::vector<Tall> talls;
  std::set<uint32_t> lines;

  size_t text_column() const { return gutter + 3 + margin; }
  size_t lane_column(const Tall& t) const { return gutter + 3 + 2 * t.lane; }
  Style style(const Label& label) const { return label.primary ? mark : Style::Label; }
};

size_t new_row(Frame& f, std::string_view number = {}) {
  size_t row = f.canvas.add_row();
  f.canvas.put(row, f.gutter - number.size(), number, Style::Gutter);
  f.canvas.put(row, f.gutter + 1, "|", Style::Gutter);
  return row;
}

// Draws the bars of tall labels that cross `line`. Below the source line a label that begins there
// is not drawn yet (unless it is in `open`), and above it one that ends there still runs.
void draw_lanes(Frame& f, size_t row, uint32_t line, const std::set<const Tall*>& open) {
  for (const Tall& t : f.talls) {
    bool inside = t.first < line && line <= t.last;
    if (inside || open.count(&t)) f.canvas.put(row, f.lane_column(t), "|", f.style(*t.label));
  }
}

// Underlines, the last label's text beside its underline, the other texts hanging below theirs.
void draw_marks(Frame& f, uint32_t line, std::vector<Mark> marks) {
  std::stable_sort(marks.begin(), marks.end(), [](auto& a, auto& b) { return a.from < b.from; });
  size_t row = new_row(f);
  draw_lanes(f, row, line, {});
  size_t base = f.text_column();
  for (bool primary : {false, true}) {  // the primary label is drawn over the others
    for (const Mark& m : marks) {
      if (m.label->primary != primary) continue;
      f.canvas.fill(row, base + m.from, base + m.to, primary ? '^' : '-', f.style(*m.label));
    }
  }
  std::vector<Mark> hanging;
  for (const Mark& m : marks) {
    if (!m.label->text.empty()) hanging.push_back(m);
  }
  if (hanging.empty()) return;
  const Mark last = hanging.back();
  bool clear = std::all_of(marks.begin(), marks.end(), [&](const Mark& m) {
    return m.label == last.label || m.to <= last.from;
  });
  if (clear) {
    f.canvas.put(row, base + last.to + 1, last.label->text, f.style(*last.label));
    hanging.pop_back();
  }
  auto draw_bars = [&](size_t at, size_t count) {
    draw_lanes(f, at, line, {});
    for (size_t i = 0; i < count; ++i) {
      f.canvas.put(at, base + hanging[i].from, "|", f.style(*hanging[i].label));
    }
  };
  if (!hanging.empty()) draw_bars(new_row(f), hanging.size());
  for (size_t i = hanging.size(); i-- > 0;) {
    size_t at = new_row(f);
    draw_bars(at, i);
    f.canvas.put(at, base + hanging[i].from, hanging[i].label->text, f.style(*hanging[i].label));
  }
}

// ` _______^` where a tall label begins, `|_____^ text` where it ends.
void draw_talls(Frame& f, uint32_t line) {
  std::set<const Tall*> open;
  size_t base = f.text_column();
  for (const Tall& t : f.talls) {
    if (t.first != line) continue;
    size_t row = new_row(f);
    draw_lanes(f, row, line, open);
    f.canvas.fill(row, f.lane_column(t) + 1, base + t.from, '_', f.style(*t.label));
    f.canvas.put(row, base + t.from, t.label->primary ? "^" : "-", f.style(*t.label));
    open.insert(&t);
  }
  for (auto t = f.talls.rbegin(); t != f.talls.rend(); ++t) {
    if (t->last != line) continue;
    size_t row = new_row(f);
    draw_lanes(f, row, line, open);
    size_t end = base + (t->to > 0 ? t->to - 1 : 0);
    f.canvas.fill(row, f.lane_column(*t) + 1, end, '_', f.style(*t->label));
    f.canvas.put(row, end, t->label->primary ? "^" : "-", f.style(*t->label));
    f.canvas.put(row, end + 2, t->label->text, f.style(*t->label));
    t->first = line + 1;  // drawn: no lane below
  }
}

size_t column_in(const SourceMap& sources, FileId file, uint32_t line, uint32_t offset) {
  std::string_view text = sources.line(file, line);
  uint32_t begin = sources.line_begin(file, line);
  return text_width(text.substr(0, std::min<size_t>(offset - begin, text.size())));
}

std::string_view without_return(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

// A line wider than this shows only a window around what is meant.
constexpr size_t kWidest = 160, kBefore = 40;

size_t window_start(size_t focus) { return focus <= kWidest / 2 ? 0 : focus - kBefore; }

// Where a column of a clipped line is drawn; what lies outside goes to the `…` at that end.
size_t in_window(size_t column, size_t start) {
  size_t lead = start > 0 ? 1 : 0;
  return column < start ? 0 : std::min(column - start, kWidest) + lead;
}

std::string_view columns(std::string_view text, size_t from, size_t to) {
  size_t begin = text.size(), end = text.size(), column = 0;
  for (size_t i = 0; i < text.size() && end == text.size();) {
    size_t next = i + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0u) == 0x80u) ++next;
    if (column >= from) begin = std::min(begin, i);
    column += text_width(text.substr(i, next - i));
    if (column > to) end = i;
    i = next;
  }
  return text.substr(begin, std::max(begin, end) - begin);
}

std::string clipped(std::string_view text, size_t start) {
  std::string_view part = columns(text, start, start + kWidest);
  std::string out = start > 0 ? "…" : "";
  out += part;
  if (part.data() + part.size() < text.data() + text.size()) out += "…";
  return out;
}

// The text of a line as it is drawn. The labels on a clipped line move with it.
std::string fit(Frame& f, uint32_t line, std::string_view text) {
  if (text_width(text) <= kWidest) return std::string(text);
  const size_t* focus = nullptr;
  auto marks = f.marks.find(line);
  for (Tall& t : f.talls) {
    if (t.last == line) focus = &t.to;
    if (t.first == line) focus = &t.from;
  }
  if (marks != f.marks.end()) {
    focus = &marks->second.front().from;
    for (const Mark& m : marks->second) {
      if (m.label->primary) focus = &m.from;
    }
  }
  size_t start = focus ? window_start(*focus) : 0;
  for (Tall& t : f.talls) {
    if (t.first == line) t.from = in_window(t.from, start);
    if (t.last == line) t.to = in_window(t.to, start);
  }
  if (marks != f.marks.end()) {
    for (Mark& m : marks->second) {
      m.from = in_window(m.from, start);
      m.to = std::max(in_window(m.to, start), m.from + 1);
    }
  }
  return clipped(text, start);
}

void place(Frame& f, const SourceMap& sources, const Label& label) {
  FileId file = label.span.file;
  uint32_t begin = label.span.begin, end = std::max(label.span.end, begin);
  uint32_t first = sources.position(file, begin).line;
  uint32_t last = end > begin ? sources.position(file, end - 1).line : first;
  size_t from = column_in(sources, file, first, begin);
  if (first == last) {
    size_t to = std::max(column_in(sources, file, last, end), from + 1);
    f.marks[first].push_back({from, to, &label});
    f.lines.insert(first);
    return;
  }
  f.talls.push_back({first, last, from, column_in(sources, file, last, end), 0, &label});
  constexpr uint32_t kAll = 6;  // a longer span shows its two ends
  for (uint32_t line = first; line <= last; ++line) {
    if (last - first < kAll || line < first + 2 || line > last - 2) f.lines.insert(line);
  }
}

}  // namespace

void draw_frame(Canvas& canvas, const SourceMap& sources, const std::vector<Label>& labels,
                size_t gutter, Style mark) {
  Frame f{canvas, gutter, mark, 0, {}, {}, {}};
  for (const Label& label : labels) place(f, sources, label);
  if (f.lines.empty()) return;
  FileId file = labels.front().span.file;
  std::stable_sort(f.talls.begin(), f.talls.end(),
                   [](auto& a, auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < f.talls.size(); ++i) f.talls[i].lane = i;
  f.margin = 2 * f.talls.size();

  uint32_t previous = 0;
  for (uint32_t line : std::set<uint32_t>(f.lines)) {
    if (previous != 0 && line == previous + 2) f.lines.insert(previous + 1);  // shorter than `...`
    previous = line;
  }
  previous = 0;
  for (uint32_t line : f.lines) {
    if (previous != 0 && line != previous + 1) {
      size_t row = canvas.add_row();
      canvas.put(row, 0, "...", Style::Gutter);
      draw_lanes(f, row, line, {});
    }
    size_t row = new_row(f, std::to_string(line));
    draw_lanes(f, row, line, {});
    canvas.put(row, f.text_column(), fit(f, line, without_return(sources.line(file, line))));
    if (auto it = f.marks.find(line); it != f.marks.end()) draw_marks(f, line, it->second);
    draw_talls(f, line);
    previous = line;
  }
}

void draw_fix(Canvas& canvas, const SourceMap& sources, const Fix& fix, size_t gutter) {
  if (fix.edits.empty()) return;
  std::vector<Edit> edits = fix.edits;
  std::stable_sort(edits.begin(), edits.end(),
                   [](auto& a, auto& b) { return a.span.begin < b.span.begin; });
  FileId file = edits.front().span.file;
  uint32_t first = sources.position(file, edits.front().span.begin).line;
  uint32_t last = sources.position(file, edits.back().span.end).line;
  uint32_t at = sources.line_begin(file, first);
  const std::string& text = sources.text(file);
  std::string_view last_line = sources.line(file, last);
  auto stop = static_cast<uint32_t>(sources.line_begin(file, last) + last_line.size());

  std::string patched;
  std::vector<bool> added;  // per byte of `patched`
  auto append = [&](std::string_view piece, bool is_new) {
    patched += piece;
    added.resize(patched.size(), is_new);
  };
  for (const Edit& edit : edits) {
    if (edit.span.file != file || edit.span.begin < at) continue;
    append(std::string_view(text).substr(at, edit.span.begin - at), false);
    append(edit.replacement, true);
    at = edit.span.end;
  }
  if (at < stop) append(std::string_view(text).substr(at, stop - at), false);

  Frame f{canvas, gutter, Style::Added, 0, {}, {}, {}};
  size_t begin = 0;
  for (uint32_t line = first; begin <= patched.size(); ++line) {
    size_t end = std::min(patched.find('\n', begin), patched.size());
    std::string_view content = without_return(std::string_view(patched).substr(begin, end - begin));
    auto first_added = std::find(added.begin() + static_cast<ptrdiff_t>(begin),
                                 added.begin() + static_cast<ptrdiff_t>(end), true);
    auto unchanged = static_cast<size_t>(first_added - added.begin()) - begin;
    bool wide = text_width(content) > kWidest;
    size_t start = wide ? window_start(text_width(content.substr(0, unchanged))) : 0;
    canvas.put(new_row(f, std::to_string(line)), f.text_column(),
               wide ? clipped(content, start) : std::string(content));
    size_t marks = canvas.rows.size();
    for (size_t i = unchanged; i < content.size();) {  // one stretch of new text after the other
      size_t stop_at = i;
      while (stop_at < content.size() && added[begin + stop_at] == added[begin + i]) ++stop_at;
      if (added[begin + i]) {
        if (canvas.rows.size() == marks) new_row(f);
        size_t from = text_width(content.substr(0, i)), to = text_width(content.substr(0, stop_at));
        if (wide) {
          from = in_window(from, start);
          to = in_window(to, start);
        }
        canvas.fill(marks, f.text_column() + from, f.text_column() + to, '+', Style::Added);
      }
      i = stop_at;
    }
    begin = end + 1;
  }
}

}  // namespace ein

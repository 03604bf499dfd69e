#include "syntax/layout.h"

#include <algorithm>

namespace ein::ast {

namespace {

constexpr size_t kIndent = 4;

size_t width_of(std::string_view text) {
  size_t n = 0;
  for (char c : text) n += (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;  // code points
  return n;
}

}  // namespace

DocId Layout::add_text(Kind kind, std::string_view s) {
  auto begin = static_cast<uint32_t>(texts_.size());
  texts_ += s;
  auto flat = kind == Kind::Text ? static_cast<uint32_t>(width_of(s)) : 0;
  return add(
      {.kind = kind, .flat = flat, .begin = begin, .end = static_cast<uint32_t>(texts_.size())});
}

DocId Layout::cat(const DocId* parts, size_t count) {
  auto begin = static_cast<uint32_t>(parts_.size());
  bool hard = false;
  uint32_t flat = 0;
  for (size_t i = 0; i < count; ++i) {
    hard = hard || nodes_[parts[i]].hard;
    flat += nodes_[parts[i]].flat;
    parts_.push_back(parts[i]);
  }
  auto end = static_cast<uint32_t>(parts_.size());
  return add({.kind = Kind::Cat, .hard = hard, .flat = flat, .begin = begin, .end = end});
}

// Whether `next`, flat, and what follows it up to the next line break have room.
bool Layout::fits(Work next, const std::vector<Work>& rest, size_t room) const {
  std::vector<Work> stack{next};
  size_t below = rest.size();
  for (;;) {
    if (stack.empty()) {
      if (below == 0) return true;
      stack.push_back(rest[--below]);
    }
    Work w = stack.back();
    stack.pop_back();
    const Node& n = nodes_[w.doc];
    if ((w.flat && !n.hard) || n.kind == Kind::Text) {  // no need to look inside
      if (n.flat > room) return false;
      room -= n.flat;
      continue;
    }
    switch (n.kind) {
      case Kind::Line:
      case Kind::Fill:
      case Kind::Soft:
      case Kind::Hard:
      case Kind::Blank: return true;
      case Kind::Text:
      case Kind::Broken: break;
      case Kind::IfBroken: room -= std::min<size_t>(room, n.end - n.begin); break;
      case Kind::Cat:
        for (uint32_t i = n.end; i-- > n.begin;) stack.push_back({parts_[i], w.indent, w.flat});
        break;
      case Kind::Indent: stack.push_back({n.begin, w.indent + kIndent, w.flat}); break;
      // A group of `rest` has not been decided yet; its first line may be a break.
      case Kind::Group: stack.push_back({n.begin, w.indent, w.flat}); break;
    }
  }
}

std::string Layout::print(DocId root, size_t width) const {
  std::string out;
  size_t column = 0;
  auto newline = [&](size_t indent) {
    while (!out.empty() && out.back() == ' ') out.pop_back();
    out += '\n';
    out.append(indent, ' ');
    column = indent;
  };
  auto put = [&](std::string_view s) {
    out += s;
    column += width_of(s);
  };
  std::vector<Work> stack{{root, 0, false}};
  while (!stack.empty()) {
    Work w = stack.back();
    stack.pop_back();
    const Node& n = nodes_[w.doc];
    size_t room = width > column ? width - column : 0;
    switch (n.kind) {
      case Kind::Text: put(text_of(n)); break;
      case Kind::Line:
        if (w.flat) {
          put(" ");
        } else {
          newline(w.indent);
        }
        break;
      case Kind::Soft:
        if (!w.flat) newline(w.indent);
        break;
      case Kind::Hard: newline(w.indent); break;
      case Kind::Blank: newline(0); break;
      case Kind::Broken: break;
      case Kind::Fill:
        if (w.flat || (room > 2 && fits({n.begin, w.indent, true}, {}, room - 2))) {
          put(" ");
        } else {
          newline(w.indent);
        }
        break;
      case Kind::IfBroken:
        if (!w.flat) put(text_of(n));
        break;
      case Kind::Cat:
        for (uint32_t i = n.end; i-- > n.begin;) stack.push_back({parts_[i], w.indent, w.flat});
        break;
      case Kind::Indent: stack.push_back({n.begin, w.indent + kIndent, w.flat}); break;
      case Kind::Group: {
        bool flat = w.flat || (!n.hard && fits({n.begin, w.indent, true}, stack, room));
        stack.push_back({n.begin, w.indent, flat});
        break;
      }
    }
  }
  return out;
}

}  // namespace ein::ast

#include "syntax/layout.h"

#include <algorithm>

namespace ein::ast {

namespace {

constexpr size_t kIndent = 4;

size_t width_of(const std::string& text) {
  size_t n = 0;
  for (char c : text) n += (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;  // code points
  return n;
}

}  // namespace

DocId Layout::cat(std::vector<DocId> parts) {
  bool hard = false;
  for (DocId part : parts) hard = hard || nodes_[part].hard;
  return add({Kind::Cat, {}, std::move(parts), 0, hard});
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
    switch (n.kind) {
      case Kind::Text: {
        size_t width = width_of(n.text);
        if (width > room) return false;
        room -= width;
        break;
      }
      case Kind::Line:
      case Kind::Fill:
        if (!w.flat) return true;
        if (room == 0) return false;
        --room;
        break;
      case Kind::Soft:
        if (!w.flat) return true;
        break;
      case Kind::Hard:
      case Kind::Blank: return true;
      case Kind::Broken: break;
      case Kind::IfBroken:
        if (!w.flat) room -= std::min(room, n.text.size());
        break;
      case Kind::Cat:
        for (size_t i = n.parts.size(); i-- > 0;) stack.push_back({n.parts[i], w.indent, w.flat});
        break;
      case Kind::Indent: stack.push_back({n.inner, w.indent + kIndent, w.flat}); break;
      // A group of `rest` has not been decided yet; its first line may be a break.
      case Kind::Group: stack.push_back({n.inner, w.indent, w.flat}); break;
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
  auto put = [&](const std::string& s) {
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
      case Kind::Text: put(n.text); break;
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
        if (w.flat || (room > 2 && fits({n.inner, w.indent, true}, {}, room - 2))) {
          put(" ");
        } else {
          newline(w.indent);
        }
        break;
      case Kind::IfBroken:
        if (!w.flat) put(n.text);
        break;
      case Kind::Cat:
        for (size_t i = n.parts.size(); i-- > 0;) stack.push_back({n.parts[i], w.indent, w.flat});
        break;
      case Kind::Indent: stack.push_back({n.inner, w.indent + kIndent, w.flat}); break;
      case Kind::Group: {
        bool flat = w.flat || (!n.hard && fits({n.inner, w.indent, true}, stack, room));
        stack.push_back({n.inner, w.indent, flat});
        break;
      }
    }
  }
  return out;
}

}  // namespace ein::ast

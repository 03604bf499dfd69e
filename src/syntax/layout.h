// Text that knows where it may break: the formatter builds a document of these parts, and `print`
// decides which groups fit on a line. A group breaks all its lines or none; a hard line, or a
// comment, inside a group breaks it and all groups around it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace ein::ast {

using DocId = uint32_t;

class Layout {
 public:
  DocId text(std::string_view s) { return add_text(Kind::Text, s); }
  DocId line() { return add({.kind = Kind::Line, .flat = 1}); }     // a space, or a line break
  DocId soft() { return add({.kind = Kind::Soft}); }                // nothing, or a line break
  DocId hard() { return add({.kind = Kind::Hard, .hard = true}); }  // a line break
  // An empty line, before a line break.
  DocId blank() { return add({.kind = Kind::Blank, .hard = true}); }
  // Nothing, but breaks the group.
  DocId broken() { return add({.kind = Kind::Broken, .hard = true}); }
  // A space, or a line break if `next` (which follows) does not fit: fills lines with short items.
  DocId fill(DocId next) { return add({.kind = Kind::Fill, .flat = 1, .begin = next}); }
  DocId if_broken(std::string_view s) { return add_text(Kind::IfBroken, s); }
  DocId cat(std::initializer_list<DocId> parts) { return cat(parts.begin(), parts.size()); }
  DocId cat(const std::vector<DocId>& parts) { return cat(parts.data(), parts.size()); }
  DocId indent(DocId inner) { return around(Kind::Indent, inner); }
  DocId group(DocId inner) { return around(Kind::Group, inner); }

  std::string print(DocId root, size_t width) const;

 private:
  enum class Kind { Text, Line, Soft, Hard, Blank, Broken, Fill, IfBroken, Cat, Indent, Group };
  // Small, because a long program has many: what they consist of stands in `texts_` and `parts_`.
  struct Node {
    Kind kind;
    bool hard = false;            // cannot stay on one line
    uint32_t flat = 0;            // its width on one line
    uint32_t begin = 0, end = 0;  // in `texts_` or `parts_`; or `begin` is what stands inside
  };
  struct Work {
    DocId doc;
    size_t indent;
    bool flat;
  };

  DocId add(Node node) {
    nodes_.push_back(node);
    return static_cast<DocId>(nodes_.size() - 1);
  }
  DocId add_text(Kind kind, std::string_view s);
  DocId cat(const DocId* parts, size_t count);
  DocId around(Kind kind, DocId inner) {
    const Node& n = nodes_[inner];
    return add({.kind = kind, .hard = n.hard, .flat = n.flat, .begin = inner});
  }
  std::string_view text_of(const Node& n) const {
    return std::string_view(texts_).substr(n.begin, n.end - n.begin);
  }
  bool fits(Work next, const std::vector<Work>& rest, size_t room) const;

  std::vector<Node> nodes_;
  std::string texts_;
  std::vector<DocId> parts_;
};

}  // namespace ein::ast

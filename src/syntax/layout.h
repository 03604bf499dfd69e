// Text that knows where it may break: the formatter builds a document of these parts, and `print`
// decides which groups fit on a line. A group breaks all its lines or none; a hard line, or a
// comment, inside a group breaks it and all groups around it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace ein::ast {

using DocId = uint32_t;

class Layout {
 public:
  DocId text(std::string s) { return add({Kind::Text, std::move(s), {}, 0, false}); }
  DocId line() { return add({Kind::Line, {}, {}, 0, false}); }  // a space, or a line break
  DocId soft() { return add({Kind::Soft, {}, {}, 0, false}); }  // nothing, or a line break
  DocId hard() { return add({Kind::Hard, {}, {}, 0, true}); }   // a line break
  DocId blank() {
    return add({Kind::Blank, {}, {}, 0, true});
  }  // an empty line, before a line break
  DocId broken() { return add({Kind::Broken, {}, {}, 0, true}); }  // nothing, but breaks the group
  // A space, or a line break if `next` (which follows) does not fit: fills lines with short items.
  DocId fill(DocId next) { return add({Kind::Fill, {}, {}, next, false}); }
  DocId if_broken(std::string s) { return add({Kind::IfBroken, std::move(s), {}, 0, false}); }
  DocId cat(std::vector<DocId> parts);
  DocId indent(DocId inner) { return add({Kind::Indent, {}, {}, inner, nodes_[inner].hard}); }
  DocId group(DocId inner) { return add({Kind::Group, {}, {}, inner, nodes_[inner].hard}); }

  std::string print(DocId root, size_t width) const;

 private:
  enum class Kind { Text, Line, Soft, Hard, Blank, Broken, Fill, IfBroken, Cat, Indent, Group };
  struct Node {
    Kind kind;
    std::string text;
    std::vector<DocId> parts;
    DocId inner;
    bool hard;  // cannot stay on one line
  };
  struct Work {
    DocId doc;
    size_t indent;
    bool flat;
  };

  DocId add(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<DocId>(nodes_.size() - 1);
  }
  bool fits(Work next, const std::vector<Work>& rest, size_t room) const;

  std::deque<Node> nodes_;
};

}  // namespace ein::ast

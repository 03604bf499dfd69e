// Pages that stand alone, for `ein explain --html` and `ein audit --html`: what they say stands
// beside the source that it is about. They follow the reader's choice of light or dark, and no page
// is wider than its window.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/source.h"

namespace ein {

std::string escaped(const std::string& text);  // for HTML

// What a page links to, and how: a name of the program or of the derivation → the id of an element.
using PageNames = std::map<std::string, std::string>;
// Code whose names are links to what they are.
std::string linked(const std::string& code, const PageNames& names);

// The lines of the source that a page is about, by number; what is marked is also a link to `targets` there.
struct PageSource {
  const SourceMap& sources;
  FileId root;
  std::map<uint32_t, std::string> targets = {};  // line → the id of the element that is about it

  // The line on which this stands: a link where the page shows it, otherwise with the name of its file. Empty for no place.
  std::string place(Span at) const;
  uint32_t line_of(Span at) const;  // 0: not in the root
  std::string listing() const;
};

// The table of names: what each is, as HTML. The rows are what `names` links to.
std::string names_table(const PageNames& names, const std::map<std::string, std::string>& what);
// What a value of the program is, for that table: how the program spells it, and where.
std::string value_text(const std::string& name, const std::string& path, const std::string& place);

// The whole page. `hovers`: pairs of elements that are highlighted together, an id of the body and a line.
std::string page(const std::string& title, const PageSource& source, const std::string& body,
                 const std::vector<std::pair<std::string, uint32_t>>& hovers);

}  // namespace ein

// The reference of a module, from its doc comments: every public item with its signature as
// written, what is said about it, its examples with what they print, and its derivative rule.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/source.h"
#include "syntax/ast.h"

namespace ein {

struct DocParam {
  std::string name, type, value;  // type and default are empty where none is written
};

struct DocItem {
  std::string name;
  bool function = true;  // otherwise a constant
  std::string signature;
  std::vector<std::string> coords;
  std::vector<DocParam> params;
  std::string result;  // empty where no type is written
  struct Line {
    std::string text;
    uint32_t number;
  };
  std::vector<Line> doc;
  std::string rule;  // the text of its `@fn`; empty: it has none
  uint32_t line = 0;

  bool has_example() const;
};

struct DocModule {
  std::string name;   // as in `use`: `std::nn::conv`
  std::string page;   // the file that describes it, without `.md`
  std::string about;  // the comment that opens the module
  std::vector<DocItem> items;
  std::vector<std::string> reexports;  // its `pub use` statements

  bool empty() const { return items.empty() && reexports.empty(); }
};

// Everything but the names, which the caller sets.
DocModule doc_module(const ast::Ast& ast, FileId file, const SourceMap& sources);

// What the examples print, by the line of their ```ein.
using ExampleOutputs = std::map<uint32_t, std::string>;

std::string doc_page(const DocModule& module, const ExampleOutputs& outputs);
std::string doc_index(const std::string& title, const std::vector<DocModule>& modules);
nlohmann::json doc_json(const std::vector<DocModule>& modules);

}  // namespace ein

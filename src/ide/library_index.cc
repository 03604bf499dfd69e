#include "ide/library_index.h"

#include "driver/doc.h"
#include "driver/library.h"
#include "syntax/parser.h"

namespace ein::ide {
namespace {

std::string module_of(std::string_view path) {
  std::string out = "std::";
  for (char c : path.substr(0, path.rfind(".ein"))) {
    if (c == '/') {
      out += "::";
    } else {
      out += c;
    }
  }
  return out;
}

std::vector<LibraryItem> read() {
  std::vector<LibraryItem> out;
  for (const LibraryFile& f : library_files()) {
    SourceMap sources;
    Diagnostics diags;
    FileId file = sources.add("std/" + std::string(f.path), std::string(f.text));
    ast::Ast tree = ast::parse(file, sources, diags);
    for (const DocItem& item : doc_module(tree, file, sources).items) {
      LibraryItem found{item.name, module_of(f.path), item.signature, "", item.function};
      for (const DocItem::Line& line : item.doc) {
        if (line.text.starts_with("```")) break;
        found.doc += line.text + "\n";
      }
      out.push_back(std::move(found));
    }
  }
  return out;
}

}  // namespace

const std::vector<LibraryItem>& library_index() {
  static const std::vector<LibraryItem> items = read();
  return items;
}

std::vector<std::string> library_modules() {
  std::vector<std::string> out;
  for (const LibraryFile& f : library_files()) out.push_back(module_of(f.path));
  return out;
}

}  // namespace ein::ide

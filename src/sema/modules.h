// The files of a program. A file is a module; `use` and `mod` name others, which are read through a
// function that the caller gives, so that nothing here touches a disk. All modules are parsed into
// one tree. What a path means is settled here, before any name inside a module is looked at:
//
//   use a::b;           the module a/b, or the item `b` of module `a`
//   use a::{f, g as h}; items of module `a`           use a::*;  all that `a` exports
//   mod a;              the module `a`, read as `a::f`
//   std::math::erf(x)   `std` needs no `use` in front of a full path
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/diag.h"
#include "base/source.h"
#include "syntax/ast.h"
#include "syntax/lexer.h"

namespace ein::sema {

struct ModuleText {
  std::string name;  // the same for every path that leads to this file
  std::string text;
  bool library = false;  // it never changes: its tree is kept
};
// What a path such as `a::b`, written in the file `importer`, leads to. `tried` gets the places
// that were looked at, for the message when there is nothing.
using ReadModule = std::function<std::optional<ModuleText>(
    const std::string& importer, const std::string& path, std::vector<std::string>& tried)>;

struct ModuleTree {
  std::string name;
  FileId file;
  std::vector<ast::StmtId> items;
  size_t first_type = 0, end_type = 0;  // its types in the tree
};

// What a `use` or `mod` leads to.
struct Target {
  size_t module = 0;
  std::optional<ast::Name> item;  // the last name of the path is one of the module's items
};

struct Program {
  ast::Ast ast;                        // of all modules; `ast.items` are the root's
  const SourceMap* sources = nullptr;  // their texts; null for a lone tree
  std::vector<ModuleTree> modules;     // an imported one stands before its importers, the root last
  std::map<ast::StmtId, Target> targets;
  std::map<std::string, size_t> paths;  // "std::math" as spelled in an expression → module
  bool derives = false;                 // a derivative is asked for: the rules of functions matter
  // The modules of the library that export a function of this name, for a message.
  std::function<std::vector<std::string>(const std::string& name)> exporters;
  ast::Lexed lexed;               // the root's tokens
  std::optional<size_t> prelude;  // what every module sees without `use` (decisions.md, 7)
  size_t prelude_nodes = 0;       // how many expressions of `ast` belong to the prelude
};

// A text that a program goes on from (earlier.h).
struct EarlierText {
  FileId file;
  bool hidden = false;
  bool joined = false;  // its clauses belong to those of a newer text, which does not replace them
  std::shared_ptr<const ast::Ast> tree = nullptr;  // of the text, where somebody has parsed it
};
bool is_earlier(const std::vector<EarlierText>& earlier, FileId file);

// `earlier`: texts whose definitions the program has too, the newest last.
// `printed`: where statements of the root begin whose values are printed, as a prompt does.
Program read_program(FileId root, SourceMap& sources, const ReadModule& read, Diagnostics& diags,
                     const std::vector<EarlierText>& earlier = {},
                     const std::set<uint32_t>& printed = {});

// A file alone: nothing to import and no prelude.
Program lone_program(ast::Ast ast);

}  // namespace ein::sema

// One program as a tool sees it: its text, its mistakes, and what every name in it means. The
// features of an editor are functions of an Analysis and a place in it (features.h, navigate.h).
// Nothing here reads files, prints, or starts threads. The caller answers which modules and data
// files exist, and whether the answer is still wanted.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "autodiff/record.h"
#include "driver/compile.h"
#include "ide/bindings.h"
#include "sema/state/meanings.h"
#include "syntax/lexer.h"

namespace ein::ide {

enum class Depth : uint8_t {
  Names,  // the tree, and the meanings of names by scope
  Quick,  // and elaboration: types, coordinates, ranges
  Full,   // and tests, derivatives, and every mistake that is found on the way to running
};

struct Documents {
  ReadFile read;  // the text of a module: of the open document, or else of the file
  // What `load` finds, given the texts of one analysis. Empty: nothing.
  std::function<sema::FileLookup(const SourceMap&)> files = {};
  // Texts whose definitions belong to the program, too; the newest last (sema/earlier.h).
  struct Earlier {
    std::string name, text;
    bool joined = false;
    std::shared_ptr<const ast::Ast> tree = nullptr;  // where it is known already
  };
  std::vector<Earlier> earlier = {};
  std::set<uint32_t> printed = {};  // where the statements begin whose values are printed
  bool binds = true;                // false: meanings by scope are not needed
};

struct Analysis {
  Depth depth = Depth::Names;
  SourceMap sources;
  FileId root;
  std::vector<sema::EarlierText> earlier;
  Diagnostics diags;
  ast::Lexed lexed;  // of the root file
  Compiled compiled;
  sema::Meanings meanings;
  Bindings bindings;
  autodiff::Record record;

  const std::string& text() const { return sources.text(root); }
  const ast::Ast& ast() const { return compiled.program.ast; }
};

// Null if it was cancelled.
std::shared_ptr<const Analysis> analyse(const std::string& path, const std::string& text,
                                        Depth depth, const Documents& documents,
                                        const std::function<bool()>& cancelled = {});

// ---- what features ask ---------------------------------------------------------------------------

const Entity& entity_of(const Analysis& a, const Occurrence& o);
// What a name stands for where it is used, or else where it is defined. Empty: not known.
const std::vector<sema::Shown>& values_of(const Analysis& a, const Occurrence& o);
std::string describe(const sema::Shown& v);  // "f32 [out: 10, in: 784]"
// The type as it is written in a program, `[f32; 10, 784]`. Empty if it cannot be written.
std::string as_type(const sema::Shown& v);
std::string signature_of(const Analysis& a, const ast::Fn& fn);  // one line
// The smallest expression of the root file that contains the place and that `wanted` accepts.
ast::ExprId tree_at(const Analysis& a, uint32_t offset,
                    const std::function<bool(const ast::Expr&)>& wanted);
const ast::Fn* function_of(const Analysis& a, const Entity& e);

}  // namespace ein::ide

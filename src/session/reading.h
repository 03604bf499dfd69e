// Entries as text: whether an entry is complete, and which definitions it contains.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "syntax/ast.h"

namespace ein::session {

enum class Reading : uint8_t {
  Nothing,     // only blanks and comments
  Unfinished,  // the parser needs more text
  Finished,    // anything else, right or wrong
};
Reading read_entry(const std::string& text);
// Whether a line after a finished entry without a `;` still belongs to that entry: it is indented,
// or begins with something that cannot begin an entry. Only asked if the next line is already
// known, as in pasted text.
bool goes_on(const std::string& next_line);
// Whether an entry ends with a clause such as `let h[0] = 1.0;`, so that further clauses of the
// same value may follow.
bool ends_with_clause(const std::string& entry);
bool more_clauses(const std::string& entry, const std::string& next_line);

// One definition of a session, as a text of its own in which it keeps the line and column that it
// had in its entry.
struct Piece {
  std::string entry;  // the name of its entry in messages
  std::string text;
  std::vector<std::string> names;  // the names it defines; `@f` is a derivative rule of `f`
  bool value = false;              // it is a `let`
  bool import = false;             // it is a `use` or `mod`
  bool joined = false;             // a newer piece adds clauses to the same value
  ast::StmtId stmt;                // its statement, in the tree it was made from
  std::vector<uint32_t> places;    // positions in `text` of the names of a `let`
  std::shared_ptr<const ast::Ast> tree = nullptr;  // the tree of `text` alone
};
using Pieces = std::vector<std::shared_ptr<const Piece>>;

// The definitions among the statements of a text.
std::vector<Piece> pieces_of(const ast::Ast& tree, FileId file, const SourceMap& sources);
// The tree of a piece. It is parsed once, although every later entry builds on it.
std::shared_ptr<const ast::Ast> tree_of(const std::string& text);
// The text of a piece without the blanks that keep its position.
std::string plain_text(const Piece& piece);

}  // namespace ein::session

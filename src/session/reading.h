// Entries as texts: whether one is finished, and which definitions it consists of.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "syntax/ast.h"

namespace ein::session {

enum class Reading : uint8_t {
  Nothing,     // blanks and comments
  Unfinished,  // the parser wants more
  Finished,    // everything else, right or wrong
};
Reading read_entry(const std::string& text);
// Whether a line that comes after a finished entry without a `;` still belongs to it: it is indented, or begins with
// something that no entry begins with. Only asked where the next line is known already, as in pasted text.
bool goes_on(const std::string& next_line);
// Whether an entry ends with a clause, `let h[0] = 1.0;`, and so may go on with one of the same value.
bool ends_with_clause(const std::string& entry);
bool more_clauses(const std::string& entry, const std::string& next_line);

// One definition of a session, as a text of its own with the lines and columns that it had in its entry.
struct Piece {
  std::string entry;  // the name of the entry, in messages
  std::string text;
  std::vector<std::string> names;  // that it defines; the derivative of a function as `@f`
  bool value = false;              // a `let`
  bool import = false;             // `use`, `mod`
  bool joined = false;             // a newer piece has further clauses of the same value
  ast::StmtId stmt;                // in the tree it was made from
  std::vector<uint32_t> places;    // of the names of a `let`, in `text`
  std::shared_ptr<const ast::Ast> tree = nullptr;  // of `text` alone
};
using Pieces = std::vector<std::shared_ptr<const Piece>>;

// The definitions among the statements of a text.
std::vector<Piece> pieces_of(const ast::Ast& tree, FileId file, const SourceMap& sources);
// Every later entry goes on from a piece, and it is parsed once.
std::shared_ptr<const ast::Ast> tree_of(const std::string& text);
// The same without the spaces that keep its place.
std::string plain_text(const Piece& piece);

}  // namespace ein::session

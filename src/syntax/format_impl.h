// The formatter's state. The tree is walked in source order, so one cursor over the comments is
// enough: each comment is placed before the first thing that follows it, or at the end of its line.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "syntax/ast.h"
#include "syntax/layout.h"
#include "syntax/lexer.h"

namespace ein::ast {

struct Formatter {
  const Ast& ast;
  const SourceMap& sources;
  Lexed lexed;
  Layout out;
  size_t comment = 0;  // the next one to place

  // An element of a list: where it stands, and how to write it.
  struct Item {
    Span span;
    std::function<DocId()> write;
  };

  // -- comments and text (format.cc)
  bool pending(uint32_t before) const;           // a comment begins before this place
  bool pending_trailing(uint32_t before) const;  // and stands after something on its line
  DocId take_comment();
  DocId comments_before(uint32_t place);          // each on a line of its own
  DocId trailing_comments(uint32_t before);       // " // …", and the line must end
  uint32_t next_token(uint32_t place) const;      // where the first token at or after it begins
  std::string_view literal(const Expr& e) const;  // as spelled, without parentheses
  bool blank_between(uint32_t from, uint32_t to) const;
  bool one_line(Span span) const;
  DocId name(const Name& n) { return out.text(text(n.symbol)); }
  DocId names(const std::vector<Name>& parts, const char* between);
  // open item, item, … close; breaks into one item per line. `spaced`: `{ a, b }`, not `{a, b}`.
  DocId list(const std::string& open, const std::vector<Item>& items, const std::string& close,
             uint32_t end, bool filled = false, bool spaced = false);

  // -- statements (format.cc)
  DocId file();
  void statements(std::vector<DocId>& parts, const std::vector<StmtId>& stmts, ExprId value,
                  uint32_t begin, uint32_t end);
  DocId stmt(const Stmt& s);
  DocId stmt_node(const Stmt& s);
  DocId let(const Let& n);
  DocId value(ExprId id);  // " = …" after a left side
  DocId fn(const Fn& n, Span span);
  DocId use(const Use& n, Span span);

  // -- expressions and types (format_expr.cc)
  DocId expr(ExprId id);
  DocId bare(ExprId id);  // without its comments and parentheses
  DocId postfix(ExprId id);
  DocId binary(ExprId id);
  DocId where(ExprId id, bool in_let);
  DocId if_chain(ExprId id);
  DocId match_expr(ExprId id);
  DocId block(ExprId id);  // not a group: its lines belong to the one around it
  DocId comprehension(const Comprehension& n);
  DocId args(const std::vector<ExprId>& ids, const char* open, const char* close, uint32_t end,
             const std::vector<Name>& names = {});
  DocId record(const Record& n, Span span);
  DocId brackets(const std::vector<Bracket>& items, uint32_t end);
  DocId ranged(const Name& n, bool pack, ExprId range);
  DocId type(TypeId id);
  DocId typed(TypeId id);  // ": T", or nothing
};

}  // namespace ein::ast

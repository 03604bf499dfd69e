// The parser's state and its functions, one per grammar rule; their bodies are in parse_*.cc.
//
// Recovery. `fail` reports and sets `panic`; while it is set nothing more is reported and every
// rule returns as soon as it can. The innermost list, block or statement skips to where it can go
// on (the lexer has paired all delimiters, so it knows) and clears it. A mistake is therefore
// reported once and independent mistakes are all found.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/diag.h"
#include "syntax/ast.h"
#include "syntax/lexer.h"

namespace ein::ast {

// Inside a list a comma separates items, so a `where` there takes one condition.
enum class WhereItems { One, Many };

// Deepest nesting of brackets, blocks and lambdas. Chains (`a + b + …`, `else if`) count by
// kMaxChain. It bounds the stack here and in every later phase that walks the tree.
constexpr int kMaxDepth = 256;
// Longest chain of operators or `else if`s. It nests to one side, so a phase that walks the tree
// needs as many frames: the compiler runs on a stack with room for them (cli/main.cc).
constexpr size_t kMaxChain = 50'000;

inline bool opens(const Token& t) {
  return t.kind == Tok::LParen || t.kind == Tok::LBracket || t.kind == Tok::LBrace;
}
inline bool is_name(const Token& t) { return t.kind == Tok::Name; }

struct Parser {
  Parser(FileId in, const SourceMap& map, Diagnostics& sink, Ast& out, Lexed lexed)
      : file(in),
        sources(map),
        diags(sink),
        ast(out),
        tokens(std::move(lexed.tokens)),
        comments(std::move(lexed.comments)),
        doc_used(comments.size()),
        limit(tokens.size() - 1) {}

  FileId file;
  const SourceMap& sources;
  Diagnostics& diags;
  Ast& ast;
  std::vector<Token> tokens;
  std::vector<Comment> comments;
  std::vector<bool> doc_used;
  size_t at = 0;
  size_t limit;  // where the innermost open delimiter closes; the last token at top level
  int depth = 0;
  bool panic = false;
  bool quiet =
      false;  // after an unclosed `(` or `[`: other mistakes in the statement follow from it
  WhereItems where_items = WhereItems::Many;
  std::unordered_set<std::string_view> spelled;         // the names of the file, once asked for
  Diagnostic scratch{Code::E0101, {}, {}, {}, {}, {}};  // takes what is not reported

  // -- tokens (parser.cc)
  const Token& peek(size_t ahead = 0) const {
    return tokens[std::min(at + ahead, tokens.size() - 1)];
  }
  bool is(Tok kind, size_t ahead = 0) const { return peek(ahead).kind == kind; }
  bool is_word(std::string_view word, size_t ahead = 0) const;  // a soft keyword
  bool same_line(size_t ahead = 0) const { return !peek(ahead).newline_before; }
  Token take();
  bool accept(Tok kind);
  bool expect(Tok kind, const char* after, const char* help = nullptr);  // "expected `=` after …"
  std::string_view text(const Token& token) const { return sources.text(token.span); }
  Span span_from(size_t begin) const;  // from a token up to the last one taken
  Span gap() const;                    // directly after the last token taken

  // -- mistakes (parser.cc)
  Diagnostic& fail(Code code, std::string message);
  Diagnostic& fail_expected(std::string_view what);  // at the current token
  std::string found() const;
  void skip_to_separator();  // to a `,` of this list, or its end
  void skip_to_statement();  // past the statement that went wrong

  // -- what other languages write (foreign.cc)
  const char* foreign_hint() const;  // help, if a word of another language stands here; or null
  std::string slice_help() const;
  void advise(Diagnostic& d);
  void advise_block(Diagnostic& d) const;
  void advise_end(Diagnostic& d, Span behind);
  void advise_assignment(Diagnostic& d, std::string_view op, std::string_view target) const;
  bool calls_an_effect(const Token& token) const;
  size_t statement_end() const;
  bool at_prefixed_string() const;
  void report_prefix();
  bool behind_increment() const;
  void report_increment();
  void pattern_without_parens(Let& node);
  ExprId tuple_without_parens(ExprId first, size_t begin, bool told);
  ExprId python_comprehension(ExprId body, size_t begin);
  ExprId body_without_braces();
  void equals_in_brackets(Bracket& b);
  bool defined_before(std::string_view word, size_t here) const;

  // Items up to the closing delimiter; the cursor is on the opening one. Takes both delimiters.
  template <class Item>
  void list(Item item);
  void after_item(const Token& open);
  bool enter();  // one level deeper; false, after a message, when too deep
  bool chain(size_t links, size_t most, const char* what);  // the same for a chain's next link

  // -- nodes
  ExprId add(ExprNode node, Span span) { return ast.exprs.add({std::move(node), span}); }
  ExprId make(ExprNode node, size_t begin) { return add(std::move(node), span_from(begin)); }
  ExprId error_expr() { return add(Error{}, peek().span); }
  TypeId make_type(decltype(Type::node) node, size_t begin) {
    return ast.types.add({std::move(node), span_from(begin)});
  }

  // -- names and types (parse_type.cc)
  Name name(const char* what);
  Name name_of(const Token& token) const { return {intern(text(token)), token.span}; }
  TypeId type();
  TypeId tensor_type();
  TypeId type_rule();
  Dim dim();

  // -- expressions (parse_expr.cc, parse_primary.cc, parse_string.cc)
  ExprId expr(WhereItems items);
  ExprId where(ExprId body, size_t begin);
  WhereItem where_item();
  bool at_in() const;  // the operator of `x in 0..10`
  ExprId binary(int min_level = 1);
  bool begins_generator() const;
  ExprId binary_chained(size_t begin, const Token& first_op, int level);
  ExprId unary();
  ExprId cast();
  ExprId postfix();
  ExprId index(ExprId base, size_t begin);
  ExprId index_item();
  ExprId call(ExprId callee, bool brackets, size_t begin);
  Bracket bracket();
  Name coordinate_name();
  ExprId field(ExprId base, size_t begin);
  ExprId property(ExprId base, size_t begin);  // after the dot
  ExprId primary();
  ExprId path();
  ExprId number();
  ExprId parens();
  ExprId array();
  ExprId comprehension(ExprId body, size_t begin);
  ExprId comprehension_block(const Comprehension& node, Span span);
  Name unused_name(const std::string& base, Span span);  // one that the file does not spell
  ExprId request();
  ExprId request_atom();
  ExprId lambda();
  ExprId if_expr();
  ExprId match_expr();
  MatchArm match_arm();
  ExprId pattern();
  ExprId pattern_atom();
  ExprId pattern_number();
  ExprId block();
  bool begins_record() const;
  ExprId record();
  ExprId string();
  ExprId part_name();
  Name field_name();
  std::vector<StrPiece> string_pieces(const Token& token);
  ExprId placeholder(uint32_t begin, uint32_t end, std::string& format);

  // -- statements (parse_stmt.cc, parse_item.cc)
  void statements(std::vector<StmtId>& out, ExprId* value);  // up to `limit`
  Stmt statement(bool& is_value);
  decltype(Stmt::node) let();
  std::vector<Slot> slots();
  Slot slot();
  decltype(Stmt::node) expr_stmt(bool& is_value);
  decltype(Stmt::node) assignment(ExprId target, size_t begin);
  void report_assignment(std::string_view name, std::optional<uint32_t> start,
                         const std::string& instead = {});
  decltype(Stmt::node) const_stmt(bool pub);
  decltype(Stmt::node) fn(bool pub, bool rule);
  decltype(Stmt::node) use(bool pub);
  decltype(Stmt::node) mod();
  decltype(Stmt::node) type_def(bool pub);
  decltype(Stmt::node) test();
  bool ends_statement();  // takes a `;`, or sees that none is needed
  void end_statement(bool block_like);
  void warn_comment();
  bool begins_item(size_t ahead = 0) const;
  bool begins_type_def(size_t ahead = 0) const;
  std::vector<Attribute> attributes();
  std::string doc();
};

template <class Item>
void Parser::list(Item item) {
  const Token open = take();
  size_t outer = std::exchange(limit, open.close);
  if (open.unclosed) quiet = true;
  while (at < limit) {
    item();
    after_item(open);
  }
  limit = outer;
  if (!open.unclosed) take();
}

// Leaves the level when it goes out of scope.
struct Nested {
  Parser& parser;
  bool ok;
  explicit Nested(Parser& p) : parser(p), ok(p.enter()) {}
  ~Nested() { --parser.depth; }
  Nested(const Nested&) = delete;
};

// Whether the node ends in `}` and needs no `;` after it.
bool is_block_like(const Ast& ast, ExprId id);

}  // namespace ein::ast

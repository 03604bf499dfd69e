// Text → tokens. Never fails: what cannot be a token is reported and skipped, and delimiters are
// paired here, so that the parser always knows where a list ends, even in a broken program.
#pragma once

#include <string_view>
#include <vector>

#include "base/diag.h"
#include "base/source.h"

namespace ein::ast {

// Bad and Junk have been reported by the lexer: Bad stands where a literal would.
enum class Tok {
#define EIN_TOKEN(kind, text) kind,
#define EIN_KEYWORD(kind, text) kind,
#include "syntax/tokens.def"
};

// "`(`", "`let`", "a name"
std::string describe(Tok kind);

struct Token {
  Tok kind;
  Span span;
  bool newline_before = false;  // a newline stands between the previous token and this one
  // An opening delimiter: the token that closes it. If it was never closed, `unclosed` is set (and
  // the mistake reported) and `close` is the token before which it should have been closed.
  uint32_t close = 0;
  bool unclosed = false;
};

struct Comment {
  Span span;              // from `//` to the end of the line, without the newline
  bool doc = false;       // `///`
  bool own_line = false;  // nothing but spaces before it on its line
  uint32_t token = 0;     // the token that follows it
};

struct Lexed {
  std::vector<Token> tokens;  // the last one is Tok::End
  std::vector<Comment> comments;
};

// The whole file, or the bytes [begin, end) of it: the inside of a string's placeholder.
Lexed lex(FileId file, const SourceMap& sources, Diagnostics& diags);
Lexed lex(FileId file, uint32_t begin, uint32_t end, const SourceMap& sources, Diagnostics& diags);

// Where the string or placeholder that begins before `at` ends: its `"`, its `}`. Strings may stand
// in placeholders. npos when nothing closes it on its line.
size_t closing_quote(std::string_view source, size_t at);
size_t closing_brace(std::string_view source, size_t at);

// Soft keywords are names to the lexer; the grammar asks for them by text.
bool is_keyword(std::string_view word);
std::vector<std::string_view> keywords();       // reserved
std::vector<std::string_view> soft_keywords();  // legal as names

}  // namespace ein::ast

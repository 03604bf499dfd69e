// What depends on line breaks. A statement ends without `;` where the next token stands on another line and cannot go on with
// the expression, at the end of its block, and before a word that only a definition begins with. `(` and `[` go on with an
// expression on its own line only.
#include <string.h>

#include "tree_sitter/parser.h"

enum Token { END, OPEN_CALL, OPEN_INDEX, NEVER };

void *tree_sitter_ein_external_scanner_create(void) { return NULL; }
void tree_sitter_ein_external_scanner_destroy(void *state) { (void)state; }
unsigned tree_sitter_ein_external_scanner_serialize(void *state, char *buffer) {
  (void)state, (void)buffer;
  return 0;
}
void tree_sitter_ein_external_scanner_deserialize(void *state, const char *buffer, unsigned size) {
  (void)state, (void)buffer, (void)size;
}

static bool is_letter(int32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c >= 0x80;
}

static bool is_one_of(const char *word, const char *const *list) {
  for (; *list; ++list) {
    if (strcmp(word, *list) == 0) return true;
  }
  return false;
}

// Reads the word that stands here; the first letters are enough to know it.
static void read_word(TSLexer *lexer, char word[8]) {
  unsigned size = 0;
  for (; is_letter(lexer->lookahead); lexer->advance(lexer, false)) {
    if (size < 7) word[size++] = lexer->lookahead < 0x80 ? (char)lexer->lookahead : '?';
  }
  word[size] = '\0';
}

static bool ends_here(TSLexer *lexer, bool new_line) {
  static const char *const goes_on[] = {"where", "else", "as", "in", "until", NULL};
  static const char *const begins[] = {"let", "const", "fn", "pub", "use", NULL};
  int32_t c = lexer->lookahead;
  if (lexer->eof(lexer) || c == '}') return true;
  if (c == '#') return true;
  if (is_letter(c)) {
    char word[8];
    read_word(lexer, word);
    return new_line ? !is_one_of(word, goes_on) : is_one_of(word, begins);
  }
  lexer->advance(lexer, false);
  if (c == '@' && !new_line) {  // `@fn`
    char word[8];
    read_word(lexer, word);
    return strcmp(word, "fn") == 0;
  }
  if (!new_line) return false;
  if (c == '!') return lexer->lookahead != '=';
  return c == '(' || c == '[' || c == '{' || c == '"' || c == '@' || c == '~';
}

bool tree_sitter_ein_external_scanner_scan(void *state, TSLexer *lexer, const bool *valid) {
  (void)state;
  if (valid[NEVER]) return false;  // after a mistake everything seems possible
  while (lexer->lookahead == ' ' || lexer->lookahead == '\t') lexer->advance(lexer, true);
  if (valid[OPEN_CALL] && lexer->lookahead == '(') {
    lexer->advance(lexer, false);
    lexer->mark_end(lexer);
    lexer->result_symbol = OPEN_CALL;
    return true;
  }
  if (valid[OPEN_INDEX] && lexer->lookahead == '[') {
    lexer->advance(lexer, false);
    lexer->mark_end(lexer);
    lexer->result_symbol = OPEN_INDEX;
    return true;
  }
  if (!valid[END]) return false;
  lexer->mark_end(lexer);
  lexer->result_symbol = END;
  bool new_line = false;
  for (;;) {
    int32_t c = lexer->lookahead;
    if (c == '\n') new_line = true;
    if (c == '\n' || c == '\r' || c == ' ' || c == '\t') {
      lexer->advance(lexer, false);
    } else if (c == '/') {
      lexer->advance(lexer, false);
      if (lexer->lookahead != '/') return false;  // a division
      while (lexer->lookahead != '\n' && !lexer->eof(lexer)) lexer->advance(lexer, false);
    } else {
      return ends_here(lexer, new_line);
    }
  }
}

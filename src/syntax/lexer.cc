#include "syntax/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "syntax/characters.h"
#include "syntax/delimiters.h"

namespace ein::ast {

namespace {

const std::unordered_map<std::string_view, Tok>& keyword_table() {
  static const std::unordered_map<std::string_view, Tok> table = {
#define EIN_KEYWORD(kind, text) {text, Tok::kind},
#include "syntax/tokens.def"
  };
  return table;
}

struct Operator {
  std::string_view text;
  Tok kind;
};

// Longest first: the first that fits is taken.
constexpr Operator kOperators[] = {
    {"**=", Tok::AssignOp}, {"<<=", Tok::AssignOp},  {">>=", Tok::AssignOp}, {"...", Tok::Ellipsis},
    {"..=", Tok::DotDotEq}, {"::", Tok::ColonColon}, {"..", Tok::DotDot},    {"**", Tok::StarStar},
    {"<<", Tok::LtLt},      {">>", Tok::GtGt},       {"+=", Tok::AssignOp},  {"-=", Tok::AssignOp},
    {"*=", Tok::AssignOp},  {"/=", Tok::AssignOp},   {"%=", Tok::AssignOp},  {"&=", Tok::AssignOp},
    {"^=", Tok::AssignOp},  {"|=", Tok::AssignOp},   {"==", Tok::EqEq},      {"!=", Tok::BangEq},
    {"<=", Tok::LtEq},      {">=", Tok::GtEq},       {"&&", Tok::AmpAmp},    {"||", Tok::PipePipe},
    {"->", Tok::Arrow},     {"=>", Tok::FatArrow},   {"(", Tok::LParen},     {")", Tok::RParen},
    {"[", Tok::LBracket},   {"]", Tok::RBracket},    {"{", Tok::LBrace},     {"}", Tok::RBrace},
    {",", Tok::Comma},      {";", Tok::Semi},        {":", Tok::Colon},      {".", Tok::Dot},
    {"+", Tok::Plus},       {"-", Tok::Minus},       {"*", Tok::Star},       {"/", Tok::Slash},
    {"%", Tok::Percent},    {"=", Tok::Eq},          {"<", Tok::Lt},         {">", Tok::Gt},
    {"!", Tok::Bang},       {"|", Tok::Pipe},        {"&", Tok::Amp},        {"^", Tok::Caret},
    {"~", Tok::Tilde},      {"@", Tok::At},          {"#", Tok::Hash},       {"?", Tok::Question},
};

// The index of the first operator that begins with a character; the end when none does.
size_t first_operator(char c) {
  static constexpr auto table = [] {
    std::array<uint8_t, 128> out{};
    out.fill(std::size(kOperators));
    for (size_t i = std::size(kOperators); i-- > 0;) {
      out[static_cast<unsigned char>(kOperators[i].text[0])] = static_cast<uint8_t>(i);
    }
    return out;
  }();
  auto at = static_cast<unsigned char>(c);
  return at < table.size() ? table[at] : std::size(kOperators);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
// Letters, digits and `_` of ASCII; other characters of names are looked up (characters.h).
bool continues_plainly(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}
bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

class Lexer {
 public:
  Lexer(FileId file, uint32_t begin, uint32_t end, const SourceMap& sources, Diagnostics& diags)
      : file_(file), text_(sources.text(file)), at_(begin), end_(end), diags_(diags) {}

  Lexed run() {
    out_.tokens.reserve((end_ - at_) / 3 + 2);
    if (at_ == 0) skip_prologue();
    while (skip_blank(), at_ < end_) next();
    push(Tok::End, at_);
    return std::move(out_);
  }

 private:
  char peek(uint32_t ahead = 0) const { return at_ + ahead < end_ ? text_[at_ + ahead] : '\0'; }
  // False at the end; most differ in the first character.
  bool starts(std::string_view s) const {
    return at_ < end_ && text_[at_] == s[0] && rest().substr(0, s.size()) == s;
  }
  std::string_view rest() const { return std::string_view(text_).substr(at_, end_ - at_); }
  Span span(uint32_t begin) const { return {file_, begin, at_}; }

  void push(Tok kind, uint32_t begin) {
    out_.tokens.push_back({kind, span(begin), newline_, 0, false});
    newline_ = false;
  }

  // A byte-order mark and a `#!` line are not part of the program.
  void skip_prologue() {
    if (starts("\xEF\xBB\xBF")) at_ += 3;
    if (starts("#!") && peek(2) != '[') {
      while (at_ < end_ && peek() != '\n') ++at_;
    }
  }

  void skip_blank() {
    for (;;) {
      char c = peek();
      if (at_ >= end_) return;
      if (c == '\n') newline_ = true;
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        ++at_;
      } else if (starts("//")) {
        comment();
      } else {
        return;
      }
    }
  }

  void comment() {
    uint32_t begin = at_;
    while (at_ < end_ && peek() != '\n') ++at_;
    std::string_view text = std::string_view(text_).substr(begin, at_ - begin);
    text = text.substr(0, text.find_last_not_of(" \t\r") + 1);
    Comment c;
    c.span = {file_, begin, begin + static_cast<uint32_t>(text.size())};
    c.doc = text.substr(0, 3) == "///" && text.substr(0, 4) != "////";
    c.own_line = newline_ || out_.tokens.empty();
    c.token = static_cast<uint32_t>(out_.tokens.size());
    out_.comments.push_back(c);
  }

  void next() {
    uint32_t begin = at_;
    char c = peek();
    if (c == '"') return string();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)) && !after_operand())) return number();
    if (size_t size = name_start(rest())) {
      while (size > 0) {
        at_ += static_cast<uint32_t>(size);
        while (continues_plainly(peek())) ++at_;
        size = at_ < end_ && static_cast<unsigned char>(text_[at_]) >= 0x80 ? name_continue(rest())
                                                                            : 0;
      }
      auto it = keyword_table().find(std::string_view(text_).substr(begin, at_ - begin));
      return push(it == keyword_table().end() ? Tok::Name : it->second, begin);
    }
    if (starts("/*")) return block_comment();
    for (size_t i = first_operator(c); i < std::size(kOperators); ++i) {
      const Operator& op = kOperators[i];
      if (!starts(op.text)) continue;
      at_ += static_cast<uint32_t>(op.text.size());
      return push(op.kind, begin);
    }
    bad_character();
  }

  // Whether the previous token ends an operand with nothing in between: `t.0`, not `.5`.
  bool after_operand() const {
    if (out_.tokens.empty() || out_.tokens.back().span.end != at_) return false;
    Tok kind = out_.tokens.back().kind;
    return kind == Tok::Name || kind == Tok::RParen || kind == Tok::RBracket || kind == Tok::Int ||
           kind == Tok::Float;
  }

  // The text is kept raw; the parser splits it into pieces, because placeholders hold expressions.
  void string() {
    uint32_t begin = at_++;
    size_t close = closing_quote(std::string_view(text_).substr(0, end_), at_);
    if (close != std::string_view::npos) {
      at_ = static_cast<uint32_t>(close) + 1;
      return push(Tok::Str, begin);
    }
    at_ = static_cast<uint32_t>(std::min<size_t>(text_.find('\n', at_), end_));
    if (at_ > begin + 1 && text_[at_ - 1] == '\r') --at_;
    diags_.error(Code::E0105, "string is not closed")
        .primary(span(begin), "no `\"` before the end of the line")
        .help("a line break in a string is written `\\n`");
    push(Tok::Bad, begin);
  }

  void block_comment() {
    uint32_t begin = at_;
    size_t close = rest().find("*/", 2);
    at_ = close == std::string_view::npos ? end_ : at_ + static_cast<uint32_t>(close) + 2;
    diags_.error(Code::E0102, "block comments do not exist")
        .primary({file_, begin, begin + 2})
        .help("begin each line of the comment with `//`");
  }

  void digits(bool hex = false) {
    while (is_digit(peek()) || peek() == '_' || (hex && is_hex_digit(peek()))) ++at_;
  }

  void number() {
    uint32_t begin = at_;
    Tok kind = Tok::Int;
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'b')) {
      bool hex = peek(1) == 'x';
      at_ += 2;
      digits(hex);
      if (at_ == begin + 2 || at_ > end_) return bad_number(begin, "its digits are missing", "");
      return finish_number(begin, kind);
    }
    if (peek() == '.') {
      ++at_;
      digits();
      finish_number(begin, Tok::Float, "0" + std::string(text_, begin, at_ - begin));
      return;
    }
    digits();
    // `1..n` is a range and `t.0.1` two fields; a dot belongs to the number only before a digit.
    bool field = begin > 0 && !out_.tokens.empty() && out_.tokens.back().kind == Tok::Dot &&
                 out_.tokens.back().span.end == begin;
    if (!field && peek() == '.' && is_digit(peek(1))) {
      kind = Tok::Float;
      ++at_;
      digits();
    } else if (!field && peek() == '.' && peek(1) != '.' && !name_start(rest().substr(1))) {
      ++at_;
      return finish_number(begin, Tok::Float, std::string(text_, begin, at_ - begin) + "0");
    }
    bool exponent = (peek() == 'e' || peek() == 'E') && !field;
    uint32_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
    if (exponent && is_digit(peek(1 + sign))) {
      kind = Tok::Float;
      at_ += 1 + sign;
      digits();
    } else if (exponent && sign) {
      at_ += 2;
      return bad_number(begin, "the exponent has no digits", "");
    }
    finish_number(begin, kind);
  }

  // A letter directly after a number: `1.0f`, `10px`. `better` is the spelling to suggest.
  void finish_number(uint32_t begin, Tok kind, std::string better = {}) {
    uint32_t suffix = at_;
    while (size_t size = at_ < end_ ? name_continue(rest()) : 0) at_ += static_cast<uint32_t>(size);
    if (at_ > suffix) {
      std::string word(text_, suffix, at_ - suffix);
      bool imaginary = word == "j" || word == "J";
      return bad_number(begin, fmt::format("`{}` cannot follow a number", word),
                        imaginary ? "a complex number is a record, `{ re: 0.0, im: 1.0 }`; "
                                    "`std::complex` and `std::fft` have functions for them"
                                  : "numbers have no suffix; `as` converts: `1.0 as f64`");
    }
    if (better.empty()) return push(kind, begin);
    diags_
        .error(Code::E0107, fmt::format("`{}` needs a digit on both sides of the dot",
                                        std::string_view(text_).substr(begin, at_ - begin)))
        .primary(span(begin))
        .fix({"write the digit", {{span(begin), better}}});
    push(kind, begin);
  }

  void bad_number(uint32_t begin, std::string why, std::string help) {
    Diagnostic& d =
        diags_.error(Code::E0107, "malformed number").primary(span(begin), std::move(why));
    if (!help.empty()) d.help(std::move(help));
    push(Tok::Bad, begin);
  }

  // Characters that look like something in the language are taken for it, after the message.
  void bad_character() {
    uint32_t begin = at_;
    if (auto like = look_alike(rest())) {
      at_ += static_cast<uint32_t>(like->size);
      Diagnostic& d = diags_.error(Code::E0102, fmt::format("{} cannot be used here", like->name));
      d.primary(span(begin));
      if (!like->meant.empty()) {
        d.fix({fmt::format("write `{}`", like->meant), {{span(begin), std::string(like->meant)}}});
      }
      for (const Operator& op : kOperators) {
        if (op.text == like->meant) return push(op.kind, begin);
      }
      if (like->meant != " ") push(Tok::Junk, begin);
      return;
    }
    // A run of such characters is one mistake; at least one is consumed, whatever it is.
    do {
      at_ += static_cast<uint32_t>(character_size(rest()));
    } while (at_ < end_ && !is_ordinary(rest()));
    diags_.error(Code::E0102, "unexpected character")
        .primary(span(begin), "the language does not use this character");
    push(Tok::Junk, begin);
  }

  FileId file_;
  const std::string& text_;
  uint32_t at_, end_;
  Diagnostics& diags_;
  Lexed out_;
  bool newline_ = false;
};

}  // namespace

Lexed lex(FileId file, uint32_t begin, uint32_t end, const SourceMap& sources, Diagnostics& diags) {
  Lexed out = Lexer(file, begin, end, sources, diags).run();
  pair_delimiters(out, diags);
  return out;
}

Lexed lex(FileId file, const SourceMap& sources, Diagnostics& diags) {
  return lex(file, 0, static_cast<uint32_t>(sources.text(file).size()), sources, diags);
}

namespace {

constexpr int kStringsInStrings = 32;

size_t brace_after(std::string_view s, size_t at, int depth);

// If a placeholder is not closed, the outermost string (depth 0) ends at the next quote; inside
// another placeholder it means that that one is not closed either.
size_t quote_after(std::string_view s, size_t at, int depth) {
  bool placeholders = true;
  while (at < s.size() && s[at] != '\n') {
    if (s[at] == '"') return at;
    bool pair = at + 1 < s.size() && s[at + 1] != '\n';
    if (s[at] == '\\' || (s[at] == '{' && pair && s[at + 1] == '{')) {
      at += pair ? 2 : 1;
    } else if (s[at] == '{' && placeholders) {
      size_t close = brace_after(s, at + 1, depth);
      placeholders = close != std::string_view::npos;
      if (!placeholders && depth > 0) break;
      at = placeholders ? close + 1 : at + 1;
    } else {
      ++at;
    }
  }
  return std::string_view::npos;
}

size_t brace_after(std::string_view s, size_t at, int depth) {
  for (int open = 1; depth < kStringsInStrings && at < s.size() && s[at] != '\n'; ++at) {
    if (s[at] == '"') at = quote_after(s, at + 1, depth + 1);
    if (at == std::string_view::npos) return at;
    open += s[at] == '{' ? 1 : s[at] == '}' ? -1 : 0;
    if (open == 0) return at;
  }
  return std::string_view::npos;
}

}  // namespace

size_t closing_quote(std::string_view source, size_t at) { return quote_after(source, at, 0); }
size_t closing_brace(std::string_view source, size_t at) { return brace_after(source, at, 0); }

std::string describe(Tok kind) {
  std::string_view text;
  switch (kind) {
#define EIN_TOKEN(name, spelling) \
  case Tok::name:                 \
    text = spelling;              \
    break;
#define EIN_KEYWORD(name, spelling) \
  case Tok::name:                   \
    text = spelling;                \
    break;
#include "syntax/tokens.def"
  }
  // Spellings are quoted, descriptions ("a name") are not: they contain a space.
  return text.find(' ') != std::string_view::npos ? std::string(text) : fmt::format("`{}`", text);
}

bool is_keyword(std::string_view word) { return keyword_table().count(word) > 0; }

std::vector<std::string_view> keywords() {
  return {
#define EIN_KEYWORD(kind, text) text,
#include "syntax/tokens.def"
  };
}

std::vector<std::string_view> soft_keywords() {
  return {
#define EIN_SOFT(kind, text) text,
#include "syntax/tokens.def"
  };
}

}  // namespace ein::ast

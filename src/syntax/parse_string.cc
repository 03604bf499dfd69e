// String literals: escapes, `{{` and `}}`, and placeholders `{expr:format}` whose expression is
// lexed and parsed in place, so that messages about it point into the string.
#include <fmt/format.h>

#include "base/number_format.h"
#include "syntax/parser_impl.h"

namespace ein::ast {

namespace {

void append_utf8(std::string& out, uint32_t c) {
  auto put = [&out](uint32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

// The escape at the start of `text` (which begins with a backslash): its length, 0 if there is
// none.
size_t unescape(std::string_view text, std::string& out) {
  constexpr std::string_view kLetters = "ntr0\\\"'", kValues("\n\t\r\0\\\"'", 7);
  if (text.size() < 2) return 0;
  if (size_t i = kLetters.find(text[1]); i != std::string_view::npos) {
    out += kValues[i];
    return 2;
  }
  if (text.substr(0, 3) != "\\u{") return 0;
  uint32_t value = 0;
  size_t i = 3;
  for (; i < text.size() && text[i] != '}'; ++i) {
    char c = text[i];
    bool digit = c >= '0' && c <= '9', lower = c >= 'a' && c <= 'f', upper = c >= 'A' && c <= 'F';
    if (!(digit || lower || upper) || i >= 9) return 0;
    value = value * 16 + static_cast<uint32_t>(digit   ? c - '0'
                                               : lower ? c - 'a' + 10
                                                       : c - 'A' + 10);
  }
  if (i == 3 || i == text.size() || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
    return 0;
  append_utf8(out, value);
  return i + 1;
}

}  // namespace

ExprId Parser::string() {
  size_t begin = at;
  const Token token = take();
  std::vector<StrPiece> pieces = string_pieces(token);
  return make(StrLit{std::move(pieces)}, begin);
}

std::vector<StrPiece> Parser::string_pieces(const Token& token) {
  std::vector<StrPiece> pieces;
  std::string plain;
  uint32_t i = token.span.begin + 1;
  const uint32_t end = token.span.end - 1;
  const std::string& source = sources.text(file);
  auto flush = [&] {
    if (!plain.empty()) pieces.push_back({std::exchange(plain, {}), {}, {}});
  };
  auto report = [&](uint32_t begin, uint32_t stop, std::string message) -> Diagnostic& {
    return diags.error(Code::E0106, std::move(message)).primary({file, begin, stop});
  };
  while (i < end) {
    char c = source[i];
    bool doubled = i + 1 < end && source[i + 1] == c;
    if (c == '\\') {
      size_t size = unescape(std::string_view(source).substr(i, end - i), plain);
      if (size == 0) {
        report(i, std::min(i + 2, end), "unknown escape in a string")
            .help("the escapes are \\n \\t \\r \\0 \\\\ \\\" \\' and \\u{1F600}");
        size = 2;
      }
      i += static_cast<uint32_t>(size);
    } else if ((c == '{' || c == '}') && doubled) {
      plain += c;
      i += 2;
    } else if (c == '}') {
      report(i, i + 1, "`}` without `{` in a string")
          .fix({"write `}}`", {{{file, i, i + 1}, "}}"}}});
      ++i;
    } else if (c == '{') {
      size_t brace = closing_brace(std::string_view(source).substr(0, end), i + 1);
      if (brace == std::string_view::npos) {
        report(i, i + 1, "placeholder is not closed")
            .help("a placeholder is `{x}` or `{x:.4f}`; write `{{` for a brace");
        break;
      }
      flush();
      auto close = static_cast<uint32_t>(brace);
      StrPiece piece;
      piece.value = placeholder(i + 1, close, piece.format);
      pieces.push_back(std::move(piece));
      i = close + 1;
    } else {
      plain += c;
      ++i;
    }
  }
  flush();
  return pieces;
}

ExprId Parser::placeholder(uint32_t begin, uint32_t end, std::string& format) {
  const std::string& source = sources.text(file);
  uint32_t colon = end;
  int nested = 0;
  for (uint32_t i = begin; i < end;
       ++i) {                // the last `:` outside brackets that is not half of `::`
    if (source[i] == '"') {  // a string in the placeholder
      size_t quote = closing_quote(std::string_view(source).substr(0, end), i + 1);
      if (quote != std::string_view::npos) i = static_cast<uint32_t>(quote);
    }
    char c = source[i];
    nested += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    bool path = c == ':' && (source[i + 1] == ':' || source[i - 1] == ':');
    if (c == ':' && !path && nested == 0) colon = i;
  }
  if (colon < end) {
    format = source.substr(colon + 1, end - colon - 1);
    if (!parse_number_format(format)) {
      diags.error(Code::E0106, fmt::format("unknown format `{}`", format))
          .primary({file, colon + 1, end})
          .help("a format is `.4f`, `8.3f`, `.3e`, `5d`: alignment, width, digits, kind");
      format.clear();
    }
  }
  Span inside{file, begin, colon};
  Parser sub(file, sources, diags, ast, lex(file, begin, colon, sources, diags));
  if (sub.is(Tok::End)) {
    diags.error(Code::E0106, "placeholder is empty")
        .primary({file, begin - 1, end + 1})
        .help("write `{{` and `}}` for braces");
    return add(Error{}, inside);
  }
  sub.depth = depth;
  ExprId id = sub.expr(WhereItems::Many);
  if (!sub.panic && !sub.is(Tok::End)) {
    sub.fail(Code::E0106,
             fmt::format("expected `}}` or `:` in the placeholder, found {}", sub.found()))
        .primary(sub.peek().span);
  }
  return sub.panic ? add(Error{}, inside) : id;
}

}  // namespace ein::ast

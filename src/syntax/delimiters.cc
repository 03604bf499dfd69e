#include "syntax/delimiters.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ein::ast {

namespace {

Tok closer_of(Tok open) {
  switch (open) {
    case Tok::LParen: return Tok::RParen;
    case Tok::LBracket: return Tok::RBracket;
    case Tok::LBrace: return Tok::RBrace;
    default: return Tok::End;
  }
}

bool is_closer(Tok kind) {
  return kind == Tok::RParen || kind == Tok::RBracket || kind == Tok::RBrace;
}

// A token that only a statement begins with: `(` and `[` that are still open before it were
// forgotten. (`fn (` is a type, and `;` stands in `[f32; n]`.)
bool begins_statement(const std::vector<Token>& tokens, size_t at, Tok open) {
  const Token& t = tokens[at];
  if (t.kind == Tok::Semi) return open == Tok::LParen;
  if (!t.newline_before) return false;
  bool named_fn = t.kind == Tok::Fn && tokens[at + 1].kind == Tok::Name;
  return t.kind == Tok::Let || t.kind == Tok::Const || t.kind == Tok::Pub || t.kind == Tok::Use ||
         named_fn;
}

struct Pairer {
  const std::vector<Token>& in;
  Diagnostics& diags;
  std::vector<Token> out;
  std::vector<uint32_t> moved;  // old position → new position, for comments
  struct Open {
    size_t at;  // in `out`
    uint32_t line;
  };
  std::vector<Open> stack;
  uint32_t line = 1;           // counted only over lines that have a token
  bool carry_newline = false;  // of a removed token
  // A `(` reported as unclosed often has its `)` a little later, after another closer: that is the
  // same mistake. By kind of closer: the line on which the last unclosed delimiter was opened.
  uint32_t forgiven[3] = {0, 0, 0};
  uint32_t broken_line = 0;  // the last line with a broken literal, which may hold the closer

  bool may_be_swallowed = false;  // a broken literal may hold the opener of a closer further on

  uint32_t& forgiven_line(Tok closer) {
    return forgiven[closer == Tok::RParen ? 0 : closer == Tok::RBracket ? 1 : 2];
  }

  void close_as_missing(bool report) {
    Token& open = out[stack.back().at];
    open.close = static_cast<uint32_t>(out.size());
    open.unclosed = true;
    if (report) forgiven_line(closer_of(open.kind)) = stack.back().line;
    bool swallowed = stack.back().line == broken_line;
    stack.pop_back();
    if (!report || swallowed) return;
    diags.error(Code::E0103, fmt::format("{} is never closed", describe(open.kind)))
        .primary(open.span, fmt::format("no {} for this", describe(closer_of(open.kind))));
  }

  void closer(Token t) {
    auto partner = std::find_if(stack.rbegin(), stack.rend(),
                                [&](Open o) { return closer_of(out[o.at].kind) == t.kind; });
    if (partner != stack.rend()) {
      bool report = true;  // only the innermost: the others are most likely the same mistake
      while (closer_of(out[stack.back().at].kind) != t.kind) {
        close_as_missing(report);
        report = false;
      }
      out[stack.back().at].close = static_cast<uint32_t>(out.size());
      stack.pop_back();
      out.push_back(t);
      return;
    }
    if (forgiven_line(t.kind) == line) {
      forgiven_line(t.kind) = 0;
      return;
    }
    if (!stack.empty() && t.kind != Tok::RBrace && out[stack.back().at].kind != Tok::LBrace) {
      Token& open = out[stack.back().at];
      Tok right = closer_of(open.kind);
      diags
          .error(Code::E0104,
                 fmt::format("{} is closed by {}", describe(open.kind), describe(t.kind)))
          .primary(t.span, fmt::format("expected {}", describe(right)))
          .label(open.span, "opened here");
      t.kind = right;
      open.close = static_cast<uint32_t>(out.size());
      stack.pop_back();
      out.push_back(t);
      return;
    }
    // An unclosed string may have swallowed the opening one.
    if (!std::exchange(may_be_swallowed, false)) {
      diags.error(Code::E0104, fmt::format("{} without an opening delimiter", describe(t.kind)))
          .primary(t.span, "there is nothing to close here");
    }
    if (t.kind == Tok::RBrace) return;
    t.kind = Tok::Junk;
    out.push_back(t);
  }

  void run() {
    for (size_t i = 0; i < in.size(); ++i) {
      bool report = true;
      while (!stack.empty() && out[stack.back().at].kind != Tok::LBrace &&
             begins_statement(in, i, out[stack.back().at].kind)) {
        close_as_missing(report);
        report = false;
      }
      const Token& t = in[i];
      bool newline = t.newline_before;
      if (newline) ++line;
      if (t.kind == Tok::Bad) {
        broken_line = line;
        may_be_swallowed = true;
      }
      moved.push_back(static_cast<uint32_t>(out.size()));
      if (t.kind == Tok::End) {
        for (report = true; !stack.empty(); report = false) close_as_missing(report);
      }
      if (is_closer(t.kind)) {
        size_t before = out.size();
        closer(t);
        carry_newline = out.size() == before && (newline || carry_newline);
        continue;
      }
      if (closer_of(t.kind) != Tok::End) stack.push_back({out.size(), line});
      out.push_back(t);
      out.back().newline_before = newline || carry_newline;
      carry_newline = false;
    }
  }
};

}  // namespace

void pair_delimiters(Lexed& lexed, Diagnostics& diags) {
  Pairer pairer{lexed.tokens, diags, {}, {}, {}};
  pairer.out.reserve(lexed.tokens.size());
  pairer.moved.reserve(lexed.tokens.size());
  pairer.run();
  for (Comment& c : lexed.comments) c.token = pairer.moved[c.token];
  lexed.tokens = std::move(pairer.out);
}

}  // namespace ein::ast

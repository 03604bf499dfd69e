// What people write who come from other languages, and how it is written here: the helps of the
// parser's errors.
#include <fmt/format.h>

#include <algorithm>

#include "syntax/parser_impl.h"

namespace ein::ast {

namespace {

// Words of other languages, for the help of an error that stands at or after one.
const char* foreign_help(std::string_view word) {
  static constexpr struct {
    std::string_view word;
    const char* help;
  } kWords[] = {
      {"return", "the value of a function is its last expression; remove `return`"},
      {"for", "there are no loops: use an index with a range, `let y[i in 0..n] = …`"},
      {"while", "there are no loops: write a recurrence, `let h[t in 1..T] = f(h[t-1])`"},
      {"def", "a function is written `fn name(x) { … }`"},
      {"func", "a function is written `fn name(x) { … }`"},
      {"function", "a function is written `fn name(x) { … }`"},
      {"lambda", "a lambda is written `|x| x * 2`"},
      {"var", "a name is defined by `let` and never changes"},
      {"mut",
       "values never change; write the steps as a recurrence, `let h[t in 1..T] = f(h[t-1])`"},
      {"import", "import names from a module with `use path::name;`"},
      {"from", "import names from a module with `use path::name;`"},
      {"and", "write `&&`"},
      {"or", "write `||`"},
      {"not", "write `!`"},
      {"elif", "write `else if`"},
      {"input", "an input is a `let` with a type and no value: `let x: [f32; n];`"},
      {"struct",
       "a record needs no declaration: `let p = { x: 1.0, y: 2.0 };`, then `p.x`; "
       "`type P = { x: f32, y: f32 };` names its type"},
  };
  for (const auto& entry : kWords) {
    if (entry.word == word) return entry.help;
  }
  return nullptr;
}

constexpr const char* kAxes =
    "axes have names, not numbers: name them, as in `let y[i, j] = x;`, and write `sum[i](y)`, or "
    "`sum[i](x[i, j])` in an equation";
constexpr const char* kConditional = "a conditional is written `if c { a } else { b }`";

// One item of `x[1:3, :]`: the parts between its colons.
struct Sliced {
  std::vector<std::string> parts;
  std::optional<int64_t> number(size_t k) const {
    if (k >= parts.size() || parts[k].empty()) return std::nullopt;
    bool minus = parts[k][0] == '-';
    if (parts[k].size() == minus || parts[k].size() > 9) return std::nullopt;
    if (parts[k].find_first_not_of("0123456789", minus) != std::string::npos) return std::nullopt;
    return std::stoll(parts[k]);
  }
  const std::string& part(size_t k) const {
    static const std::string kNone;
    return k < parts.size() ? parts[k] : kNone;
  }
};

// `a` or, counted from the end, `len - 1`.
std::string from_end(const Sliced& item, size_t k, const std::string& extent) {
  auto n = item.number(k);
  return n && *n < 0 ? fmt::format("{} - {}", extent, -*n) : item.part(k);
}

// The equation that says what the item says: its index on the left, and its place on the right.
void write_slice(const Sliced& item, const std::string& index, const std::string& extent,
                 std::string& slot, std::string& place) {
  auto low = item.number(0), high = item.number(1);
  std::string step = item.part(2);
  bool from_start = item.part(0).empty() || low == 0;
  slot = index;
  if (low && high && (*low < 0) == (*high < 0) && step.empty()) {
    slot += fmt::format(" in 0..{}", std::max<int64_t>(*high - *low, 0));
  } else if (!item.part(1).empty() && step.empty()) {
    slot += fmt::format(" in 0..{}", from_end(item, 1, extent));
    if (!from_start) slot += fmt::format(" - ({})", from_end(item, 0, extent));
  } else if (low && *low < 0 && step.empty()) {
    slot += fmt::format(" in 0..{}", -*low);
  }
  place = step.empty() || step == "1" ? index : fmt::format("{} * {}", step, index);
  if (!from_start) place += fmt::format(" + {}", from_end(item, 0, extent));
}

}  // namespace

const char* Parser::foreign_hint() const {
  const char* help = foreign_help(text(peek()));
  return help == nullptr && at > 0 ? foreign_help(text(tokens[at - 1])) : help;
}

// `x[:, 0]`: the equation that does the same, with the user's names.
std::string Parser::slice_help() const {
  size_t open = limit;
  while (open > 0 && (tokens[open].kind != Tok::LBracket || tokens[open].close != limit)) --open;
  std::vector<Sliced> items(1, Sliced{{""}});
  std::vector<bool> sliced(1, false);
  uint32_t behind = 0;
  for (size_t k = open + 1, next = 0; k < limit; k = next) {
    const Token& t = tokens[k];
    next = opens(t) ? std::min<size_t>(t.close, limit - 1) + 1 : k + 1;
    Sliced& item = items.back();
    if (t.kind == Tok::Comma) {
      items.push_back({{""}});
      sliced.push_back(false);
    } else if (t.kind == Tok::Colon || t.kind == Tok::ColonColon) {
      item.parts.resize(item.parts.size() + (t.kind == Tok::Colon ? 1 : 2));
      sliced.back() = true;
    } else {
      std::string& part = item.parts.back();
      if (!part.empty() && behind < t.span.begin) part += ' ';
      part += sources.text({file, t.span.begin, tokens[next - 1].span.end});
    }
    behind = tokens[next - 1].span.end;
  }
  std::string base =
      open > 0 && is_name(tokens[open - 1]) ? std::string(text(tokens[open - 1])) : "x";
  std::string left, right;
  size_t used = 0;
  for (size_t k = 0; k < items.size(); ++k) {
    std::string slot, place = items[k].parts[0];
    if (sliced[k]) {
      std::string index(1, "ijklmn"[used++ % 6]);
      std::string extent = fmt::format("extent({}, {})", base, k);
      write_slice(items[k], index, items.size() == 1 ? fmt::format("len({})", base) : extent, slot,
                  place);
      left += (left.empty() ? "" : ", ") + slot;
    }
    right += (right.empty() ? "" : ", ") + place;
  }
  return fmt::format("there are no slices: an index says which cells, as in `let y[{}] = {}[{}];`",
                     left, base, right);
}

// Helps of "expected …, found …", by what stands there instead.
void Parser::advise(Diagnostic& d) {
  const Token& t = peek();
  bool in_brackets = limit < tokens.size() && tokens[limit].kind == Tok::RBracket;
  if (t.kind == Tok::Eq) d.help("to compare, use `==`; `=` is for `let` and `where`");
  if (t.kind == Tok::Ellipsis)
    d.help("a pack is written `..name`; the whole array is its name alone");
  if (t.kind == Tok::At) d.help("a matrix product is written `sum[k](A[i, k] * B[k, j])`");
  if (in_brackets && (t.kind == Tok::Colon || t.kind == Tok::ColonColon)) {
    d.help(slice_help());
    quiet = true;  // `x[:, 1:]` is one mistake
  }
  if (const char* help = foreign_hint()) d.help(help);
}

// `if c: a`, `fn f(x): …`: bodies stand in braces.
void Parser::advise_block(Diagnostic& d) const {
  if (!is(Tok::Colon)) return;
  d.help(fmt::format("a body is written in braces, without `:`; {}", kConditional));
}

// Helps of "expected `;`": the statement goes on with something that cannot continue it.
void Parser::advise_end(Diagnostic& d, Span behind) {
  if (const char* help = foreign_hint()) {
    d.help(help);
  } else if (is(Tok::At)) {
    d.help("a matrix product is written `sum[k](A[i, k] * B[k, j])`");
  } else if (is(Tok::If) || is(Tok::Question)) {
    d.help(kConditional);
  } else if (is(Tok::Dot)) {
    d.help("the parts of a path are joined by `::`");
  } else if (at > 0 && calls_an_effect(tokens[at - 1])) {  // `print x;`
    size_t end = statement_end();
    Span last{file, tokens[end - 1].span.end, tokens[end - 1].span.end};
    d.help(fmt::format("arguments are written in parentheses: `{}(…)`", text(tokens[at - 1])));
    d.fix({"write the parentheses",
           {{{file, behind.begin, peek().span.begin}, "("}, {last, ")"}},
           false});
  } else {
    d.fix({"end the statement", {{behind, ";"}}, false});
  }
}

bool Parser::calls_an_effect(const Token& token) const {
  std::string_view word = text(token);
  return word == "print" || word == "eprint" || word == "assert" || word == "save" || word == "dbg";
}

// The token behind the statement's last one, on this line.
size_t Parser::statement_end() const {
  size_t end = at;
  while (end < limit && tokens[end].kind != Tok::Semi &&
         (end == at || !tokens[end].newline_before)) {
    const Token& t = tokens[end];
    end = opens(t) && t.close < limit ? t.close + 1 : end + 1;
  }
  return end;
}

// `f"{x}"`, `r"…"`: a letter directly before a string. It is read as the string alone.
bool Parser::at_prefixed_string() const {
  return is(Tok::Str, 1) && peek().span.end == peek(1).span.begin;
}

void Parser::report_prefix() {
  const Token prefix = take();
  std::string_view word = text(prefix);
  Diagnostic& d = fail(Code::E0101, fmt::format("`{}` before a string", word));
  d.primary(prefix.span, "a string has no prefix");
  if (word == "f" || word == "F") {
    d.help("every string has placeholders: `\"{x}\"`, `\"{x:.3f}\"`");
  } else {
    d.help("a string has no kinds; `\\\\` is a backslash and `{{` a brace in every one");
  }
  d.fix({fmt::format("remove `{}`", word), {{prefix.span, ""}}});
  panic = false;  // the string itself is fine
}

// `let a, b = …`: the names of a pattern without its parentheses; the cursor is on the first `,`.
// The pattern is read as it was meant.
void Parser::pattern_without_parens(Let& node) {
  const Name first = node.names[0];
  Diagnostic& d = fail_expected("`=` after the name");
  d.help("a `let` of several names takes them in parentheses: `let (a, b) = …;`");
  if (quiet) return;
  panic = false;
  node.tuple = true;
  while (is(Tok::Comma) && is(Tok::Name, 1)) {
    take();
    node.names.push_back(name_of(take()));
  }
  if (!is(Tok::Eq)) {
    panic = true;
    return;
  }
  std::vector<Edit> edits{{{file, first.span.begin, first.span.begin}, "("}, {gap(), ")"}};
  size_t comma = at + 1;
  for (size_t end = statement_end(), k = comma; k < end; ++k) {
    const Token& t = tokens[k];
    if (opens(t)) k = std::min<size_t>(t.close, end);
    if (t.kind != Tok::Comma) continue;
    edits.push_back({{file, tokens[comma].span.begin, tokens[comma].span.begin}, "("});
    edits.push_back({{file, tokens[end - 1].span.end, tokens[end - 1].span.end}, ")"});
    break;
  }
  d.fix({"write the parentheses", std::move(edits), false});
}

// `let (a, b) = 1.0, 2.0;`: the rest of a tuple without its parentheses, the cursor on a `,`.
// `told`: the pattern has been reported, and its fix covers this.
ExprId Parser::tuple_without_parens(ExprId first, size_t begin, bool told) {
  if (!told) {
    size_t end = statement_end();
    Span front{file, tokens[begin].span.begin, tokens[begin].span.begin};
    Span back{file, tokens[end - 1].span.end, tokens[end - 1].span.end};
    fail_expected("`;` after the statement")
        .help("a tuple is written in parentheses: `(a, b)`")
        .fix({"write the parentheses", {{front, "("}, {back, ")"}}, false});
    panic = false;
  }
  Tuple tuple{{first}};
  while (accept(Tok::Comma)) tuple.items.push_back(expr(WhereItems::One));
  return make(std::move(tuple), begin);
}

// Whether a `let`, `const` or parameter before this place has the name.
bool Parser::defined_before(std::string_view word, size_t here) const {
  for (size_t k = 1; k < here; ++k) {
    bool defines = tokens[k - 1].kind == Tok::Let || tokens[k - 1].kind == Tok::Const;
    if (defines && is_name(tokens[k]) && text(tokens[k]) == word) return true;
  }
  return false;
}

// `[i * i for i in 0..5]`: read as the comprehension that was meant.
ExprId Parser::python_comprehension(ExprId body, size_t begin) {
  fail_expected("`,` or `]`").help("write `[e | i in 0..n]`, with a `|`");
  panic = false;
  return comprehension(body, begin);
}

// `fn f(x) = x * 2;`: the body without its braces.
ExprId Parser::body_without_braces() {
  Diagnostic& d =
      fail(Code::E0101, fmt::format("expected `{{` and the function's body, found {}", found()));
  d.primary(peek().span, "not expected here");
  d.help("a body is written in braces, without `=`: `fn f(x) { x * 2.0 }`");
  panic = false;
  take();
  size_t begin = at;
  ExprId value = expr(WhereItems::Many);
  return make(Block{{}, value}, begin);
}

// `sum[0](x)`, `softmax[-1](x)`: an axis by its number.
Name Parser::coordinate_name() {
  bool number = is(Tok::Int) || (is(Tok::Minus) && is(Tok::Int, 1));
  if (panic || !number) return name("the name of a coordinate");
  fail_expected("the name of a coordinate").help(kAxes);
  return {};
}

// `sum[axis=0](x)`, `sum[i=0..3](i)`; the cursor is on the `=`.
void Parser::equals_in_brackets(Bracket& b) {
  const Token word = tokens[at - 1];
  Diagnostic& d =
      fail(Code::E0101, fmt::format("expected `in` and a range after `{}`, found `=`", text(word)));
  d.primary(peek().span, "not expected here");
  bool axis = text(word) == "axis" || text(word) == "dim";
  if (axis) {
    d.help(kAxes);
  } else {
    d.help(fmt::format("the range of an index is written `{} in 0..n`", text(word)));
  }
  if (axis) {
    b.name = {};
    return;
  }
  panic = false;
  take();
  b.range = binary();
}

// Helps of `x = 2.0;`, `x += 1.0;`, `let x += 1.0;` and `x++;`. `op` is the operator that is
// applied to the old value: `+`, or nothing.
void Parser::advise_assignment(Diagnostic& d, std::string_view op, std::string_view target) const {
  std::string name = target.empty() ? "x" : std::string(target);
  std::string fresh = op.empty() ? "…" : fmt::format("{} {} …", name, op);
  std::string step =
      op.empty() ? fmt::format("… {}[t - 1] …", name) : fmt::format("{}[t - 1] {} …", name, op);
  d.help(
      fmt::format("give the new value a name of its own, `let new_{0} = {1};`; steps that follow "
                  "each other are a recurrence, `let {0}[t in 1..T] = {2};`",
                  name, fresh, step));
}

// `x++`: the cursor is behind it.
bool Parser::behind_increment() const {
  if (at < 2 || !(is(Tok::Semi) || at >= limit || peek().newline_before)) return false;
  const Token &a = tokens[at - 2], &b = tokens[at - 1];
  return a.kind == b.kind && (a.kind == Tok::Plus || a.kind == Tok::Minus) &&
         a.span.end == b.span.begin;
}

void Parser::report_increment() {
  Span both = join(tokens[at - 2].span, tokens[at - 1].span);
  Diagnostic& d = fail(Code::E0116, fmt::format("`{}` does not exist", sources.text(both)));
  d.primary(both, "values are defined once and never assigned");
  bool named = at > 2 && is_name(tokens[at - 3]);
  advise_assignment(d, text(tokens[at - 1]), named ? text(tokens[at - 3]) : "");
}

}  // namespace ein::ast

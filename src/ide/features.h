// What an editor shows about a program. Every function answers for those parts of the program that
// make sense; an empty answer means that there is nothing to show. Texts for people are Markdown.
#pragma once

#include <optional>

#include "ide/analysis.h"

namespace ein::ide {

// ---- hover.cc, derivative.cc ---------------------------------------------------------------------

struct Hover {
  Span span;
  std::string markdown;
};
std::optional<Hover> hover(const Analysis& a, uint32_t offset);
// Whether the place is in a request: then the answer needs a full analysis.
bool in_request(const Analysis& a, uint32_t offset);
// The derivative that this request asks for: its lines, what is summed, and why.
std::string derivative_text(const Analysis& a, ast::ExprId request);

// ---- hints.cc ------------------------------------------------------------------------------------

struct Hint {
  uint32_t offset = 0;
  std::string text;
  bool type = false;  // a type; otherwise a range
};
std::vector<Hint> inlay_hints(const Analysis& a, uint32_t begin, uint32_t end);

// ---- complete.cc, signature.cc -------------------------------------------------------------------

struct Completion {
  enum class Kind : uint8_t { Value, Constant, Index, Function, Module, Type, Field, Keyword };
  std::string label, detail, doc;
  Kind kind = Kind::Value;
  Span replaced;            // the word being written
  std::vector<Edit> edits;  // further edits: the `use` that the name needs
  int rank = 0;             // smaller is better
};
std::vector<Completion> complete(const Analysis& a, uint32_t offset);

struct Signature {
  std::string label, doc;
  std::vector<std::pair<uint32_t, uint32_t>> parameters;  // byte ranges in the label
  size_t active = 0;
  const Entity* entity = nullptr;  // the function; null: a built-in one
  bool brackets = false;  // the place is in the brackets of the call, not in its parentheses
};
std::optional<Signature> signature_help(const Analysis& a, uint32_t offset);

// A line about each built-in function (builtin_docs.def).
struct BuiltinDoc {
  std::string signature, doc;
};
std::optional<BuiltinDoc> builtin_doc(const std::string& name);

// ---- actions.cc ----------------------------------------------------------------------------------

struct Action {
  std::string title;
  std::vector<Edit> edits;
  const Diagnostic* fixes = nullptr;  // null: it repairs no mistake
  bool safe = false;
};
std::vector<Action> actions(const Analysis& a, uint32_t begin, uint32_t end);
// The action that gives a slice a name (slices.cc).
std::optional<Action> name_slice(const Analysis& a, uint32_t begin, uint32_t end);

// The text as the formatter writes it; nothing if the program has syntax errors.
std::optional<std::string> formatted(const Analysis& a);

// ---- outline.cc ----------------------------------------------------------------------------------

struct Outline {
  std::string name, detail;
  Kind kind = Kind::Value;
  bool test = false;
  Span span, name_span;
  std::vector<Outline> children;
};
std::vector<Outline> outline(const Analysis& a);

struct Fold {
  uint32_t begin = 0, end = 0;
  enum class Kind : uint8_t { Code, Comment, Imports } kind = Kind::Code;
};
std::vector<Fold> folds(const Analysis& a);

struct Lens {
  Span span;
  std::string title, verb;          // run, test, grad, explain, audit
  std::vector<std::string> values;  // the values that the verb is about
};
std::vector<Lens> lenses(const Analysis& a);

// ---- highlight.cc --------------------------------------------------------------------------------

enum class Colour : uint8_t {
  Keyword,
  Comment,
  String,
  Number,
  Operator,
  Function,
  Module,
  Type,
  Field,
  Value,
  Parameter,
  Index,
  Coordinate,
  Input,
  Request
};
// The names that editors use, in the order of Colour.
const std::vector<const char*>& colour_names();
struct Coloured {
  Span span;
  Colour colour = Colour::Value;
  bool defines = false, constant = false, library = false;
};
std::vector<Coloured> coloured(const Analysis& a);

}  // namespace ein::ide

// Diagnostics: what the user reads when a program is wrong. A Diagnostic has a code from codes.def,
// a message that names what the user wrote, labels on every place that disagrees (the primary one
// first), notes, one concrete help, and fixes that `ein fix` may apply. Rendering is render.h's.
//
//   diags.error(Code::E0301, "index `k` has two different ranges")
//        .primary(use_b, "here `k` is coordinate 0 of `B`: 0..4")
//        .label(use_a, "here `k` is coordinate 1 of `A`: 0..3")
//        .help("…");
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "base/source.h"

namespace ein {

enum class Severity { Error, Warning };

enum class Code {
#define EIN_DIAG(code, severity, slug, title) code,
#include "base/codes.def"
#undef EIN_DIAG
};

struct CodeInfo {
  Code code;
  const char* name;  // "E0301"
  Severity severity;
  const char* slug;   // "range-conflict"
  const char* title;  // "index has two different ranges"
};
const CodeInfo& info(Code code);
const std::vector<CodeInfo>& all_codes();

struct Label {
  Span span;
  std::string text;
  bool primary = false;
};

struct Edit {
  Span span;
  std::string replacement;
};

struct Fix {
  std::string title;
  std::vector<Edit> edits;
  bool safe = true;  // `ein fix` applies it without asking
};

struct Diagnostic {
  Code code;
  std::string message;
  std::vector<Label> labels;
  std::vector<std::string> notes;
  std::string help_text;
  std::vector<Fix> fixes;

  Diagnostic& primary(Span span, std::string text = {});
  Diagnostic& label(Span span, std::string text);
  Diagnostic& note(std::string text);
  Diagnostic& help(std::string text);
  Diagnostic& fix(Fix fix);
};

class Diagnostics {
 public:
  // The reference stays valid while others are added. Severity comes from the code.
  Diagnostic& error(Code code, std::string message) { return add(code, std::move(message)); }
  Diagnostic& warning(Code code, std::string message) { return add(code, std::move(message)); }

  // Warnings of this code inside the span are intended: `#[allow(W0301)]`.
  void allow(Code code, Span span) { allowed_.push_back({code, span}); }
  bool allowed(const Diagnostic& d) const;

  bool has_errors() const { return errors_ > 0; }
  size_t errors() const { return errors_; }
  const std::deque<Diagnostic>& all() const { return items_; }
  Diagnostic& at(size_t i) { return items_[i]; }  // in the order in which they were added
  std::vector<const Diagnostic*> sorted() const;  // by file and position, stable

 private:
  Diagnostic& add(Code code, std::string message);

  struct Allowed {
    Code code;
    Span span;
  };
  std::deque<Diagnostic> items_;
  std::vector<Allowed> allowed_;
  size_t errors_ = 0;
};

// The closest candidate within a small edit distance, or "" when none is near.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace ein

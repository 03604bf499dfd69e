// Diagnostics as text: frames for people, one line each for editors, JSON for tools. All three come
// from the same Diagnostic. Nothing is printed here; the caller decides where the text goes.
#pragma once

#include <string>

#include "base/diag.h"

namespace ein {

enum class ErrorFormat { Human, Short, Json };

struct RenderOptions {
  ErrorFormat format = ErrorFormat::Human;
  bool color = false;
  size_t max_errors = 20;  // people stop reading; JSON always has all of them
};

// All diagnostics in source order, then how many were found. Ends in a newline unless empty.
std::string render(const Diagnostics& diags, const SourceMap& sources,
                   const RenderOptions& options);

// One diagnostic.
std::string render_human(const Diagnostic& diag, const SourceMap& sources, bool color = false);
std::string render_short(const Diagnostic& diag, const SourceMap& sources);
std::string render_json(const Diagnostic& diag, const SourceMap& sources);

// Columns that a code point takes on a terminal: 0 for combining marks, 2 for wide ones.
int display_width(char32_t c);

}  // namespace ein

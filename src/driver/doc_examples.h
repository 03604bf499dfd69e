// Examples in doc comments as tests. A block
//
//   /// ```ein
//   /// assert(double(2.0) == 4.0);
//   /// ```
//
// becomes a `test` block in the same place: its lines keep their numbers and columns, so that a
// failure points at the line of the comment.
#pragma once

#include <string>

namespace ein {

// The program with every `ein` block of its `///` comments at the start of a line turned into a
// test; everything else as it was.
std::string doc_examples_as_tests(const std::string& text);

}  // namespace ein

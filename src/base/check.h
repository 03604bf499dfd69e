// A broken invariant of the compiler itself. The driver reports it as an internal error (exit 70);
// it is never used for a mistake in the user's program.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace ein {

struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

// `src/core/eval.cc`, wherever the project was built: a report says nothing of other folders.
inline std::string_view within_project(std::string_view file) {
  size_t at = file.rfind("/src/");
  return at == std::string_view::npos ? file : file.substr(at + 1);
}

[[noreturn]] inline void internal_error(const char* file, int line, const std::string& what) {
  throw InternalError(std::string(within_project(file)) + ":" + std::to_string(line) + ": " + what);
}

}  // namespace ein

#define EIN_CHECK(cond, what)                                     \
  do {                                                            \
    if (!(cond)) ::ein::internal_error(__FILE__, __LINE__, what); \
  } while (false)
#define EIN_UNREACHABLE(what) ::ein::internal_error(__FILE__, __LINE__, what)

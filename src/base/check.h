// A broken invariant of the compiler itself. The driver reports it as an internal error (exit 70);
// it is never used for a mistake in the user's program.
#pragma once

#include <stdexcept>
#include <string>

namespace ein {

struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn]] inline void internal_error(const char* file, int line, const std::string& what) {
  throw InternalError(std::string(file) + ":" + std::to_string(line) + ": " + what);
}

}  // namespace ein

#define EIN_CHECK(cond, what)                                     \
  do {                                                            \
    if (!(cond)) ::ein::internal_error(__FILE__, __LINE__, what); \
  } while (false)
#define EIN_UNREACHABLE(what) ::ein::internal_error(__FILE__, __LINE__, what)

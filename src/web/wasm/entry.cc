// The functions that a page calls: memory for a request, and the answer, which stays valid until
// the next request.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "web/web.h"

namespace {

ein::web::Session& session() {
  static auto* const one = new ein::web::Session({.version = EIN_VERSION});
  return *one;
}

std::string g_answer;

}  // namespace

extern "C" {

__attribute__((export_name("ein_take"))) char* ein_take(size_t bytes) {
  return static_cast<char*>(std::malloc(bytes ? bytes : 1));
}

// Takes a request and frees its memory. Returns the length of the answer; the next function returns
// its address.
__attribute__((export_name("ein_web"))) size_t ein_web(char* request, size_t bytes) {
  g_answer.clear();
  g_answer.shrink_to_fit();
  std::string text(request, bytes);
  std::free(request);
  g_answer = session().answer(text);
  return g_answer.size();
}

__attribute__((export_name("ein_answer"))) const char* ein_answer() { return g_answer.data(); }
}

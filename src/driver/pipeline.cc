#include "driver/pipeline.h"

#include <fmt/format.h>

#include "base/check.h"
#include "core/print.h"
#include "core/verify.h"
#include "syntax/dump.h"

namespace ein {

Pipeline::Rules Pipeline::broken_rules(const core::Module& m) { return core::verify(m); }
Pipeline::Rules Pipeline::broken_rules(const loops::Program& p) { return loops::verify(p); }

void Pipeline::check(const char* pass, const Rules& broken) {
  EIN_CHECK(broken.empty(), fmt::format("after {}: {}", pass, fmt::join(broken, "; ")));
}

std::string Pipeline::text_of(const sema::Program& p) { return ast::dump(p.ast); }
std::string Pipeline::text_of(core::Module& m) { return core::print(m); }
std::string Pipeline::text_of(const plan::Plan& p) { return plan::print(p); }
std::string Pipeline::text_of(const loops::Program& p) { return loops::print(p); }

std::string Pipeline::text_of(const Image& image) {
  std::string out;
  for (const Image::Buffer& b : image.buffers) {
    out += fmt::format("{} {}\n", name_of(b.dtype), b.name);
  }
  return out;
}

std::string Pipeline::text_of(const std::string& code) {
  return fmt::format("{} bytes of object code\n", code.size());
}

}  // namespace ein

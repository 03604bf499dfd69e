#include "driver/findings.h"

#include <fmt/format.h>

#include <algorithm>

namespace ein {

std::vector<Uncut> uncut_recurrences(const core::Module& m, const char* when) {
  std::vector<Uncut> out;
  for (const core::Family& f : m.families) {
    if (f.checkpoint == 0) continue;
    out.push_back(
        {fmt::format("`{}` keeps all its steps: how many to recompute depends on extents, "
                     "which are not known when {}",
                     text(f.name), when),
         f.span});
  }
  return out;
}

void reject_unproven(const core::Module& m, Diagnostics& diags) {
  for (const core::Constraint& c : m.constraints) {
    const auto* cond = core::get_if<core::Apply>(m, c.cond);
    if (!cond || cond->op != core::Op::Eq) continue;
    auto& d = diags.error(Code::E0406, "not proven: " + c.message);
    d.primary(c.first, "");
    if (c.second.valid() && !(c.second == c.first)) d.label(c.second, "and here");
    d.help(
        "give both coordinates the same name, or omit --strict to check it when the program "
        "starts");
  }
}

void keep_findings(const Diagnostics& found, Span test, Diagnostics& diags) {
  for (const Diagnostic& d : found.all()) {
    auto inside = [&](const Label& l) {
      return l.primary && l.span.file == test.file && l.span.begin >= test.begin &&
             l.span.end <= test.end;
    };
    bool own = std::any_of(d.labels.begin(), d.labels.end(), inside);
    own &= !found.allowed(d);
    if (info(d.code).severity == Severity::Error || own) diags.error(d.code, d.message) = d;
  }
}

bool is_library_warning(const Diagnostic& d, const SourceMap& sources, FileId root) {
  if (info(d.code).severity == Severity::Error) return false;
  auto inside = [&](const Label& l) {
    return l.primary && l.span.file != root && sources.name(l.span.file).starts_with("std/");
  };
  return std::any_of(d.labels.begin(), d.labels.end(), inside);
}

bool is_earlier_warning(const Diagnostic& d, const std::vector<sema::EarlierText>& earlier) {
  if (info(d.code).severity == Severity::Error) return false;
  auto inside = [&](const Label& l) { return l.primary && sema::is_earlier(earlier, l.span.file); };
  return std::any_of(d.labels.begin(), d.labels.end(), inside);
}

}  // namespace ein

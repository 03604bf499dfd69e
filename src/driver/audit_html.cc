#include <fmt/format.h>

#include "driver/audit.h"
#include "driver/page.h"

namespace ein {
namespace {

std::string card(const Repeated& r, const std::string& id, const PageSource& source,
                 const PageNames& names) {
  std::string along = escaped(fmt::format("{}", fmt::join(r.along, ", ")));
  std::string out = fmt::format("<section class=\"card{}\" id=\"{}\">\n",
                                r.suspicion.empty() ? "" : " warn", id);
  out += fmt::format("<p><code>{}</code> is repeated along <code>{}</code>: its gradient sums "
                     "<code>{}</code>. <span class=\"note\">{}</span></p>\n",
                     linked(r.read, names), along, along, source.place(r.span));
  if (!r.suspicion.empty()) {
    out += fmt::format("<p><strong>Looks unintended:</strong> {}.</p>\n", escaped(r.suspicion));
  }
  return out + "</section>\n";
}

}  // namespace

std::string audit_html(const std::vector<Repeated>& all, const core::Module& m,
                       const SourceMap& sources, FileId root) {
  PageSource source{sources, root};
  PageNames names;
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    const core::Family& f = m[core::FamilyId(i)];
    if (uint32_t line = f.generated ? 0 : source.line_of(f.span)) {
      names.emplace(text(f.name), fmt::format("line-{}", line));
    }
  }
  std::string body = "<h1>Broadcasts</h1>\n";
  if (all.empty()) body += "<p>There are none: every operand has every coordinate.</p>\n";
  if (!all.empty()) {
    body += "<p class=\"note\">A value without a coordinate that its reader runs over is repeated along it. That claims "
            "that the value does not depend on the coordinate, and its gradient sums over it.</p>\n";
  }
  std::vector<std::pair<std::string, uint32_t>> hovers;
  core::FamilyId last;
  for (const Repeated& r : all) {
    std::string id = fmt::format("read-{}", hovers.size() + 1);
    uint32_t line = source.line_of(r.span);
    if (line > 0) source.targets.emplace(line, id);
    if (r.reader != last) {
      body += fmt::format("<h2><code>{}</code></h2>\n", linked(text(m[r.reader].name), names));
    }
    last = r.reader;
    body += card(r, id, source, names);
    hovers.emplace_back(id, line);
  }
  return page("Broadcasts of " + sources.name(root), source, body, hovers);
}

}  // namespace ein

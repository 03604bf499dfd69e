#include <fmt/format.h>

#include "driver/audit.h"
#include "driver/page.h"

namespace ein {
namespace {

std::string card(const Repeated& r, const std::string& id, const PageSource& source,
                 const PageNames& names) {
  std::string along = escaped(fmt::format("{}", fmt::join(r.along, ", ")));
  std::string out =
      fmt::format("<section class=\"card{}\" id=\"{}\">\n", r.suspicion.empty() ? "" : " warn", id);
  out += fmt::format(
      "<p><code>{}</code> is repeated along <code>{}</code>: its gradient sums "
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
  std::map<std::string, std::string> what;
  for (const Repeated& r : all) {
    for (core::FamilyId id : {r.reader, r.operand}) {
      const core::Family& f = m[id];
      names[text(f.name)] = "name-" + text(f.name);
      what[text(f.name)] = value_text(text(f.name), f.path, source.place(f.span));
    }
  }
  std::string body = "<h1>Broadcasts</h1>\n";
  if (all.empty()) body += "<p>There are none: every operand has every coordinate.</p>\n";
  if (!all.empty()) {
    body +=
        "<p class=\"note\">A value without a coordinate that its reader runs over is repeated "
        "along it. That claims "
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
  if (!all.empty()) body += names_table(names, what);
  return page("Broadcasts of " + sources.name(root), source, body, hovers);
}

}  // namespace ein

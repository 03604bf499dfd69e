#include "driver/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/build.h"

namespace ein {

void add_request(core::Module& m, const ExtraRequest& extra, Diagnostics& diags) {
  auto find = [&](const std::string& name) {
    core::FamilyId id = m.find(intern(name));
    if (id) return id;
    std::vector<std::string> known;
    for (const core::Family& f : m.families) known.push_back(text(f.name));
    std::string near = did_you_mean(name, known);
    auto& d = diags.error(Code::E0201, fmt::format("the program defines no value `{}`", name));
    if (!near.empty()) d.help(fmt::format("did you mean `{}`?", near));
    return id;
  };
  core::FamilyId num = find(extra.of);
  for (const std::string& name : extra.wrt) {
    core::FamilyId den = find(name);
    if (!num || !den) continue;
    for (core::FamilyId f : {num, den}) {
      if (is_float(m[f].dtype)) continue;
      diags
          .error(Code::E0602, fmt::format("`{}` is {}: only floats have derivatives",
                                          text(m[f].name), name_of(m[f].dtype)))
          .primary(m[f].span, "defined here");
      return;
    }
    core::Family f;
    f.name = core::fresh_name(m, fmt::format("d_{}_d_{}", extra.of, name));
    f.dtype = m[num].dtype;
    core::Request r{num, {}, den, {}};
    core::Clause clause;
    auto carry = [&](const core::Family& from, std::vector<core::ExprId>& at) {
      for (core::Coord c : from.coords) {
        for (const core::Coord& taken : f.coords) {
          if (c.name && taken.name == c.name) c.name = intern("d_" + text(c.name));
        }
        at.push_back(core::slot(m, static_cast<uint32_t>(f.coords.size())));
        f.coords.push_back(c);
        clause.box.push_back({core::int_lit(m, 0), c.extent});
      }
    };
    carry(m[num], r.num_at);
    carry(m[den], r.den_at);
    clause.body = core::request(m, r, m[num].span);
    clause.span = m[num].span;
    f.clauses.push_back(clause);
    m.families.add(std::move(f));
  }
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

}  // namespace ein

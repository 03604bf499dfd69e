#include "driver/requests.h"

#include <fmt/format.h>

#include "core/build.h"

namespace ein {
namespace {

core::FamilyId find_named(const core::Module& m, const std::string& name, Diagnostics& diags) {
  core::FamilyId id = m.find(intern(name));
  if (id) return id;
  std::vector<std::string> known;
  for (const core::Family& f : m.families) known.push_back(text(f.name));
  std::string near = did_you_mean(name, known);
  auto& d = diags.error(Code::E0201, fmt::format("the program defines no value `{}`", name));
  if (!near.empty()) d.help(fmt::format("did you mean `{}`?", near));
  return id;
}

void add_request(core::Module& m, core::FamilyId num, core::FamilyId den) {
  core::Family f;
  f.name = core::fresh_name(m, fmt::format("d_{}_d_{}", text(m[num].name), text(m[den].name)));
  f.dtype = m[num].dtype;
  f.coords = m[num].coords;
  core::add_coords(f.coords, m[den].coords);
  core::Request r{num, {}, den, {}};
  core::Clause clause;
  for (uint32_t k = 0; k < f.rank(); ++k) {
    (k < m[num].rank() ? r.num_at : r.den_at).push_back(core::slot(m, k));
    clause.box.push_back({core::int_lit(m, 0), f.coords[k].extent});
  }
  clause.body = core::request(m, r, m[num].span);
  clause.span = m[num].span;
  f.clauses.push_back(clause);
  m.families.add(std::move(f));
}

}  // namespace

void add_requests(core::Module& m, const ExtraRequest& extra, Diagnostics& diags) {
  core::FamilyId num = find_named(m, extra.of, diags);
  for (const std::string& name : extra.wrt) {
    core::FamilyId den = find_named(m, name, diags);
    if (!num || !den) continue;
    for (core::FamilyId f : {num, den}) {
      if (is_float(m[f].dtype)) continue;
      diags
          .error(Code::E0602, fmt::format("`{}` is {}: only floats have derivatives",
                                          text(m[f].name), name_of(m[f].dtype)))
          .primary(m[f].span, "defined here");
      return;
    }
    add_request(m, num, den);
  }
}

}  // namespace ein

#include "driver/requests.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/build.h"

namespace ein {
namespace {

// The value of that name, or the parts of the record.
std::vector<core::FamilyId> find_named(const core::Module& m, const std::string& name,
                                       Diagnostics& diags) {
  if (core::FamilyId id = m.find(intern(name))) return {id};
  std::vector<core::FamilyId> parts;
  std::vector<std::string> known;
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    const core::Family& f = m[core::FamilyId(i)];
    if (f.path.starts_with(name + ".")) parts.push_back(core::FamilyId(i));
    known.push_back(f.spelled());
    for (size_t dot = f.path.find('.'); dot != std::string::npos; dot = f.path.find('.', dot + 1)) {
      known.push_back(f.path.substr(0, dot));
    }
  }
  if (!parts.empty()) return parts;
  std::string near = did_you_mean(name, known);
  auto& d = diags.error(Code::E0201, fmt::format("the program defines no value `{}`", name));
  if (!near.empty()) d.help(fmt::format("did you mean `{}`?", near));
  return {};
}

// Of the parts of a record, those that have derivatives: the others are held. Reported when there
// is none, and for a single value that has none.
std::vector<core::FamilyId> floats_of(const core::Module& m, std::vector<core::FamilyId> ids,
                                      Diagnostics& diags) {
  const std::vector<core::FamilyId> all = ids;
  std::erase_if(ids, [&](core::FamilyId f) { return !is_float(m[f].dtype); });
  if (!ids.empty() || all.empty()) return ids;
  const core::Family& f = m[all[0]];
  diags
      .error(Code::E0602,
             fmt::format("`{}` is {}: only floats have derivatives", f.spelled(), name_of(f.dtype)))
      .primary(f.span, "defined here");
  return ids;
}

}  // namespace

std::string flat(std::string path) {
  std::replace(path.begin(), path.end(), '.', '_');
  return path;
}

core::FamilyId add_request(core::Module& m, core::FamilyId num, core::FamilyId den) {
  core::Family f;
  f.name = core::fresh_name(m, fmt::format("d_{}_d_{}", text(m[num].name), text(m[den].name)));
  f.dtype = m[num].dtype;
  f.coords = m[num].coords;
  f.span = m[num].span;  // a derivative of the derivative is asked for there, too
  core::add_denominator(f.coords, m[den].coords);
  core::Request r{num, {}, den, {}};
  core::Clause clause;
  for (uint32_t k = 0; k < f.rank(); ++k) {
    (k < m[num].rank() ? r.num_at : r.den_at).push_back(core::slot(m, k));
    clause.box.push_back({core::int_lit(m, 0), f.coords[k].extent});
  }
  clause.body = core::request(m, r, m[num].span);
  clause.span = m[num].span;
  f.clauses.push_back(clause);
  return m.families.add(std::move(f));
}

std::vector<core::FamilyId> float_values(const core::Module& m, const std::string& name,
                                         Diagnostics& diags) {
  return floats_of(m, find_named(m, name, diags), diags);
}

void add_requests(core::Module& m, const ExtraRequest& extra, Diagnostics& diags) {
  const std::vector<core::FamilyId> nums = float_values(m, extra.of, diags);
  for (const std::string& name : extra.wrt) {
    for (core::FamilyId den : float_values(m, name, diags)) {
      for (core::FamilyId num : nums) add_request(m, num, den);
    }
  }
}

}  // namespace ein

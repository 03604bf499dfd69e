#include "shard/layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/diag.h"
#include "core/build.h"
#include "core/groups.h"
#include "core/rewrite.h"

namespace ein::shard {
namespace {

using namespace core;

// Notes, for each family, the coordinates along which recurrences run step by step.
void note_steps(const std::vector<Step>& steps, Layout& out) {
  for (const Step& s : steps) {
    const auto* q = std::get_if<Sequence>(&s);
    if (!q) continue;
    for (const auto& member : q->members) out.steps[member.family.v].push_back(member.position);
    note_steps(q->body, out);
  }
}

// A rule for one family overrides rules for all families; among equally specific rules the last one
// wins.
const Rule* rule_for(const Family& f, const Coord& c, const std::vector<Rule>& rules) {
  const Rule* found = nullptr;
  for (const Rule& r : rules) {
    if (!c.name || r.coordinate != text(c.name)) continue;
    if (!r.family.empty() && r.family != f.spelled() && r.family != text(f.name)) continue;
    if (!found || found->family.empty() || !r.family.empty()) found = &r;
  }
  return found;
}

std::optional<RuntimeError> refuse_unmatched(const Module& m, const std::vector<FamilyId>& all,
                                             const std::vector<Rule>& rules) {
  for (const Rule& r : rules) {
    bool family = false, both = false;
    std::set<std::string> families, coords;
    for (FamilyId id : all) {
      const Family& f = m[id];
      bool here = r.family.empty() || r.family == f.spelled() || r.family == text(f.name);
      family |= here;
      if (!f.generated) families.insert(f.spelled());
      for (const Coord& c : f.coords) {
        if (!c.name) continue;
        both |= here && r.coordinate == text(c.name);
        if (here) coords.insert(text(c.name));
      }
    }
    if (both) continue;
    auto near = [](const std::string& name, const std::set<std::string>& known) {
      std::string found = did_you_mean(name, {known.begin(), known.end()});
      return found.empty() ? "" : fmt::format("; did you mean `{}`?", found);
    };
    if (!family) {
      return RuntimeError{Code::E0903,
                          fmt::format("`--shard` names `{}` of `{}`, but no value that is needed "
                                      "has this name{}",
                                      r.coordinate, r.family, near(r.family, families))};
    }
    std::string known = coords.empty()
                            ? "no named coordinates"
                            : fmt::format("the coordinates `{}`", fmt::join(coords, "`, `"));
    return RuntimeError{Code::E0903,
                        fmt::format("`--shard` splits `{}`, but {} {}{}", r.coordinate,
                                    r.family.empty() ? "the values that are needed have"
                                                     : fmt::format("`{}` has", r.family),
                                    known, near(r.coordinate, coords))};
  }
  return std::nullopt;
}

RuntimeError split_step(const Module& m, FamilyId id, uint32_t k, const Layout& layout) {
  const Family& f = m[id];
  std::vector<std::string> others;
  for (uint32_t j = 0; j < f.rank(); ++j) {
    const auto& steps = layout.steps[id.v];
    bool step = std::find(steps.begin(), steps.end(), j) != steps.end();
    if (!step && f.coords[j].name) others.push_back(text(f.coords[j].name));
  }
  std::string way_out = others.empty() ? "none of its other coordinates has a name"
                                       : fmt::format("its other coordinates can be split: `{}`",
                                                     fmt::join(others, "`, `"));
  const std::string& name = text(f.coords[k].name);
  return {Code::E0902,
          fmt::format("`{}` runs step by step along `{}`, which cannot be split; {}; "
                      "`{}.{}: none` leaves it whole",
                      f.spelled(), name, way_out, f.spelled(), name),
          f.span};
}

// How the reads of `id` want a coordinate without a rule to be split.
Axes followed(const Module& m, FamilyId id, uint32_t k, const Layout& layout) {
  Axes found = 0;
  for (const Clause& c : m[id].clauses) {
    for_each_node(m, c.body, [&](ExprId e) {
      const auto* read = get_if<Access>(m, e);
      for (size_t q = 0; read && q < read->at.size() && !found; ++q) {
        bool same = slot_of(m, read->at[q]) == k &&
                    m[read->family].coords[q].extent == m[id].coords[k].extent;
        if (same) found = layout.axes[read->family.v][q];
      }
    });
  }
  return found;
}

}  // namespace

bool Layout::is_split(FamilyId id) const {
  return std::any_of(axes[id.v].begin(), axes[id.v].end(), [](Axes a) { return a != 0; });
}

std::variant<Layout, RuntimeError> find_layout(Module& m, const std::vector<FamilyId>& wanted,
                                               const Spec& spec, const std::set<FamilyId>& whole) {
  Layout out;
  out.axes.resize(m.families.size());
  out.steps.resize(m.families.size());
  for (uint32_t i = 0; i < m.families.size(); ++i) out.axes[i].resize(m[FamilyId(i)].rank());
  Schedule order = schedule(m, wanted);
  note_steps(order.steps, out);
  const std::vector<FamilyId> all = families_of(order.steps);
  if (auto wrong = refuse_unmatched(m, all, spec.rules)) return *wrong;
  std::map<FamilyId, std::vector<bool>> settled;  // which coordinates a rule has decided
  for (FamilyId id : all) {
    const Family& f = m[id];
    auto& ruled = settled[id];
    ruled.resize(f.rank());
    Axes taken = 0;
    for (uint32_t k = 0; k < f.rank() && f.kind != Family::Kind::Table; ++k) {
      const Rule* rule = rule_for(f, f.coords[k], spec.rules);
      if (!rule) continue;
      ruled[k] = true;
      if (spec.mesh.parts(rule->along) == 1 || (rule->along & taken)) continue;
      const auto& steps = out.steps[id.v];
      if (std::find(steps.begin(), steps.end(), k) != steps.end()) {
        if (!f.generated) return split_step(m, id, k, out);
        continue;
      }
      if (whole.contains(id)) continue;
      taken |= rule->along;
      out.axes[id.v][k] = rule->along;
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (FamilyId id : all) {
      const Family& f = m[id];
      if (f.kind != Family::Kind::Defined || whole.contains(id)) continue;
      for (uint32_t k = 0; k < f.rank(); ++k) {
        if (settled[id][k] || out.axes[id.v][k] || (f.coords[k].name && !f.generated)) continue;
        const auto& steps = out.steps[id.v];
        if (std::find(steps.begin(), steps.end(), k) != steps.end()) continue;
        Axes along = followed(m, id, k, out), taken = 0;
        for (Axes a : out.axes[id.v]) taken |= a;
        if (!along || (along & taken)) continue;
        out.axes[id.v][k] = along;
        changed = true;
      }
    }
  }
  return out;
}

}  // namespace ein::shard

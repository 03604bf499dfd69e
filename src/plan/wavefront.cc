#include "plan/wavefront.h"

#include <algorithm>
#include <map>

#include "core/build.h"
#include "core/rewrite.h"

namespace ein::plan {
namespace {

using namespace core;

struct Place {
  uint32_t outer, inner;
};

// Whether every read of a member goes a fixed distance back along both coordinates.
bool reads_back(Module& m, FamilyId reader, const std::map<FamilyId, Place>& places,
                bool downward) {
  bool ok = true;
  Place here = places.at(reader);
  for_each_body(m, reader, [&](ExprId body) {
    std::vector<Access> reads;
    for_each_node(m, body, [&](ExprId e) {
      const auto* a = get_if<Access>(m, e);
      if (a && places.contains(a->family)) reads.push_back(*a);
      // A routed sum adds to addresses, and a contraction is a call: neither runs in lanes.
      ok &= !get_if<Reduce>(m, e);
    });
    for (const Access& a : reads) {
      Place there = places.at(a.family);
      auto back = [&](uint32_t own, uint32_t theirs) {
        auto d = const_int(m, sub(m, slot(m, own), a.at[theirs]));
        return d && (downward ? *d <= 0 : *d >= 0);
      };
      ok &= back(here.outer, there.outer) && back(here.inner, there.inner);
    }
  });
  return ok;
}

bool too_short(const Module& m, FamilyId family, uint32_t position, int64_t fewest) {
  auto n = const_int(m, m[family].coords[position].extent);
  return n && *n < fewest;
}

}  // namespace

bool runs_by_diagonals(Module& m, const Sequence& outer, int64_t fewest) {
  if (outer.body.size() != 1) return false;
  const auto* inner = std::get_if<Sequence>(&outer.body[0]);
  if (!inner || inner->downward != outer.downward) return false;
  if (inner->members.size() != outer.members.size()) return false;
  std::map<FamilyId, Place> places;
  for (const auto& member : outer.members) places[member.family] = {member.position, 0};
  for (const auto& member : inner->members) {
    if (!places.contains(member.family)) return false;
    places[member.family].inner = member.position;
  }
  for (const Step& s : inner->body) {
    if (!std::holds_alternative<Compute>(s)) return false;
  }
  return std::all_of(places.begin(), places.end(), [&](const auto& entry) {
    const auto& [family, place] = entry;
    return m[family].rank() == 2 && place.outer != place.inner &&
           !too_short(m, family, place.outer, fewest) &&
           !too_short(m, family, place.inner, fewest) &&
           reads_back(m, family, places, outer.downward);
  });
}

}  // namespace ein::plan

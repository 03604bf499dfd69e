#include "core/facts.h"

#include <algorithm>
#include <unordered_map>

#include "core/build.h"
#include "core/groups.h"
#include "core/prove.h"

namespace ein::core {
namespace {

// Where a family stands in the schedule: its group, and its sequential coordinates, outermost
// first.
struct Place {
  size_t group = 0;
  std::vector<SequentialCoordinate> order;
};
using Places = std::unordered_map<FamilyId, Place>;

void add_places(const Sequence& sequence, size_t group, Places& out) {
  for (const Sequence::Member& member : sequence.members) {
    Place& place = out[member.family];
    place.group = group;
    place.order.push_back({member.position, sequence.downward});
  }
  for (const Step& step : sequence.body) {
    if (const auto* inner = std::get_if<Sequence>(&step)) add_places(*inner, group, out);
  }
}

Places find_places(Module& m) {
  Places out;
  size_t group = 0;
  for (const Step& step : schedule(m, {}).steps) {
    if (const auto* sequence = std::get_if<Sequence>(&step)) add_places(*sequence, group++, out);
  }
  return out;
}

void widen(std::optional<int64_t>& bound, Module& m, ExprId steps, const Facts& facts) {
  if (!bound) return;
  ExprId closed = closed_upper(m, steps, facts);
  std::optional<int64_t> most = closed ? const_int(m, closed) : std::nullopt;
  bound = most ? std::optional(std::max(*bound, *most)) : std::nullopt;
}

// One read of `read` at `at`, found in `reader`.
void note_read(Module& m, const Places& places, FamilyId reader, FamilyId read,
               const std::vector<ExprId>& at, const Facts& facts,
               std::unordered_map<FamilyId, SequenceReport>& reports) {
  auto target = places.find(read);
  if (target == places.end()) return;
  const SequentialCoordinate& to = target->second.order[0];
  ExprId step = at[to.position];
  auto from = places.find(reader);
  if (from != places.end() && from->second.group == target->second.group) {
    ExprId now = slot(m, from->second.order[0].position);
    widen(reports[read].lookback, m, to.downward ? sub(m, step, now) : sub(m, now, step), facts);
  } else {
    ExprId extent = m[read].coords[to.position].extent;
    ExprId from_end = to.downward ? add(m, step, int_lit(m, 1)) : sub(m, extent, step);
    widen(reports[read].tail, m, from_end, facts);
  }
}

void add_broadcast(const Module& m, const Family& reader, const Access& access,
                   std::vector<Broadcast>& out) {
  if (m[access.family].generated) return;  // not a name that the reader of the report knows
  uint64_t used = 0;
  for (ExprId e : access.at) used |= m[e].free;
  Broadcast b{access.family, {}};
  for (uint32_t p = 0; p < reader.rank(); ++p) {
    if (!(used >> p & 1)) b.omits.push_back(p);
  }
  if (!b.omits.empty() && std::find(out.begin(), out.end(), b) == out.end()) out.push_back(b);
}

}  // namespace

std::optional<int64_t> SequenceReport::kept() const {
  if (!lookback || !tail) return std::nullopt;
  return std::max(*lookback + 1, *tail);
}

std::vector<FamilyReport> report_families(Module& m) {
  Places places = find_places(m);
  std::unordered_map<FamilyId, SequenceReport> sequences;
  for (const auto& [family, place] : places) { sequences[family] = {place.order, 0, 0}; }
  auto wanted = [](const Node& n) { return std::holds_alternative<Access>(n); };
  std::vector<FamilyReport> out;
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    FamilyReport report{FamilyId(i), {}, {}};
    const Family family = m[report.family];
    for (const Clause& clause : family.clauses) {
      for_each_with_facts(m, clause, wanted, [&](ExprId e, const Facts& facts) {
        const Access access = std::get<Access>(m[e].node);
        add_broadcast(m, family, access, report.broadcasts);
        note_read(m, places, report.family, access.family, access.at, facts, sequences);
      });
    }
    if (!family.generated) out.push_back(std::move(report));
  }
  // A printed or asserted value is needed whole.
  auto whole = [&](FamilyId f) {
    auto found = sequences.find(f);
    if (found != sequences.end()) found->second.tail.reset();
  };
  for (const Effect& e : m.effects) {
    whole(e.cond);
    for (const Piece& p : e.pieces) whole(p.value);
  }
  for (FamilyReport& report : out) {
    auto found = sequences.find(report.family);
    if (found != sequences.end()) report.sequence = found->second;
  }
  return out;
}

}  // namespace ein::core

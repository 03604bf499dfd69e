#include "core/steps.h"

#include <algorithm>
#include <unordered_set>

#include "core/build.h"
#include "core/prove.h"

namespace ein::core {
namespace {

// Where a family stands in the schedule: its group and its sequential coordinates, outermost first.
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

Places find_places(const Schedule& order) {
  Places out;
  size_t group = 0;
  for (const Step& step : order.steps) {
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
               const std::vector<ExprId>& at, const Facts& facts, SequenceReports& reports) {
  auto target = places.find(read);
  if (target == places.end()) return;
  const SequentialCoordinate& to = target->second.order[0];
  ExprId step = at[to.position];
  SequenceReport& report = reports[read];
  auto from = places.find(reader);
  if (from != places.end() && from->second.group == target->second.group) {
    ExprId now = slot(m, from->second.order[0].position);
    ExprId distance = to.downward ? sub(m, step, now) : sub(m, now, step);
    report.by_step &= m[distance].free == 0;
    widen(report.lookback, m, distance, facts);
  } else {
    ExprId extent = m[read].coords[to.position].extent;
    ExprId from_end = to.downward ? add(m, step, int_lit(m, 1)) : sub(m, extent, step);
    report.by_step &= m[step].free == 0;
    widen(report.tail, m, from_end, facts);
  }
}

}  // namespace

std::optional<int64_t> SequenceReport::kept() const {
  if (!lookback || !tail) return std::nullopt;
  return std::max(*lookback + 1, *tail);
}

SequenceReports report_sequences(Module& m, const Schedule& order,
                                 const std::vector<FamilyId>& readers) {
  Places places = find_places(order);
  SequenceReports out;
  for (const auto& [family, place] : places) out[family] = {place.order, 0, 0};
  if (places.empty()) return out;
  auto wanted = [](const Node& n) { return std::holds_alternative<Access>(n); };
  for (FamilyId reader : readers) {
    auto look = [&](const Clause& clause) {
      for_each_with_facts(m, clause, wanted, [&](ExprId e, const Facts& facts) {
        const Access access = std::get<Access>(m[e].node);
        note_read(m, places, reader, access.family, access.at, facts, out);
      });
    };
    const Family family = m[reader];
    for (const Clause& clause : family.clauses) look(clause);
    for (ExprId cell : family.cells) look(Clause{{}, cell, {}});
  }
  return out;
}

std::unordered_map<FamilyId, Ring> find_rings(Module& m, const Schedule& order,
                                              const std::vector<FamilyId>& wanted) {
  std::vector<FamilyId> readers = families_of(order.steps);
  const std::unordered_set<FamilyId> shown(wanted.begin(), wanted.end());
  std::unordered_map<FamilyId, Ring> out;
  for (const auto& [family, report] : report_sequences(m, order, readers)) {
    bool whole = shown.contains(family);
    std::optional<int64_t> kept = report.kept();
    if (whole || !report.by_step || !kept) continue;
    uint32_t position = report.order[0].position;
    std::optional<int64_t> extent = const_int(m, m[family].coords[position].extent);
    if (extent && *extent <= *kept) continue;
    out[family] = {position, *kept};
  }
  return out;
}

}  // namespace ein::core

#include "driver/facts.h"

#include <algorithm>
#include <unordered_map>

#include "core/build.h"
#include "core/groups.h"
#include "core/prove.h"

namespace ein {
namespace {

using core::Access;
using core::Clause;
using core::ExprId;
using core::Facts;
using core::Family;
using core::FamilyId;
using core::Module;
using core::Node;
using core::Piece;
using core::SequenceReports;

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

std::vector<FamilyReport> report_families(Module& m) {
  std::vector<FamilyId> all;
  for (uint32_t i = 0; i < m.families.size(); ++i) all.push_back(FamilyId(i));
  SequenceReports sequences = report_sequences(m, schedule(m, {}), all);
  auto wanted = [](const Node& n) { return std::holds_alternative<Access>(n); };
  std::vector<FamilyReport> out;
  for (FamilyId id : all) {
    FamilyReport report{id, {}, {}};
    const Family family = m[report.family];
    for (const Clause& clause : family.clauses) {
      for_each_with_facts(m, clause, wanted, [&](ExprId e, const Facts&) {
        const Access access = std::get<Access>(m[e].node);
        add_broadcast(m, family, access, report.broadcasts);
      });
    }
    if (!family.generated) out.push_back(std::move(report));
  }
  // A printed or asserted value is needed whole.
  auto whole = [&](FamilyId f) {
    auto found = sequences.find(f);
    if (found != sequences.end()) found->second.tail.reset();
  };
  for (const core::Effect& e : m.effects) {
    whole(e.cond);
    for (const Piece& p : e.pieces) whole(p.value);
  }
  for (FamilyReport& report : out) {
    auto found = sequences.find(report.family);
    if (found != sequences.end()) report.sequence = found->second;
  }
  return out;
}

}  // namespace ein

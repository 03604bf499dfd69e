#include "plan/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "core/build.h"
#include "core/prove.h"
#include "core/rewrite.h"
#include "core/total.h"

namespace ein::plan {
namespace {

using namespace core;

// An index, split into a part that only depends on the step and a rest between `least` and `most`.
struct Split {
  ExprId by_step, rest;
  int64_t least = 0, most = 0;
};

std::optional<Split> split(Module& m, ExprId at, uint32_t step, const Facts& facts) {
  AffineForm by_step, rest;
  const AffineForm form = affine_form(m, at);
  rest.constant = form.constant;
  for (const auto& term : form.terms) {
    const uint64_t free = m[term.atom].free;
    const bool moves = free >> step & 1;
    if (moves && free != uint64_t{1} << step) return {};
    (moves ? by_step : rest).terms.push_back(term);
  }
  Split out{from_form(m, by_step), from_form(m, rest)};
  if (by_step.terms.empty() || reads_values(m, out.by_step) || has_reduce(m, out.by_step) ||
      !total(m, out.by_step, {}, Overflow::Wraps)) {
    return {};
  }
  ExprId least = closed_lower(m, out.rest, facts), most = closed_upper(m, out.rest, facts);
  auto from = least ? const_int(m, least) : std::nullopt;
  auto to = most ? const_int(m, most) : std::nullopt;
  if (!from || !to || *from > *to) return {};
  out.least = *from;
  out.most = *to;
  return out;
}

// Calls `f` for every read of an input in a family, with the facts that hold there.
template <class F>
void for_each_read(Module& m, FamilyId reader, const std::set<FamilyId>& inputs, F&& f) {
  auto wanted = [&](const Node& n) {
    const auto* a = std::get_if<Access>(&n);
    return a && inputs.contains(a->family) && !a->at.empty();
  };
  auto look = [&](const Clause& clause) {
    for_each_with_facts(m, clause, wanted, [&](ExprId e, const Facts& facts) {
      const Access access = std::get<Access>(m[e].node);
      f(e, access, facts);
    });
  };
  const Family family = m[reader];
  for (const Clause& clause : family.clauses) look(clause);
  for (ExprId cell : family.cells) look(Clause{{}, cell, {}});
}

// The coordinate along which a family that is not a recurrence reads the inputs row by row.
std::optional<uint32_t> row_coordinate(Module& m, FamilyId id, const std::set<FamilyId>& inputs) {
  for (uint32_t k = 0; k < m[id].rank() && m[id].kind == Family::Kind::Defined; ++k) {
    bool reads = false, ok = true;
    for_each_read(m, id, inputs, [&](ExprId, const Access& access, const Facts& facts) {
      reads = true;
      ok = ok && split(m, access.at[0], k, facts);
    });
    if (!reads) return {};
    if (ok) return k;
  }
  return {};
}

Schedule step_by_step(Module& m, const Schedule& schedule, const std::set<FamilyId>& inputs) {
  Schedule out = schedule;
  for (core::Step& s : out.steps) {
    const auto* c = std::get_if<Compute>(&s);
    auto k = c ? row_coordinate(m, c->family, inputs) : std::nullopt;
    if (k) s = Sequence{{{c->family, *k}}, false, {*c}};
  }
  return out;
}

// What is known about one input.
struct Found {
  bool read = false;
  int64_t least = INT64_MAX, most = INT64_MIN;
  std::map<SequenceKey, ExprId> by_step;  // slot 0 is the step
  std::unordered_map<ExprId, ExprId> rests;
  std::string why;  // why it does not stream
};

struct Search {
  Module& m;
  std::set<FamilyId> inputs;
  std::map<FamilyId, Found> found = {};

  void reader(FamilyId id, const Sequence* q) {
    const std::string name = text(m[id].name);
    std::optional<uint32_t> position;
    for (const auto& member : q ? q->members : std::vector<Sequence::Member>{}) {
      if (member.family == id) position = member.position;
    }
    for_each_read(m, id, inputs, [&](ExprId e, const Access& access, const Facts& facts) {
      Found& to = found[access.family];
      to.read = true;
      if (!to.why.empty()) return;
      if (!position) {
        to.why = fmt::format("`{}` reads it, but not row by row", name);
        return;
      }
      const std::string step = step_name(m[id].coords[*position]);
      auto parts = split(m, access.at[0], *position, facts);
      if (!parts) {
        to.why = fmt::format("`{}` reads rows that {} does not determine", name, step);
        return;
      }
      ExprId by_step = substitute_slot(m, parts->by_step, *position, slot(m, 0));
      auto [it, fresh] = to.by_step.emplace(key(*q), by_step);
      if (it->second != by_step) {
        to.why = fmt::format("`{}` reads rows that move differently with {}", name, step);
        return;
      }
      auto [rest, first] = to.rests.emplace(e, parts->rest);
      if (rest->second != parts->rest)
        to.why = fmt::format("`{}` reads its rows in two ways", name);
      to.least = std::min(to.least, parts->least);
      to.most = std::max(to.most, parts->most);
    });
  }

  static std::string step_name(const Coord& c) {
    return c.name ? fmt::format("the step `{}`", text(c.name)) : "the step";
  }

  void run(const Schedule& schedule) {
    for (const core::Step& s : schedule.steps) {
      const auto* q = std::get_if<Sequence>(&s);
      for (FamilyId id : families_of({s})) reader(id, q);
    }
    for (auto& [id, f] : found) {
      auto extent = const_int(m, m[id].coords[0].extent);
      if (f.why.empty() && extent && 2 * (f.most - f.least + 1) > *extent) {
        f.why = fmt::format("one step reads {} of its {} rows",
                            std::min(f.most - f.least + 1, *extent), *extent);
      }
    }
  }
};

Stream stream_of(Module& m, const Found& f) {
  Stream out{f.most - f.least + 1, {}};
  for (const auto& [sequence, by_step] : f.by_step) {
    out.first[sequence] = add(m, by_step, int_lit(m, f.least));
  }
  return out;
}

}  // namespace

SequenceKey key(const Sequence& q) { return {q.members[0].family, q.members[0].position}; }

Streams find_streams(Module& m, Schedule& schedule, const std::vector<FamilyId>& wanted,
                     const std::vector<FamilyId>& candidates) {
  Streams out;
  std::set<FamilyId> left(candidates.begin(), candidates.end());
  for (FamilyId id : wanted) {
    if (left.erase(id) > 0) out.whole[id] = "its value is wanted as a whole";
  }
  // If an input turns out not to stream, families need not run step by step for its sake, which may
  // affect other inputs: start over.
  while (!left.empty()) {
    Schedule stepwise = step_by_step(m, schedule, left);
    Search search{m, left};
    search.run(stepwise);
    const size_t before = left.size();
    for (FamilyId id : std::set<FamilyId>(left)) {
      const Found& f = search.found[id];
      if (f.read && f.why.empty()) continue;
      left.erase(id);
      if (f.read) out.whole[id] = f.why;
    }
    if (left.size() < before) continue;
    schedule = std::move(stepwise);
    for (FamilyId id : left) {
      const Found& f = search.found[id];
      out.inputs[id] = stream_of(m, f);
      for (const auto& [access, rest] : f.rests) {
        out.rows[access] = sub(m, rest, int_lit(m, f.least));
      }
    }
    break;
  }
  return out;
}

}  // namespace ein::plan

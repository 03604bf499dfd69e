// Finds the families that follow a recurrence step by step, and how far from their own step they
// read.
#include <algorithm>
#include <functional>

#include "core/build.h"
#include "core/rewrite.h"
#include "optimise/strip_mine.h"

namespace ein::optimise {
namespace {

using namespace core;
using Role = Region::Member::Role;

void for_each_access(const Module& m, ExprId e, const std::function<void(const Access&)>& f) {
  for_each_node(m, e, [&](ExprId x) {
    if (const auto* a = get_if<Access>(m, x)) f(*a);
  });
}

// Where the step is known to be `step`, rewrites reads of members at constant steps to be relative
// to the reader's own step.
ExprId relative(Module& m, const Region& region, ExprId e, uint32_t position, int64_t step) {
  return rewrite(m, e, [&](ExprId x) {
    const auto* found = get_if<Access>(m, x);
    if (!found) return x;
    auto member = region.members.find(found->family);
    if (member == region.members.end()) return x;
    Access a = *found;
    ExprId& at = a.at[member->second.position];
    std::optional<int64_t> known = const_int(m, at);
    if (!known) return x;
    at = add(m, slot(m, position), int_lit(m, *known - step));
    return access(m, a.family, std::move(a.at), m[x].span);
  });
}

// The step that a condition requires, because one of its parts is of the form `t == 5`.
std::optional<int64_t> demanded_step(Module& m, ExprId cond, uint32_t position) {
  std::vector<ExprId> parts;
  conjuncts(m, cond, parts);
  for (ExprId part : parts) {
    const auto* eq = get_if<Apply>(m, part);
    if (!eq || eq->op != Op::Eq || m[eq->args[0]].type != DType::I64) continue;
    const Apply both = *eq;
    for (int side : {0, 1}) {
      std::optional<int64_t> by = const_int(m, sub(m, both.args[side], slot(m, position)));
      std::optional<int64_t> value = const_int(m, both.args[1 - side]);
      if (by && value) return *value - *by;
    }
  }
  return std::nullopt;
}

// Makes reads relative in clauses of a single step, and in branches that are taken at one step
// only.
void make_relative(Module& m, const Region& region, FamilyId id, uint32_t position) {
  for (size_t c = 0; c < m[id].clauses.size(); ++c) {
    const Clause clause = m[id].clauses[c];
    ExprId body = rewrite(m, clause.body, [&](ExprId x) {
      const auto* found = get_if<Apply>(m, x);
      if (!found || found->op != Op::Select) return x;
      Apply select = *found;
      std::optional<int64_t> step = demanded_step(m, select.args[0], position);
      if (!step) return x;
      select.args[1] = relative(m, region, select.args[1], position, *step);
      return apply(m, Op::Select, std::move(select.args), m[x].span);
    });
    std::optional<int64_t> lo = const_int(m, clause.box[position].lo);
    std::optional<int64_t> hi = const_int(m, clause.box[position].hi);
    if (lo && hi && *lo + 1 == *hi) body = relative(m, region, body, position, *lo);
    m.families[id].clauses[c].body = body;
  }
}

std::vector<ExprId> bodies_of(const Module& m, FamilyId id) {
  std::vector<ExprId> out;
  for_each_body(m, id, [&](ExprId body) { out.push_back(body); });
  return out;
}

// Widens the region by what one more member reads. False if a read is out of order.
bool admit(Region& region, Role role, const std::vector<Offset>& reads) {
  Region wider = region;
  for (const Offset& o : reads) {
    Role read = region.members.at(o.member).role;
    bool local = read == Role::ForwardLocal || read == Role::BackwardLocal;
    if (local && o.by != 0) return false;
    if (!backward_role(role)) {
      if (backward_role(read) || o.by > 0) return false;
      wider.before = std::max(wider.before, -o.by);
    } else if (read == Role::Forward) {
      wider.before = std::max(wider.before, -o.by);
      wider.after = std::max(wider.after, o.by);
    } else if (read == Role::Backward) {
      if (o.by < 0) return false;
      wider.ahead = std::max(wider.ahead, o.by);
    } else if (read == Role::ForwardLocal) {
      return false;
    }
  }
  region = wider;
  return true;
}

// Adds the families that follow the members step by step.
void add_locals(Module& m, Region& region, const std::vector<FamilyId>& reached) {
  auto read_by_backward = [&](FamilyId id) {
    bool found = false;
    for (const auto& [reader, member] : region.members) {
      if (!backward_role(member.role)) continue;
      for (ExprId body : bodies_of(m, reader)) {
        for_each_access(m, body, [&](const Access& a) { found |= a.family == id; });
      }
    }
    return found;
  };
  for (bool more = true; more;) {
    more = false;
    for (FamilyId id : reached) {
      if (region.members.contains(id) || m[id].kind != Family::Kind::Defined) continue;
      for (uint32_t p = 0; p < m[id].rank(); ++p) {
        auto reads = offsets(m, region, bodies_of(m, id), slot(m, p), read_by_backward(id));
        if (!reads || reads->empty()) continue;
        std::optional<int64_t> extent = const_int(m, m[id].coords[p].extent);
        if (!extent || *extent > region.steps) continue;
        Role role = Role::ForwardLocal;
        for (const Offset& o : *reads) {
          if (backward_role(region.members.at(o.member).role) || o.by > 0)
            role = Role::BackwardLocal;
        }
        if (read_by_backward(id)) role = Role::BackwardLocal;
        if (!admit(region, role, *reads)) continue;
        region.members[id] = {p, role};
        more = true;
        break;
      }
    }
  }
}

}  // namespace

bool backward_role(Role role) { return role == Role::Backward || role == Role::BackwardLocal; }

std::optional<std::vector<Offset>> offsets(Module& m, const Region& region,
                                           const std::vector<ExprId>& bodies, ExprId here,
                                           bool in_backward) {
  std::vector<Offset> out;
  std::vector<std::pair<FamilyId, ExprId>> reads;
  for (ExprId body : bodies) {
    for_each_access(m, body, [&](const Access& a) {
      auto member = region.members.find(a.family);
      if (member != region.members.end())
        reads.push_back({a.family, a.at[member->second.position]});
    });
  }
  for (const auto& [family, at] : reads) {
    bool forward = region.members.at(family).role == Role::Forward;
    if (in_backward && forward && const_int(m, at)) continue;
    std::optional<int64_t> by = const_int(m, sub(m, at, here));
    if (!by) return std::nullopt;
    out.push_back({family, *by});
  }
  return out;
}

std::optional<Region> find_region(Module& m, const std::map<FamilyId, uint32_t>& forward,
                                  const std::map<FamilyId, uint32_t>& backward,
                                  const std::vector<FamilyId>& reached) {
  Region region;
  for (const auto& [id, position] : forward) region.members[id] = {position, Role::Forward};
  for (const auto& [id, position] : backward) region.members[id] = {position, Role::Backward};
  auto known = [&](FamilyId id, uint32_t position) {
    region.steps = std::max(region.steps, const_int(m, m[id].coords[position].extent).value_or(-1));
    for (const Clause& c : m[id].clauses) {
      if (!const_int(m, c.box[position].lo) || !const_int(m, c.box[position].hi)) return false;
    }
    return const_int(m, m[id].coords[position].extent).has_value();
  };
  for (const auto& [id, member] : region.members) make_relative(m, region, id, member.position);
  for (const auto& [id, member] : std::map(region.members)) {
    if (m[id].kind != Family::Kind::Defined || !known(id, member.position)) return std::nullopt;
    auto reads =
        offsets(m, region, bodies_of(m, id), slot(m, member.position), backward_role(member.role));
    if (!reads || !admit(region, member.role, *reads)) return std::nullopt;
  }
  add_locals(m, region, reached);
  std::erase_if(region.members, [&](const auto& item) {
    bool local = item.second.role == Role::ForwardLocal || item.second.role == Role::BackwardLocal;
    return local && !known(item.first, item.second.position);
  });
  return region;
}

}  // namespace ein::optimise

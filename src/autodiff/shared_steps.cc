#include "autodiff/shared_steps.h"

#include <algorithm>
#include <set>

#include "base/match.h"
#include "core/build.h"
#include "core/prove.h"
#include "core/rewrite.h"

namespace ein::autodiff {

using namespace core;

namespace {

void chains(const std::vector<Step>& steps, Chain& around, std::map<FamilyId, Chain>& out) {
  for (const Step& s : steps) {
    match(
        s, [&](const Compute& c) { out[c.family] = around; },
        [&](const Sequence& q) {
          around.push_back(&q);
          chains(q.body, around, out);
          around.pop_back();
        });
  }
}

constexpr uint32_t kNowhere = ~0u;

uint32_t position_in(const Sequence& q, FamilyId f) {
  for (const auto& member : q.members) {
    if (member.family == f) return member.position;
  }
  return kNowhere;
}

// One cell of `family`, read where `facts` hold.
struct Read {
  FamilyId reader, family;
  std::vector<ExprId> at;
  Facts facts;
};

void collect_reads(Module& m, FamilyId reader, std::vector<Read>& out) {
  auto wanted = [](const Node& n) {
    return std::holds_alternative<Access>(n) || std::holds_alternative<Request>(n);
  };
  auto note = [&](ExprId e, const Facts& facts) {
    if (const auto* a = get_if<Access>(m, e)) {
      out.push_back({reader, a->family, a->at, facts});
    } else if (const auto* r = get_if<Request>(m, e)) {
      out.push_back({reader, r->num, r->num_at, facts});
      out.push_back({reader, r->den, r->den_at, facts});
    }
  };
  const Family family = m[reader];
  for (const Clause& c : family.clauses) for_each_with_facts(m, c, wanted, note);
  for (ExprId cell : family.cells) for_each_with_facts(m, Clause{{}, cell, {}}, wanted, note);
}

// What lies between a numerator in a recurrence and a denominator outside of it.
class Between {
 public:
  Between(Module& m, const std::vector<const Sequence*>& levels, FamilyId num, FamilyId den)
      : m_(m), levels_(levels), den_(den) {
    std::vector<FamilyId> work{num};
    std::set<FamilyId> seen{num};
    for (size_t i = 0; i < work.size(); ++i) {
      collect_reads(m, work[i], reads_);
      for (; looked_ < reads_.size(); ++looked_) {
        FamilyId f = reads_[looked_].family;
        if (seen.insert(f).second) work.push_back(f);
      }
    }
  }

  // Gives every family that is read at its reader's step the positions of the steps, starting from
  // those in `positions`. False when a value that depends on the denominator is read at any step
  // but the same or an earlier one.
  bool align(Positions& positions) {
    for (bool again = true; again;) {
      again = false;
      for (const Read& r : reads_) {
        auto reader = positions.find(r.reader);
        if (reader == positions.end() || positions.contains(r.family)) continue;
        std::vector<uint32_t> found;
        for (uint32_t p : reader->second) {
          auto it = std::find(r.at.begin(), r.at.end(), slot(m_, p));
          if (it != r.at.end()) found.push_back(static_cast<uint32_t>(it - r.at.begin()));
        }
        if (found.size() != levels_.size()) continue;
        positions[r.family] = found;
        again = true;
      }
    }
    if (!positions.contains(den_)) return false;
    std::set<FamilyId> moved = dependents();
    return std::all_of(reads_.begin(), reads_.end(), [&](const Read& r) {
      return !moved.contains(r.reader) || !moved.contains(r.family) || in_order(r, positions);
    });
  }

 private:
  // The families that depend on the denominator, itself included.
  std::set<FamilyId> dependents() const {
    std::set<FamilyId> out{den_};
    for (bool again = true; again;) {
      again = false;
      for (const Read& r : reads_) again |= out.contains(r.family) && out.insert(r.reader).second;
    }
    return out;
  }

  // The read is at an earlier step or at the same one, lexicographically, outermost level first.
  bool in_order(const Read& r, const Positions& positions) {
    auto reader = positions.find(r.reader), read = positions.find(r.family);
    if (reader == positions.end() || read == positions.end()) return false;
    for (size_t k = 0; k < levels_.size(); ++k) {
      ExprId here = slot(m_, reader->second[k]), there = r.at[read->second[k]];
      if (here == there) continue;
      ExprId distance = levels_[k]->downward ? sub(m_, there, here) : sub(m_, here, there);
      return proves_le(m_, int_lit(m_, 1), distance, r.facts);
    }
    return true;
  }

  Module& m_;
  const std::vector<const Sequence*>& levels_;
  FamilyId den_;
  std::vector<Read> reads_;
  size_t looked_ = 0;
};

Positions of_members(const std::vector<const Sequence*>& levels) {
  Positions out;
  for (const auto& member : levels[0]->members) {
    std::vector<uint32_t> positions;
    for (const Sequence* q : levels) {
      uint32_t p = position_in(*q, member.family);
      if (p != kNowhere) positions.push_back(p);
    }
    if (positions.size() == levels.size()) out[member.family] = positions;
  }
  return out;
}

}  // namespace

std::unique_ptr<Order> find_order(Module& m, const std::vector<Asked>& asked) {
  auto order = std::make_unique<Order>();  // chains point into the schedule: it must not move
  std::set<FamilyId> in;
  for (const Asked& a : asked) in.insert(a.in);
  order->schedule = schedule(m, {in.begin(), in.end()});
  Chain none;
  chains(order->schedule.steps, none, order->around);
  return order;
}

Positions shared_steps(Module& m, Order& order, const Asked& asked, bool outside, bool& stuck) {
  const Request& r = asked.request;
  const Chain &c = order.around[asked.in], &n = order.around[r.num], &d = order.around[r.den];
  std::vector<const Sequence*> levels;
  std::vector<uint32_t> den_positions;
  bool together = false, all_inside = true;
  for (size_t k = 0; k < std::min(c.size(), n.size()) && c[k] == n[k]; ++k) {
    ExprId step = r.num_at[position_in(*n[k], r.num)];
    bool inside = k < d.size() && d[k] == c[k];
    together |= inside;
    uint32_t position = kNowhere;
    if (inside) {
      uint32_t own = position_in(*d[k], r.den);
      if (r.den_at[own] == step) position = own;
    } else if (outside && slot_of(m, step) != ~0u) {
      auto it = std::find(r.den_at.begin(), r.den_at.end(), step);
      if (it != r.den_at.end()) position = static_cast<uint32_t>(it - r.den_at.begin());
    }
    if (position == kNowhere) continue;
    all_inside &= inside;
    levels.push_back(n[k]);
    den_positions.push_back(position);
  }
  stuck = together && levels.empty();
  if (levels.empty()) return {};
  Positions out = of_members(levels);
  if (all_inside) return out;
  out[r.den] = den_positions;
  return Between(m, levels, r.num, r.den).align(out) ? out : Positions{};
}

}  // namespace ein::autodiff

#include "autodiff/differentiate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "autodiff/contract.h"
#include "autodiff/custom.h"
#include "autodiff/differential.h"
#include "autodiff/forward.h"
#include "autodiff/normal.h"
#include "autodiff/requests.h"
#include "autodiff/shared_steps.h"
#include "autodiff/support.h"
#include "autodiff/transpose.h"
#include "base/check.h"
#include "core/build.h"
#include "core/diagonal.h"
#include "core/merge.h"
#include "core/rewrite.h"
#include "core/simplify.h"
#include "core/tidy.h"

namespace ein::autodiff {

using namespace core;

namespace {

class Differentiator {
 public:
  Differentiator(Module& m, Diagnostics& diags, Direction direction, Record* record)
      : m_(m),
        diags_(diags),
        direction_(direction),
        record_(record),
        contractions_(
            push_contractions(m, direction != Direction::Reverse, direction != Direction::Forward)),
        requests_(m),
        rules_(has_rules(m)) {}

  void run() {
    for (const auto& [id, list] : requests_.all()) {
      for (const Asked& a : list) asked_.insert(den_of(a));
    }
    while (!requests_.empty()) {
      // In order, each as soon as nothing blocks it; those that were blocked get another turn.
      bool progress = false;
      std::vector<FamilyId> holders;
      for (const auto& [id, list] : requests_.all()) holders.push_back(id);
      for (FamilyId id : holders) {
        touched_.insert(id);
        while (requests_.stand_in(id) && expand_one(id)) progress = true;
      }
      if (!progress) give_up();
    }
    if (rules_) {
      drop_rules(m_);
      merge_equal(m_);  // a rule often calls its own function
    }
    drop_diagonals(m_);
    if (record_) note_readers();
    // Only adjoints and what held a request are simplified. What the user wrote stays as written.
    std::set<Symbol> names;
    for (FamilyId id : touched_) names.insert(m_[id].name);
    for (FamilyId id : touched_) simplify(m_, id);
    tidy(m_);
    for (uint32_t i = 0; i < m_.families.size(); ++i) {
      if (names.contains(m_[FamilyId(i)].name)) simplify(m_, FamilyId(i));
    }
    tidy(m_);
    std::set<FamilyId> made;
    for (uint32_t i = 0; i < m_.families.size(); ++i) {
      if (names.contains(m_[FamilyId(i)].name)) made.insert(FamilyId(i));
    }
    // What was inlined last may have left a sum over an index that its body no longer mentions.
    for (FamilyId id : made) simplify(m_, id);
    drop_marks(m_);
    start_at_seeds(m_, made);
  }

 private:
  void note_readers() {
    std::set<Symbol> adjoints;
    for (const Flow& f : record_->flows) adjoints.insert(f.adjoint);
    for (uint32_t i = 0; i < m_.families.size(); ++i) {
      std::set<Symbol> read;
      for_each_body(m_, FamilyId(i), [&](ExprId body) {
        for_each_node(m_, body, [&](ExprId e) {
          if (const auto* a = get_if<Access>(m_, e)) read.insert(m_[a->family].name);
        });
      });
      for (Symbol s : read) {
        if (adjoints.contains(s)) record_->readers[s].push_back(m_[FamilyId(i)].name);
      }
    }
  }

  // Expands the first request in a family whose path is free of other requests, together with all
  // others that the same sweep serves.
  bool expand_one(FamilyId id) {
    // With a denominator outside the recurrence, a derivative runs along all steps. If it would
    // depend on itself that way, the denominator is taken as a local of the step.
    for (bool outside : {false, true}) {
      outside_ = outside;
      if (expand_first(id)) return true;
    }
    return false;
  }

  bool expand_first(FamilyId id) {
    const std::vector<Asked> here = requests_.all().at(id);
    for (const Asked& a : here) {
      std::unique_ptr<Order> order = find_order(m_, {a});
      bool stuck = false;
      Sweep sweep = sweep_for(a, *order, stuck);
      if (stuck) continue;
      bool forward = goes_forward(a, sweep);
      const std::vector<Asked> asked =
          forward ? requests_.by(a.request.den) : requests_.of(a.request.num);
      if (asked.size() > 1) order = find_order(m_, asked);
      std::vector<const Asked*> together;
      for (const Asked& other : asked) {
        bool same = other.in == a.in && other.node == a.node;
        if (!same && !joins(sweep, other, *order, forward)) continue;
        sweep.nums.insert(other.request.num);
        sweep.dens.insert(den_of(other));
        together.push_back(&other);
      }
      if (blocked(sweep)) continue;
      if (!check_types(sweep, together)) return true;
      expand(sweep, a, together, forward);
      return true;
    }
    return false;
  }

  // Whether another request about the same numerator (forward: denominator) shares the sweep.
  bool joins(const Sweep& sweep, const Asked& other, Order& order, bool forward) {
    bool stuck = false;
    Sweep alone = sweep_for(other, order, stuck);
    if (stuck || alone.local != sweep.local || goes_forward(other, alone) != forward) return false;
    // A numerator whose path is not free yet must not hold up the others.
    return !forward || !blocked(alone);
  }

  // A request that has to be expanded first: its value depends on a denominator and reaches a
  // numerator. (A request that depends on no denominator is a constant here.)
  bool blocked(const Sweep& sweep) {
    std::set<std::pair<FamilyId, bool>> seen;  // whether a request comes after it
    std::vector<std::pair<FamilyId, bool>> work;
    auto reach = [&](FamilyId f, bool behind) {
      if (seen.insert({f, behind}).second) work.push_back({f, behind});
    };
    for (FamilyId num : sweep.nums) reach(num, false);
    for (size_t i = 0; i < work.size(); ++i) {
      auto [reader, behind] = work[i];
      if (behind && sweep.dens.contains(reader)) return true;
      for_each_body(m_, reader, [&, reader = reader, behind = behind](ExprId body) {
        for_each_value_read(m_, body, sweep.mode(reader), [&](ExprId node, Mode mode) {
          if (follows(m_, sweep, reader, node, mode))
            reach(get_if<Access>(m_, node)->family, behind);
        });
      });
      if (!requests_.stand_in(reader)) continue;
      for (const Asked& a : requests_.all().at(reader)) {
        if (at_same_step(m_, sweep, reader, a.request.num, a.request.num_at))
          reach(a.request.num, true);
      }
    }
    return false;
  }

  // The direction that a request is about; null when it is about every cell of its denominator.
  const Along* along(const Asked& a) const {
    auto it = contractions_.along.find(a.request.den);
    return it == contractions_.along.end() ? nullptr : &it->second;
  }
  FamilyId den_of(const Asked& a) const { return along(a) ? along(a)->den : a.request.den; }

  // The sweep for one request alone.
  Sweep sweep_for(const Asked& a, Order& order, bool& stuck) const {
    return {{a.request.num},
            {den_of(a)},
            shared_steps(m_, order, a, outside_, stuck),
            tangents(),
            &asked_};
  }

  bool goes_forward(const Asked& a, const Sweep& sweep) const {
    if (along(a)) return true;
    if (direction_ != Direction::Auto) return direction_ == Direction::Forward;
    auto extents = [&](FamilyId f) {
      std::vector<ExprId> out;
      for (uint32_t k : free_coordinates(m_, sweep, f)) out.push_back(m_[f].coords[k].extent);
      return out;
    };
    return is_smaller(m_, extents(sweep.den()), extents(sweep.num()));
  }

  std::set<FamilyId> tangents() const {
    return rules_ ? tangent_families(m_) : std::set<FamilyId>{};
  }

  bool check_types(const Sweep& sweep, const std::vector<const Asked*>& together) {
    // Every family, of any type, through which a value of a denominator reaches the numerator.
    auto any = [&](FamilyId, ExprId read, Mode mode) {
      FamilyId f = get_if<Access>(m_, read)->family;
      return mode == sweep.mode(f) && !m_[f].winner;
    };
    for (FamilyId f : between(m_, sweep, any)) {
      if (is_float(m_[f].dtype) || has_rule(m_, f)) continue;
      const auto* r = m_[f].clauses.empty() ? nullptr : get_if<Reduce>(m_, m_[f].clauses[0].body);
      bool selects = r && (r->op == ReduceOp::ArgMax || r->op == ReduceOp::ArgMin);
      std::string what = selects
                             ? fmt::format("the derivative of `{}` is not defined", name_of(r->op))
                             : fmt::format("the derivative of the {} value `{}` is not defined",
                                           name_of(m_[f].dtype), text(m_[f].name));
      auto& d = diags_.error(Code::E0601, what).primary(together[0]->span, "requested here");
      Span culprit = selects ? m_[m_[f].clauses[0].body].span : m_[f].span;
      if (culprit.valid()) d.label(culprit, "this has no derivative");
      d.help(selects ? "use a smooth substitute, such as a softmax with a temperature"
                     : fmt::format("to treat it as a constant, write `stop(… as {})` where it "
                                   "becomes a float",
                                   name_of(m_[sweep.num()].dtype)));
      replace(together, [](const Asked&) { return ExprId{}; });
      return false;
    }
    return true;
  }

  void expand(Sweep sweep, const Asked& a, const std::vector<const Asked*>& together,
              bool forward) {
    auto in_step = [&] {  // families made since may also run in step, or be parts of a rule
      bool stuck = false;
      sweep.tangents = tangents();
      if (!sweep.local.empty())
        sweep.local = shared_steps(m_, *find_order(m_, {a}), a, outside_, stuck);
    };
    for (FamilyId f : cone(m_, sweep)) {
      to_normal_form(m_, f);
      changed_.insert(f);
    }
    in_step();
    if (!check_types(sweep, together)) return;  // an argmax inside an expression has a family now
    std::set<FamilyId> members = cone(m_, sweep);
    for (std::vector<FamilyId> work(members.begin(), members.end()); !work.empty();) {
      std::vector<FamilyId> made;
      for (FamilyId f : work) {
        Active active = [&](ExprId read, Mode mode) {
          return carries(m_, sweep, members, f, read, mode);
        };
        for (FamilyId n : split_shared_slopes(m_, f, active)) made.push_back(n);
        changed_.insert(f);
      }
      if (!made.empty()) in_step();
      members = cone(m_, sweep);
      work = std::move(made);
    }
    if (forward) {
      Tangents tangents =
          push_forward(m_, sweep, along(a) ? std::optional(*along(a)) : std::nullopt);
      put(tangents.family, tangents.problem, together, [&](const Request& r) {
        return derivative(m_, sweep, tangents, r.num, r.num_at, r.den_at);
      });
    } else {
      Adjoints adjoints = transpose(m_, sweep, record_);
      if (reads_by_data(members)) by_data_.insert(sweep.nums.begin(), sweep.nums.end());
      put(adjoints.family, adjoints.problem, together, [&](const Request& r) {
        return derivative(m_, sweep, adjoints, r.den, r.num_at, r.den_at);
      });
    }
  }

  // Some address on the path is data, so it may be out of bounds: a read in forward direction would
  // notice that, an addition in reverse does not.
  bool reads_by_data(const std::set<FamilyId>& members) const {
    bool found = false;
    auto is_data = [&](ExprId index) {
      for_each_node(m_, index, [&](ExprId x) { found |= get_if<Access>(m_, x) != nullptr; });
    };
    for (FamilyId f : members) {
      for_each_body(m_, f, [&](ExprId body) {
        for_each_node(m_, body, [&](ExprId x) {
          const auto* a = get_if<Access>(m_, x);
          if (a && members.contains(a->family)) std::for_each(a->at.begin(), a->at.end(), is_data);
          const auto* r = get_if<Reduce>(m_, x);  // `sum[k in row[i]..row[i + 1]](val[k])`
          for (size_t k = 0; r && k < r->over.size(); ++k) {
            is_data(r->over[k].lo);
            is_data(r->over[k].hi);
          }
        });
      });
    }
    return found;
  }

  // Puts what a sweep made in place of the requests it was made for.
  void put(const std::map<FamilyId, FamilyId>& made, const std::optional<Problem>& problem,
           const std::vector<const Asked*>& together,
           const std::function<ExprId(const Request&)>& derivative) {
    for (const auto& [of, family] : made) touched_.insert(family);
    if (problem) {
      report(*problem, *together[0]);
      replace(together, [](const Asked&) { return ExprId{}; });
      return;
    }
    replace(together, [&](const Asked& x) {
      ExprId d = derivative(x.request);
      if (!d) {
        diags_
            .warning(Code::W0601,
                     fmt::format("`{}` does not depend on `{}`: the derivative is zero",
                                 text(m_[x.request.num].name), text(m_[den_of(x)].name)))
            .primary(x.span, "requested here");
      }
      return d;
    });
  }

  void report(const Problem& p, const Asked& asked) {
    Code code = p.what.limitation ? Code::E0701 : Code::E0601;
    std::string message =
        p.what.limitation ? fmt::format("the derivative of {} is not supported yet", p.what.what)
                          : fmt::format("the derivative of {} is not defined", p.what.what);
    auto& d = diags_.error(code, message).primary(asked.span, "requested here");
    Span culprit = p.what.span.valid() ? p.what.span : m_[p.family].span;
    if (culprit.valid())
      d.label(culprit, fmt::format("on the path, in `{}`", text(m_[p.family].name)));
  }

  // Asked in a step, of a value of that step, by a value outside of the recurrence.
  bool by_outer_value(const Asked& a) {
    const std::unique_ptr<Order> order = find_order(m_, {a});
    const Chain &in = order->around[a.in], &num = order->around[a.request.num];
    if (in.empty() || num.empty() || in[0] != num[0] || !order->around[den_of(a)].empty())
      return false;
    const auto& members = num[0]->members;
    return std::any_of(members.begin(), members.end(), [&](const auto& member) {
      return member.family == a.request.num &&
             slot_of(m_, a.request.num_at[member.position]) != ~0u;
    });
  }

  void give_up() {
    std::vector<Asked> asked;
    for (const auto& [id, list] : requests_.all())
      asked.insert(asked.end(), list.begin(), list.end());
    auto outer =
        std::find_if(asked.begin(), asked.end(), [&](const Asked& a) { return by_outer_value(a); });
    const Asked& a = outer != asked.end() ? *outer : asked[0];
    std::string by = text(m_[den_of(a)].name);
    auto& d =
        diags_.error(Code::E0604, fmt::format("the derivative of `{}` by `{}` depends on itself",
                                              text(m_[a.request.num].name), by));
    d.primary(a.span, "computing this derivative needs its own result");
    if (outer != asked.end()) {
      if (m_[den_of(a)].span.valid()) d.label(m_[den_of(a)].span, "defined outside the steps");
      d.help(fmt::format(
          "earlier steps are computed from this derivative and from `{}`, so they change with it; "
          "to "
          "hold them, give `{}` a name in the step, as in `let here = {};`, compute the numerator "
          "from `here`, and use `@here` as the denominator",
          by, by, by));
    } else {
      d.help(
          "in a recurrence, take the derivative at a single step: give the value of the step "
          "before "
          "a name, as in `let p = w[t - 1];`, compute the numerator from `p`, and use `@p` as the "
          "denominator, or use the same step index in both; if part of the numerator is itself "
          "computed from this derivative, such as the direction of a solver, wrap it in `stop(…)`");
    }
    std::vector<const Asked*> all;
    for (const Asked& x : asked) all.push_back(&x);
    replace(all, [](const Asked&) { return ExprId{}; });
  }

  // Puts `by` (a zero when invalid) where each request stood.
  void replace(const std::vector<const Asked*>& asked,
               const std::function<ExprId(const Asked&)>& by) {
    std::map<ExprId, ExprId> with;
    for (const Asked* a : asked) {
      if (with.contains(a->node)) continue;
      ExprId d = by(*a);
      with[a->node] = d ? cast(m_, d, m_[a->node].type) : float_lit(m_, 0, m_[a->node].type);
    }
    // Normal form may have moved a request into a generated family.
    for (FamilyId f : changed_) requests_.look_at(f);
    changed_.clear();
    requests_.look_at_new();
    std::set<FamilyId> nums, holders;
    for (const Asked* a : asked) nums.insert(a->request.num);
    for (FamilyId num : nums) {
      for (const Asked& x : requests_.of(num)) {
        if (with.contains(x.node)) holders.insert(x.in);
      }
    }
    for (FamilyId f : holders) {
      for (const Asked& x : requests_.all().at(f)) {
        if (with.contains(x.node) && x.request.num != f && by_data_.contains(x.request.num))
          m_.families[f].with.push_back(x.request.num);
      }
      rewrite_family(m_, f, [&](ExprId e) {
        return rewrite(m_, e, [&](ExprId x) {
          auto it = with.find(x);
          return it == with.end() ? x : it->second;
        });
      });
      touched_.insert(f);
      requests_.look_at(f);
    }
  }

  Module& m_;
  Diagnostics& diags_;
  Direction direction_;
  Record* record_;  // may be null
  Contractions contractions_;
  Requests requests_;
  bool rules_;                // some function has a rule
  std::set<FamilyId> asked_;  // denominators of all requests
  bool outside_ = false;      // denominators outside of a recurrence may be locals of its steps
  std::set<FamilyId> touched_;
  std::set<FamilyId> changed_;  // their requests may stand elsewhere now
  std::set<FamilyId> by_data_;  // numerators whose value reads the path at addresses that are data
};

}  // namespace

Module differentiate(Module m, Diagnostics& diags, Direction direction, Record* record) {
  print_differentials(m, diags);
  if (!requests_left(m).empty()) {
    Differentiator(m, diags, direction, record).run();
  } else if (has_rules(m)) {
    drop_rules(m);
    tidy(m);
  }
  return m;
}

std::vector<Span> requests_left(const Module& m) {
  std::vector<Span> out;
  bool any = false;  // in the arena at all: most programs have none
  for (uint32_t i = 0; i < m.arena->size(); ++i) any |= get_if<Request>(m, ExprId(i)) != nullptr;
  if (!any) return out;
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    for (const Asked& a : requests_in(m, FamilyId(i))) out.push_back(a.span);
  }
  return out;
}

}  // namespace ein::autodiff

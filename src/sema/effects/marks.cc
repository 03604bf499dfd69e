#include "sema/effects/marks.h"

#include <map>
#include <set>

#include "base/match.h"
#include "core/rewrite.h"
#include "sema/state/definition_state.h"

namespace ein::sema {
namespace {

using core::Op;

const core::Apply* as_mark(const core::Module& m, CoreId e) {
  const auto* a = core::get_if<core::Apply>(m, e);
  return a && a->op == Op::Mark ? a : nullptr;
}

CoreId without_marks(core::Module& m, CoreId e) {
  if (!e) return e;
  return core::rewrite(m, e, [&](CoreId x) {
    const core::Apply* mark = as_mark(m, x);
    return mark ? mark->args[0] : x;
  });
}

// The opposite of a condition; that of `a || b` as two conditions, of which each says something.
CoreId opposite(core::Module& m, CoreId e) {
  const auto* a = core::get_if<core::Apply>(m, e);
  if (!a || a->op != Op::Or) return core::negate(m, e);
  const std::vector<CoreId> args = a->args;
  CoreId first = opposite(m, args[0]), second = opposite(m, args[1]);
  return core::apply(m, Op::And, {first, second});
}

// Calls of functions with marks in them, as the bodies of those functions.
class Expander {
 public:
  explicit Expander(Sema& s) : s_(s) {
    for (uint32_t i = 0; i < s.m.functions.size(); ++i) body_of(core::FunctionId(i));
  }
  CoreId expanded(CoreId e) {
    return core::rewrite(s_.m, e, [&](CoreId x) {
      const auto* call = core::get_if<core::Call>(s_.m, x);
      CoreId body = call ? body_of(call->function) : CoreId{};
      return body ? core::with_arguments(s_.m, body, call->args) : x;
    });
  }

 private:
  // Invalid for functions without marks.
  CoreId body_of(core::FunctionId f) {
    auto [it, fresh] = bodies_.try_emplace(f);
    CoreId body = s_.m.functions[f].body;
    if (!fresh || !body) return it->second;
    if (s_.m.functions[f].recursive) {
      reject(body);
      return {};
    }
    CoreId out = expanded(body);
    bool marked = false;
    core::for_each_node(s_.m, out, [&](CoreId x) { marked |= as_mark(s_.m, x) != nullptr; });
    if (marked) bodies_[f] = out;
    return marked ? out : CoreId{};
  }
  void reject(CoreId body) {
    core::for_each_node(s_.m, body, [&](CoreId x) {
      const core::Apply* mark = as_mark(s_.m, x);
      if (!mark) return;
      auto n = static_cast<size_t>(*core::const_int(s_.m, mark->args[1]));
      s_.diags.error(Code::E0207, "`dbg` is not allowed in a recursive function")
          .primary(s_.definitions.dbgs[n].span, "")
          .help("put it around a call of the function");
    });
  }

  Sema& s_;
  std::map<core::FunctionId, CoreId> bodies_;
};

// Walks a clause, with what holds at each place.
class MarkFinder {
 public:
  MarkFinder(core::Module& m, std::vector<Marked>& out) : m_(m), out_(out) {}

  void clause(FamilyId family, const std::vector<core::Range>& box, CoreId body) {
    family_ = family;
    box_ = box;
    first_ = out_.size();
    marked_.clear();
    seen_.clear();
    core::for_each_node(m_, body, [&](CoreId e) {
      bool inside = as_mark(m_, e) != nullptr;
      core::for_each_child(m_, e, [&](CoreId x) { inside |= marked_.contains(x); });
      if (inside) marked_.insert(e);
    });
    visit(body);
  }

 private:
  void visit(CoreId e) {
    if (!marked_.contains(e)) return;
    std::vector<CoreId> context = conds_;
    for (const Marked::Binder& b : binders_)
      context.insert(context.end(), {b.range.lo, b.range.hi});
    if (!seen_.insert({e, std::move(context)}).second) return;
    const core::Node node = m_[e].node;
    if (const auto* a = std::get_if<core::Apply>(&node)) return apply(*a);
    if (const auto* r = std::get_if<core::Reduce>(&node)) return reduce(*r);
    core::for_each_child(m_, e, [&](CoreId x) { visit(x); });
  }

  void apply(const core::Apply& a) {
    if (a.op == Op::Mark) record(a);
    if (a.op != Op::Select && a.op != Op::And && a.op != Op::Or) {
      for (CoreId x : a.args) visit(x);
      return;
    }
    visit(a.args[0]);
    CoreId holds = without_marks(m_, a.args[0]);
    under(a.op == Op::Or ? opposite(m_, holds) : holds, a.args[1]);
    if (a.op == Op::Select) under(opposite(m_, holds), a.args[2]);
  }
  void under(CoreId cond, CoreId e) {
    conds_.push_back(cond);
    visit(e);
    conds_.pop_back();
  }

  void reduce(const core::Reduce& r) {
    size_t conds = conds_.size();
    for (size_t k = 0; k < r.over.size(); ++k) {
      visit(r.over[k].lo);
      visit(r.over[k].hi);
      core::Range range{without_marks(m_, r.over[k].lo), without_marks(m_, r.over[k].hi)};
      binders_.push_back({range, r.names[k]});
    }
    if (r.gate) {
      visit(r.gate);
      conds_.push_back(without_marks(m_, r.gate));
    }
    for (const core::Route& route : r.routes) {
      visit(route.to);
      CoreId to = without_marks(m_, route.to);
      conds_.push_back(core::apply(m_, Op::Eq, {to, core::slot(m_, route.slot)}));
    }
    visit(r.body);
    conds_.resize(conds);
    binders_.resize(binders_.size() - r.over.size());
  }

  void record(const core::Apply& mark) {
    Marked now;
    now.dbg = static_cast<size_t>(*core::const_int(m_, mark.args[1]));
    now.family = family_;
    now.box = box_;
    now.binders = binders_;
    now.value = without_marks(m_, mark.args[0]);
    now.cond = core::all_of(m_, conds_);
    for (size_t i = first_; i < out_.size(); ++i) {  // in both arms of an `if`, for example
      Marked& other = out_[i];
      if (other.dbg != now.dbg || other.value != now.value || !same_binders(other)) continue;
      bool both = other.cond && now.cond;
      other.cond = both ? core::apply(m_, Op::Or, {other.cond, now.cond}) : CoreId{};
      return;
    }
    out_.push_back(std::move(now));
  }
  bool same_binders(const Marked& other) const {
    if (other.binders.size() != binders_.size()) return false;
    for (size_t k = 0; k < binders_.size(); ++k) {
      const core::Range &a = other.binders[k].range, &b = binders_[k].range;
      if (a.lo != b.lo || a.hi != b.hi) return false;
    }
    return true;
  }

  core::Module& m_;
  std::vector<Marked>& out_;
  FamilyId family_;
  std::vector<core::Range> box_;
  size_t first_ = 0;
  std::set<CoreId> marked_;  // nodes with a mark in them
  std::set<std::pair<CoreId, std::vector<CoreId>>> seen_;
  std::vector<CoreId> conds_;
  std::vector<Marked::Binder> binders_;
};

}  // namespace

std::vector<Marked> take_marks(Sema& s) {
  std::vector<Marked> out;
  if (s.definitions.dbgs.empty()) return out;
  Expander calls(s);
  MarkFinder finder(s.m, out);
  for (uint32_t i = 0; i < s.m.families.size(); ++i) {
    const core::Family f = s.m[FamilyId(i)];
    for (const core::Clause& c : f.clauses)
      finder.clause(FamilyId(i), c.box, calls.expanded(c.body));
    for (CoreId cell : f.cells) finder.clause(FamilyId(i), {}, calls.expanded(cell));
  }
  core::rewrite_all(s.m, [&](CoreId e) { return without_marks(s.m, e); });
  for (core::Function& f : s.m.functions) f.body = without_marks(s.m, f.body);
  return out;
}

}  // namespace ein::sema

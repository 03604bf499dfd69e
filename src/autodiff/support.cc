#include "autodiff/support.h"

#include <algorithm>
#include <map>

#include "core/bound.h"
#include "core/build.h"
#include "core/groups.h"
#include "core/prove.h"
#include "core/rewrite.h"
#include "core/solve_gates.h"
#include "core/total.h"

namespace ein::autodiff {

using namespace core;

namespace {

// The steps at which a value may differ from a structural zero: none, up to a closed bound, or all.
// "Up to" means ≤ in a recurrence that runs downward and ≥ in one that runs upward.
struct Reach {
  enum class Kind : uint8_t { None, Bounded, All } kind = Kind::None;
  ExprId last;
};

class Group {
 public:
  Group(Module& m, const Sequence& q) : m_(m), downward_(q.downward) {
    for (const auto& member : q.members) position_[member.family] = member.position;
  }

  void cut() {
    Reach all;
    for (const auto& [id, position] : position_) {
      for (const Clause& c : std::vector<Clause>(m_[id].clauses))
        all = both(all, reach(c.body, position));
    }
    if (all.kind != Reach::Kind::Bounded) return;
    for (const auto& [id, position] : position_) split(id, position, all.last);
  }

 private:
  Reach both(const Reach& a, const Reach& b) {
    if (a.kind == Reach::Kind::None) return b;
    if (b.kind == Reach::Kind::None) return a;
    if (a.kind == Reach::Kind::All || b.kind == Reach::Kind::All) return {Reach::Kind::All, {}};
    if (a.last == b.last) return a;
    return {Reach::Kind::Bounded, apply(m_, downward_ ? Op::Max : Op::Min, {a.last, b.last})};
  }

  // The steps at which `cond` may hold.
  Reach where(ExprId cond, uint32_t position) {
    std::vector<ExprId> parts;
    conjuncts(m_, cond, parts);
    for (ExprId part : parts) {
      auto bound = bound_on(m_, part, position);
      if (!bound) continue;
      ExprId edge = downward_ ? bound->hi : bound->lo;
      if (!edge || m_[edge].free != 0 || !readable(edge)) continue;
      return {Reach::Kind::Bounded, downward_ ? core::sub(m_, edge, int_lit(m_, 1)) : edge};
    }
    return {Reach::Kind::All, {}};
  }

  // What `edge` reads, if anything, exists before the recurrence runs, and reading it cannot fail.
  bool readable(ExprId edge) {
    bool ok = true;
    for_each_node(m_, edge, [&](ExprId e) {
      const auto* a = get_if<Access>(m_, e);
      ok &= !a || m_[a->family].kind != Family::Kind::Defined;
    });
    const Facts none{entry_facts(m_), {}, {}, {}, {}, false};
    return ok && total(m_, edge, none, Overflow::Wraps);
  }

  Reach reach(ExprId e, uint32_t position) {
    const Node node = m_[e].node;
    if (const auto* lit = std::get_if<FloatLit>(&node)) {
      if (lit->value == 0) return {};
    } else if (const auto* a = std::get_if<Access>(&node)) {
      if (position_.contains(a->family)) return {};  // no further than that family's own reach
    } else if (const auto* r = std::get_if<Reduce>(&node)) {
      if (r->op == ReduceOp::Sum && r->routes.empty()) {
        if (m_[r->body].type != DType::Bool && reach(r->body, position).kind == Reach::Kind::None)
          return {};
        if (r->gate) return where(r->gate, position);
      }
    } else if (const auto* op = std::get_if<Apply>(&node)) {
      return of_operation(*op, position);
    }
    return {Reach::Kind::All, {}};
  }

  Reach of_operation(const Apply& a, uint32_t position) {
    auto of = [&](size_t k) { return reach(a.args[k], position); };
    switch (a.op) {
      case Op::Add:
      case Op::Sub: return both(of(0), of(1));
      case Op::Neg:
      case Op::Cast:
      case Op::Div: return of(0);
      case Op::Mul: {
        Reach left = of(0), right = of(1);
        return left.kind <= right.kind ? left : right;
      }
      case Op::Select: {
        Reach then = of(1), otherwise = of(2);
        if (otherwise.kind != Reach::Kind::None) return both(then, otherwise);
        if (then.kind == Reach::Kind::None) return then;
        Reach gate = where(a.args[0], position);
        return gate.kind == Reach::Kind::All ? then : gate;
      }
      default: return {Reach::Kind::All, {}};
    }
  }

  // Makes the family zero past `last`.
  void split(FamilyId id, uint32_t position, ExprId last) {
    ExprId edge = downward_ ? add(m_, last, int_lit(m_, 1)) : last;
    ExprId zero = float_lit(m_, 0, m_[id].dtype);
    if (reads_values(m_, last)) {  // known only when the program runs: a gate, not a clause
      ExprId step = slot(m_, position);
      ExprId seeded = apply(m_, downward_ ? Op::Le : Op::Ge, {step, last});
      for (Clause& c : m_.families[id].clauses) c.body = gated(m_, seeded, c.body);
      return;
    }
    std::vector<Clause> out;
    for (const Clause& c : std::vector<Clause>(m_[id].clauses)) {
      Range r = c.box[position];
      const Facts none{entry_facts(m_), {}, {}, {}, {}, false};
      bool needless = downward_ ? proves_le(m_, r.hi, edge, none) : proves_le(m_, edge, r.lo, none);
      if (needless) {
        out.push_back(c);
        continue;
      }
      // The cut is at most the end of the range, even where that lies before its start: the parts
      // then end where the whole does, and print as clauses that can be compared.
      ExprId cut = proves_le(m_, edge, r.lo, none)
                       ? r.lo
                       : apply(m_, Op::Min, {r.hi, apply(m_, Op::Max, {r.lo, edge})});
      if (cut == r.lo || cut == r.hi) {  // all of it, or none
        out.push_back(c);
        if (cut == (downward_ ? r.lo : r.hi)) out.back().body = zero;
        continue;
      }
      Clause low = c, high = c;
      low.box[position] = {r.lo, cut};
      high.box[position] = {cut, r.hi};
      (downward_ ? high : low).body = zero;
      out.push_back(std::move(low));
      out.push_back(std::move(high));
    }
    m_.families[id].clauses = std::move(out);
    solve_gates(m_, id);  // drops conditions that the narrower ranges imply
  }

  Module& m_;
  bool downward_;
  std::map<FamilyId, uint32_t> position_;
};

}  // namespace

void start_at_seeds(Module& m, const std::set<FamilyId>& adjoints) {
  std::vector<FamilyId> roots(adjoints.begin(), adjoints.end());
  if (roots.empty()) return;
  for (const Step& s : schedule(m, roots).steps) {
    const auto* q = std::get_if<Sequence>(&s);
    if (!q) continue;
    bool own = std::all_of(q->members.begin(), q->members.end(), [&](const auto& member) {
      const Family& f = m[member.family];
      return adjoints.contains(member.family) && f.generated && is_float(f.dtype);
    });
    if (own) Group(m, *q).cut();
  }
}

}  // namespace ein::autodiff

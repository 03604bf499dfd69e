#include "autodiff/transpose.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "autodiff/custom.h"
#include "base/check.h"
#include "core/build.h"
#include "core/normal.h"
#include "core/print.h"
#include "core/rewrite.h"
#include "core/solve_gates.h"
#include "core/total.h"

namespace ein::autodiff {

using namespace core;

namespace {

class Transposer {
 public:
  Transposer(Module& m, const Sweep& sweep, Adjoints& out, Record* record)
      : m_(m),
        sweep_(sweep),
        out_(out),
        record_(record),
        carried_(free_coordinates(m, sweep, sweep.num())) {}

  void run() {
    std::set<FamilyId> members = cone(m_, sweep_);
    for (FamilyId id : members) collect(id, members);
    if (out_.problem) return;
    // Only now is it known which adjoints exist; a family read by nobody on the path has none.
    for (FamilyId id : members) {
      if (incoming_.contains(id)) out_.family[id] = declare(id);
    }
    for (auto& [id, terms] : incoming_) define(id);
  }

 private:
  struct Incoming {
    FamilyId reader;
    std::vector<Range> box;
    Term term;
  };

  void collect(FamilyId id, const std::set<FamilyId>& members) {
    for (LinearClause& c : linear_clauses(m_, sweep_, members, id, out_.problem)) {
      for (Term& t : c.terms) {
        // A contribution binds the reader's coordinates beside those of the adjoint.
        size_t slots = carried_.size() + m_[t.family].rank() + m_[id].rank() + t.over.size();
        if (slots > kMaxSlots && !out_.problem) {
          out_.problem = Problem{id, {"values with this many coordinates", t.span, true}};
        }
        incoming_[t.family].push_back({id, c.box, std::move(t)});
      }
    }
  }

  FamilyId declare(FamilyId id) {
    Family f;
    f.name = fresh_name(m_, "d_" + text(m_[sweep_.num()].name) + "_d_" + text(m_[id].name));
    f.dtype = tangent_type(m_, id);
    f.generated = f.tangent = true;
    f.span = m_[id].span;
    std::set<Symbol> own;
    for (const Coord& c : m_[id].coords) own.insert(c.name);
    for (uint32_t k : carried_) {
      Coord c = m_[sweep_.num()].coords[k];
      if (own.contains(c.name)) c.name = intern("p_" + text(c.name));
      f.coords.push_back(c);
    }
    for (const Coord& c : m_[id].coords) f.coords.push_back(c);
    return m_.families.add(std::move(f));
  }

  // Readers first (except in cycles), so that it is known where their adjoints are gated.
  void define(FamilyId id) {
    if (!incoming_.contains(id) || !visited_.insert(id).second) return;
    const std::vector<Incoming>& terms = incoming_[id];
    for (const Incoming& in : terms) define(in.reader);
    FamilyId adjoint = out_.family[id];
    std::vector<Contribution> parts;
    // Latest definition first: that is the order in which sensitivities come back.
    for (auto it = terms.rbegin(); it != terms.rend(); ++it) {
      const Incoming& in = *it;
      for (bool as_seed : {true, false}) {
        if (as_seed ? in.reader != sweep_.num() : !out_.family.contains(in.reader)) continue;
        parts.push_back(contribution(id, in, as_seed));
        if (record_) record(id, in, as_seed, parts.back());
      }
    }
    ExprId body = sum(m_, parts, tangent_type(m_, id));
    Clause clause;
    for (const Coord& c : m_[adjoint].coords) clause.box.push_back({int_lit(m_, 0), c.extent});
    clause.body = body;
    clause.span = m_[id].span;
    m_.families[adjoint].clauses.push_back(std::move(clause));
    solve_sum(m_, adjoint);
    ExprId solved = m_[adjoint].clauses[0].body;
    if (const auto* lit = get_if<FloatLit>(m_, solved)) constant_[id] = lit->value;
    if (ExprId gate = support(m_, adjoint, support_, out_.family)) support_[id] = gate;
  }

  // Where `in` adds to the adjoint of `id`: at the address that it reads, under its own conditions
  // and those of the reader's adjoint. `over` and `put` are those of `contribution`.
  ExprId gate_of(FamilyId id, const Incoming& in, bool as_seed, const std::vector<Range>& over,
                 const std::function<ExprId(ExprId)>& put) {
    auto front = static_cast<uint32_t>(carried_.size());
    uint32_t first = front + m_[id].rank(), rank = m_[in.reader].rank();
    auto inner = static_cast<uint32_t>(in.term.over.size());
    std::vector<ExprId> gates, read;  // `read`: those that may fail outside the term's gate
    for (size_t k = 0; k < in.term.at.size(); ++k) {
      ExprId here = slot(m_, front + static_cast<uint32_t>(k)), there = put(in.term.at[k]);
      bool fails = may_fail(m_, there);
      if (m_[there].free == 0) std::swap(here, there);  // so that it reads `s == 19`
      (fails ? read : gates).push_back(apply(m_, Op::Eq, {there, here}));
    }
    if (as_seed) {
      for (uint32_t k = 0; k < front; ++k) {
        gates.push_back(apply(m_, Op::Eq, {slot(m_, k), slot(m_, first + carried_[k])}));
      }
    }
    // The term's gate, and the condition under which the reader's adjoint is not gated out.
    std::vector<ExprId> own, support;
    conjuncts(m_, put(in.term.gate), own);
    if (auto it = support_.find(in.reader); !as_seed && it != support_.end()) {
      std::vector<ExprId> at = reader_address(front, first, rank);
      conjuncts(m_, substitute(m_, it->second, at, first + rank + inner), support);
    }
    auto add_new = [&](const std::vector<ExprId>& conditions, const std::vector<ExprId>& but) {
      for (ExprId c : conditions) {
        if (std::find(but.begin(), but.end(), c) == but.end()) gates.push_back(c);
      }
    };
    // An adjoint that is passed on unchanged brings its zeros along, so its gate need not
    // be repeated. But an equality that leaves one cell of a sum stays: without it there
    // may be no legal order.
    std::vector<ExprId> known = support;
    uint64_t found = 0;
    for (ExprId there : in.term.at) found |= m_[put(there)].free;
    std::erase_if(known, [&](ExprId c) {
      const auto* a = get_if<Apply>(m_, c);
      return a && a->op == Op::Eq && (m_[c].free & ~found) != 0;
    });
    // An address that is data may name a later step where the gate fails, and then no order would
    // be legal. Also, a read in one condition may rely on the conditions before it.
    auto reads = [&](ExprId e) { return reads_values(m_, e); };
    Facts ranges;
    ranges.entry = entry_facts(m_);
    for (const Coord& c : m_[out_.family.at(id)].coords)
      ranges.slots.push_back({int_lit(m_, 0), c.extent});
    ranges.slots.insert(ranges.slots.end(), over.begin(), over.end());
    auto fails = [&](ExprId c) {
      return std::find(known.begin(), known.end(), c) == known.end() && may_fail(m_, c) &&
             !total(m_, c, ranges, Overflow::Wraps);
    };
    bool relies = std::any_of(in.term.at.begin(), in.term.at.end(), reads) ||
                  std::any_of(own.begin(), own.end(), fails);
    if (in.term.coef.num || in.term.coef.den || relies) {
      // Where the adjoint is gated out, so is what it passes on: 0 · inf never arises.
      add_new(support, {});
      add_new(own, support);
    } else {
      add_new(own, known);
    }
    add_new(read, {});
    return all_of(m_, gates);
  }

  // What `in` adds to the adjoint of `id`. `as_seed`: the reader's adjoint is not a family but the
  // numerator's own seed (one where the addresses agree).
  Contribution contribution(FamilyId id, const Incoming& in, bool as_seed) {
    const Family& reader = m_[in.reader];  // not a copy: it may be a long table
    auto front = static_cast<uint32_t>(carried_.size());
    uint32_t first = front + m_[id].rank();
    auto inner = static_cast<uint32_t>(in.term.over.size());
    std::vector<ExprId> with;
    for (uint32_t k = 0; k < reader.rank() + inner; ++k) with.push_back(slot(m_, first + k));
    auto put = [&](ExprId e) {
      return e ? substitute(m_, e, with, first + reader.rank() + inner) : e;
    };

    Reduce r{ReduceOp::Sum, first, {}, {}, {}, {}, {}};
    for (uint32_t k = 0; k < reader.rank(); ++k) {
      r.over.push_back(in.box[k]);
      r.names.push_back(reader.coords[k].name);
    }
    for (uint32_t k = 0; k < inner; ++k) {
      r.over.push_back({put(in.term.over[k].lo), put(in.term.over[k].hi)});
      r.names.push_back(in.term.names[k]);
    }
    r.gate = gate_of(id, in, as_seed, r.over, put);

    Coef coef = in.term.coef;
    coef.num = put(coef.num);
    coef.den = put(coef.den);
    ExprId adjoint;
    if (auto constant = constant_.find(in.reader); !as_seed && constant != constant_.end()) {
      coef.scale *= constant->second;  // a number, not worth a read
    } else if (!as_seed) {
      adjoint = access(m_, out_.family.at(in.reader), reader_address(front, first, reader.rank()));
    }
    bool negative = false;
    ExprId value = weighted(m_, coef, adjoint, tangent_type(m_, in.reader), negative);
    r.body = cast(m_, value, tangent_type(m_, id));
    return {negative, as_seed, reduce(m_, std::move(r), in.term.span)};
  }

  // Records the contribution, in words, with its equalities solved. It is solved in a family of its
  // own, which nothing reads.
  void record(FamilyId id, const Incoming& in, bool as_seed, const Contribution& part) {
    FamilyId adjoint = out_.family.at(id);
    const Family &of = m_[id], &reader = m_[in.reader];
    Flow f{m_[sweep_.num()].name, of.name, reader.name, m_[adjoint].name};
    if (!as_seed) f.incoming = m_[out_.family.at(in.reader)].name;
    f.span = in.term.span;
    std::vector<Symbol> names = coordinate_names(reader);
    f.by = cell_text(reader, names);
    names.insert(names.end(), in.term.names.begin(), in.term.names.end());
    f.cell = cell_text(of, coordinate_names(of));
    f.read = print(m_, names, access(m_, id, in.term.at));
    f.local = print(m_, names, value(m_, in.term.coef, tangent_type(m_, in.reader)));
    if (in.term.gate) f.gate = print(m_, names, in.term.gate);

    Family scratch = m_[adjoint];
    // Nobody sees the name; counting families makes it unique without a search.
    scratch.name = fresh_name(m_, fmt::format("flow_{}", m_.families.size()));
    scratch.clauses.clear();
    Clause clause;
    for (const Coord& c : scratch.coords) clause.box.push_back({int_lit(m_, 0), c.extent});
    clause.body = part.negative ? neg(m_, part.value) : part.value;
    scratch.clauses.push_back(std::move(clause));
    FamilyId solved = m_.families.add(std::move(scratch));
    solve_gates(m_, solved);
    ExprId body = m_[solved].clauses[0].body;
    f.added = print(m_, solved, body);
    std::vector<Symbol> scope = coordinate_names(m_[solved]);
    for_each_node(m_, body, [&](ExprId e) {
      const auto* r = get_if<Reduce>(m_, e);
      if (!r || r->first != scope.size() || !f.summed.empty()) return;
      std::vector<Symbol> own = coordinate_names(m_[in.reader]);
      for (Symbol s : r->names) {
        f.summed.push_back({s, std::find(own.begin(), own.end(), s) != own.end()});
      }
      std::vector<Symbol> inner = scope;
      inner.insert(inner.end(), r->names.begin(), r->names.end());
      for (const Route& route : r->routes) {
        const auto* widened = get_if<Apply>(m_, route.to);
        bool cast = widened && widened->op == Op::Cast;  // `idx[k] == i` needs none in the source
        f.routes.push_back(fmt::format("{} == {}",
                                       print(m_, inner, cast ? widened->args[0] : route.to),
                                       print(m_, inner, slot(m_, route.slot))));
      }
      if (as_seed) return;
      for_each_node(m_, r->body, [&](ExprId x) { note_solved(in, x, inner, f); });
    });
    if (f.summed.empty() && !as_seed) {
      for_each_node(m_, body, [&](ExprId x) { note_solved(in, x, scope, f); });
    }
    record_->flows.push_back(std::move(f));
    std::vector<FamilyId> parts{id, in.reader};
    note_parts(body, parts);
    if (in.term.gate) note_parts(in.term.gate, parts);
    for (size_t k = 0; k < parts.size(); ++k) {  // grows
      const Family& read = m_[parts[k]];
      if (!read.generated || read.tangent || record_->parts.contains(read.name)) continue;
      record_->parts[read.name] = definition_text(m_, parts[k]);
      for_each_body(m_, parts[k], [&](ExprId e) { note_parts(e, parts); });
    }
  }

  // The functions and families that an expression mentions, for people who meet them in a flow.
  void note_parts(ExprId expression, std::vector<FamilyId>& families) {
    for_each_node_called(m_, expression, [&](ExprId e) {
      if (const auto* a = get_if<Access>(m_, e)) families.push_back(a->family);
      const auto* call = get_if<Call>(m_, e);
      if (!call) return;
      Symbol name = m_.functions[call->function].name;
      if (!record_->parts.contains(name)) record_->parts[name] = print(m_, call->function);
    });
  }

  // Where the incoming sensitivity is read at an address that had to be solved for.
  void note_solved(const Incoming& in, ExprId e, const std::vector<Symbol>& scope, Flow& f) {
    const auto* a = get_if<Access>(m_, e);
    if (!a || a->family != out_.family.at(in.reader) || !f.solved.empty()) return;
    std::vector<Symbol> names = coordinate_names(m_[in.reader]);
    names.insert(names.end(), in.term.names.begin(), in.term.names.end());
    const std::vector<ExprId> at = a->at;
    for (uint32_t k = 0; k < m_[in.reader].rank(); ++k) {
      ExprId there = at[carried_.size() + k];
      if (slot_of(m_, there) != ~0u || m_[there].free == 0) continue;
      for (ExprId read : in.term.at) {
        if (!mentions_slot(m_, read, k)) continue;
        f.solved.push_back(
            {m_[in.reader].coords[k].name, print(m_, scope, there), print(m_, names, read)});
        break;
      }
    }
  }

  static std::string cell_text(const Family& f, const std::vector<Symbol>& names) {
    std::vector<std::string> parts;
    for (size_t k = 0; k < f.coords.size(); ++k) parts.push_back(names[k] ? text(names[k]) : "i");
    if (parts.empty()) return text(f.name);
    return fmt::format("{}[{}]", text(f.name), fmt::join(parts, ", "));
  }

  // The address of the reader's adjoint, in terms of the binders of a contribution.
  std::vector<ExprId> reader_address(uint32_t front, uint32_t first, uint32_t rank) {
    std::vector<ExprId> at;
    for (uint32_t k = 0; k < front; ++k) at.push_back(slot(m_, k));
    for (uint32_t k = 0; k < rank; ++k) at.push_back(slot(m_, first + k));
    return at;
  }

  Module& m_;
  const Sweep& sweep_;
  Adjoints& out_;
  Record* record_;  // may be null
  std::vector<uint32_t> carried_;
  std::map<FamilyId, std::vector<Incoming>> incoming_;  // by the family that is read
  std::map<FamilyId, ExprId> support_;                  // where a family's adjoint is not gated out
  std::map<FamilyId, double> constant_;  // adjoints that are the same number everywhere
  std::set<FamilyId> visited_;
};

}  // namespace

Adjoints transpose(Module& m, const Sweep& sweep, Record* record) {
  Adjoints out;
  Transposer(m, sweep, out, record).run();
  return out;
}

ExprId derivative(Module& m, const Sweep& sweep, const Adjoints& adjoints, FamilyId den,
                  const std::vector<ExprId>& num_at, const std::vector<ExprId>& den_at) {
  ExprId total;
  if (auto it = adjoints.family.find(den); it != adjoints.family.end()) {
    std::vector<ExprId> at;
    for (uint32_t k : free_coordinates(m, sweep, sweep.num())) at.push_back(num_at[k]);
    at.insert(at.end(), den_at.begin(), den_at.end());
    total = access(m, it->second, std::move(at));
  }
  if (den == sweep.num()) {  // a value with respect to itself: one where the addresses agree
    std::vector<ExprId> same;
    for (uint32_t k : free_coordinates(m, sweep, sweep.num()))
      same.push_back(apply(m, Op::Eq, {num_at[k], den_at[k]}));
    ExprId one = gated(m, all_of(m, same), float_lit(m, 1, m[den].dtype));
    total = total ? add(m, one, total) : one;
  }
  return total;
}

}  // namespace ein::autodiff

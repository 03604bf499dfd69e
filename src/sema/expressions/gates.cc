// Gates: `where` and what it keeps from being read (decisions.md, 10), which reduction or family it
// belongs to (decisions.md, 16), and the names it binds (decisions.md, 18).
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "sema/expressions/expressions.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

const ast::Where* as_where(const Sema& s, TreeId e) { return std::get_if<ast::Where>(&s[e].node); }

// Names in the conditions that a reduction inside the body binds.
std::set<Symbol> names_to_place(Sema& s, const ast::Where& w) {
  std::set<Symbol> reduced = reduced_names(s.ast, w.body), used, bound;
  for (const ast::WhereItem& item : w.items) {
    for (Symbol name : free_names(s.ast, item.value)) {
      if (reduced.count(name) && !bound.count(name)) used.insert(name);
    }
    if (item.bind) bound.insert(item.bind->symbol);
  }
  return used;
}

// Names in the brackets of coordinate calls in `e`.
std::set<Symbol> call_coordinates(Sema& s, const Env& env, TreeId e) {
  std::set<Symbol> out;
  for_each_tree(s.ast, e, [&](TreeId x) {
    const auto* call = std::get_if<ast::Call>(&s[x].node);
    if (!call || !call->has_brackets || !find_callee(s, env, call->callee)) return;
    for (const ast::Bracket& b : call->brackets) {
      if (b.name.symbol) out.insert(b.name.symbol);
      for (const ast::Name& n : b.group) out.insert(n.symbol);
    }
  });
  return out;
}

bool ambiguous(Sema& s, Env& env, const ast::Where& w, const std::set<Symbol>& names) {
  // A left name of a call's coordinate is that coordinate, not an index (decisions.md, 17).
  std::set<Symbol> called = call_coordinates(s, env, w.body);
  for (Symbol name : names) {
    if (called.count(name)) continue;
    Index* index = find_index(env, name);
    if (!index) continue;
    s.diags
        .error(Code::E0308,
               fmt::format("{} in this `where` is both an index on the left and a reduced index",
                           quoted(name)))
        .primary(w.where_span, "which of the two does this mean?")
        .label(index->span, "defined here and again by a reduction")
        .help("rename the reduced index, or put the `where` inside the reduction's parentheses");
    return true;
  }
  return false;
}

// `let p[b, j] = softmax[class](x[b, class]) where ok[b, j]`: `j` takes over `class`. Only the call
// knows which coordinates it returns, so the names are noted here and resolved there.
void take_over(Sema& s, Env& env, PendingGate& gate) {
  if (call_coordinates(s, env, gate.where->body).empty()) return;
  std::set<Symbol> spelled, used;
  spelled_names(s.ast, gate.where->body, spelled);
  for (const ast::WhereItem& item : gate.where->items) used.merge(free_names(s.ast, item.value));
  for (const Frame* f = env.frame; f; f = f->up) {
    if (f->indices.empty()) continue;
    for (const Index* index : f->indices) {
      if (!index->left || spelled.count(index->name)) continue;
      gate.open.push_back(index->name);
      if (used.count(index->name)) gate.renamed.insert(index->name);
    }
    return;  // the left side of this statement alone
  }
}

// Elaborates a `where` that stands outside but belongs to a reduction inside the body.
Value place_inside(Sema& s, Env& env, const ast::Where& w, std::set<Symbol> names, Span span) {
  if (ambiguous(s, env, w, names)) return {};
  if (w.otherwise) {
    s.diags.error(Code::E0308, "`else` belongs to the `where` of a definition, not of a reduction")
        .primary(s[w.otherwise].span, "")
        .label(w.where_span, "this `where` names a reduced index");
    return {};
  }
  PendingGate gate{&w, std::move(names), false, {}, {}};
  take_over(s, env, gate);
  size_t gates = env.gates.size();
  env.gates.push_back(&gate);
  Value v = elaborate(s, env, w.body);
  env.gates.resize(gates);
  if (gate.placed || v.poison()) return v;
  std::string list;
  for (Symbol name : gate.names) list += (list.empty() ? "" : ", ") + quoted(name);
  s.diags
      .error(Code::E0308,
             fmt::format("no single reduction has all the indices of this `where`: {}", list))
      .primary(w.where_span, "")
      .label(span, "it would apply to a reduction in here")
      .help("put the `where` inside the parentheses of the reduction it is meant for");
  return {};
}

// The gate of a family over its left indices; false when the value is in error.
bool gate_family(Sema& s, Env& env, const ast::Where& w, const std::function<Value()>& body,
                 Gated& out) {
  Frame frame;
  frame.up = env.frame;
  const Frame* before = env.frame;
  size_t conds = env.conds.size();
  env.frame = &frame;
  // A left name that only the gate uses may still take over a coordinate of the body.
  std::vector<std::pair<Index*, bool>> used;
  for (const Frame* f = before; f && used.empty(); f = f->up) {
    for (Index* index : f->indices) {
      if (index->left) used.push_back({index, index->used});
    }
  }
  Gate gate = elaborate_items(s, env, frame, w.items);
  for (auto& [index, was] : used) index->used = was;
  out.body = body();
  env.conds.resize(conds);
  env.frame = before;
  if (w.otherwise) out.otherwise = elaborate(s, env, w.otherwise);
  if (gate.poison || (out.otherwise && out.otherwise->poison())) out.body = {};
  if (gate.whole) {
    out.gate = gate.whole;
  } else if (gate.cond) {
    out.gate = data(env, DType::Bool, gate.cond, w.where_span);
  }
  return !out.body.poison();
}

}  // namespace

Gate elaborate_items(Sema& s, Env& env, Frame& frame, const std::vector<ast::WhereItem>& items) {
  Gate gate;
  for (const ast::WhereItem& item : items) {
    if (item.bind) {
      Symbol name = item.bind->symbol;
      bool known = find_index(env, name) || value_exists(env, name) || find_extent(s, env, name);
      if (known && !item.hides) {
        auto& d =
            s.diags.error(Code::E0209, quoted(name) + " already exists, so `=` cannot define it");
        d.primary(item.bind->span, "").help("to compare, write `==`");
        Span after{item.bind->span.file, item.bind->span.end, s[item.value].span.begin};
        d.fix({"compare instead", {{after, " == "}}, false});
        gate.poison = true;
        continue;
      }
      // The value may be an index expression or a number; both are substituted where it is used.
      bool shadow = env.shadow_ok;
      env.shadow_ok = true;
      Value v = elaborate(s, env, item.value);
      env.shadow_ok = shadow;
      gate.poison |= v.poison();
      frame.values.push_back({*item.bind, std::move(v)});
      continue;
    }
    Value v = condition(s, env, item.value);
    if (v.poison()) {
      gate.poison = true;
      continue;
    }
    if (v.scalar() && !gate.whole) {
      gate.cond = core::both(s.m, gate.cond, v.body);
      env.conds.push_back(v.body);
      continue;
    }
    Value left = gate.whole ? *gate.whole
                            : data(env, DType::Bool,
                                   gate.cond ? gate.cond : core::bool_lit(s.m, true), v.span);
    Span at = v.span;
    gate.whole = apply_binary(s, env, core::Op::And, std::move(left), std::move(v), at, {});
    if (gate.whole->poison()) gate.poison = true;
    gate.cond = {};
  }
  return gate;
}

Gated split_gate(Sema& s, Env& env, TreeId e) {
  Gated out;
  const ast::Where* w = as_where(s, e);
  if (!w) {
    out.body = elaborate(s, env, e);
    return out;
  }
  std::set<Symbol> names = names_to_place(s, *w);
  if (!names.empty()) {
    out.body = place_inside(s, env, *w, std::move(names), s[w->body].span);
    return out;
  }
  PendingGate renamed{w, {}, false, {}, {}};
  take_over(s, env, renamed);
  if (renamed.renamed.empty()) {
    gate_family(
        s, env, *w, [&] { return elaborate(s, env, w->body); }, out);
    return out;
  }
  env.gates.push_back(&renamed);
  out.body = elaborate(s, env, w->body);
  std::erase(env.gates, &renamed);
  if (out.body.poison()) return out;
  if (!renamed.placed) {
    Value body = out.body;
    gate_family(
        s, env, *w, [&] { return body; }, out);
  } else if (w->otherwise) {
    s.diags.error(Code::E0308, "`else` belongs to the `where` of a definition, not of a call")
        .primary(s[w->otherwise].span, "")
        .label(w->where_span, "this `where` restricts a coordinate of the call");
    out.body = {};
  }
  return out;
}

Value elaborate_where(Sema& s, Env& env, TreeId e) {
  Gated g = split_gate(s, env, e);
  if (g.body.poison() || !g.gate) return g.body;
  if (g.body.kind == Value::Kind::Text) {
    Value empty = plain_text(env, "", s[e].span);
    return select(s, env, *g.gate, g.body, g.otherwise ? *g.otherwise : empty, s[e].span);
  }
  if (reject_non_data(s, g.body)) return {};
  Value no = g.otherwise ? *g.otherwise : zero_like(s, env, g.body);
  return select(s, env, *g.gate, g.body, no, s[e].span);
}

}  // namespace ein::sema

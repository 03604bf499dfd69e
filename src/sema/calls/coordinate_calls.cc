// `softmax[class](logits[b, class])`: the call of a function with coordinate parameters.
#include <fmt/format.h>

#include <algorithm>

#include "sema/calls/calls.h"
#include "sema/calls/coords.h"
#include "sema/expressions/expressions.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/state/call_state.h"
#include "sema/state/name_state.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

bool read_brackets(Sema& s, Env& env, const ast::Call& call, const ast::Fn& fn, Bracketing& out) {
  for (const ast::Bracket& b : call.brackets) {
    out.span = out.arguments.empty() ? b.span : join(out.span, b.span);
    if (b.range) {
      s.diags
          .error(Code::E0312,
                 fmt::format("{} takes coordinates, not ranges", quoted(fn.name.symbol)))
          .primary(s[b.range].span, "")
          .help("restrict the coordinate with `… where …`");
      return false;
    }
    // Not a name: the parser has reported it.
    if (!b.pack && !b.name.symbol && b.group.empty() && s.diags.has_errors()) return false;
    BracketArgument a;
    a.span = b.span;
    a.several = b.pack || !b.name.symbol;
    a.names = b.group;
    if (b.pack) {
      const Pack* pack = find_pack(env, b.name.symbol);
      if (!pack) {
        s.diags.error(Code::E0313, fmt::format("there is no pack `..{}` here", text(b.name.symbol)))
            .primary(b.span, "");
        return false;
      }
      for (const PackCoord& c : pack->coords) a.names.push_back({c.name, b.span, true});
    } else if (b.name.symbol) {
      a.names.push_back(b.name);
    }
    out.arguments.push_back(std::move(a));
  }
  return true;
}

// Coordinates whose index the statement has are read at that index; the result carries the others.
Value close_lifted(Sema& s, Env& env, Value v, const std::set<Symbol>& lifted,
                   const std::set<Symbol>& brackets) {
  std::vector<CoreId> with(env.depth + v.coords.size());
  std::vector<core::Coord> rest;
  v = moved(s.m, v, env.depth);
  for (size_t i = 0; i < v.coords.size(); ++i) {
    Symbol name = v.coords[i].name;
    Index* index = name && lifted.count(name) ? find_slot_index(env, name) : nullptr;
    if (index) {
      index->used = index->in_brackets = true;
      with[env.depth + i] = core::slot(s.m, index->slot);
      continue;
    }
    if (name && lifted.count(name) && !brackets.count(name)) {
      bool slot = env.in_slot;
      env.in_slot = true;
      report_unknown(s, env, {name, v.span});
      env.in_slot = slot;
      return {};
    }
    with[env.depth + i] = core::slot(s.m, env.depth + static_cast<uint32_t>(rest.size()));
    rest.push_back(v.coords[i]);
  }
  v.body = core::substitute(s.m, v.body, with, env.depth + static_cast<uint32_t>(rest.size()));
  v.coords = std::move(rest);
  return v;
}

// Left names that took over coordinates of the call are those coordinates (decisions.md, 17).
Value with_own_names(Sema& s, Env& env, Value v, const std::map<Symbol, Symbol>& renamed) {
  std::vector<core::Coord> all;
  std::vector<CoreId> with(env.depth + v.coords.size());
  v = moved(s.m, v, env.depth);
  for (size_t i = 0; i < v.coords.size(); ++i) {
    core::Coord c = v.coords[i];
    if (auto it = renamed.find(c.name); it != renamed.end()) c.name = it->second;
    auto known = std::find_if(all.begin(), all.end(),
                              [&](const core::Coord& other) { return other.name == c.name; });
    with[env.depth + i] = core::slot(s.m, env.depth + static_cast<uint32_t>(known - all.begin()));
    if (known == all.end()) all.push_back(c);
  }
  v.body = core::substitute(s.m, v.body, with, env.depth + static_cast<uint32_t>(all.size()));
  v.coords = std::move(all);
  return v;
}

// `softmax[s](q[t, s] where s <= t)`: the gate sets cells of the argument to 0, but the call still
// counts them.
void warn_gated_argument(Sema& s, TreeId arg, const std::set<Symbol>& brackets, const ast::Fn& fn) {
  const auto* where = std::get_if<ast::Where>(&s[arg].node);
  if (!where || where->otherwise) return;
  for (const ast::WhereItem& item : where->items) {
    if (item.bind) continue;
    for (Symbol name : free_names(s.ast, item.value)) {
      if (!brackets.count(name)) continue;
      if (!s.warned.insert({where->where_span.begin, where->where_span.end}).second) return;
      s.diags
          .warning(Code::W0303,
                   fmt::format("this `where` sets the other cells of the argument to 0, and "
                               "{} still includes them",
                               quoted(fn.name.symbol)))
          .primary(where->where_span, fmt::format("applies to the argument, not to the call"))
          .help(fmt::format("to leave cells out, put it after the call: `{}[{}](…) where …`",
                            text(fn.name.symbol), text(name)));
      return;
    }
  }
}

// Which coordinates of the call the left names in the waiting gates stand for; false after an
// error.
bool own_names(Sema& s, Env& env, const ast::Fn& fn, const Frame* home,
               const std::vector<Value>& args, const Bracketing& brackets,
               const std::set<Symbol>& lifted, const std::vector<PendingGate*>& gates, Span span,
               std::map<Symbol, Symbol>& renamed) {
  for (PendingGate* gate : gates) {
    if (gate->renamed.empty()) continue;
    size_t errors = s.diags.errors();
    auto names = result_names(s, env, fn, home, args, brackets, span);
    if (s.diags.errors() > errors) return false;
    if (!names) {
      s.diags
          .error(Code::E0316, fmt::format("{} in this `where` is a coordinate of the call, but "
                                          "it is not known which one",
                                          quoted(*gate->renamed.begin())))
          .primary(gate->where->where_span, "")
          .label(fn.name.span, "its return type does not name coordinates")
          .help("use the names in the call's brackets");
      return false;
    }
    size_t next = 0;  // names that the statement has match by name, the others in order
    for (Symbol name : *names) {
      if (name && lifted.count(name) && find_slot_index(env, name)) continue;
      if (next < gate->open.size() && name) renamed[gate->open[next]] = name;
      ++next;
    }
  }
  return true;
}

std::vector<core::Coord> coords_of(const std::vector<Value>& args) {
  std::vector<core::Coord> out;
  for (const Value& a : args) {
    for (const Value& leaf : leaves_of(a)) {
      out.insert(out.end(), leaf.coords.begin(), leaf.coords.end());
    }
  }
  return out;
}

// The gate that waits for this call, elaborated over the coordinates of the arguments.
bool take_gates(Sema& s, Env& env, const std::vector<Value>& args,
                const std::vector<PendingGate*>& taken, const std::map<Symbol, Symbol>& renamed,
                const BracketNames& brackets, GatedCall& out) {
  std::vector<core::Coord> coordinates;
  for (const core::Coord& c : coords_of(args)) {
    bool known = std::any_of(coordinates.begin(), coordinates.end(),
                             [&](const core::Coord& x) { return x.name == c.name; });
    if (c.name && !known) coordinates.push_back(c);
  }
  for (const auto& [left, own] : renamed) {
    auto it = std::find_if(coordinates.begin(), coordinates.end(),
                           [&, name = own](const core::Coord& c) { return c.name == name; });
    if (it != coordinates.end()) coordinates.push_back({left, it->extent});
  }
  BracketNames everywhere;  // the left name first: it is the coordinate that the statement has
  for (const core::Coord& c : coordinates) {
    auto bracket = brackets.find(c.name);
    const Index* index = find_index(env, c.name);
    everywhere[c.name] = index                       ? index->named
                         : bracket != brackets.end() ? bracket->second
                                                     : Span{};
  }
  for (PendingGate* pending : taken) {
    pending->placed = true;
    out.names.insert(pending->names.begin(), pending->names.end());
    out.span = pending->where->where_span;
    std::vector<ast::WhereItem> bindings;
    for (const ast::WhereItem& item : pending->where->items) {
      if (item.bind) {
        bindings.push_back(item);
        continue;
      }
      std::set<Symbol> lifted;
      Value v = elaborate_over(s, env, item.value, coordinates, everywhere, lifted, bindings);
      if (v.poison()) return false;
      v = with_own_names(s, env, std::move(v), renamed);
      if (v.typing != Typing::Fixed || v.type != DType::Bool) {
        s.diags.error(Code::E0504, "the condition is not `bool`")
            .primary(s[item.value].span, "this is " + show_value(s, v));
        return false;
      }
      if (out.gate.poison()) {
        out.gate = v;
        continue;
      }
      // Two conditions over different coordinates: over their union.
      std::vector<core::Coord> all = out.gate.coords;
      for (const core::Coord& c : v.coords) {
        bool known = std::any_of(all.begin(), all.end(),
                                 [&](const core::Coord& a) { return a.name == c.name; });
        if (!known) all.push_back(c);
      }
      auto inside = env.depth + static_cast<uint32_t>(all.size());
      auto over = [&](const Value& x) {
        std::vector<CoreId> at;
        for (const core::Coord& c : x.coords) {
          for (size_t i = 0; i < all.size(); ++i) {
            if (all[i].name == c.name)
              at.push_back(core::slot(s.m, env.depth + static_cast<uint32_t>(i)));
          }
        }
        return cell(s.m, x, at, inside);
      };
      out.gate.body = core::apply(s.m, core::Op::And, {over(out.gate), over(v)});
      out.gate.coords = std::move(all);
    }
  }
  // `w[c % 1] > 5.0` names `c` and has the same value along it: it gates that coordinate too.
  if (out.gate.poison()) return true;
  std::vector<core::Coord> all = out.gate.coords;
  for (Symbol name : out.names) {
    auto same = [&](const core::Coord& c) { return c.name == name; };
    auto it = std::find_if(coordinates.begin(), coordinates.end(), same);
    if (it != coordinates.end() && std::none_of(all.begin(), all.end(), same)) all.push_back(*it);
  }
  if (all.size() == out.gate.coords.size()) return true;
  std::vector<CoreId> at;
  for (size_t i = 0; i < out.gate.coords.size(); ++i) {
    at.push_back(core::slot(s.m, env.depth + static_cast<uint32_t>(i)));
  }
  out.gate.body = cell(s.m, out.gate, at, env.depth + static_cast<uint32_t>(all.size()));
  out.gate.coords = std::move(all);
  return true;
}

// One argument, or a part of it, as the body reads it.
Value hold_argument(Sema& s, Env& env, GatedCall& gate, const Value& arg, const std::string& name,
                    bool always, Span span) {
  Value v = hold(s, env, arg, name, always);
  if (v.poison()) return v;
  bool over = std::any_of(v.coords.begin(), v.coords.end(),
                          [&](const core::Coord& c) { return gate.names.count(c.name) > 0; });
  if (!over) return v;
  FamilyId family = whole_family(s.m, v);
  if (!family) {
    return unsupported(s, span, "calls with `where` that read the index of an enclosing reduction",
                       "give the call's value a name with `let`");
  }
  gate_argument(s, gate, family, s.m[family].coords.size() - v.coords.size());
  return v;
}

}  // namespace

Value elaborate_coordinate_call(Sema& s, Env& env, const ast::Call& call, const ast::Fn& fn,
                                ast::StmtId stmt, const Frame* home, Span span) {
  if (fn.coords.empty()) {
    s.diags.error(Code::E0312, quoted(fn.name.symbol) + " takes no coordinates in brackets")
        .primary(span, "")
        .label(fn.name.span, "declared here");
    return {};
  }
  Bracketing brackets;
  if (!read_brackets(s, env, call, fn, brackets)) return {};
  std::set<Symbol> names;
  BracketNames written;
  for (const BracketArgument& a : brackets.arguments) {
    for (const ast::Name& n : a.names) {
      names.insert(n.symbol);
      written.emplace(n.symbol, n.made ? Span{} : n.span);
    }
  }
  std::vector<PendingGate*> gates, others;
  for (PendingGate* g : env.gates) {
    bool mine = std::includes(names.begin(), names.end(), g->names.begin(), g->names.end());
    mine &= !g->names.empty() || !g->renamed.empty();
    (mine ? gates : others).push_back(g);
  }
  Env inside = env;
  inside.gates = others;
  inside.shadow_ok = inside.in_slot = inside.effects = false;
  std::vector<Value> args;
  std::set<Symbol> lifted;
  for (TreeId e : call.args) {
    warn_gated_argument(s, e, names, fn);
    args.push_back(elaborate_lifted(s, inside, e, written, lifted));
    if (args.back().poison()) return {};
  }
  auto all = arrange_arguments(s, inside, fn, home, call.names, std::move(args), span);
  if (!all) return {};
  args = std::move(*all);
  GatedCall gate;
  gate.outer = env.gated;
  gate.fn = &fn;
  std::map<Symbol, Symbol> renamed;
  if (!own_names(s, inside, fn, home, args, brackets, lifted, gates, span, renamed)) return {};
  std::erase_if(gates,
                [&](PendingGate* g) {  // one that names no bracket coordinate is the family's
                  bool any = !g->names.empty();
                  for (Symbol name : g->renamed)
                    any |= renamed.count(name) && names.count(renamed.at(name));
                  return !any;
                });
  for (PendingGate* g : gates) {
    for (Symbol name : g->renamed) {
      if (renamed.count(name) && names.count(renamed.at(name))) gate.names.insert(renamed.at(name));
    }
  }
  if (!gates.empty()) {
    if (!take_gates(s, inside, args, gates, renamed, written, gate)) return {};
    // Names alone, without a condition: `where n = j`.
    if (gate.gate.poison()) {
      gate.gate = data(inside, DType::Bool, core::bool_lit(s.m, true), gate.span);
    }
    // A plain condition stays in place, where proofs about bounds can use it. One with a sum
    // becomes a family, so that it is computed once.
    gate.gate = moved(s.m, gate.gate, env.depth);
    bool sums = false;
    core::for_each_node(s.m, gate.gate.body,
                        [&](CoreId e) { sums |= core::get_if<core::Reduce>(s.m, e) != nullptr; });
    if (sums) gate.gate = hold(s, inside, std::move(gate.gate), "gate", true);
    if (gate.gate.poison()) return {};
    if (s.m[gate.gate.body].free & ((uint64_t{1} << env.depth) - 1)) {
      return unsupported(s, gate.span,
                         "conditions on a call that use an index which none of its arguments has",
                         "give the argument those indices, as in `f[c](x[b, c]) where ok[b, c]`");
    }
  }
  for (size_t i = 0; i < args.size(); ++i) {
    std::string name = text(fn.name.symbol) + "_" + text(fn.params[i].name.symbol);
    args[i] = map_leaves(args[i], [&](const Value& leaf, const std::string& path) {
      return hold_argument(s, inside, gate, leaf, name + as_suffix(path), !gates.empty(), span);
    });
    if (args[i].poison()) return {};
  }
  for (const core::Coord& c : coords_of(args)) {
    if (gate.names.count(c.name)) gate.extents.push_back(c.extent);
  }
  // Kept, because the scopes of the body remember it.
  if (!gate.extents.empty()) inside.gated = &s.calls.gated.emplace_back(std::move(gate));
  inside.effects = env.effects;
  Value v = call_function(s, inside, fn, stmt, home, std::move(args), span, &brackets);
  if (v.poison()) return v;
  if (inside.gated != env.gated) {
    v = gate_result(s, inside, *inside.gated, std::move(v));
    if (v.poison()) return v;
  }
  v.span = span;
  return map_leaves(v, [&](const Value& leaf, const std::string&) {
    return close_lifted(s, env, leaf, lifted, names);
  });
}

}  // namespace ein::sema

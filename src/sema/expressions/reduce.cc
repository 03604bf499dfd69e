// Reductions over indices (`sum[k](A[i, k])`) and over coordinates of a value (`mean[channel](x)`).
#include <fmt/format.h>

#include <algorithm>

#include "sema/builtins.h"
#include "sema/expressions/expressions.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/ranges/ranges.h"
#include "sema/state/name_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/range_state.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

struct Parts {
  std::vector<Index*> binders;
  std::set<const Index*> in_gate;  // used by a condition
  Value body;
  Gate gate;
};

std::string bracket_list(const ast::Call& call) {
  std::string out;
  for (const ast::Bracket& b : call.brackets)
    out += (out.empty() ? "" : ", ") + text(b.name.symbol);
  return out;
}

// Makes the binders; later ranges see earlier ones.
bool bind(Sema& s, Env& env, Frame& frame, const ast::Call& call, Parts& parts) {
  std::vector<ast::Bracket> singles;  // packs and groups expanded
  for (const ast::Bracket& b : call.brackets) {
    if (!b.pack && b.name.symbol) {
      singles.push_back(b);
      continue;
    }
    for (const ast::Name& n : b.group) { singles.push_back({n, false, {}, {}, n.span}); }
    if (!b.pack) continue;
    const Pack* pack = find_pack(env, b.name.symbol);
    if (!pack) {
      auto inferred = infer_pack(s, env, b.name, call.args[0], nullptr);
      if (!inferred) return false;
      std::set<Symbol> taken;
      spelled_names(s.ast, call.args[0], taken);
      for (PackCoord& c : inferred->coords) {
        c.name = fresh_coordinate(c.label, text(b.name.symbol), taken);
      }
      pack = &frame.packs.emplace_back(std::move(*inferred));
    }
    for (const PackCoord& c : pack->coords) {
      singles.push_back({{c.name, b.span, true}, false, {}, {}, b.span});
    }
  }
  if (!singles.empty() && too_many_indices(s, env.depth + singles.size(), singles.back().span)) {
    return false;
  }
  for (const ast::Bracket& b : singles) {
    for (const Index* other : parts.binders) {
      if (other->name != b.name.symbol) continue;
      s.diags.error(Code::E0202, quoted(b.name.symbol) + " is reduced twice")
          .primary(b.name.span, "")
          .label(other->span, "first here");
      return false;
    }
    Index& index = s.names.indices.emplace_back();
    index.name = b.name.symbol;
    index.span = b.name.span;
    if (!b.name.made) index.named = b.name.span;
    index.slot = env.depth;
    index.inferred = !b.range;
    if (b.range) {
      if (!elaborate_range(s, env, b.range, index.range)) return false;
    } else {
      index.range = unknown_range(s, b.name, false);
    }
    env.depth++;
    env.binders.push_back({index.name, index.range, index.range.hi});
    frame.indices.push_back(&index);
    parts.binders.push_back(&index);
  }
  return true;
}

bool completes(const PendingGate& gate, const Env& env, const Parts& parts) {
  bool binds_one = false;
  for (Symbol name : gate.names) {
    Index* index = find_index(env, name);
    if (!index || index->left) return false;
    binds_one |=
        std::find(parts.binders.begin(), parts.binders.end(), index) != parts.binders.end();
  }
  return binds_one;
}

void conjoin(Sema& s, Env& env, Gate& into, Gate more) {
  into.poison |= more.poison;
  into.cond = core::both(s.m, into.cond, more.cond);
  if (!more.whole) return;
  if (into.whole) {
    into.whole =
        apply_binary(s, env, core::Op::And, *into.whole, *more.whole, more.whole->span, {});
    into.poison |= into.whole->poison();
  } else {
    into.whole = more.whole;
  }
}

bool check_operand(Sema& s, const Builtin& b, bool mean, const Value& body,
                   const std::string& name) {
  bool logical = b.op == core::ReduceOp::All || b.op == core::ReduceOp::Any;
  bool is_bool = body.typing == Typing::Fixed && body.type == DType::Bool;
  if (logical != is_bool) {
    auto& d = s.diags.error(
        Code::E0502, fmt::format("`{}` takes {}, not {}", name, logical ? "`bool`" : "numbers",
                                 show_value(s, body)));
    d.primary(body.span, "");
    if (logical) {
      d.help(fmt::format("compare first, as in `{}[i](x[i] != 0.0)`", name));
    } else if (mean) {
      d.help("the share that is true: `mean[i](b[i] as f32)`");
    } else if (b.op == core::ReduceOp::Sum) {
      d.help("how many are true: `sum[i](b[i] as i32)`");
    }
    return false;
  }
  bool integers = body.typing == Typing::Fixed && is_int(body.type);
  if (b.op == core::ReduceOp::Collect) integers |= body.typing == Typing::Int;
  if (integers && (mean || b.op == core::ReduceOp::Collect)) {
    s.diags.error(Code::E0502, fmt::format("`{}` takes floats, not integers", name))
        .primary(body.span, "this is " + show_value(s, body))
        .help(fmt::format("convert first: `{}[…](… as f32)`", name));
    return false;
  }
  return true;
}

// `sum[k](x[i])`: the cells to sum over are those of an operand that is indexed by something else.
std::string where_to_put(const Sema& s, TreeId body, Symbol name) {
  const ast::Index* access = nullptr;
  for_each_tree(s.ast, body, [&](TreeId e) {
    const auto* index = std::get_if<ast::Index>(&s[e].node);
    if (index && !access && path_name(s.ast, index->base)) access = index;
  });
  if (!access) return fmt::format("index what is summed, as in `x[{}]`", text(name));
  std::string base = text(path_name(s.ast, access->base));
  return access->at.size() == 1
             ? fmt::format("to reduce over the cells of `{0}`, write `{0}[{1}]`", base, text(name))
             : fmt::format(
                   "put `{1}` where the cells of `{0}` are to be taken, as in `{0}[…, {1}]`", base,
                   text(name));
}

// Where each bracket name stands: npos for an index used in the body, else a carried coordinate.
bool place_names(Sema& s, const Parts& parts, TreeId tree, std::vector<size_t>& coord) {
  constexpr size_t npos = static_cast<size_t>(-1);
  for (size_t i = 0; i < parts.binders.size(); ++i) {
    const Index& index = *parts.binders[i];
    size_t at = npos;
    for (size_t c = 0; c < parts.body.coords.size(); ++c) {
      if (parts.body.coords[c].name != index.name) continue;
      if (at != npos && !index.used) {
        s.diags
            .error(Code::E0305,
                   fmt::format("{} is the name of two coordinates here", quoted(index.name)))
            .primary(index.span, "which one?")
            .label(parts.body.span, "this has coordinates " + show_coords(s, parts.body.coords))
            .help("use indices, as in `sum[k](a[i, k])`");
        return false;
      }
      at = c;
    }
    // One name for the one coordinate, which has none: `sum[i]([1.0, 2.0])`.
    bool only = parts.binders.size() == 1 && parts.body.coords.size() == 1;
    if (only && !parts.body.coords[0].name && !index.used) at = 0;
    if (index.used && at != npos) {
      s.diags
          .error(Code::E0304,
                 fmt::format(
                     "{} is an index here, but an operand without indices has that coordinate too",
                     quoted(index.name)))
          .primary(parts.body.span, "coordinates " + show_coords(s, parts.body.coords))
          .label(index.span, "reduced here")
          .help(fmt::format("index the operand: write `v[{}]`", text(index.name)));
      return false;
    }
    if (!index.used && at == npos && !parts.in_gate.count(&index)) {
      bool scalar = parts.body.scalar();
      auto& d =
          s.diags.error(scalar ? Code::E0304 : Code::E0305,
                        scalar ? fmt::format("{} does not occur in the body", quoted(index.name))
                               : fmt::format("the value has no coordinate {}", quoted(index.name)));
      d.primary(index.span, "reduced here");
      if (scalar) {
        d.label(parts.body.span, "no index or coordinate of that name here");
        d.help(where_to_put(s, tree, index.name));
      } else {
        d.label(parts.body.span, "this has coordinates " + show_coords(s, parts.body.coords));
        std::vector<std::string> names;
        for (const core::Coord& c : parts.body.coords) names.push_back(text(c.name));
        std::string near = did_you_mean(text(index.name), names);
        suggest(d, near, index.span);
      }
      return false;
    }
    coord.push_back(at);
  }
  return true;
}

// A recurrence inside the reduction carries its binders as coordinates, so their ranges are needed
// even if the reduction does not end up in the clause (a tuple field that is not used, an arm that
// is never reached). This keeps the reduction for range inference.
void keep_ranges(Sema& s, const Env& env, const Value& v) {
  if (!env.site || env.site->lifted.empty()) return;
  core::Clause clause;
  for (const SiteSlot& slot : slots_around(env)) clause.box.push_back(slot.range);
  if (clause.box.size() != v.depth) return;
  for (const core::Coord& c : v.coords) clause.box.push_back({core::int_lit(s.m, 0), c.extent});
  clause.body = v.body;
  env.site->lifted.push_back(std::move(clause));
}

// The reduction of `parts`, elaborated in `env`, as a value in `outer`. `coord`: which coordinate
// of the body each binder runs over; none: it is an index of the body.
Value make_reduction(Sema& s, const Env& outer, Env& env, const Builtin& b, const Parts& parts,
                     const std::vector<size_t>& coord, Span span) {
  // Bring body and gate to one coordinate list at the inner depth.
  std::vector<Value> both{parts.body};
  if (parts.gate.whole) {
    Value gate = *parts.gate.whole;
    if (parts.gate.cond) {
      gate = apply_binary(s, env, core::Op::And, data(env, DType::Bool, parts.gate.cond, span),
                          gate, span, {});
    }
    both.push_back(gate);
  } else if (parts.gate.cond) {
    both.push_back(data(env, DType::Bool, parts.gate.cond, span));
  }
  std::vector<Value*> list;
  for (Value& v : both) {
    if (v.poison()) return {};
    list.push_back(&v);
  }
  std::vector<core::Coord> carried;
  if (!same_coords(s, env, list, span, carried)) return {};
  std::vector<CoreId> cells = aligned(s.m, env, both, carried.size());

  // Slots: the result's remaining coordinates first, then the binders in bracket order.
  auto reduced = [&](size_t c) { return std::find(coord.begin(), coord.end(), c) != coord.end(); };
  Value out = data(outer, parts.body.type, {}, span);
  out.typing = parts.body.typing;
  for (size_t c = 0; c < carried.size(); ++c) {
    if (!reduced(c)) out.coords.push_back(carried[c]);
  }
  auto first = outer.depth + static_cast<uint32_t>(out.coords.size());
  auto n = static_cast<uint32_t>(parts.binders.size());
  std::vector<CoreId> with(env.depth + carried.size());
  for (uint32_t i = 0; i < n; ++i) with[outer.depth + i] = core::slot(s.m, first + i);
  uint32_t hole = outer.depth;
  for (size_t c = 0; c < carried.size(); ++c) {
    auto at = std::find(coord.begin(), coord.end(), c);
    with[env.depth + c] = at == coord.end()
                              ? core::slot(s.m, hole++)
                              : core::slot(s.m, first + static_cast<uint32_t>(at - coord.begin()));
  }
  core::Reduce r;
  r.op = b.op;
  r.first = first;
  std::vector<bool> written;  // by binder: its range
  for (uint32_t i = 0; i < n; ++i) {
    const Index& index = *parts.binders[i];
    bool whole = coord[i] != static_cast<size_t>(-1);
    core::Range range = index.range;
    if (whole && index.inferred) {
      // Families that carry the binder (recurrences in the body) learn its range here.
      core::Range found{core::int_lit(s.m, 0), carried[coord[i]].extent};
      s.ranges.solved[core::get_if<core::ParamRef>(s.m, range.lo)->param] = found.lo;
      s.ranges.solved[core::get_if<core::ParamRef>(s.m, range.hi)->param] = found.hi;
      range = found;
    }
    std::vector<CoreId> outside(with.begin(), with.begin() + outer.depth + i);
    range.lo = core::substitute(s.m, range.lo, outside, first + i);
    range.hi = core::substitute(s.m, range.hi, outside, first + i);
    r.over.push_back(range);
    r.names.push_back(index.name);
    written.push_back(!index.inferred);
  }
  r.body = core::substitute(s.m, cells[0], with, first + n);
  if (cells.size() > 1) r.gate = core::substitute(s.m, cells[1], with, first + n);
  core::Reduce copy = r;
  out.body = core::reduce(s.m, std::move(r), span);
  if (b.id == Builtin::Id::Mean) out.body = mean_of(s, outer, out.body, copy, written, span);
  if (b.op == core::ReduceOp::ArgMax || b.op == core::ReduceOp::ArgMin) {
    out.type = DType::I32;
    out.typing = Typing::Fixed;
  }
  keep_ranges(s, outer, out);
  return out;
}

}  // namespace

Value elaborate_reduction(Sema& s, Env& outer, const Builtin& b, const ast::Call& call, Span span) {
  const std::string& name = text(path_name(s.ast, call.callee));
  const bool mean = b.id == Builtin::Id::Mean;
  if (!b.takes(call.args.size())) {
    auto& d = s.diags.error(Code::E0205, fmt::format("`{}[{}]` takes one argument, not {}", name,
                                                     bracket_list(call), call.args.size()));
    d.primary(span, "");
    if (!call.args.empty() && std::holds_alternative<ast::Where>(s[call.args[0]].node)) {
      d.help(
          "a `where` in parentheses takes one condition: join conditions with `&&`, or put the "
          "`where` after the parentheses");
    }
    return {};
  }
  bool selects = b.op == core::ReduceOp::ArgMax || b.op == core::ReduceOp::ArgMin;
  if (selects && call.brackets.size() != 1) {
    s.diags.error(Code::E0205, fmt::format("`{}` works along a single coordinate", name))
        .primary(span, "")
        .help("nest two calls");
    return {};
  }
  if (b.op == core::ReduceOp::Collect && !outer.takes_cells) {
    s.diags
        .error(Code::E0502,
               "`matrix_cells` is not a value: it can only be an argument of `matrix_factor`")
        .primary(span, "");
    return {};
  }
  Env env = outer;
  env.shadow_ok = env.in_slot = env.takes_cells = false;
  Frame frame;
  frame.up = outer.frame;
  env.frame = &frame;
  Parts parts;
  if (!bind(s, env, frame, call, parts)) return {};

  Frame inner;
  inner.up = &frame;
  env.frame = &inner;
  TreeId body = call.args[0];
  for (PendingGate* gate : outer.gates) {
    if (!completes(*gate, env, parts)) continue;
    gate->placed = true;
    std::erase(env.gates, gate);  // before its items: a reduction among them must not take it
    conjoin(s, env, parts.gate, elaborate_items(s, env, inner, gate->where->items));
  }
  auto only_in_gate = [&] {
    for (Index* index : parts.binders) {
      if (index->used) parts.in_gate.insert(index);
      index->used = index->in_brackets = false;
    }
  };
  only_in_gate();
  if (const auto* w = std::get_if<ast::Where>(&s[body].node)) {
    if (w->otherwise) {
      s.diags
          .error(Code::E0308, "`else` belongs to the `where` of a definition, not of a reduction")
          .primary(s[w->otherwise].span, "")
          .label(w->where_span, fmt::format("this applies to `{}`", name))
          .help("cells whose condition is false are left out of the reduction");
      return {};
    }
    conjoin(s, env, parts.gate, elaborate_items(s, env, inner, w->items));
    body = w->body;
    only_in_gate();
  }
  Value elaborated = elaborate(s, env, body);
  if (b.id == Builtin::Id::Join) {
    for (Index* index : parts.binders) index->used |= parts.in_gate.count(index) > 0;
    return join_text(s, outer, env, parts.binders, parts.gate, std::move(elaborated), span);
  }
  parts.body = as_data(s, env, std::move(elaborated));
  if (parts.body.poison() || parts.gate.poison) return {};
  if (!check_operand(s, b, mean, parts.body, name)) return {};
  std::vector<size_t> coord;
  if (b.op == core::ReduceOp::Collect) {
    if (parts.gate.cond || parts.gate.whole) {
      s.diags.error(Code::E0502, "`matrix_cells` takes no condition").primary(span, "");
      return {};
    }
    for (Index* index : parts.binders) index->used = true;  // a matrix may have equal cells
  }
  if (!place_names(s, parts, body, coord)) return {};
  if (mean && parts.body.typing == Typing::Int) {
    parts.body = adapt(s, env, parts.body, DType::F64);
    if (parts.body.poison()) return {};
    parts.body.typing = Typing::Float;
  }
  return make_reduction(s, outer, env, b, parts, coord, span);
}

}  // namespace ein::sema

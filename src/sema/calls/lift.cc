// Arguments of coordinate calls: every index that stands alone in a slot becomes a coordinate of
// the argument over its full extent (decisions.md, 1).
#include <fmt/format.h>

#include <algorithm>

#include "base/match.h"
#include "sema/builtins.h"
#include "sema/calls/coords.h"
#include "sema/expressions/expressions.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/ranges/ranges.h"
#include "sema/state/name_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

struct Occurrence {
  Symbol name;
  TreeId base;
  size_t position;  // among the slots, packs expanded
  Span span;
};

// Collects the names that are alone in a slot. A slot inside an index expression does not count.
struct Finder {
  Sema& s;
  Env& env;
  std::vector<Occurrence> found;

  void index(const ast::Index& n, const std::set<Symbol>& bound) {
    expr(n.base, bound);
    size_t position = 0;
    for (TreeId at : n.at) {
      if (const auto* ref = std::get_if<ast::PackRef>(&s[at].node)) {
        const Pack* pack = find_pack(env, ref->name.symbol);
        if (!pack) continue;  // reported when the access is elaborated
        for (const PackCoord& c : pack->coords) add(c.name, n.base, position++, s[at].span, bound);
        continue;
      }
      if (Symbol name = path_name(s.ast, at)) add(name, n.base, position, s[at].span, bound);
      position++;
    }
  }

  void add(Symbol name, TreeId base, size_t position, Span span, const std::set<Symbol>& bound) {
    if (bound.count(name)) return;
    if (!find_slot_index(env, name) && value_exists(env, name))
      return;  // an integer of the program
    found.push_back({name, base, position, span});
  }

  void call(const ast::Call& n, const std::set<Symbol>& bound) {
    std::set<Symbol> inside = bound;
    Symbol callee = path_name(s.ast, n.callee);
    bool reduction =
        callee && n.has_brackets && reduction_named(callee) && !find_function(env, callee);
    for (const ast::Bracket& b : n.brackets) {
      if (!reduction) break;
      inside.insert(b.name.symbol);
      for (const ast::Name& g : b.group) inside.insert(g.symbol);
      const Pack* pack = b.pack ? find_pack(env, b.name.symbol) : nullptr;
      for (size_t i = 0; pack && i < pack->coords.size(); ++i) inside.insert(pack->coords[i].name);
    }
    for (TreeId a : n.args) expr(a, inside);
  }

  void block(const ast::Block& n, const std::set<Symbol>& bound) {
    std::set<Symbol> inside = bound;
    for (ast::StmtId id : n.stmts) {
      if (const auto* l = std::get_if<ast::Let>(&s.ast[id].node)) {
        for (const ast::Name& name : l->names) inside.insert(name.symbol);
      }
    }
    for (ast::StmtId id : n.stmts) {
      const auto* l = std::get_if<ast::Let>(&s.ast[id].node);
      if (!l) continue;
      std::set<Symbol> local = inside;
      for (const ast::Slot& slot : l->slots) local.insert(slot.name.symbol);
      expr(l->value, local);
      expr(l->until, local);
    }
    expr(n.value, inside);
  }

  void expr(TreeId e, const std::set<Symbol>& bound) {
    if (!e) return;
    auto go = [&](TreeId x) { expr(x, bound); };
    auto each = [&](const std::vector<TreeId>& list) {
      for (TreeId x : list) go(x);
    };
    match(
        s[e].node, [](const ast::IntLit&) {}, [](const ast::FloatLit&) {},
        [](const ast::BoolLit&) {}, [](const ast::StrLit&) {}, [](const ast::Path&) {},
        [](const ast::PackRef&) {}, [&](const ast::Index& n) { index(n, bound); },
        [&](const ast::Call& n) { call(n, bound); }, [&](const ast::Unary& n) { go(n.arg); },
        [&](const ast::Binary& n) {
          go(n.lhs);
          go(n.rhs);
        },
        [&](const ast::Cast& n) { go(n.arg); }, [](const ast::Range&) {},
        [&](const ast::If& n) {
          go(n.cond);
          go(n.then_block);
          go(n.else_block);
        },
        [&](const ast::Block& n) { block(n, bound); }, [&](const ast::Tuple& n) { each(n.items); },
        [&](const ast::Array& n) { each(n.items); },
        [&](const ast::Comprehension& n) {
          if (n.block) go(n.block);
        },
        [&](const ast::Field& n) { go(n.base); },
        [&](const ast::Record& n) {
          go(n.base);
          for (const ast::RecordField& f : n.fields) go(f.value);
        },
        [](const ast::Lambda&) {}, [](const ast::Alternatives&) {}, [](const ast::NamedPattern&) {},
        [&](const ast::Match& n) {
          go(n.subject);
          for (const ast::MatchArm& arm : n.arms) {
            std::set<Symbol> inside = bound;
            inside.merge(free_names(s.ast, arm.pattern));
            expr(arm.guard, inside);
            expr(arm.body, inside);
          }
        },
        [&](const ast::Where& n) {
          std::set<Symbol> inside = bound;
          for (const ast::WhereItem& item : n.items) {
            expr(item.value, inside);
            if (item.bind) inside.insert(item.bind->symbol);
          }
          expr(n.body, inside);
          go(n.otherwise);
        },
        [&](const ast::Request& n) {
          if (!n.den) go(n.num);  // `@x[i]`, a tangent
        },
        [](const ast::Error&) {});
  }
};

// The extent of a lifted name: that of the coordinates it stands on, which must agree.
bool lifted_extent(Sema& s, Env& env, const std::vector<Occurrence>& all, Symbol name,
                   CoreId& out) {
  Span first;
  for (const Occurrence& o : all) {
    if (o.name != name) continue;
    Value base = elaborate_base(s, env, o.base);
    if (base.poison()) return false;
    if (o.position >= base.coords.size()) continue;  // reported when the access is elaborated
    CoreId extent = base.coords[o.position].extent;
    if (!out) {
      out = extent;
      first = o.span;
      continue;
    }
    switch (equal(s, out, extent)) {
      case Truth::Yes: break;
      case Truth::No:
        s.diags.error(Code::E0301, fmt::format("index {} has two different extents", quoted(name)))
            .primary(o.span, "extent " + show(s, resolve(s, extent)))
            .label(first, "extent " + show(s, resolve(s, out)));
        return false;
      case Truth::Open:
        constrain(
            s, core::apply(s.m, core::Op::Eq, {out, extent}),
            fmt::format("index {} is used for coordinates with different extents", quoted(name)),
            first, o.span);
    }
  }
  return true;
}

// `softmax[s](x * (s as f32))`: `s` is meant to be the coordinate, but no value has it in a slot.
// It is never an index of the same name around the call.
bool check_brackets(Sema& s, Env& env, TreeId e, const BracketNames& brackets,
                    const std::vector<core::Coord>& coords) {
  std::set<Symbol> names = free_names(s.ast, e);
  for (const auto& bracket : brackets) {
    Symbol name = bracket.first;
    bool stands = std::any_of(coords.begin(), coords.end(),
                              [&](const core::Coord& c) { return c.name == name; });
    if (stands || !names.count(name)) continue;
    if (!find_slot_index(env, name) && value_exists(env, name)) continue;
    TreeId place;
    std::set<TreeId> asked;  // in `extent(j)` the name is that of an extent
    for_each_tree(s.ast, e, [&](TreeId x) {
      const auto* call = std::get_if<ast::Call>(&s[x].node);
      if (call && spells(s.ast, *call, Builtin::Id::Extent))
        asked.insert(call->args.begin(), call->args.end());
      if (!place && path_name(s.ast, x) == name && !asked.count(x)) place = x;
    });
    if (!place) continue;  // only in the type of an `as`, which reads nothing
    s.diags
        .error(Code::E0303,
               fmt::format("{} is a coordinate of the call, but no plain index of this "
                           "argument uses it",
                           quoted(name)))
        .primary(s[place].span, "so it has no value here")
        .label(s[e].span, "the argument")
        .help(fmt::format("write the argument with its indices, as in `x[{}]`", text(name)));
    return false;
  }
  return true;
}

// The coordinates in `coords` that the value reads become its first ones.
Value lift_leaf(Sema& s, const Env& env, Env& inside, Value v,
                const std::vector<core::Coord>& coords, std::set<Symbol>& lifted) {
  v = as_data(s, inside, std::move(v));
  if (v.poison()) return v;
  v = moved(s.m, v, inside.depth);
  // The slots of the lifted indices are the first holes already.
  std::vector<core::Coord> all;
  std::vector<CoreId> with(inside.depth + v.coords.size());
  uint32_t hole = env.depth;
  for (size_t i = 0; i < coords.size(); ++i) {
    if (!((s.m[v.body].free >> (env.depth + i)) & 1)) continue;  // a call inside consumed it
    with[env.depth + i] = core::slot(s.m, hole++);
    all.push_back(coords[i]);
    lifted.insert(coords[i].name);
  }
  for (size_t i = 0; i < v.coords.size(); ++i) {
    with[inside.depth + i] = core::slot(s.m, hole++);
    all.push_back(v.coords[i]);
  }
  v.body = core::substitute(s.m, v.body, with, hole);
  v.coords = std::move(all);
  v.depth = env.depth;
  return v;
}

}  // namespace

std::vector<Symbol> lone_names(Sema& s, Env& env, TreeId e) {
  Finder finder{s, env, {}};
  finder.expr(e, {});
  std::vector<Symbol> names;
  for (const Occurrence& o : finder.found) {
    if (std::find(names.begin(), names.end(), o.name) == names.end()) names.push_back(o.name);
  }
  return names;
}

Value elaborate_over(Sema& s, Env& env, TreeId e, const std::vector<core::Coord>& coords,
                     const BracketNames& everywhere, std::set<Symbol>& lifted,
                     const std::vector<ast::WhereItem>& bindings) {
  if (too_many_indices(s, env.depth + coords.size(), s[e].span)) return {};
  Frame alone, frame;
  alone.up = env.frame;
  alone.slots_only = true;
  frame.up = &alone;
  Env inside = env;
  inside.shadow_ok = inside.in_slot = false;
  for (const core::Coord& c : coords) {
    Index& index = s.names.indices.emplace_back();
    index.name = c.name;
    index.span = s[e].span;
    index.slot = inside.depth++;
    index.range = {core::int_lit(s.m, 0), c.extent};
    inside.binders.push_back({c.name, index.range, c.extent});
    auto known = everywhere.find(c.name);
    if (known != everywhere.end()) {
      index.named = known->second;
    } else if (const Index* outer = find_slot_index(env, c.name)) {
      index.named = outer->named;
    }
    (known != everywhere.end() ? frame : alone).indices.push_back(&index);
  }
  inside.frame = &frame;
  if (elaborate_items(s, inside, frame, bindings).poison) return {};
  Value v = elaborate(s, inside, e);
  if (v.poison() || coords.empty()) return v;
  return map_leaves(v, [&](const Value& leaf, const std::string&) {
    return lift_leaf(s, env, inside, leaf, coords, lifted);
  });
}

Value elaborate_lifted(Sema& s, Env& env, TreeId e, const BracketNames& brackets,
                       std::set<Symbol>& lifted) {
  Finder finder{s, env, {}};
  finder.expr(e, {});
  std::vector<core::Coord> coords;
  for (const Occurrence& o : finder.found) {
    bool known = std::any_of(coords.begin(), coords.end(),
                             [&](const core::Coord& c) { return c.name == o.name; });
    if (known) continue;
    CoreId extent;
    if (!lifted_extent(s, env, finder.found, o.name, extent)) return {};
    if (extent) coords.push_back({o.name, extent});
  }
  if (!check_brackets(s, env, e, brackets, coords)) return {};
  return elaborate_over(s, env, e, coords, brackets, lifted);
}

}  // namespace ein::sema

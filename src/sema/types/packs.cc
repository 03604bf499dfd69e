// Packs: `..b` stands for the coordinates that an operand, a signature or an annotation gives it.
// It is expanded where it is met.
#include <fmt/format.h>

#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/state/meanings.h"
#include "sema/state/on_demand.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

// How many coordinates `..name` takes in this access, if the rest of the list determines it.
std::optional<Pack> pack_of_access(Sema& s, Env& env, ast::Name name, const ast::Index& index,
                                   const Definition* self) {
  size_t before = 0, after = 0;
  bool met = false;
  for (TreeId at : index.at) {
    size_t count = 1;
    if (const auto* ref = std::get_if<ast::PackRef>(&s[at].node)) {
      if (ref->name.symbol == name.symbol) {
        if (met) return std::nullopt;
        met = true;
        continue;
      }
      const Pack* other = find_pack(env, ref->name.symbol);
      if (!other) return std::nullopt;
      count = other->coords.size();
    }
    (met ? after : before) += count;
  }
  if (!met) return std::nullopt;
  if (const ast::Path* path = as_path(s.ast, index.base)) {  // a recurrence cannot ask itself
    Definition* d = find_definition(env, path->parts[0].symbol);
    if (d && self && d->scope == self->scope && d->group == self->group) return std::nullopt;
  }
  Value base = elaborate_base(s, env, index.base);
  if (base.poison() || base.coords.size() < before + after) return std::nullopt;
  Pack pack{name.symbol, {}, name.span};
  for (size_t i = before; i < base.coords.size() - after; ++i) {
    pack.coords.push_back({{}, base.coords[i].name, {}});
  }
  return pack;
}

}  // namespace

Symbol fresh_coordinate(Symbol label, const std::string& base, std::set<Symbol>& taken) {
  if (label && taken.insert(label).second) return label;
  for (int n = 0;; ++n) {
    Symbol name = intern(base + "_" + std::to_string(n));
    if (taken.insert(name).second) return name;
  }
}

std::optional<Pack> infer_pack(Sema& s, Env& env, ast::Name name, TreeId e,
                               const Definition* self) {
  std::optional<Pack> found;
  size_t errors = s.diags.errors();
  bool broken = false;  // an operand that would determine it is in error, which was reported
  for_each_tree(s.ast, e, [&](TreeId x) {
    const auto* index = std::get_if<ast::Index>(&s[x].node);
    if (!found && index) found = pack_of_access(s, env, name, *index, self);
    const ast::Path* path = index ? as_path(s.ast, index->base) : nullptr;
    const Definition* d = path ? find_definition(env, path->parts[0].symbol) : nullptr;
    broken |= d && d->state == Definition::State::Bad;
  });
  if (found || broken || s.diags.errors() > errors) return found;
  s.diags
      .error(Code::E0313,
             fmt::format("it is not known which coordinates `..{}` has", text(name.symbol)))
      .primary(name.span, "")
      .help(fmt::format("use it to index a value of known rank, as in `x[..{}, i]`",
                        text(name.symbol)));
  return std::nullopt;
}

const LeftSide& left_side(Sema& s, const Definition& d, ast::StmtId stmt) {
  auto [it, fresh] = d.scope->lefts.try_emplace(stmt);
  LeftSide& out = it->second;
  if (!fresh) return out;
  const auto* let = std::get_if<ast::Let>(&s.ast[stmt].node);
  if (!let) return out;
  std::set<Symbol> taken;
  bool collected = false;
  for (const ast::Slot& slot : let->slots) {
    if (slot.kind != ast::Slot::Kind::Pack) {
      out.slots.push_back(
          {&slot, slot.kind == ast::Slot::Kind::Index ? slot.name.symbol : Symbol{}});
      continue;
    }
    Env env = d.scope->env;
    Frame frame;  // packs of earlier slots
    frame.up = env.frame;
    frame.packs = out.packs;
    env.frame = &frame;
    const Pack* known = find_pack(env, slot.name.symbol);
    Pack pack;
    if (known) {
      pack = *known;
    } else {
      auto inferred = infer_pack(s, env, slot.name, let->value, &d);
      if (!inferred) {
        out.bad = true;
        return out;
      }
      pack = std::move(*inferred);
      if (!collected) {
        spelled_names(s.ast, let->value, taken);
        for (const ast::Slot& other : let->slots) taken.insert(other.name.symbol);
        collected = true;
      }
      for (PackCoord& c : pack.coords) c.name = fresh_coordinate(c.label, text(pack.name), taken);
      out.packs.push_back(pack);
    }
    for (const PackCoord& c : pack.coords) out.slots.push_back({&slot, c.name});
  }
  return out;
}

bool expand_indices(Sema& s, Env& env, const std::vector<TreeId>& at, std::vector<IndexItem>& out) {
  for (TreeId e : at) {
    const auto* ref = std::get_if<ast::PackRef>(&s[e].node);
    if (!ref) {
      out.push_back({e, {}});
      continue;
    }
    const Pack* pack = find_pack(env, ref->name.symbol);
    if (!pack) {
      auto& d = s.diags.error(
          Code::E0313,
          fmt::format("pack `..{}` is neither on the left nor reduced", text(ref->name.symbol)));
      d.primary(ref->name.span, "nothing defines this index");
      if (env.site) d.label(env.site->span, "the left side of this statement");
      d.help(fmt::format("add it to the left side, or reduce it: `sum[..{}](…)`",
                         text(ref->name.symbol)));
      return false;
    }
    for (const PackCoord& c : pack->coords) out.push_back({e, c.name});
  }
  return true;
}

CoreId item_index(Sema& s, Env& env, const IndexItem& item) {
  if (!item.pack) {
    // In a lifted argument a name alone in a slot is the lifted coordinate; inside a larger index
    // expression it is the index of the statement.
    Symbol name = env.in_slot ? Symbol{} : path_name(s.ast, item.tree);
    if (Index* index = name ? find_slot_index(env, name) : nullptr) {
      note_definition(s, as_path(s.ast, item.tree)->parts[0], index->named);
      index->used = index->in_brackets = true;
      return core::slot(s.m, index->slot);
    }
    return elaborate_index(s, env, item.tree);
  }
  if (Index* index = find_slot_index(env, item.pack)) {
    index->used = index->in_brackets = true;
    return core::slot(s.m, index->slot);
  }
  const auto& ref = std::get<ast::PackRef>(s[item.tree].node);
  if (env.site && !env.site->reported.insert(ref.name.symbol).second) return {};
  auto& d = s.diags.error(Code::E0303, fmt::format("pack `..{}` is neither on the left nor reduced",
                                                   text(ref.name.symbol)));
  d.primary(ref.name.span, "nothing defines its coordinates");
  if (env.site) d.label(env.site->span, "the left side of this statement");
  d.help(
      fmt::format("add it to the left side, or reduce it: `sum[..{}](…)`", text(ref.name.symbol)));
  return {};
}

}  // namespace ein::sema

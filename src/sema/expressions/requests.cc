// Requests: `@num / @den` becomes one scalar derivative per cell of numerator and denominator.
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

struct Operand {
  FamilyId family;
  std::vector<CoreId> at;         // what is given, the enclosing slots first
  std::vector<core::Coord> rest;  // coordinates that remain
  Span span;
};

// One operand of a request, or one for each leaf of a record.
struct Operands {
  Value value;  // as elaborated, for the shape of the result
  std::vector<Operand> leaves;
};

// The family that a value reads, at any address of its first coordinates; invalid for other values.
FamilyId read_part(const core::Module& m, const Value& v) {
  if (v.kind != Value::Kind::Data || v.typing != Typing::Fixed) return {};
  const auto* a = core::get_if<core::Access>(m, v.body);
  if (!a || a->at.size() < v.coords.size()) return {};
  size_t prefix = a->at.size() - v.coords.size();
  for (size_t i = prefix; i < a->at.size(); ++i) {
    if (core::slot_of(m, a->at[i]) != v.depth + (i - prefix)) return {};
  }
  return a->family;
}

// What is left of a value after the indices behind it.
std::optional<Operand> operand(Sema& s, Env& env, FamilyId family, const Value& v, TreeId e) {
  Operand out{family, {}, v.coords, s[e].span};
  const auto* access = core::get_if<core::Access>(s.m, v.body);
  size_t prefix = access->at.size() - v.coords.size();
  out.at.assign(access->at.begin(), access->at.begin() + static_cast<ptrdiff_t>(prefix));
  const auto* index = std::get_if<ast::Index>(&s[e].node);
  if (!index) return out;
  std::vector<IndexItem> items;
  if (!expand_indices(s, env, index->at, items)) return std::nullopt;
  if (items.size() > out.rest.size()) {
    s.diags
        .error(Code::E0310, fmt::format("`{}` has {} coordinates, not {}", text(s.m[family].name),
                                        out.rest.size(), items.size()))
        .primary(s[e].span, "");
    return std::nullopt;
  }
  std::vector<CoreId> given;
  std::vector<TreeId> trees;
  for (const IndexItem& item : items) {
    given.push_back(item_index(s, env, item));
    trees.push_back(item.tree);
    if (!given.back()) return std::nullopt;
  }
  note_use(s, env, v, trees, given, s[e].span);
  out.at.insert(out.at.end(), given.begin(), given.end());
  out.rest.erase(out.rest.begin(), out.rest.begin() + static_cast<ptrdiff_t>(items.size()));
  return out;
}

std::optional<Operand> not_named(Sema& s, TreeId e, const char* role) {
  s.diags.error(Code::E0603, fmt::format("{} of this derivative is not a named value", role))
      .primary(s[e].span, "")
      .help("give the value a name with `let` and use that");
  return std::nullopt;
}

// What stands before the indices.
TreeId base_of(const Sema& s, TreeId e) {
  const auto* index = std::get_if<ast::Index>(&s[e].node);
  return index ? index->base : e;
}

Env plain_of(const Env& env) {
  Env out = env;
  out.shadow_ok = out.in_slot = false;
  return out;
}

// The families that `value`, which stands before the indices of `e`, refers to; of a record, every
// part of it. `named`: it is a plain name. `bound`: a definition has that name.
std::optional<Operands> operands(Sema& s, Env& env, TreeId e, Value value, bool named, bool bound,
                                 const char* role) {
  Operands out;
  out.value = std::move(value);
  for (const Value& v : leaves_of(out.value)) {
    FamilyId family = named ? whole_family(s.m, v) : read_part(s.m, v);
    // A parameter was given a family of its own; a name bound by `where` is only an expression.
    if (family && !bound && !s.m[family].generated) family = {};
    // Integers of a record are held.
    if (out.value.record() && !(v.one() && v.typing == Typing::Fixed && is_float(v.type))) {
      out.leaves.push_back({});
      continue;
    }
    if (!family && v.one() && v.typing == Typing::Fixed && !is_float(v.type)) {
      s.diags
          .error(Code::E0602,
                 fmt::format("{} of a derivative is `{}`, not a float", role, name_of(v.type)))
          .primary(s[e].span, fmt::format("this is `{}`", name_of(v.type)));
      return std::nullopt;
    }
    auto leaf = family ? operand(s, env, family, v, e) : not_named(s, e, role);
    if (!leaf) return std::nullopt;
    out.leaves.push_back(std::move(*leaf));
  }
  return out;
}

// The binding that a name, with or without indices, refers to.
std::optional<Operands> binding(Sema& s, Env& env, TreeId e, const char* role) {
  Env plain = plain_of(env);
  TreeId base = base_of(s, e);
  const ast::Path* path = as_path(s.ast, base);
  if (!path) {  // `p.w`, `s[t - 1].p.w`
    Value v = elaborate(s, plain, base);
    if (v.poison()) return std::nullopt;
    return operands(s, env, e, std::move(v), false, true, role);
  }
  Found found = lookup(s, plain, path->parts[0], true);
  if (found.kind == Found::Kind::None) report_unknown(s, plain, path->parts[0]);
  if (found.value.poison()) return std::nullopt;
  bool bound = find_definition(plain, path->parts[0].symbol) != nullptr;
  return operands(s, env, e, std::move(found.value), true, bound, role);
}

// Whether the value of a tree may depend on slots from `depth` on, which reductions bind: it has
// one of their indices in it, or a parameter or local that does.
bool varies_below(Sema& s, const Env& env, uint32_t depth, TreeId e) {
  bool found = false;
  for_each_tree(s.ast, e, [&](TreeId x) {
    found |= std::holds_alternative<ast::PackRef>(s[x].node);  // it may map over one
  });
  for (Symbol name : free_names(s.ast, e)) {
    if (const Index* i = find_index(env, name)) found |= i->slot >= depth;
    if (const Definition* d = find_definition(env, name))
      found |= !d->scope->module && d->scope->env.depth > depth;
    for (const Frame* f = env.frame; f; f = f->up) {
      for (const auto& [given, value] : f->values)
        found |= given.symbol == name && value.depth > depth;
    }
  }
  return found;
}

// `p.w`, `s.a[t]`: a part of a record that is a family, as it stands.
std::optional<Value> named_part(Sema& s, const Env& env, TreeId e) {
  TreeId base = base_of(s, e);
  if (!std::holds_alternative<ast::Field>(s[base].node) || !rooted_name(s.ast, base)) return {};
  Env plain = plain_of(env);
  Value v = elaborate(s, plain, base);
  return v.one() && read_part(s.m, v) ? std::optional(std::move(v)) : std::nullopt;
}

// An anonymous numerator gets a family of its own.
std::optional<Operands> numerator(Sema& s, Env& env, TreeId e) {
  if (TreeId name = named_base(s.ast, e)) {
    Symbol symbol = path_name(s.ast, name);
    if (find_definition(env, symbol) || value_exists(env, symbol)) {
      Env probe = env;
      probe.shadow_ok = probe.in_slot = false;
      Value v = lookup(s, probe, as_path(s.ast, name)->parts[0], true).value;
      if (v.poison()) return std::nullopt;
      bool bound = find_definition(probe, symbol) != nullptr;
      if (FamilyId f = whole_family(s.m, v); f && (bound || s.m[f].generated)) {
        return binding(s, env, e, "numerator");
      }
      if (v.record()) return binding(s, env, e, "numerator");
    }
  }
  if (auto part = named_part(s, env, e)) {
    return operands(s, env, e, std::move(*part), false, true, "numerator");
  }
  Env plain = outside_reductions(s.m, env);
  if (under_binder(env) && varies_below(s, env, plain.depth, e)) {
    unsupported(s, s[e].span, "numerators in parentheses that use a reduced index",
                "give the numerator a name with `let`");
    return std::nullopt;
  }
  plain.shadow_ok = plain.in_slot = false;
  Operands out;
  out.value = elaborate(s, plain, e);
  if (out.value.poison()) return std::nullopt;
  std::string base = env.site ? env.site->name + "_of" : "of";
  for (const Value& leaf : leaves_of(out.value)) {
    Value v = settle(s, plain, leaf);
    if (v.poison()) return std::nullopt;
    FamilyId family = whole_family(s.m, v);
    size_t prefix = family ? s.m[family].coords.size() - v.coords.size() : plain.depth;
    if (!family || prefix != plain.depth) {
      family = family_of(s, plain, v, base);
      if (!family) return std::nullopt;
      prefix = plain.depth;
    }
    Operand& one = out.leaves.emplace_back(Operand{family, {}, v.coords, s[e].span});
    for (uint32_t i = 0; i < prefix; ++i) one.at.push_back(core::slot(s.m, i));
  }
  return out;
}

bool check_float(Sema& s, const Operand& o, const char* role) {
  DType type = s.m[o.family].dtype;
  if (is_float(type)) return true;
  const char* help =
      is_int(type) ? "only floats have derivatives: write literals with a point, as in `3.0`, or "
                     "convert, as in `n as f32`"
                   : "only floats have derivatives";
  auto& d = s.diags.error(
      Code::E0602, fmt::format("{} of a derivative is `{}`, not a float", role, name_of(type)));
  d.primary(o.span, fmt::format("this is `{}`", name_of(type)));
  if (s.m[o.family].span.valid()) d.label(s.m[o.family].span, "defined here");
  d.help(help);
  return false;
}

// One derivative: a scalar for each cell of numerator and denominator.
Value request(Sema& s, Env& env, const Operand& num, const Operand& den, Span span) {
  // If both are integers, the numerator is one because the denominator is.
  if (!check_float(s, den, "denominator") || !check_float(s, num, "numerator")) return {};
  if (s.m[num.family].dtype != s.m[den.family].dtype) {
    s.diags.error(Code::E0501, "numerator and denominator of a derivative have different types")
        .primary(num.span, fmt::format("`{}`", name_of(s.m[num.family].dtype)))
        .label(den.span, fmt::format("`{}`", name_of(s.m[den.family].dtype)));
    return {};
  }
  Value out = data(env, s.m[num.family].dtype, {}, span);
  out.coords = num.rest;
  core::add_denominator(out.coords, den.rest);
  core::Request r{num.family, num.at, den.family, den.at};
  uint32_t hole = env.depth;
  auto inside = env.depth + static_cast<uint32_t>(out.coords.size());
  for (auto* list : {&r.num_at, &r.den_at}) {
    for (CoreId& e : *list) e = core::substitute(s.m, e, std::vector<CoreId>(env.depth), inside);
  }
  for (size_t i = 0; i < num.rest.size(); ++i) r.num_at.push_back(core::slot(s.m, hole++));
  for (size_t i = 0; i < den.rest.size(); ++i) r.den_at.push_back(core::slot(s.m, hole++));
  out.body = core::request(s.m, std::move(r), span);
  return out;
}

// The shape of `like` with one value for each of its leaves, in order; leaves without an operand
// are left out, and records that have no others.
Value shaped(const Value& like, const std::vector<Operand>& leaves, size_t& next,
             const std::function<Value(const Operand&)>& f) {
  if (like.kind != Value::Kind::Tuple) return f(leaves[next++]);
  Value out = like;
  out.items.clear();
  out.fields.clear();
  for (size_t i = 0; i < like.items.size(); ++i) {
    bool held = like.items[i].kind != Value::Kind::Tuple && !leaves[next].family;
    if (held) {
      ++next;
      continue;
    }
    Value item = shaped(like.items[i], leaves, next, f);
    if (item.poison()) return {};
    if (item.kind == Value::Kind::Tuple && item.items.empty()) continue;
    out.items.push_back(std::move(item));
    if (like.record()) out.fields.push_back(like.fields[i]);
  }
  return out;
}

}  // namespace

Value elaborate_request(Sema& s, Env& env, const ast::Request& request_tree, Span span) {
  if (!request_tree.den) return elaborate_tangent(s, env, request_tree, span);
  if (!rooted_name(s.ast, request_tree.den)) {
    s.diags.error(Code::E0603, "the denominator of a derivative must be a name")
        .primary(s[request_tree.den].span, "")
        .help("give the value a name with `let` and use that");
    return {};
  }
  auto num = numerator(s, env, request_tree.num);
  auto den = binding(s, env, request_tree.den, "denominator");
  if (!num || !den) return {};
  bool any = std::any_of(den->leaves.begin(), den->leaves.end(),
                         [](const Operand& o) { return o.family.valid(); });
  if (!any) {
    s.diags.error(Code::E0602, "the denominator of a derivative has no floats")
        .primary(s[request_tree.den].span, "this is " + show_value(s, den->value));
    return {};
  }
  size_t outer = 0;
  return shaped(num->value, num->leaves, outer, [&](const Operand& of) {
    size_t inner = 0;
    return shaped(den->value, den->leaves, inner,
                  [&](const Operand& by) { return request(s, env, of, by, span); });
  });
}

}  // namespace ein::sema

// Indexing: `x[i, 2*j]`, gathers, partial indexing; `extent`, `shape`, `len`.
#include <fmt/format.h>

#include <algorithm>

#include "sema/builtins.h"
#include "sema/expressions/expressions.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/state/meanings.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
// A name in front of brackets is never an index.
Value elaborate_base(Sema& s, Env& env, TreeId base) {
  bool shadow = env.shadow_ok, slot = env.in_slot;
  env.shadow_ok = env.in_slot = false;
  Value v;
  if (const ast::Path* path = as_path(s.ast, base)) {
    Found found = lookup(s, env, path->parts[0], true);
    if (found.kind == Found::Kind::None) report_unknown(s, env, path->parts[0]);
    v = std::move(found.value);
  } else {
    v = elaborate(s, env, base);
  }
  env.shadow_ok = shadow;
  env.in_slot = slot;
  bool parts = v.record() || v.kind == Value::Kind::Texts;
  return parts ? v : as_data(s, env, std::move(v));
}

namespace {

// `W[hidden, hidden]` for a `W: [f32; hidden, hidden]` looks like the whole value, but both slots
// hold the same index, so it reads the diagonal (decisions.md, 5).
void warn_diagonal(Sema& s, const Value& base, const std::vector<TreeId>& at) {
  for (size_t p = 0; p < at.size(); ++p) {
    for (size_t q = p + 1; q < at.size(); ++q) {
      Symbol name = path_name(s.ast, at[p]);
      if (!name || name != path_name(s.ast, at[q])) continue;
      if (base.coords[p].name != name || base.coords[q].name != name) continue;
      Span place = join(s[at[p]].span, s[at[q]].span);
      if (!s.warned.insert({place.begin, place.end}).second) return;
      s.diags.warning(Code::W0301, fmt::format("this reads the diagonal along {}", quoted(name)))
          .primary(place, fmt::format("the same index for coordinates {} and {}", p, q))
          .help(fmt::format("the value has coordinates {}; use two indices, or another name if the "
                            "diagonal is intended",
                            show_coords(s, base.coords)));
      return;
    }
  }
}

// `logits[class, b]` for a `logits[b, class]`. A name that is also in its own position, as in
// `A[i, i]`, is a diagonal and not a mistake.
void warn_swapped(Sema& s, const Value& base, const std::vector<TreeId>& at) {
  for (size_t p = 0; p < at.size(); ++p) {
    Symbol name = path_name(s.ast, at[p]);
    if (!name || base.coords[p].name == name) continue;
    for (size_t q = 0; q < base.coords.size(); ++q) {
      if (base.coords[q].name != name) continue;
      if (q < at.size() && path_name(s.ast, at[q]) == name) return;
      Span place = s[at[p]].span;
      if (!s.warned.insert({place.begin, place.end}).second) return;
      auto& d = s.diags.warning(
          Code::W0301, fmt::format("index {} is used for coordinate {}, but {} is coordinate {}",
                                   quoted(name), p, quoted(name), q));
      d.primary(place, base.coords[p].name ? "this coordinate is " + quoted(base.coords[p].name)
                                           : "this coordinate has no name");
      d.help("the value has coordinates " + show_coords(s, base.coords) +
             "; rename the index if this is intended");
      return;
    }
  }
}

// The argument that was passed for this parameter of the function being inlined.
const Value* find_parameter(const Env& env, Symbol name) {
  for (const Frame* f = env.frame; name && f; f = f->up) {
    for (const auto& [n, value] : f->values) {
      if (n.symbol == name) return f->function ? &value : nullptr;
    }
    if (f->function) return nullptr;
  }
  return nullptr;
}

// The position of a coordinate name that occurs once.
std::optional<size_t> coordinate_named(const Value& v, Symbol name) {
  std::optional<size_t> at;
  for (size_t i = 0; i < v.coords.size(); ++i) {
    if (v.coords[i].name != name) continue;
    if (at) return std::nullopt;
    at = i;
  }
  return at;
}

std::optional<size_t> coordinate_argument(Sema& s, const Value& v, TreeId e) {
  if (const auto* lit = std::get_if<ast::IntLit>(&s[e].node)) {
    if (lit->value < v.coords.size()) return static_cast<size_t>(lit->value);
  } else if (Symbol name = path_name(s.ast, e)) {
    if (auto at = coordinate_named(v, name)) return at;
  }
  auto& d = s.diags.error(Code::E0305, "the value has no such coordinate");
  d.primary(s[e].span, "").label(v.span, "this has coordinates " + show_coords(s, v.coords));
  if (Symbol name = path_name(s.ast, e)) {
    std::vector<std::string> names;
    for (const core::Coord& c : v.coords) names.push_back(text(c.name));
    std::string near = did_you_mean(text(name), names);
    if (!near.empty()) d.help("did you mean " + quoted(near) + "?");
  }
  return std::nullopt;
}

// Inside a gated call the extent of a restricted coordinate is not the number of its cells.
Value extent_value(Sema& s, const Env& env, CoreId extent, Span span) {
  const GatedCall* call = env.gated;
  while (call &&
         std::find(call->extents.begin(), call->extents.end(), extent) == call->extents.end()) {
    call = call->outer;
  }
  if (!call) return untyped_int(env, extent, span);
  s.diags
      .error(Code::E0316,
             "this `where` cannot be applied inside the call: the function uses the extent of the "
             "coordinate")
      .primary(call->span, "leaves out cells, so the extent is no longer the number of cells")
      .label(span, "used here")
      .help("put the `where` on the argument before the call, or on the result after it");
  return {};
}

// extent(c): the size that a shape name or an index in scope stands for.
Value extent_of_name(Sema& s, Env& env, TreeId e) {
  if (Symbol name = path_name(s.ast, e)) {
    const ast::Name& written = as_path(s.ast, e)->parts[0];
    if (Index* index = find_index(env, name)) {
      note_definition(s, written, index->named);
      return extent_value(s, env, core::sub(s.m, index->range.hi, index->range.lo), s[e].span);
    }
    if (auto extent = find_extent_name(s, env, name)) {
      note_definition(s, written, extent->named);
      return extent_value(s, env, extent->extent, s[e].span);
    }
    if (!value_exists(env, name)) {
      report_unknown(s, env, written);
      return {};
    }
  }
  s.diags.error(Code::E0305, "`extent` of a value needs a coordinate")
      .primary(s[e].span, "")
      .help("write `extent(x, c)` or `extent(x, 0)`");
  return {};
}

}  // namespace

void note_use(Sema& s, Env& env, const Value& base, const std::vector<TreeId>& at,
              const std::vector<CoreId>& indices, Span span) {
  FamilyId family = whole_family(s.m, base);
  if (family && env.site) env.site->uses.push_back({family, at, indices, span});
}

namespace {

// `shape(x)[0]`: an extent, which may bound a range.
std::optional<Value> extent_of_shape(Sema& s, Env& env, const ast::Index& index, Span span) {
  const auto* call = std::get_if<ast::Call>(&s[index.base].node);
  if (!call || call->has_brackets || call->args.size() != 1) return std::nullopt;
  if (!spells(s.ast, *call, Builtin::Id::Shape) || find_callee(s, env, call->callee)) {
    return std::nullopt;
  }
  const auto* at = index.at.size() == 1 ? std::get_if<ast::IntLit>(&s[index.at[0]].node) : nullptr;
  if (!at) return std::nullopt;
  Value v = elaborate(s, env, call->args[0]);
  if (v.poison()) return v;
  if (at->value >= v.coords.size()) return std::nullopt;  // reported like any other access
  return extent_value(s, env, v.coords[static_cast<size_t>(at->value)].extent, span);
}

// `names[k]` of an array of strings. The numbers of its strings are a table, so that an address is
// checked like any other.
Value string_at(Sema& s, Env& env, const ast::Index& index, const Value& base, CoreId at,
                const std::vector<TreeId>& trees, Span span) {
  auto count = static_cast<int64_t>(base.items.size());
  if (auto known = core::const_int(s.m, at)) {
    if (*known >= 0 && *known < count) return base.items[static_cast<size_t>(*known)];
    s.diags
        .error(Code::E0306, fmt::format("there is no string {} in an array of {}", *known, count))
        .primary(span, "")
        .label(base.span, fmt::format("{} strings", count));
    return {};
  }
  Value numbers;
  numbers.kind = Value::Kind::Table;
  numbers.type = DType::I32;
  numbers.depth = env.depth;
  numbers.span = base.span;
  numbers.coords = base.coords;
  for (int64_t k = 0; k < count; ++k) numbers.cells.push_back(core::int_lit(s.m, k, DType::I32));
  Symbol name = path_name(s.ast, index.base);
  numbers = table_as(s, env, numbers, DType::I32, name ? text(name) + "_numbers" : "numbers");
  if (numbers.poison()) return {};
  note_use(s, env, numbers, trees, {at}, span);
  FamilyId family = whole_family(s.m, numbers);
  Value which = data(env, DType::I32, core::access(s.m, family, {at}, span), span);
  return pick_text(s, env, base, which, span);
}

}  // namespace

Value elaborate_access(Sema& s, Env& env, const ast::Index& index, Span span) {
  if (auto extent = extent_of_shape(s, env, index, span)) return *extent;
  Value base = elaborate_base(s, env, index.base);
  return base.poison() ? Value{} : access_value(s, env, base, index, span);
}

Value access_value(Sema& s, Env& env, const Value& base, const ast::Index& index, Span span) {
  if (base.kind == Value::Kind::Tuple) {
    return map_leaves(base, [&](const Value& leaf, const std::string& path) {
      if (!leaf.one()) return leaf;
      size_t before = s.diags.all().size();
      Value v = access_value(s, env, as_data(s, env, leaf), index, span);
      note_part(s, before, path);
      return v;
    });
  }
  std::vector<CoreId> at;
  bool ok = !base.poison();
  std::vector<IndexItem> items;
  if (!expand_indices(s, env, index.at, items)) return {};
  std::vector<TreeId> trees;
  for (const IndexItem& item : items) {
    CoreId i = item_index(s, env, item);
    ok &= i.valid();
    at.push_back(i);
    trees.push_back(item.tree);
  }
  if (!ok) return {};
  if (base.kind == Value::Kind::Texts && at.size() == 1) {
    return string_at(s, env, index, base, at[0], trees, span);
  }
  if (at.size() > base.coords.size()) {
    std::string name =
        path_name(s.ast, index.base) ? quoted(path_name(s.ast, index.base)) : "this value";
    const Value* parameter =
        base.scalar() ? find_parameter(env, path_name(s.ast, index.base)) : nullptr;
    if (parameter) {
      if (!s.warned.insert({parameter->span.begin, parameter->span.end}).second) return {};
      s.diags
          .error(Code::E0310,
                 fmt::format("{} is indexed, but the call passes a scalar for it", name))
          .primary(parameter->span, "this is a single cell")
          .label(span, fmt::format("{} {} here", at.size(), at.size() == 1 ? "index" : "indices"))
          .help("to pass a whole row, leave out its index: `f(x[r])` instead of `f(x[r, k])`");
      return {};
    }
    auto& d = s.diags.error(
        Code::E0310, base.scalar()
                         ? name + " is a scalar and takes no index"
                         : fmt::format("{} has {} coordinate{}, not {}", name, base.coords.size(),
                                       base.coords.size() == 1 ? "" : "s", at.size()));
    d.primary(span, fmt::format("{} {} here", at.size(), at.size() == 1 ? "index" : "indices"));
    if (FamilyId f = whole_family(s.m, base); f && s.m[f].span.valid()) {
      d.label(s.m[f].span, "defined with coordinates " + show_coords(s, base.coords));
    }
    return {};
  }
  warn_diagonal(s, base, trees);
  warn_swapped(s, base, trees);
  note_use(s, env, base, trees, at, span);
  note_axes(s, env, index.base, base, trees, span);
  size_t rest = base.coords.size() - at.size();
  auto inside = env.depth + static_cast<uint32_t>(rest);
  if (rest > 0) {  // reductions inside an index expression move above the remaining coordinates
    for (CoreId& i : at) i = core::substitute(s.m, i, std::vector<CoreId>(env.depth), inside);
  }
  size_t spelled = at.size();
  for (size_t i = 0; i < rest; ++i) {
    at.push_back(core::slot(s.m, env.depth + static_cast<uint32_t>(i)));
  }
  Value out = base;
  if (FamilyId family = whole_family(s.m, base)) {  // one access node with all indices
    std::vector<CoreId> all = core::get_if<core::Access>(s.m, base.body)->at;
    std::copy(at.begin(), at.end(), all.end() - static_cast<ptrdiff_t>(at.size()));
    out.body = core::access(s.m, family, std::move(all), span);
  } else {
    out.body = cell(s.m, base, at, inside);
  }
  out.coords.erase(out.coords.begin(), out.coords.begin() + static_cast<ptrdiff_t>(spelled));
  out.depth = env.depth;
  return out;
}

Value elaborate_extent(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span) {
  const bool extent = b.id == Builtin::Id::Extent;
  if (!b.takes(call.args.size())) {
    s.diags
        .error(Code::E0205, fmt::format("`{}` takes {} argument{}, not {}", b.spelling,
                                        b.most == 2 ? "one or two" : "one", b.most == 2 ? "s" : "",
                                        call.args.size()))
        .primary(span, "");
    return {};
  }
  if (extent && call.args.size() == 1) return extent_of_name(s, env, call.args[0]);
  Symbol name = path_name(s.ast, call.args[0]);
  const bool both = name && find_index(env, name) && value_exists(env, name);  // an index has none
  Value v = both ? elaborate_base(s, env, call.args[0]) : elaborate(s, env, call.args[0]);
  if (v.poison()) return {};
  auto field = field_at(v, intern(b.spelling));
  if (call.method && field) return v.items[*field];  // `p.len` of a record that has such a field
  if (extent) {
    auto at = coordinate_argument(s, v, call.args[1]);
    return at ? extent_value(s, env, v.coords[*at].extent, span) : Value{};
  }
  if (v.scalar()) {
    s.diags.error(Code::E0502, fmt::format("a scalar has no `{}`", b.spelling)).primary(span, "");
    return {};
  }
  if (b.id == Builtin::Id::Len) return extent_value(s, env, v.coords[0].extent, span);
  for (const core::Coord& c : v.coords) {
    if (extent_value(s, env, c.extent, span).poison()) return {};
  }
  Value shape;  // shape(x): a table of its extents
  shape.kind = Value::Kind::Table;
  shape.type = DType::I64;
  shape.typing = Typing::Int;
  shape.depth = env.depth;
  shape.span = span;
  for (const core::Coord& c : v.coords) shape.cells.push_back(c.extent);
  shape.coords.push_back({{}, core::int_lit(s.m, static_cast<int64_t>(v.coords.size()))});
  return shape;
}

}  // namespace ein::sema

// Type annotations: element types, shape names, arithmetic extents. They apply to coordinates by
// position (decisions.md, 5).
#include <fmt/format.h>

#include <algorithm>

#include "base/match.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/ranges/ranges.h"
#include "sema/state/call_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/range_state.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

// a·x + rest == actual for the one unknown x.
CoreId solve_for(Sema& s, CoreId unknown, CoreId value, CoreId actual, Span span,
                 const std::string& form_text) {
  core::AffineForm form = core::affine_form(s.m, value);
  int64_t a = core::coefficient(form, unknown);
  std::erase_if(form.terms, [&](const auto& t) { return t.atom == unknown; });
  CoreId rest = core::from_form(s.m, form);
  if (a == 0 || has_unsolved(s, rest)) {
    s.diags.error(Code::E0405, "this extent cannot be solved for the name in it").primary(span, "");
    return {};
  }
  CoreId left = core::sub(s.m, actual, rest);
  if (a < 0) left = core::neg(s.m, left);
  CoreId step = core::int_lit(s.m, std::abs(a));
  CoreId zero = core::int_lit(s.m, 0);
  CoreId divides =
      core::apply(s.m, core::Op::Eq, {core::apply(s.m, core::Op::Mod, {left, step}), zero});
  if (const auto* b = core::get_if<core::BoolLit>(s.m, divides); b && !b->value) {
    s.diags
        .error(Code::E0405,
               fmt::format("extent {} is not of the form {}", show(s, actual), form_text))
        .primary(span, "no whole number satisfies this");
    return {};
  }
  std::string message = fmt::format("extent {} is not of the form {}", show(s, actual), form_text);
  constrain(s, divides, message, span, span);
  CoreId result = core::apply(s.m, core::Op::Div, {left, step});
  constrain(s, core::apply(s.m, core::Op::Ge, {left, zero}), message, span, span);
  return result;
}

}  // namespace

bool is_type_parameter(const ast::Ast& ast, ast::TypeId type) {
  const ast::Type& t = ast[type];
  if (const auto* tensor = std::get_if<ast::TensorType>(&t.node)) {
    return is_type_parameter(ast, tensor->elem);
  }
  const auto* named = std::get_if<ast::NamedType>(&t.node);
  return named && std::isupper(static_cast<unsigned char>(text(named->name.symbol)[0]));
}

std::optional<DType> written_type(const ast::Ast& ast, ast::TypeId type) {
  const ast::Type& t = ast[type];
  if (const auto* tensor = std::get_if<ast::TensorType>(&t.node))
    return written_type(ast, tensor->elem);
  const auto* named = std::get_if<ast::NamedType>(&t.node);
  return named ? scalar_type(named->name.symbol) : std::nullopt;
}

namespace {

// What other languages call a type.
std::string type_elsewhere(const std::string& name) {
  static const std::map<std::string, const char*> kTypes = {
      {"float", "f32"},   {"double", "f64"},    {"float32", "f32"},  {"float64", "f64"},
      {"float16", "f16"}, {"bfloat16", "bf16"}, {"int", "i32"},      {"long", "i64"},
      {"int8", "i8"},     {"int16", "i16"},     {"int32", "i32"},    {"int64", "i64"},
      {"uint8", "u8"},    {"byte", "u8"},       {"boolean", "bool"}, {"string", "str"}};
  auto it = kTypes.find(name);
  return it == kTypes.end() ? "" : it->second;
}

// Once for each place: a type may be asked for more than once.
void report_unknown_type(Sema& s, ast::TypeId type, const ast::Name& name) {
  Span span = s.ast[type].span;
  if (!s.warned.insert({span.begin, span.end}).second) return;
  bool complex = text(name.symbol).starts_with("complex");
  auto& d = s.diags.error(Code::E0201, "unknown type " + quoted(name.symbol));
  d.primary(span, "");
  if (suggest(d, type_elsewhere(text(name.symbol)), span)) return;
  d.help(is_type_parameter(s.ast, type)
             ? "a capitalised name is a type parameter; it must appear in the type of a "
               "function parameter"
         : complex ? "a complex number is a record of floats: `{ re: f32, im: f32 }`"
                   : "the scalar types are bool, i8, i16, i32, i64, u8, f16, bf16, f32, f64 and "
                     "str");
}

}  // namespace

std::optional<DType> element_type(Sema& s, ast::TypeId type) {
  const ast::Type& t = s.ast[type];
  if (const auto* named = std::get_if<ast::NamedType>(&t.node)) {
    auto dtype = scalar_type(named->name.symbol);
    if (!dtype && is_type_parameter(s.ast, type) && !s.calls.element_types.empty()) {
      auto bound = s.calls.element_types.back().find(named->name.symbol);
      if (bound != s.calls.element_types.back().end()) return bound->second;
    }
    if (!dtype) {
      report_unknown_type(s, type, named->name);
      return std::nullopt;
    }
    if (*dtype == DType::Str) {
      s.diags.error(Code::E0501, "expected a number type or `bool`, found `str`")
          .primary(t.span, "")
          .note(
              "strings are fixed at compile time, so they cannot be inputs or cells that are "
              "computed");
      return std::nullopt;
    }
    return dtype;
  }
  if (const auto* tensor = std::get_if<ast::TensorType>(&t.node)) {
    return element_type(s, tensor->elem);
  }
  if (!std::holds_alternative<ast::ErrorType>(t.node)) {
    s.diags
        .error(Code::E0501, fmt::format("expected the type of a single value, found a {} type",
                                        tuple_type(s.ast, type) ? "tuple" : "function"))
        .primary(t.span, "");
  }
  return std::nullopt;
}

Symbol dim_name(const ast::Ast& ast, const ast::Dim& dim) {
  return dim.kind == ast::Dim::Kind::Extent ? path_name(ast, dim.extent) : Symbol{};
}

namespace {

// A shape name in a signature may stand for this: a `const` that is an integer.
bool fixes_extent(Sema& s, Definition& d) {
  if (d.state == Definition::State::Busy) return false;
  if (!std::holds_alternative<ast::Const>(s.ast[d.clauses[0]].node)) return false;
  define(s, d);
  if (d.state == Definition::State::Bad) return true;  // reported where it is read
  if (d.constant) return true;
  if (d.inlined) return d.inlined->scalar() && d.inlined->typing == Typing::Int;
  if (!d.family || !s.m[d.family].coords.empty() || !is_int(s.m[d.family].dtype)) return false;
  Value v = read_definition(s, d.scope->env, d, d.name.span);
  CoreId index = v.poison() ? CoreId{} : as_index(s, d.scope->env, v, {});
  return index && closed(s.m, as_extent(s, index));
}

// Where the name stands in the extent `2 * n`.
Span place_of(const ast::Ast& ast, TreeId extent, Symbol name) {
  Span found;
  for_each_tree(ast, extent, [&](TreeId e) {
    if (!found.valid() && path_name(ast, e) == name) found = ast[e].span;
  });
  return found;
}

// The extent that a type gives as `index`; an error if the program has to run to know it.
CoreId closed_extent(Sema& s, CoreId index, const ast::Dim& dim) {
  if (!index) return {};
  CoreId extent = as_extent(s, index);
  if (closed(s.m, extent)) return extent;
  s.diags.error(Code::E0405, "an extent in a type depends on values that the program computes")
      .primary(dim.span, "known only when the program runs")
      .help(
          "give it a name of its own, as in `[f32; n]`; constants and integer inputs fix an "
          "extent");
  return {};
}

}  // namespace

CoreId dim_extent(Sema& s, Env& env, Scope& scope, const ast::Dim& dim, CoreId actual) {
  switch (dim.kind) {
    case ast::Dim::Kind::Unknown: return actual;
    case ast::Dim::Kind::Pack:
    case ast::Dim::Kind::AnyRank:
      s.diags.error(Code::E0313, "the number of coordinates here is not known")
          .primary(dim.span, "");
      return {};
    case ast::Dim::Kind::Extent: break;
  }
  Env outside = env;  // shape names are not indices
  Frame barrier;
  barrier.up = env.frame;
  barrier.function = true;
  outside.frame = &barrier;
  // Names in the types of parameters belong to the function, whatever annotations and `let`s
  // outside have the same name; a `const` still fixes the extent (decisions.md, 5).
  const bool own = scope.signature && actual;
  auto extent_named = [&](Symbol name) -> std::optional<CoreId> {
    if (!own) return find_extent(s, outside, name);
    auto it = scope.extents.find(name);
    return it == scope.extents.end() ? std::nullopt : std::optional(it->second.extent);
  };
  auto definition_named = [&](Symbol name) {
    Definition* d = find_definition(outside, name);
    return d && own && !fixes_extent(s, *d) ? nullptr : d;
  };
  auto known = [&](Symbol name) {
    if (extent_named(name)) return true;
    Definition* d = definition_named(name);
    return d && (!scope.extent_sources.count(name) || scope.extent_sources[name] != d);
  };
  if (Symbol name = dim_name(s.ast, dim)) {
    if (auto extent = extent_named(name)) return *extent;
    if (definition_named(name)) {
      return closed_extent(s, elaborate_index(s, outside, dim.extent), dim);
    }
    if (actual) scope.extents[name] = {actual, dim.span};
    return actual;
  }
  std::set<Symbol> fresh;
  for (Symbol name : free_names(s.ast, dim.extent)) {
    if (!known(name)) fresh.insert(name);
  }
  for (Symbol name : free_names(s.ast, dim.extent)) {  // before values of the same name
    if (auto extent = own ? extent_named(name) : std::nullopt) {
      ast::Name named{name, scope.extents[name].named};
      barrier.values.push_back({named, untyped_int(outside, *extent, dim.span)});
    }
  }
  if (fresh.empty()) return closed_extent(s, elaborate_index(s, outside, dim.extent), dim);
  if (fresh.size() > 1 || !actual) {
    s.diags.error(Code::E0405, "this extent has more than one unknown name").primary(dim.span, "");
    return {};
  }
  Symbol name = *fresh.begin();
  CoreId unknown = placeholder(s);
  Span place = place_of(s.ast, dim.extent, name);
  scope.extents[name] = {unknown, place};
  if (own) barrier.values.push_back({{name, place}, untyped_int(outside, unknown, dim.span)});
  CoreId value = elaborate_index(s, outside, dim.extent);
  scope.extents.erase(name);
  if (!value) return {};
  std::string form_text = show(s, value);
  for (size_t at; (at = form_text.find('?')) != std::string::npos;) {
    form_text.replace(at, 1, text(name));
  }
  CoreId solution = solve_for(s, unknown, value, actual, dim.span, form_text);
  if (!solution) return {};
  scope.extents[name] = {solution, place};
  return actual;
}

namespace {

std::string written(const ast::Dim& dim) {
  return dim.kind == ast::Dim::Kind::Pack ? "`.." + text(dim.name.symbol) + "`" : "`*`";
}

// One dimension per coordinate; a pack takes as many coordinates as are left. Null for a coordinate
// of a pack whose extents are not written. False after an error.
bool spread_dims(Sema& s, const Env& env, const std::vector<ast::Dim>& dims, size_t rank,
                 std::vector<const ast::Dim*>& out) {
  const ast::Dim* open = nullptr;
  size_t fixed = 0;
  for (const ast::Dim& d : dims) {
    const Pack* pack = d.kind == ast::Dim::Kind::Pack ? find_pack(env, d.name.symbol) : nullptr;
    bool any = !pack && (d.kind == ast::Dim::Kind::Pack || d.kind == ast::Dim::Kind::AnyRank);
    if (any && open) {
      s.diags
          .error(Code::E0313,
                 fmt::format("it is not known how many coordinates {} and {} each have",
                             written(*open), written(d)))
          .primary(d.span, "")
          .label(open->span, "this one already takes any number");
      return false;
    }
    if (any) open = &d;
    fixed += pack ? pack->coords.size() : any ? 0 : 1;
  }
  for (const ast::Dim& d : dims) {
    const Pack* pack = d.kind == ast::Dim::Kind::Pack ? find_pack(env, d.name.symbol) : nullptr;
    size_t count = pack ? pack->coords.size() : &d == open ? rank - std::min(rank, fixed) : 1;
    bool bare = pack || &d == open;
    for (size_t k = 0; k < count; ++k) out.push_back(bare ? nullptr : &d);
  }
  return true;
}

// `as` may rename coordinates, never permute them (decisions.md, 5).
bool permutes(Sema& s, const std::vector<core::Coord>& coords,
              const std::vector<const ast::Dim*>& dims, Span type, Span value) {
  for (size_t i = 0; i < coords.size(); ++i) {
    Symbol name = dims[i] ? dim_name(s.ast, *dims[i]) : Symbol{};
    if (!name || name == coords[i].name) continue;
    for (size_t k = 0; k < coords.size(); ++k) {
      if (coords[k].name != name) continue;
      s.diags
          .error(Code::E0405,
                 fmt::format("coordinate {} of the type is {}, which is coordinate {} of the value",
                             i, quoted(name), k))
          .primary(type, "")
          .label(value, "coordinates " + show_coords(s, coords))
          .help("`as` renames by position; to permute, write an indexed `let`");
      return true;
    }
  }
  return false;
}

// The type and the value give a coordinate different names: an error, because only `as` renames
// (decisions.md, 5).
void report_name(Sema& s, const std::vector<core::Coord>& coords,
                 const std::vector<const ast::Dim*>& dims, size_t at, Span type, Span value,
                 const std::string& what) {
  std::multiset<Symbol> own, written;
  std::string list;
  for (size_t i = 0; i < dims.size(); ++i) {
    own.insert(coords[i].name);
    written.insert(dims[i] ? dim_name(s.ast, *dims[i]) : Symbol{});
    list += (list.empty() ? "" : ", ") + text(coords[i].name ? coords[i].name : intern("_"));
  }
  if (own == written) {
    s.diags
        .error(Code::E0405,
               fmt::format("the type lists the coordinates of {} in a different order", what))
        .primary(type, "a different order")
        .label(value, "this has coordinates " + show_coords(s, coords))
        .help(fmt::format(
            "a type names coordinates by position and does not reorder them: write `[…; {0}]`, "
            "or transpose with `let …[…] = …[{0}];`",
            list));
    return;
  }
  s.diags
      .error(Code::E0405, fmt::format("coordinate {} of {} is {}, not {}", at, what,
                                      quoted(coords[at].name), quoted(dim_name(s.ast, *dims[at]))))
      .primary(dims[at]->span, "the type says " + quoted(dim_name(s.ast, *dims[at])))
      .label(value, "this has coordinates " + show_coords(s, coords))
      .help("a type names coordinates by position; rename with `as`");
}

// A coordinate has another extent than its type says. If the type has a name there, a label shows
// where the name got its extent.
void report_extent(Sema& s, Env& env, Scope& scope, const std::vector<core::Coord>& coords,
                   size_t at, const ast::Dim& dim, CoreId says, Span value,
                   const std::string& what) {
  std::string found = show(s, resolve(s, coords[at].extent)), wanted = show(s, resolve(s, says));
  Symbol name = dim_name(s.ast, dim);
  Span first;
  if (name) {
    auto it = scope.extents.find(name);
    if (it != scope.extents.end()) first = it->second.named;
    if (Definition* d = find_definition(env, name); d && !first.valid()) first = d->name.span;
  }
  if (!first.valid()) {
    s.diags
        .error(Code::E0405,
               fmt::format("coordinate {} of {} has extent {}, but its type says {}",
                           coords[at].name ? quoted(coords[at].name) : std::to_string(at), what,
                           found, wanted))
        .primary(dim.span, "extent " + wanted)
        .label(value, "extent " + found);
    return;
  }
  auto& d = s.diags.error(Code::E0405, fmt::format("{} has two different extents, {} and {}",
                                                   quoted(name), wanted, found));
  d.primary(value, "extent " + found);
  d.label(dim.span, fmt::format("{} is coordinate {} of {}", quoted(name), at, what));
  if (!(first == dim.span)) d.label(first, fmt::format("{} is {} here", quoted(name), wanted));
  d.help("within a scope, a name has one extent: rename one of the two");
}

}  // namespace

bool any_rank(const ast::Ast& ast, ast::TypeId type) {
  const std::vector<ast::Dim>* dims = dims_of(ast, type);
  return dims && dims->size() == 1 && (*dims)[0].kind == ast::Dim::Kind::AnyRank;
}

bool annotate(Sema& s, Env& env, Scope& scope, std::vector<core::Coord>& coords, ast::TypeId type,
              Span value, const std::string& what, bool rename) {
  const std::vector<ast::Dim>* written_dims = dims_of(s.ast, type);
  std::vector<const ast::Dim*> dims;
  if (written_dims && !spread_dims(s, env, *written_dims, coords.size(), dims)) return false;
  size_t rank = dims.size();
  Span type_span = s.ast[type].span;
  if (rank != coords.size()) {
    s.diags
        .error(Code::E0405, fmt::format("{} has {} coordinate{}, but its type has {}", what,
                                        coords.size(), coords.size() == 1 ? "" : "s", rank))
        .primary(type_span, "")
        .label(value, "coordinates " + show_coords(s, coords));
    return false;
  }
  if (rename && permutes(s, coords, dims, type_span, value)) return false;
  for (size_t i = 0; i < rank; ++i) {
    if (!dims[i]) continue;
    const ast::Dim& dim = *dims[i];
    Symbol name = dim_name(s.ast, dim);
    if (name && coords[i].name && name != coords[i].name && !rename) {
      report_name(s, coords, dims, i, type_span, value, what);
      return false;
    }
    CoreId extent = dim_extent(s, env, scope, dim, coords[i].extent);
    if (!extent) return false;
    switch (equal(s, extent, coords[i].extent)) {
      case Truth::Yes: break;
      case Truth::No:
        report_extent(s, env, scope, coords, i, dim, extent, value, what);
        return false;
      case Truth::Open:
        constrain(s, core::apply(s.m, core::Op::Eq, {extent, coords[i].extent}),
                  fmt::format("coordinate {} of {} must have extent {}, as its type says", i, what,
                              show(s, extent)),
                  dim.span, value);
    }
    if (name && (rename || !coords[i].name)) coords[i].name = name;
  }
  return true;
}

}  // namespace ein::sema

// Type annotations: element types, shape names, arithmetic extents (decision 5).
#include <fmt/format.h>

#include "base/match.h"
#include "sema/sema.h"

namespace ein::sema {
namespace {

// a·x + rest == actual for the one unknown x.
CoreId solve_for(Sema& s, CoreId unknown, CoreId value, CoreId actual, Span span) {
  core::AffineForm form = core::affine_form(s.m, value);
  int64_t a = core::coefficient(form, unknown);
  std::erase_if(form.terms, [&](const auto& t) { return t.atom == unknown; });
  CoreId rest = core::from_form(s.m, form);
  if (a == 0 || has_unsolved(s, rest)) {
    s.diags.error(Code::E0405, "extent cannot be solved for its name").primary(span, "");
    return {};
  }
  CoreId left = core::sub(s.m, actual, rest);
  if (a < 0) left = core::neg(s.m, left);
  CoreId step = core::int_lit(s.m, std::abs(a));
  CoreId zero = core::int_lit(s.m, 0);
  CoreId divides =
      core::apply(s.m, core::Op::Eq, {core::apply(s.m, core::Op::Mod, {left, step}), zero});
  if (const auto* b = core::get_if<core::BoolLit>(s.m, divides); b && !b->value) {
    s.diags.error(Code::E0405, fmt::format("extent {} does not divide exactly", show(s, actual)))
        .primary(span, "");
    return {};
  }
  constrain(s, divides, "the extent of an input does not divide exactly", span, span);
  CoreId result = core::apply(s.m, core::Op::Div, {left, step});
  constrain(s, core::apply(s.m, core::Op::Ge, {left, zero}), "an extent would have to be negative",
            span, span);
  return result;
}

}  // namespace

std::optional<DType> element_type(Sema& s, ast::TypeId type) {
  const ast::Type& t = s.ast[type];
  if (const auto* named = std::get_if<ast::NamedType>(&t.node)) {
    auto dtype = scalar_type(named->name.symbol);
    if (!dtype) {
      s.diags.error(Code::E0201, "unknown type " + quoted(named->name.symbol))
          .primary(t.span, "")
          .help("the scalar types are bool, i8, i16, i32, i64, u8, f16, bf16, f32, f64 and str");
      return std::nullopt;
    }
    if (*dtype == DType::Str) {
      s.diags.error(Code::E0501, "`str` stands where the type of a number or `bool` is expected")
          .primary(t.span, "")
          .note("strings are known when compiling; they are no inputs and no cells");
      return std::nullopt;
    }
    return dtype;
  }
  if (const auto* tensor = std::get_if<ast::TensorType>(&t.node)) {
    return element_type(s, tensor->elem);
  }
  if (!std::holds_alternative<ast::ErrorType>(t.node)) {
    s.diags
        .error(Code::E0501, fmt::format("a {} type stands where the type of one value is expected",
                                        tuple_type(s, type) ? "tuple" : "function"))
        .primary(t.span, "");
  }
  return std::nullopt;
}

const std::vector<ast::Dim>* dims_of(const Sema& s, ast::TypeId type) {
  const auto* tensor = std::get_if<ast::TensorType>(&s.ast[type].node);
  return tensor ? &tensor->dims : nullptr;
}

Symbol dim_name(const Sema& s, const ast::Dim& dim) {
  return dim.kind == ast::Dim::Kind::Extent ? path_name(s, dim.extent) : Symbol{};
}

CoreId dim_extent(Sema& s, Env& env, Scope& scope, const ast::Dim& dim, CoreId actual) {
  switch (dim.kind) {
    case ast::Dim::Kind::Unknown: return actual;
    case ast::Dim::Kind::Pack: unsupported(s, dim.span, "packs in types"); return {};
    case ast::Dim::Kind::AnyRank: unsupported(s, dim.span, "types of unknown rank"); return {};
    case ast::Dim::Kind::Extent: break;
  }
  Env outside = env;  // shape names are not indices
  Frame barrier;
  barrier.up = env.frame;
  barrier.function = true;
  outside.frame = &barrier;
  auto known = [&](Symbol name) {
    if (find_extent(s, outside, name)) return true;
    Definition* d = find_definition(outside, name);
    return d && (!scope.extent_sources.count(name) || scope.extent_sources[name] != d);
  };
  if (Symbol name = dim_name(s, dim)) {
    if (auto extent = find_extent(s, outside, name)) return *extent;
    if (find_definition(outside, name)) return elaborate_index(s, outside, dim.extent);
    if (actual) scope.extents[name] = {actual, dim.span};
    return actual;
  }
  std::set<Symbol> fresh;
  for (Symbol name : free_names(s.ast, dim.extent)) {
    if (!known(name)) fresh.insert(name);
  }
  if (fresh.empty()) return elaborate_index(s, outside, dim.extent);
  if (fresh.size() > 1 || !actual) {
    s.diags.error(Code::E0405, "extent has more than one unknown name").primary(dim.span, "");
    return {};
  }
  Symbol name = *fresh.begin();
  CoreId unknown = placeholder(s);
  scope.extents[name] = {unknown, dim.span};
  CoreId value = elaborate_index(s, outside, dim.extent);
  scope.extents.erase(name);
  if (!value) return {};
  CoreId solution = solve_for(s, unknown, value, actual, dim.span);
  if (!solution) return {};
  scope.extents[name] = {solution, dim.span};
  return actual;
}

bool annotate(Sema& s, Env& env, Scope& scope, std::vector<core::Coord>& coords, ast::TypeId type,
              Span value, const std::string& what) {
  const std::vector<ast::Dim>* dims = dims_of(s, type);
  size_t rank = dims ? dims->size() : 0;
  Span type_span = s.ast[type].span;
  if (rank != coords.size()) {
    s.diags
        .error(Code::E0405, fmt::format("{} has {} coordinate{}, its type has {}", what,
                                        coords.size(), coords.size() == 1 ? "" : "s", rank))
        .primary(type_span, "")
        .label(value, "over " + show_coords(s, coords));
    return false;
  }
  for (size_t i = 0; i < rank; ++i) {
    const ast::Dim& dim = (*dims)[i];
    Symbol name = dim_name(s, dim);
    if (name && coords[i].name && name != coords[i].name) {
      auto& d = s.diags.error(Code::E0405, fmt::format("coordinate {} of {} is {}, not {}", i, what,
                                                       quoted(coords[i].name), quoted(name)));
      d.primary(dim.span, "").label(value, "over " + show_coords(s, coords));
      d.help("a type names coordinates by position; rename with `as`");
      return false;
    }
    CoreId extent = dim_extent(s, env, scope, dim, coords[i].extent);
    if (!extent) return false;
    switch (equal(s, extent, coords[i].extent)) {
      case Truth::Yes: break;
      case Truth::No:
        s.diags
            .error(Code::E0405,
                   fmt::format("coordinate {} of {} has extent {}, its type says {}",
                               coords[i].name ? quoted(coords[i].name) : std::to_string(i), what,
                               show(s, resolve(s, coords[i].extent)), show(s, resolve(s, extent))))
            .primary(dim.span, "extent " + show(s, resolve(s, extent)))
            .label(value, "extent " + show(s, resolve(s, coords[i].extent)));
        return false;
      case Truth::Open:
        constrain(s, core::apply(s.m, core::Op::Eq, {extent, coords[i].extent}),
                  fmt::format("coordinate {} of {} must have the extent {} of its type", i, what,
                              show(s, extent)),
                  dim.span, value);
    }
    if (name && !coords[i].name) coords[i].name = name;
  }
  return true;
}

}  // namespace ein::sema

// Program inputs: `let x: [f32; b, in];`. Shape names become params, shared by all inputs.
#include <fmt/format.h>

#include <algorithm>

#include "sema/sema.h"

namespace ein::sema {
namespace {

CoreId new_param(Sema& s, Symbol name, FamilyId source, size_t axis) {
  ParamId p = s.m.params.add({name, source, static_cast<uint32_t>(axis)});
  return core::param(s.m, p);
}

// A value of the program that a dimension may name: a constant, or a scalar integer input.
bool constant_in_scope(Sema& s, Scope& scope, Symbol name) {
  auto it = scope.values.find(name);
  if (it == scope.values.end()) return false;
  if (!it->second->input) return true;
  const auto* let = std::get_if<ast::Let>(&s.ast[it->second->clauses[0]].node);
  const auto* type =
      let && let->type ? std::get_if<ast::NamedType>(&s.ast[let->type].node) : nullptr;
  auto element = type ? scalar_type(type->name.symbol) : std::nullopt;
  return element && is_int(*element);
}

}  // namespace

void declare_inputs(Sema& s, Scope& scope) {
  // Names alone in a dimension first, so that arithmetic on them is known afterwards.
  for (Definition& d : scope.definitions) {
    if (!d.input || d.state != Definition::State::Todo) continue;
    const auto& let = std::get<ast::Let>(s.ast[d.clauses[0]].node);
    auto type = element_type(s, let.type);
    d.state = Definition::State::Bad;
    if (let.has_slots) {
      s.diags.error(Code::E0405, "an input has no index on the left")
          .primary(d.name.span, "")
          .help("its type names the coordinates: `let x: [f32; b, in];`");
      continue;
    }
    if (!type) continue;
    const auto* shape = dims_of(s, let.type);
    if (shape && too_many_indices(s, shape->size(), s.ast[let.type].span)) continue;
    auto open = [](const ast::Dim& dim) {
      return dim.kind == ast::Dim::Kind::Pack || dim.kind == ast::Dim::Kind::AnyRank;
    };
    if (shape && std::any_of(shape->begin(), shape->end(), open)) {
      unsupported(
          s, s.ast[let.type].span, "inputs of unknown rank",
          "write one name or `?` per coordinate: `let " + text(d.name.symbol) + ": [f32; b, ?];`");
      continue;
    }
    core::Family f;
    f.name = d.name.symbol;
    f.kind = core::Family::Kind::Input;
    f.dtype = *type;
    f.span = d.name.span;
    const auto* dims = dims_of(s, let.type);
    if (dims) f.coords.resize(dims->size());
    d.family = s.m.families.add(std::move(f));
    s.owner[d.family] = &d;
    d.state = Definition::State::Header;
    for (size_t i = 0; dims && i < dims->size(); ++i) {
      const ast::Dim& dim = (*dims)[i];
      core::Coord& coord = s.m.families[d.family].coords[i];
      coord.name = dim_name(s, dim);
      if (dim.kind == ast::Dim::Kind::Unknown) coord.extent = new_param(s, {}, d.family, i);
      if (!coord.name || constant_in_scope(s, scope, coord.name)) continue;
      auto [it, fresh] = scope.extents.try_emplace(coord.name);
      if (fresh) it->second = {new_param(s, coord.name, d.family, i), dim.span};
      coord.extent = it->second.extent;
    }
  }
  for (Definition& d : scope.definitions) {
    if (!d.input || d.state != Definition::State::Header) continue;
    const auto& let = std::get<ast::Let>(s.ast[d.clauses[0]].node);
    const auto* dims = dims_of(s, let.type);
    d.state = Definition::State::Done;
    for (size_t i = 0; dims && i < dims->size(); ++i) {
      core::Coord& coord = s.m.families[d.family].coords[i];
      if (coord.extent) continue;
      const ast::Dim& dim = (*dims)[i];
      bool known = true;  // n + 1 with a new n is solved for n from the actual extent
      for (Symbol name : free_names(s.ast, dim.extent)) {
        known &= scope.extents.count(name) > 0 || constant_in_scope(s, scope, name);
      }
      CoreId actual = known ? CoreId{} : new_param(s, {}, d.family, i);
      coord.extent = dim_extent(s, scope.env, scope, dim, actual);
      if (!coord.extent) {
        coord.extent = core::int_lit(s.m, 0);
        d.state = Definition::State::Bad;
        break;
      }
      if (auto c = core::const_int(s.m, coord.extent); c && *c < 0) {
        s.diags.error(Code::E0405, fmt::format("extent {} is negative", *c)).primary(dim.span, "");
        d.state = Definition::State::Bad;
      }
    }
  }
}

}  // namespace ein::sema

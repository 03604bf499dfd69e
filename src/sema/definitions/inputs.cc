// Program inputs: `let x: [f32; b, in];`. Shape names become params, shared by all inputs; a pack
// or `*` has the rank of the file that the input comes from.
#include <fmt/format.h>

#include <algorithm>

#include "sema/definitions/definitions.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/state/definition_state.h"
#include "sema/state/name_state.h"
#include "sema/state/range_state.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

CoreId new_param(Sema& s, Symbol name, FamilyId source, size_t axis) {
  ParamId p = s.m.params.add({name, source, static_cast<uint32_t>(axis)});
  return core::param(s.m, p);
}

// One coordinate of an input, as written or as its file says.
struct Axis {
  const ast::Dim* dim = nullptr;
  Symbol pack;        // its name, when it is one of a pack's
  bool open = false;  // no name and no extent: `?`, or one of `*`
};
// The coordinates that packs of the inputs' types stand for.
using Packs = std::map<Symbol, std::vector<Symbol>>;

bool is_open(const ast::Dim& dim) {
  return dim.kind == ast::Dim::Kind::Pack || dim.kind == ast::Dim::Kind::AnyRank;
}

// Names for the coordinates of a pack, different from all names in the file.
std::vector<Symbol> pack_names(const Sema& s, const Scope& scope, Symbol pack, size_t rank) {
  std::vector<Symbol> out;
  for (int n = 0; out.size() < rank; ++n) {
    Symbol name = intern(text(pack) + "_" + std::to_string(n));
    if (!s.names.reserved.count(name) && !scope.extents.count(name)) out.push_back(name);
  }
  return out;
}

// Every dimension of a type with its packs and `*` at the rank of the file; nothing after an error.
std::optional<std::vector<Axis>> expand(Sema& s, Scope& scope, const Definition& d,
                                        ast::TypeId type, Packs& packs) {
  std::vector<Axis> out;
  const auto* dims = dims_of(s.ast, type);
  if (!dims) return out;
  const std::string name = text(d.name.symbol);
  size_t fixed = 0;
  const ast::Dim* unknown = nullptr;
  for (const ast::Dim& dim : *dims) {
    auto pack = packs.find(dim.name.symbol);
    if (!is_open(dim)) {
      ++fixed;
    } else if (dim.kind == ast::Dim::Kind::Pack && pack != packs.end()) {
      fixed += pack->second.size();
    } else if (unknown) {
      unsupported(s, dim.span, "two packs of unknown length in one input",
                  "write one name or `?` per coordinate for one of them");
      return std::nullopt;
    } else {
      unknown = &dim;
    }
  }
  auto given = s.inputs.find(name);
  if (unknown && given == s.inputs.end()) {
    s.diags.error(Code::E0407, fmt::format("the rank of the input {} is not known", quoted(name)))
        .primary(unknown->span, "can be any number of coordinates")
        .note("the rank is read from the input's file before the program is checked")
        .help(fmt::format("give the file with `--in {}=FILE`, or write one name or `?` per "
                          "coordinate: `let {}: [f32; b, ?];`",
                          name, name));
    return std::nullopt;
  }
  size_t rank = unknown ? given->second.size() : fixed;
  if (rank < fixed) {
    s.diags
        .error(Code::E0405, fmt::format("the file of {} has {} coordinate{}, but its type has {}",
                                        quoted(name), rank, rank == 1 ? "" : "s", fixed))
        .primary(s.ast[type].span, "");
    return std::nullopt;
  }
  for (const ast::Dim& dim : *dims) {
    if (!is_open(dim)) {
      out.push_back({&dim, {}, dim.kind == ast::Dim::Kind::Unknown});
      continue;
    }
    if (dim.kind == ast::Dim::Kind::AnyRank) {
      out.insert(out.end(), rank - fixed, Axis{&dim, {}, true});
      continue;
    }
    auto [pack, fresh] = packs.try_emplace(dim.name.symbol);
    if (fresh) pack->second = pack_names(s, scope, dim.name.symbol, rank - fixed);
    for (Symbol coordinate : pack->second) out.push_back({&dim, coordinate, false});
  }
  return out;
}

// A value of the program that a dimension may name: a constant, or a scalar integer input.
bool constant_in_scope(Sema& s, Scope& scope, Symbol name) {
  auto it = scope.values.find(name);
  if (it == scope.values.end()) return false;
  if (!it->second->input) return true;
  const auto* let = std::get_if<ast::Let>(&s.ast[it->second->clauses[0]].node);
  if (!let || !let->type || dims_of(s.ast, let->type)) return false;
  auto type = written_type(s.ast, let->type);
  return type && is_int(*type);
}

}  // namespace

void declare_inputs(Sema& s, Scope& scope) {
  Packs packs;
  std::map<const Definition*, std::vector<Axis>> expanded;
  // The parts of a record are inputs of their own; they are added at the end.
  for (size_t i = 0; i < scope.definitions.size(); ++i) {
    Definition& d = scope.definitions[i];
    if (!d.input || d.state != Definition::State::Todo || d.whole) continue;
    make_leaves(s, d);
    if (!d.leaves.empty()) d.state = Definition::State::Done;
  }
  // Names alone in a dimension first, so that arithmetic on them is known afterwards.
  for (Definition& d : scope.definitions) {
    if (!d.input || d.state != Definition::State::Todo) continue;
    const auto& let = std::get<ast::Let>(s.ast[d.clauses[0]].node);
    ast::TypeId written = type_of(s.ast, d);
    auto type = element_type(s, written);
    d.state = Definition::State::Bad;
    if (let.has_slots) {
      s.diags.error(Code::E0405, "an input cannot have an index on the left")
          .primary(d.name.span, "")
          .help("its type names the coordinates: `let x: [f32; b, in];`");
      continue;
    }
    if (!type) continue;
    auto axes = expand(s, scope, d, written, packs);
    if (!axes || too_many_indices(s, axes->size(), s.ast[written].span)) continue;
    core::Family f;
    f.name = d.name.symbol;
    if (d.whole) {
      f.path = text(d.name.symbol);
      f.name = fresh_family_name(s.names, as_suffix(f.path));
      f.member = file_parts(s.ast, type_of(s.ast, *d.whole))[d.leaf].name;
    }
    f.kind = core::Family::Kind::Input;
    f.dtype = *type;
    f.span = d.name.span;
    f.coords.resize(axes->size());
    d.family = s.m.families.add(std::move(f));
    s.definitions.owner[d.family] = &d;
    d.state = Definition::State::Header;
    for (size_t i = 0; i < axes->size(); ++i) {
      const ast::Dim& dim = *(*axes)[i].dim;
      core::Coord& coord = s.m.families[d.family].coords[i];
      coord.name = (*axes)[i].pack ? (*axes)[i].pack : dim_name(s.ast, dim);
      if ((*axes)[i].open) coord.extent = new_param(s, {}, d.family, i);
      if (!coord.name || constant_in_scope(s, scope, coord.name)) continue;
      auto [it, fresh] = scope.extents.try_emplace(coord.name);
      if (fresh) it->second = {new_param(s, coord.name, d.family, i), dim.span};
      coord.extent = it->second.extent;
    }
    expanded[&d] = std::move(*axes);
  }
  // By number: what an extent reads may bring definitions along.
  for (size_t k = 0; k < scope.definitions.size(); ++k) {
    Definition& d = scope.definitions[k];
    if (!d.input || d.state != Definition::State::Header) continue;
    const std::vector<Axis>& axes = expanded.at(&d);
    d.state = Definition::State::Done;
    for (size_t i = 0; i < axes.size(); ++i) {
      core::Coord& coord = s.m.families[d.family].coords[i];
      if (coord.extent) continue;
      const ast::Dim& dim = *axes[i].dim;
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
        s.diags.error(Code::E0405, fmt::format("the extent {} is negative", *c))
            .primary(dim.span, "");
        d.state = Definition::State::Bad;
      }
    }
  }
}

}  // namespace ein::sema

// Matching a call against a signature: bracket arguments first, then packs around the anchors, then
// everything by name and extent (decisions.md, 4).
#include <fmt/format.h>

#include <algorithm>

#include "sema/calls/coords.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/ranges/ranges.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

enum class Fit : uint8_t { Ok, Later, Bad };

std::vector<std::string> coord_names(const std::vector<core::Coord>& coords) {
  std::vector<std::string> out;
  for (const core::Coord& c : coords) {
    if (c.name) out.push_back(text(c.name));
  }
  return out;
}

// The names that an argument without names needs, in the order of the parameter's type.
std::string names_by_type(const Sema& s, const Signature& sig, const Argument& part) {
  const Value& arg = *part.value;
  const auto* dims = part.type ? dims_of(s.ast, part.type) : nullptr;
  std::string left;
  size_t at = 0;
  auto add = [&](const std::string& name) {
    left += (left.empty() ? "" : ", ") + (name.empty() ? fmt::format("i{}", at) : name);
    ++at;
  };
  size_t single = 0;
  for (size_t k = 0; dims && k < dims->size(); ++k) {
    single += (*dims)[k].kind != ast::Dim::Kind::Pack;
  }
  bool filled = false;  // the first pack takes what the others leave
  for (size_t k = 0; dims && k < dims->size(); ++k) {
    const ast::Dim& dim = (*dims)[k];
    if (dim.kind == ast::Dim::Kind::Pack) {
      for (size_t n = filled ? 0 : arg.coords.size() - std::min(single, arg.coords.size()); n > 0;
           --n) {
        add("");
      }
      filled = true;
      continue;
    }
    auto given = sig.given.find(dim_name(s.ast, dim));
    add(given == sig.given.end() ? "" : text(given->second.symbol));
  }
  return left;
}

// Help for a value without coordinate names, such as `raw[i, j]`: how to name them.
std::string how_to_ground(const std::string& left, const std::string& value) {
  if (value.empty()) return fmt::format("name its coordinates: `let named[{}] = …;`", left);
  return fmt::format(
      "name its coordinates: `let named[{0}] = {1}[{0}];`, or annotate it, as in `: [f32; {0}]`",
      left, value);
}

void ungrounded(Sema& s, const Signature& sig, const Argument& part, Symbol coord) {
  const Value& arg = *part.value;
  const ast::Name& given = sig.given.at(coord);
  auto& d = s.diags.error(
      Code::E0311, fmt::format("{1} has no coordinate named {0}", quoted(given.symbol), part.what));
  d.primary(given.span, "no coordinate has this name");
  d.label(arg.span, fmt::format("this has {} coordinate{} without a name", arg.coords.size(),
                                arg.coords.size() == 1 ? "" : "s"));
  FamilyId family = whole_family(s.m, arg);
  std::string value = family && !s.m[family].generated ? text(s.m[family].name) : "";
  if (!arg.scalar()) d.help(how_to_ground(names_by_type(s, sig, part), value));
}

// The names that there are, with the wanted one for the last that is missing.
std::string with_name(const std::vector<core::Coord>& coords, Symbol wanted) {
  std::string out;
  for (size_t i = coords.size(); i-- > 0;) {
    std::string name = coords[i].name ? text(coords[i].name)
                       : wanted       ? text(wanted)
                                      : fmt::format("i{}", i);
    if (!coords[i].name) wanted = {};
    out = name + (out.empty() ? "" : ", ") + out;
  }
  return out;
}

void not_found(Sema& s, const Signature& sig, const Argument& part, Symbol coord) {
  const Value& arg = *part.value;
  const ast::Name& given = sig.given.at(coord);
  std::vector<std::string> names = coord_names(arg.coords);
  if (names.empty()) return ungrounded(s, sig, part, coord);
  auto& d = s.diags.error(Code::E0305,
                          fmt::format("{} has no coordinate {}", part.what, quoted(given.symbol)));
  d.primary(given.span, "");
  d.label(arg.span, "this has coordinates " + show_coords(s, arg.coords));
  std::string near = did_you_mean(text(given.symbol), names);
  if (!suggest(d, near, given.span) && names.size() < arg.coords.size()) {
    d.help(fmt::format("`_` has no name; name the coordinates: `let named[{}] = …;`",
                       with_name(arg.coords, given.symbol)));
  }
}

// One coordinate of an argument against what its name inside already stands for.
bool unify(Sema& s, const Signature& sig, Bound& bound, const core::Coord& c, const Value& arg,
           const std::string& inside) {
  if (c.name && bound.caller && c.name != bound.caller) {
    s.diags
        .error(Code::E0314,
               fmt::format("coordinate {} of {} is {} in one argument and {} in another",
                           quoted(inside), quoted(sig.fn.name.symbol), quoted(bound.caller),
                           quoted(c.name)))
        .primary(arg.span, "coordinates " + show_coords(s, arg.coords))
        .label(bound.span, "here it is " + quoted(bound.caller))
        .help("coordinates in a call are matched by name");
    return false;
  }
  if (!bound.caller) bound.caller = c.name;
  bound.grounded |= static_cast<bool>(c.name);
  if (!bound.extent) {
    bound.extent = c.extent;
    bound.span = arg.span;
    return true;
  }
  switch (equal(s, bound.extent, c.extent)) {
    case Truth::Yes: return true;
    case Truth::No: {
      std::string name = bound.caller ? quoted(bound.caller) : quoted(inside);
      s.diags
          .error(Code::E0314,
                 fmt::format("coordinate {} has two different extents in this call", name))
          .primary(arg.span, "extent " + show(s, resolve(s, c.extent)))
          .label(bound.span, "extent " + show(s, resolve(s, bound.extent)));
      return false;
    }
    case Truth::Open:
      constrain(s, core::apply(s.m, core::Op::Eq, {bound.extent, c.extent}),
                fmt::format("coordinate {} of a call has different extents in its arguments",
                            quoted(inside)),
                bound.span, arg.span);
  }
  return true;
}

// Where the anchors of a type stand in the argument; npos where no coordinate has the name.
bool locate(Sema& s, const Signature& sig, const Argument& part, const std::vector<ast::Dim>& dims,
            std::vector<size_t>& at) {
  const Value& arg = *part.value;
  constexpr size_t npos = static_cast<size_t>(-1);
  at.assign(dims.size(), npos);
  std::optional<size_t> last;
  for (size_t i = 0; i < dims.size(); ++i) {
    auto given = sig.given.find(dim_name(s.ast, dims[i]));
    if (given == sig.given.end()) continue;
    Symbol name = given->second.symbol;
    for (size_t c = 0; c < arg.coords.size(); ++c) {
      if (arg.coords[c].name != name) continue;
      if (at[i] != npos) {
        s.diags
            .error(Code::E0305,
                   fmt::format("{} is the name of two coordinates of {}", quoted(name), part.what))
            .primary(given->second.span, "which one?")
            .label(arg.span, "this has coordinates " + show_coords(s, arg.coords));
        return false;
      }
      at[i] = c;
    }
    if (at[i] == npos) continue;
    if (last && at[i] <= at[*last]) {
      s.diags
          .error(Code::E0314,
                 fmt::format("{} comes before {} in the argument, but after it in the signature",
                             quoted(name), quoted(arg.coords[at[*last]].name)))
          .primary(arg.span, "this has coordinates " + show_coords(s, arg.coords))
          .label(s.ast[part.type].span, "the signature's order")
          .help("index the argument in the signature's order");
      return false;
    }
    last = i;
  }
  return true;
}

struct Matcher {
  Sema& s;
  Env& env;
  Scope& scope;
  Signature& sig;
  const Argument& part;
  const std::vector<ast::Dim>& dims;
  Value& arg;
  std::vector<core::Coord> inside;

  const std::vector<Bound>* known_pack(const ast::Dim& d) const {
    auto it = sig.packs.find(d.name.symbol);
    return it == sig.packs.end() ? nullptr : &it->second;
  }

  bool wrong_rank(Span span) {
    s.diags.error(Code::E0314, fmt::format("{} does not match its type", part.what))
        .primary(arg.span, "this has coordinates " + show_coords(s, arg.coords))
        .label(span, "its type");
    return false;
  }

  bool single(const ast::Dim& dim, core::Coord& c) {
    Symbol name = dim_name(s.ast, dim);
    auto given = sig.given.find(name);
    if (given != sig.given.end()) {
      if (c.name && c.name != given->second.symbol) {
        not_found(s, sig, part, name);
        return false;
      }
      Bound& bound = sig.singles.at(name);
      if (!unify(s, sig, bound, c, arg, text(name))) return false;
      scope.extents[name] = {bound.extent, dim.span};
      c.name = name;
      return true;
    }
    Symbol caller = c.name;
    std::vector<core::Coord> one{{{}, c.extent}};
    Env type_env = env;
    type_env.frame = &scope.frame;
    CoreId extent = dim_extent(s, type_env, scope, dim, c.extent);
    if (!extent) return false;
    if (equal(s, extent, c.extent) == Truth::No) {
      s.diags
          .error(Code::E0405,
                 fmt::format("a coordinate of {} has extent {}, but its type says {}", part.what,
                             show(s, resolve(s, c.extent)), show(s, resolve(s, extent))))
          .primary(arg.span, "this has coordinates " + show_coords(s, arg.coords))
          .label(dim.span, "extent " + show(s, resolve(s, extent)));
      return false;
    }
    if (equal(s, extent, c.extent) == Truth::Open) {
      constrain(s, core::apply(s.m, core::Op::Eq, {extent, c.extent}),
                fmt::format("a coordinate of {} must have extent {}, as its type says", part.what,
                            show(s, extent)),
                dim.span, arg.span);
    }
    c.name = name;
    if (name) sig.back.try_emplace(name, caller);
    return true;
  }

  bool pack(const ast::Dim& dim, size_t first, size_t count) {
    Symbol name = dim.name.symbol;
    auto [it, fresh] = sig.packs.try_emplace(name);
    for (size_t i = 0; i < count; ++i) {
      core::Coord& c = inside[first + i];
      if (fresh) {
        Bound b{{}, c.name, {}, arg.span};
        b.name = fresh_coordinate(c.name, text(name), sig.taken);
        it->second.push_back(b);
      }
      if (!unify(s, sig, it->second[i], c, arg, ".." + text(name))) return false;
      c.name = it->second[i].name;
    }
    return true;
  }

  // dims[i .. j) against coordinates [from, to).
  Fit segment(size_t i, size_t j, size_t from, size_t to) {
    size_t fixed = 0, open = 0, at = i;
    for (size_t k = i; k < j; ++k) {
      const auto* known = dims[k].kind == ast::Dim::Kind::Pack ? known_pack(dims[k]) : nullptr;
      if (dims[k].kind != ast::Dim::Kind::Pack) {
        fixed++;
      } else if (known) {
        fixed += known->size();
      } else {
        open++;
        at = k;
      }
    }
    if (open > 1) return Fit::Later;
    if (to - from < fixed || (open == 0 && to - from != fixed)) {
      for (size_t k = i; k < j; ++k) {
        if (!sig.given.count(dim_name(s.ast, dims[k]))) continue;
        not_found(s, sig, part, dim_name(s.ast, dims[k]));
        return Fit::Bad;
      }
      wrong_rank(s.ast[part.type].span);
      return Fit::Bad;
    }
    size_t c = from;
    for (size_t k = i; k < j; ++k) {
      if (dims[k].kind != ast::Dim::Kind::Pack) {
        if (!single(dims[k], inside[c++])) return Fit::Bad;
        continue;
      }
      const auto* known = known_pack(dims[k]);
      size_t count = k == at && !known ? to - from - fixed : known->size();
      if (!pack(dims[k], c, count)) return Fit::Bad;
      c += count;
    }
    return Fit::Ok;
  }

  Fit run() {
    std::vector<size_t> at;
    if (!locate(s, sig, part, dims, at)) return Fit::Bad;
    constexpr size_t npos = static_cast<size_t>(-1);
    inside = arg.coords;
    // First see whether every segment can be fitted, then fit.
    for (bool dry : {true, false}) {
      size_t i = 0, from = 0;
      for (size_t k = 0; k <= dims.size(); ++k) {
        if (k < dims.size() && at[k] == npos) continue;
        size_t to = k < dims.size() ? at[k] : arg.coords.size();
        if (to < from) return wrong_rank(s.ast[part.type].span) ? Fit::Ok : Fit::Bad;
        if (dry) {
          size_t open = 0;
          for (size_t d = i; d < k; ++d) {
            open += dims[d].kind == ast::Dim::Kind::Pack && !known_pack(dims[d]);
          }
          if (open > 1) return Fit::Later;
        } else {
          Fit fit = segment(i, k, from, to);
          if (fit != Fit::Ok) return fit;
          if (k < dims.size() && !single(dims[k], inside[to])) return Fit::Bad;
        }
        i = k + 1;
        from = to + 1;
      }
    }
    arg.coords = inside;
    return Fit::Ok;
  }
};

// An argument whose packs nothing fixes.
void report_open(Sema& s, const Signature& sig, const Argument& part) {
  const Value& arg = *part.value;
  for (const ast::Dim& d : *dims_of(s.ast, part.type)) {
    auto given = sig.given.find(dim_name(s.ast, d));
    if (given == sig.given.end()) continue;
    bool here = std::any_of(arg.coords.begin(), arg.coords.end(),
                            [&](const core::Coord& c) { return c.name == given->second.symbol; });
    if (!here) return not_found(s, sig, part, d.extent ? dim_name(s.ast, d) : Symbol{});
  }
  s.diags
      .error(
          Code::E0314,
          fmt::format("the packs of {} are next to each other, so it is not known where one ends",
                      part.what))
      .primary(s.ast[part.type].span, "")
      .label(arg.span, "this has coordinates " + show_coords(s, arg.coords))
      .help("all but one of them must be determined by the brackets or other arguments");
}

}  // namespace

std::string argument_of(const ast::Fn& fn, const ast::Param& param) {
  return fmt::format("argument {} of {}", quoted(param.name.symbol), quoted(fn.name.symbol));
}

std::string field_name(const Value& v, size_t i) {
  return v.record() ? "field " + quoted(v.fields[i]) : fmt::format("field {}", i);
}

void add_arguments(const ast::Ast& ast, ast::TypeId type, Value& value, const std::string& what,
                   std::vector<Argument>& out) {
  const ast::TupleType* tuple = type ? tuple_type(ast, type) : nullptr;
  if (!tuple) {
    out.push_back({type, &value, what});
    return;
  }
  if (!fit_fields(*tuple, value)) return;  // reported when the value is fitted to its type
  for (size_t i = 0; i < value.items.size(); ++i) {
    add_arguments(ast, tuple->items[i], value.items[i], field_name(value, i) + " of " + what, out);
  }
}

std::vector<Argument> coordinate_arguments(const Sema& s, const ast::Fn& fn,
                                           std::vector<Value>& args) {
  std::vector<Argument> out;
  for (size_t i = 0; i < args.size(); ++i) {
    add_arguments(s.ast, fn.params[i].type, args[i], argument_of(fn, fn.params[i]), out);
  }
  std::erase_if(out, [&](const Argument& a) {
    return is_nothing(*a.value) || !uses_coordinates(s, fn, a.type);
  });
  return out;
}

bool uses_coordinates(const Sema& s, const ast::Fn& fn, ast::TypeId type) {
  const auto* dims = type ? dims_of(s.ast, type) : nullptr;
  if (!dims) return false;
  for (const ast::Dim& d : *dims) {
    if (d.kind == ast::Dim::Kind::Pack) return true;
    Symbol name = dim_name(s.ast, d);
    for (const ast::FnCoord& c : fn.coords) {
      if (name && c.name.symbol == name) return true;
    }
  }
  return false;
}

bool bind_brackets(Sema& s, Signature& sig, const Bracketing* brackets, Span call) {
  const ast::Fn& fn = sig.fn;
  size_t singles = 0;
  for (const ast::FnCoord& c : fn.coords) singles += !c.pack;
  size_t got = brackets ? brackets->arguments.size() : 0;
  if (got != fn.coords.size() && got != singles) {
    auto& d = s.diags.error(Code::E0312, fmt::format("{} takes {} coordinate{} in brackets, not {}",
                                                     quoted(fn.name.symbol), fn.coords.size(),
                                                     fn.coords.size() == 1 ? "" : "s", got));
    d.primary(brackets ? brackets->span : call, got == 0 ? "no brackets" : "");
    d.label(fn.name.span, "declared here");
    if (got == 0)
      d.help(
          fmt::format("write `{}[{}](…)`", text(fn.name.symbol), text(fn.coords[0].name.symbol)));
    return false;
  }
  std::set<Symbol> used;
  size_t next = 0;
  for (const ast::FnCoord& c : fn.coords) {
    if (c.pack && got == singles && got != fn.coords.size()) continue;  // inferred
    const BracketArgument& a = brackets->arguments[next++];
    if (a.several && !c.pack) {
      s.diags
          .error(Code::E0312,
                 fmt::format("a group is given for {} of {}, which is a single coordinate",
                             quoted(c.name.symbol), quoted(fn.name.symbol)))
          .primary(a.span, "several coordinates")
          .label(c.name.span, "one coordinate")
          .help("only a pack parameter, such as `..s`, takes a group");
      return false;
    }
    for (const ast::Name& n : a.names) {
      if (used.insert(n.symbol).second) continue;
      s.diags
          .error(Code::E0312,
                 fmt::format("{} is given twice to {}", quoted(n.symbol), quoted(fn.name.symbol)))
          .primary(n.span, "");
      return false;
    }
    if (!c.pack) {
      sig.given[c.name.symbol] = a.names[0];
      sig.singles[c.name.symbol] = {c.name.symbol, a.names[0].symbol, {}, a.span};
      sig.back[c.name.symbol] = a.names[0].symbol;
      continue;
    }
    std::vector<Bound>& pack = sig.packs[c.name.symbol];
    for (const ast::Name& n : a.names) {
      pack.push_back(
          {fresh_coordinate(n.symbol, text(c.name.symbol), sig.taken), n.symbol, {}, n.span});
    }
  }
  return true;
}

bool match_signature(Sema& s, Env& env, Scope& scope, Signature& sig, std::vector<Value>& args,
                     Span call) {
  const std::vector<Argument> parts = coordinate_arguments(s, sig.fn, args);
  std::vector<const Argument*> todo;
  for (const Argument& part : parts) todo.push_back(&part);
  while (!todo.empty()) {
    std::vector<const Argument*> later;
    for (const Argument* part : todo) {
      Matcher m{s, env, scope, sig, *part, *dims_of(s.ast, part->type), *part->value, {}};
      Fit fit = m.run();
      if (fit == Fit::Bad) return false;
      if (fit == Fit::Later) later.push_back(part);
    }
    if (later.size() == todo.size()) {
      report_open(s, sig, *later[0]);
      return false;
    }
    todo = std::move(later);
  }
  for (const auto& [name, bound] : sig.singles) {
    if (bound.extent && !bound.grounded) {  // no argument has a coordinate of this name
      for (const Argument& part : parts) {
        for (const ast::Dim& dim : *dims_of(s.ast, part.type)) {
          if (dim_name(s.ast, dim) != name) continue;
          ungrounded(s, sig, part, name);
          return false;
        }
      }
    }
    if (bound.extent) continue;
    s.diags
        .error(Code::E0312, fmt::format("no parameter of {} has coordinate {}",
                                        quoted(sig.fn.name.symbol), quoted(name)))
        .primary(call, "called here")
        .label(sig.fn.name.span, "declared here");
    return false;
  }
  for (auto& [name, bounds] : sig.packs) {
    Pack pack{name, {}, sig.fn.name.span};
    for (const Bound& b : bounds) {
      if (!b.extent) {
        s.diags
            .error(Code::E0305, fmt::format("no argument of {} has coordinate {}",
                                            quoted(sig.fn.name.symbol), quoted(b.caller)))
            .primary(b.span, "");
        return false;
      }
      pack.coords.push_back({b.name, b.caller, b.extent});
      sig.back[b.name] = b.caller;
      scope.extents[b.name] = {b.extent, {}};
    }
    scope.frame.packs.push_back(std::move(pack));
  }
  return true;
}

bool result_coords(Sema& s, Env& env, Scope& scope, const Signature& sig, ast::TypeId type,
                   std::vector<core::Coord>& out) {
  const auto* dims = type ? dims_of(s.ast, type) : nullptr;
  if (!dims || any_rank(s.ast, type)) return true;
  Env inside = env;
  inside.frame = &scope.frame;
  auto return_only = [&](const std::string& name, Span span) {
    s.diags
        .error(Code::E0315,
               fmt::format("the return type of {} names `{}`, which comes from no parameter",
                           quoted(sig.fn.name.symbol), name))
        .primary(span, "")
        .label(sig.fn.name.span, "the function")
        .help(
            "a coordinate of the result must come from a parameter's type or from the brackets; a "
            "function that makes an array writes its extents, as in `[f32; 3, 2]`, or leaves the "
            "return type out");
    return false;
  };
  for (const ast::Dim& dim : *dims) {
    if (dim.kind == ast::Dim::Kind::Pack) {
      auto it = sig.packs.find(dim.name.symbol);
      if (it == sig.packs.end()) return return_only(".." + text(dim.name.symbol), dim.span);
      for (const Bound& b : it->second) out.push_back({b.name, b.extent});
      continue;
    }
    Symbol name = dim_name(s.ast, dim);
    core::Coord c{name, {}};
    if (auto it = sig.singles.find(name); name && it != sig.singles.end()) {
      c.extent = it->second.extent;
    } else if (dim.kind == ast::Dim::Kind::Extent) {
      for (Symbol n : free_names(s.ast, dim.extent)) {
        if (!find_extent(s, inside, n) && !value_exists(inside, n)) {
          return return_only(text(n), dim.span);
        }
      }
      c.extent = dim_extent(s, inside, scope, dim, {});
      if (!c.extent) return false;
    } else if (dim.kind == ast::Dim::Kind::AnyRank) {
      s.diags
          .error(Code::E0405, "`*` must be the only coordinate in a type: it means the whole shape")
          .primary(dim.span, "")
          .help("for any number of further coordinates use a pack, as in `[f32; ..rest, j]`");
      return false;
    }
    out.push_back(c);
  }
  return true;
}

}  // namespace ein::sema

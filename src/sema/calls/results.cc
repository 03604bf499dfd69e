// The result of a function against its return type: its names close the free coordinates of the
// last expression, and its coordinates must be those of the type.
#include <fmt/format.h>

#include <algorithm>

#include "sema/calls/coords.h"
#include "sema/ranges/ranges.h"
#include "sema/state/call_state.h"
#include "sema/state/name_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {

namespace {

// Where the name of a coordinate of the result begins: in the brackets, or in the type of a parameter.
Span named_in_signature(const Env& env, const ast::Fn& fn, Symbol name) {
  for (const ast::FnCoord& c : fn.coords) {
    if (!c.pack && c.name.symbol == name) return c.name.span;
  }
  for (const Frame* f = env.frame; f; f = f->up) {
    if (!f->scope || !f->scope->signature) continue;
    auto it = f->scope->extents.find(name);
    return it == f->scope->extents.end() ? Span{} : it->second.named;
  }
  return {};
}

}  // namespace

Value elaborate_body(Sema& s, Env& env, const ast::Fn& fn, const std::vector<core::Coord>& result) {
  s.calls.constant_along.clear();
  const auto* found = std::get_if<ast::Block>(&s[fn.body].node);
  if (!found || !found->value || result.empty()) return elaborate(s, env, fn.body);
  const ast::Block& block = *found;
  Scope& scope = open_block(s, env, block);
  if (scope.broken) return {};
  Env inside = scope.env;
  std::vector<Symbol> spelled = lone_names(s, inside, block.value);
  auto closes = [&](const core::Coord& c) {
    return c.name && std::find(spelled.begin(), spelled.end(), c.name) != spelled.end();
  };
  if (std::none_of(result.begin(), result.end(), closes)) return elaborate(s, inside, block.value);
  if (too_many_indices(s, inside.depth + result.size(), s.ast[fn.result].span)) return {};
  Frame frame;
  frame.up = inside.frame;
  std::vector<Index*> indices;
  for (const core::Coord& c : result) {
    uint32_t slot = inside.depth++;
    if (c.extent) inside.binders.push_back({c.name, {core::int_lit(s.m, 0), c.extent}, c.extent});
    indices.push_back(nullptr);
    if (!c.name || !c.extent) continue;
    Index& index = s.names.indices.emplace_back();
    index.name = c.name;
    index.span = s.ast[fn.result].span;
    index.named = named_in_signature(env, fn, c.name);
    index.slot = slot;
    index.left = true;
    index.range = {core::int_lit(s.m, 0), c.extent};
    indices.back() = &index;
    frame.indices.push_back(&index);
  }
  inside.frame = &frame;
  Value v = elaborate(s, inside, block.value);
  if (v.poison()) return v;
  v = as_data(s, inside, std::move(v));
  if (v.poison()) return v;
  v = moved(s.m, v, inside.depth);
  // Coordinates that the value still carries become, in order, the return coordinates whose names
  // do not occur in it.
  std::vector<size_t> open;
  for (size_t i = 0; i < result.size(); ++i) {
    if (!indices[i] || !indices[i]->used) open.push_back(i);
  }
  bool fits = v.coords.empty() || v.coords.size() == open.size();
  for (size_t k = 0; fits && k < v.coords.size(); ++k) {
    const core::Coord& c = v.coords[k];
    bool named = c.name && std::any_of(result.begin(), result.end(),
                                       [&](const core::Coord& r) { return r.name == c.name; });
    fits = !named || result[open[k]].name == c.name;
    if (fits && result[open[k]].extent)
      fits = equal(s, result[open[k]].extent, c.extent) != Truth::No;
  }
  if (!fits) {
    s.diags
        .error(Code::E0405, fmt::format("the result of {} still has coordinates {}",
                                        quoted(fn.name.symbol), show_coords(s, v.coords)))
        .primary(v.span, "in addition to those written out")
        .label(s.ast[fn.result].span, "the return type")
        .help("write every coordinate of the return type");
    return {};
  }
  std::vector<CoreId> with(inside.depth + v.coords.size());
  for (size_t k = 0; k < v.coords.size(); ++k) {
    with[inside.depth + k] = core::slot(s.m, env.depth + static_cast<uint32_t>(open[k]));
  }
  if (!v.coords.empty()) v.body = core::substitute(s.m, v.body, with, inside.depth);
  s.calls.constant_along.clear();
  for (size_t i : open) {
    if (v.coords.empty()) s.calls.constant_along.push_back(result[i].name);
  }
  std::vector<core::Coord> coords = result;
  for (size_t k = 0; k < v.coords.size(); ++k) {
    if (!coords[open[k]].extent) coords[open[k]].extent = v.coords[k].extent;
  }
  v.coords = std::move(coords);
  v.depth = env.depth;
  return v;
}

bool check_result_coords(Sema& s, const ast::Fn& fn, ast::TypeId written, Value& v,
                         const std::vector<core::Coord>& result) {
  std::string what = fmt::format("the result of {}", quoted(fn.name.symbol));
  Span type = s.ast[written].span;
  if (v.coords.size() != result.size()) {
    s.diags
        .error(Code::E0405,
               fmt::format("{} has {} coordinate{}, but its type has {}", what, v.coords.size(),
                           v.coords.size() == 1 ? "" : "s", result.size()))
        .primary(type, "coordinates " + show_coords(s, result))
        .label(v.span, "coordinates " + show_coords(s, v.coords));
    return false;
  }
  for (size_t i = 0; i < result.size(); ++i) {
    core::Coord& c = v.coords[i];
    bool elsewhere = c.name && std::any_of(result.begin(), result.end(),
                                           [&](const core::Coord& r) { return r.name == c.name; });
    if (elsewhere && c.name != result[i].name) {
      s.diags
          .error(Code::E0405,
                 fmt::format("coordinate {} of {} is {}, but its type says {}", i, what,
                             quoted(c.name), result[i].name ? quoted(result[i].name) : "another"))
          .primary(type, "coordinates " + show_coords(s, result))
          .label(v.span, "coordinates " + show_coords(s, v.coords))
          .help("index the value in the order of the return type");
      return false;
    }
    if (result[i].extent) {
      switch (equal(s, result[i].extent, c.extent)) {
        case Truth::Yes: break;
        case Truth::No:
          s.diags
              .error(
                  Code::E0405,
                  fmt::format("coordinate {} of {} has extent {}, but its type says {}",
                              result[i].name ? quoted(result[i].name) : std::to_string(i), what,
                              show(s, resolve(s, c.extent)), show(s, resolve(s, result[i].extent))))
              .primary(type, "extent " + show(s, resolve(s, result[i].extent)))
              .label(v.span, "extent " + show(s, resolve(s, c.extent)));
          return false;
        case Truth::Open:
          constrain(s, core::apply(s.m, core::Op::Eq, {result[i].extent, c.extent}),
                    fmt::format("coordinate {} of {} must have extent {}, as its type says", i,
                                what, show(s, result[i].extent)),
                    type, v.span);
      }
    }
    c.name = result[i].name;
  }
  return true;
}

}  // namespace ein::sema

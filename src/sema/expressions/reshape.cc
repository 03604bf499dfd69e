// reshape(x, 2, 3): the cells of an array in the same row-major order, along other coordinates.
//
// A function of the library could not take any number of coordinates apart. Coordinates that are
// the same on both sides, at the front and at the back, stay as they are; only those between them
// are counted through.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sema/expressions/expressions.h"
#include "sema/ranges/ranges.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

struct NewExtents {
  std::vector<CoreId> extents;
  std::vector<Span> spans;
  std::optional<size_t> open;  // the one written as -1
};

bool add_extent(Sema& s, const Env& env, const Value& v, NewExtents& out) {
  if (v.poison()) return false;
  if (v.kind == Value::Kind::Tuple) {
    for (const Value& item : v.items) {
      if (!add_extent(s, env, item, out)) return false;
    }
    return true;
  }
  CoreId e = as_index(s, env, v, {});
  if (!e) return false;
  e = resolve(s, as_extent(s, e));
  auto refuse = [&](std::string why, const char* help) {
    s.diags.error(Code::E0404, std::move(why)).primary(v.span, "").help(help);
    return false;
  };
  auto known = core::const_int(s.m, e);
  if (known == -1 && out.open) {
    return refuse("only one extent of `reshape` can be left open with -1", "write the other one");
  }
  if (known == -1) out.open = out.extents.size();
  if (known && *known < -1) {
    return refuse(fmt::format("an extent cannot be {}", *known),
                  "-1 leaves an extent open: it is what the others leave");
  }
  if (!known && !closed(s.m, e)) {
    return refuse("an extent of `reshape` depends on data",
                  "extents must be known before the program runs: use literals, extents of inputs, "
                  "or a scalar integer input");
  }
  out.extents.push_back(e);
  out.spans.push_back(v.span);
  return true;
}

CoreId product(core::Module& m, const std::vector<CoreId>& of, size_t from, size_t to) {
  CoreId out = core::int_lit(m, 1);
  for (size_t k = from; k < to; ++k) out = core::mul(m, out, of[k]);
  return out;
}

std::string shown(Sema& s, const std::vector<CoreId>& extents) {
  std::vector<std::string> out;
  for (CoreId e : extents) out.push_back(show(s, e));
  return fmt::format("[{}]", fmt::join(out, ", "));
}

// Finds the extent that is left open, and checks that there are as many cells as before.
bool same_cells(Sema& s, const Value& v, const std::vector<CoreId>& from, NewExtents& to,
                Span span) {
  core::Module& m = s.m;
  CoreId zero = core::int_lit(m, 0);
  CoreId all = product(m, from, 0, from.size());
  if (to.open) {
    to.extents[*to.open] = core::int_lit(m, 1);
    CoreId rest = product(m, to.extents, 0, to.extents.size());
    auto known = core::const_int(m, rest), cells = core::const_int(m, all);
    if (known == 0 || (known && cells && *cells % *known != 0)) {
      s.diags
          .error(Code::E0404,
                 fmt::format("{} cells cannot be divided by {}", show(s, all), show(s, rest)))
          .primary(to.spans[*to.open], "no extent fits here")
          .label(v.span, "this has the extents " + shown(s, from));
      return false;
    }
    if (!known) {
      constrain(s, core::apply(m, core::Op::Lt, {zero, rest}),
                fmt::format("`reshape`: {} must be positive", show(s, rest)), span, v.span);
    }
    CoreId left = core::apply(m, core::Op::Mod, {all, rest});
    constrain(s, core::apply(m, core::Op::Eq, {left, zero}),
              fmt::format("`reshape`: {} must divide {}", show(s, rest), show(s, all)), span,
              v.span);
    to.extents[*to.open] = core::apply(m, core::Op::Div, {all, rest});
    return true;
  }
  CoreId cells = product(m, to.extents, 0, to.extents.size());
  Truth same = equal(s, all, cells);
  if (same == Truth::No) {
    s.diags
        .error(Code::E0404,
               fmt::format("`reshape` cannot make {} cells into {}", show(s, all), show(s, cells)))
        .primary(span, "the new extents are " + shown(s, to.extents))
        .label(v.span, "this has the extents " + shown(s, from))
        .help("the products of the extents must be equal; -1 leaves one of them open");
    return false;
  }
  if (same == Truth::Open) {
    constrain(s, core::apply(m, core::Op::Eq, {all, cells}),
              fmt::format("`reshape`: {} and {} must be equal", show(s, all), show(s, cells)), span,
              v.span);
  }
  return true;
}

}  // namespace

Value elaborate_reshape(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span) {
  if (!b.takes(call.args.size())) {
    s.diags.error(Code::E0205, "`reshape` takes an array and its new extents")
        .primary(span, "")
        .help("write `reshape(x, 2, 3)`");
    return {};
  }
  Value v = elaborate(s, env, call.args[0]);
  if (v.poison() || reject_non_data(s, v)) return {};
  v = as_data(s, env, std::move(v));
  NewExtents to;
  for (size_t k = 1; k < call.args.size(); ++k) {
    if (!add_extent(s, env, elaborate(s, env, call.args[k]), to)) return {};
  }
  if (v.poison()) return {};
  std::vector<CoreId> from;
  for (const core::Coord& c : v.coords) from.push_back(resolve(s, c.extent));
  if (!same_cells(s, v, from, to, span)) return {};

  core::Module& m = s.m;
  auto rank = static_cast<uint32_t>(to.extents.size());
  if (too_many_indices(s, env.depth + rank, span)) return {};
  size_t front = 0, back = 0, least = std::min<size_t>(from.size(), rank);
  while (front < least && equal(s, from[front], to.extents[front]) == Truth::Yes) ++front;
  while (front + back < least &&
         equal(s, from[from.size() - 1 - back], to.extents[rank - 1 - back]) == Truth::Yes) {
    ++back;
  }
  auto slot = [&](size_t k) { return core::slot(m, env.depth + static_cast<uint32_t>(k)); };
  CoreId count = core::int_lit(m, 0);  // of the cells before this one, among those between
  for (size_t k = front; k < rank - back; ++k) {
    count = core::add(m, core::mul(m, count, to.extents[k]), slot(k));
  }
  std::vector<CoreId> at;
  for (size_t k = 0; k < from.size(); ++k) {
    size_t end = from.size() - back;
    if (k < front) {
      at.push_back(slot(k));
    } else if (k >= end) {
      at.push_back(slot(rank - from.size() + k));
    } else {
      CoreId address = count;
      CoreId inner = product(m, from, k + 1, end);
      if (core::const_int(m, inner) != 1) {
        address = core::apply(m, core::Op::Div, {address, inner});
      }
      if (k > front) address = core::apply(m, core::Op::Mod, {address, from[k]});
      at.push_back(address);
    }
  }
  Value out = v;
  out.body = cell(m, v, at, env.depth + rank);
  out.coords.clear();
  for (CoreId e : to.extents) out.coords.push_back({{}, e});
  out.depth = env.depth;
  out.span = span;
  return out;
}

}  // namespace ein::sema

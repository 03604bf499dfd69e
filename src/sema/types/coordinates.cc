// Coordinates of operands that meet.
#include "sema/ranges/ranges.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

// `let C[i, j] = …` with every operand spelled out, for the help of a failed pointwise operation.
std::string indexed_form(const Sema& s, const Value& v) {
  FamilyId family = whole_family(s.m, v);
  if (!family) return {};
  return text(s.m[family].name) + show_coords(s, v.coords);
}

}  // namespace

bool same_coords(Sema& s, const Env&, std::vector<Value*> values, Span span,
                 std::vector<core::Coord>& out) {
  const Value* first = nullptr;
  for (Value* v : values) {
    if (v->scalar()) continue;
    if (!first) {
      first = v;
      out = v->coords;
      continue;
    }
    bool fits = v->coords.size() == out.size();
    for (size_t i = 0; fits && i < out.size(); ++i) {
      const core::Coord& c = v->coords[i];
      fits = !c.name || !out[i].name || c.name == out[i].name;
      if (fits && !out[i].name) out[i].name = c.name;
    }
    if (!fits) {
      auto& d = s.diags.error(Code::E0404, "operands have different coordinates");
      d.primary(span, "");
      d.label(first->span, "this has coordinates " + show_coords(s, first->coords));
      d.label(v->span, "this has coordinates " + show_coords(s, v->coords));
      d.note("whole arrays combine only if their coordinates are the same, or if one is a scalar");
      std::string a = indexed_form(s, *first), b = indexed_form(s, *v);
      d.help(a.empty() || b.empty()
                 ? "write the coordinates out in an indexed `let`"
                 : "write the indexed form, as in `let y[…] = " + a + " … " + b + ";`");
      return false;
    }
    for (size_t i = 0; i < out.size(); ++i) {
      switch (equal(s, out[i].extent, v->coords[i].extent)) {
        case Truth::Yes: break;
        case Truth::No: {
          std::string name = out[i].name ? quoted(out[i].name) : std::to_string(i);
          s.diags.error(Code::E0404, "coordinate " + name + " has two different extents")
              .primary(v->span, "extent " + show(s, resolve(s, v->coords[i].extent)))
              .label(first->span, "extent " + show(s, resolve(s, out[i].extent)));
          return false;
        }
        case Truth::Open:
          constrain(s, core::apply(s.m, core::Op::Eq, {out[i].extent, v->coords[i].extent}),
                    "two operands without indices have different extents", first->span, v->span);
      }
    }
  }
  return true;
}

}  // namespace ein::sema

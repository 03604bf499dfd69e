// Values: moving them between depths, bringing operands together, families for them.
#include <fmt/format.h>

#include <numeric>

#include "base/check.h"
#include "sema/sema.h"

namespace ein::sema {
namespace {

std::vector<CoreId> slots_from(Sema& s, uint32_t first, size_t count) {
  std::vector<CoreId> out;
  for (size_t i = 0; i < count; ++i) {
    out.push_back(core::slot(s.m, first + static_cast<uint32_t>(i)));
  }
  return out;
}

// `let C[i, j] = …` with every operand spelled out, for the help of a failed pointwise operation.
std::string indexed_form(const Sema& s, const Value& v) {
  FamilyId family = whole_family(s, v);
  if (!family) return {};
  return text(s.m[family].name) + show_coords(s, v.coords);
}

}  // namespace

Value data(const Env& env, DType type, CoreId body, Span span) {
  Value v;
  v.kind = Value::Kind::Data;
  v.type = type;
  v.body = body;
  v.depth = env.depth;
  v.span = span;
  return v;
}

Value untyped_int(const Env& env, CoreId body, Span span) {
  Value v = data(env, DType::I64, body, span);
  v.typing = Typing::Int;
  return v;
}

CoreId cell(Sema& s, const Value& v, const std::vector<CoreId>& at, uint32_t depth) {
  EIN_CHECK(v.kind == Value::Kind::Data && at.size() == v.coords.size(), "cell of a value");
  if (at.empty() && v.depth == depth) return v.body;
  std::vector<CoreId> with(v.depth + at.size());
  for (size_t i = 0; i < at.size(); ++i) with[v.depth + i] = at[i];
  return core::substitute(s.m, v.body, with, depth);
}

Value moved(Sema& s, const Value& v, uint32_t depth) {
  if (!v.items.empty()) {
    Value out = v;
    for (Value& item : out.items) item = moved(s, item, depth);
    return out;
  }
  if (v.kind != Value::Kind::Data || v.depth == depth) return v;
  Value out = v;
  size_t n = v.coords.size();
  out.body = cell(s, v, slots_from(s, depth, n), depth + static_cast<uint32_t>(n));
  out.depth = depth;
  return out;
}

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

std::vector<CoreId> aligned(Sema& s, const Env& env, const std::vector<Value>& values,
                            size_t rank) {
  std::vector<CoreId> out;
  uint32_t inside = env.depth + static_cast<uint32_t>(rank);
  for (const Value& v : values) {
    out.push_back(cell(s, v, slots_from(s, env.depth, v.coords.size()), inside));
  }
  return out;
}

FamilyId whole_family(const Sema& s, const Value& v) {
  if (v.kind != Value::Kind::Data || v.typing != Typing::Fixed) return {};
  const auto* a = core::get_if<core::Access>(s.m, v.body);
  if (!a || a->at.size() < v.coords.size()) return {};
  size_t prefix = a->at.size() - v.coords.size();
  for (size_t i = 0; i < a->at.size(); ++i) {  // a local's enclosing slots, then the holes
    uint32_t slot = core::slot_of(s.m, a->at[i]);
    if (i < prefix ? slot >= v.depth : slot != v.depth + (i - prefix)) return {};
  }
  return a->family;
}

Symbol fresh_family_name(Sema& s, const std::string& base) {
  for (int& n = s.fresh[base];; ++n) {
    Symbol name = intern(n == 0 ? base : base + "_" + std::to_string(n));
    if (s.reserved.insert(name).second) return name;
  }
}

ClauseOut ranges_of(Sema& s, Env& env, const Value& v) {
  Site plain;
  ClauseOut out;
  out.site = env.site ? env.site : &plain;
  out.span = v.span;
  out.coords = v.coords;
  CoreId none = core::int_lit(s.m, 0);
  for (const core::Coord& c : v.coords) out.box.push_back({none, c.extent});
  out.body = moved(s, v, env.depth);
  out.body.coords.clear();
  out.body.depth = env.depth + static_cast<uint32_t>(v.coords.size());
  infer_ranges(s, out, {});
  out.site = env.site;
  return out;
}

FamilyId family_of(Sema& s, Env& env, const Value& v, const std::string& name) {
  EIN_CHECK(v.kind == Value::Kind::Data && v.typing == Typing::Fixed, "family of an open value");
  size_t prefix = env.site ? env.site->slots.size() : 0;
  EIN_CHECK(env.depth == prefix, "family made under a binder");
  Value inside = moved(s, v, env.depth);
  auto rank = env.depth + static_cast<uint32_t>(v.coords.size());
  // Reductions in the value get their ranges here, as in any other statement.
  ClauseOut out = ranges_of(s, env, v);
  if (out.bad) return {};

  core::Family f;
  f.name = fresh_family_name(s, name);
  f.dtype = v.type;
  f.generated = true;
  f.span = v.span;
  core::Clause clause;
  clause.span = v.span;
  for (size_t i = 0; i < prefix; ++i) {
    const SiteSlot& slot = env.site->slots[i];
    f.coords.push_back({slot.name, slot.extent});
    clause.box.push_back(slot.range);
  }
  f.coords.insert(f.coords.end(), out.coords.begin(), out.coords.end());
  clause.box.insert(clause.box.end(), out.box.begin(), out.box.end());
  CoreId cond = conditions(s, env);
  clause.body = inside.body;
  if (cond) {
    cond = core::substitute(s.m, cond, std::vector<CoreId>(env.depth), rank);
    clause.body = core::apply(s.m, core::Op::Select, {cond, clause.body, zero(s, v.type)});
  }
  f.clauses.push_back(clause);
  FamilyId id = s.m.families.add(std::move(f));
  if (env.site) s.made_at[id].push_back(env.site);
  if (prefix > 0) {
    env.site->lifted.push_back({id, clause});
    clause.box.resize(prefix);
    s.lifted.push_back({id, clause.box});
  }
  return id;
}

CoreId conditions(Sema& s, const Env& env) {
  std::vector<CoreId> all;
  for (CoreId cond : env.conds) {
    uint32_t made = env.depth;
    core::for_each_node(s.m, cond, [&](CoreId e) {
      const auto* r = core::get_if<core::Reduce>(s.m, e);
      if (r) made = std::min(made, r->first);
    });
    if (made < env.depth) cond = core::substitute(s.m, cond, std::vector<CoreId>(made), env.depth);
    all.push_back(cond);
  }
  return core::all_of(s.m, all);
}

std::vector<uint32_t> enclosing_slots(const Env& env) {
  std::vector<uint32_t> out(env.depth);
  std::iota(out.begin(), out.end(), 0u);
  return out;
}

Value bound_to_family(Sema& s, Env& env, const Value& v, const std::string& name) {
  FamilyId family = family_of(s, env, v, name);
  return family ? read_family(s, env, family, enclosing_slots(env), v.span) : Value{};
}

Value read_family(Sema& s, const Env& env, FamilyId family, const std::vector<uint32_t>& carries,
                  Span span) {
  const core::Family& f = s.m[family];
  Value v = data(env, f.dtype, {}, span);
  v.coords.assign(f.coords.begin() + static_cast<ptrdiff_t>(carries.size()), f.coords.end());
  std::vector<CoreId> at;
  for (uint32_t slot : carries) at.push_back(core::slot(s.m, slot));
  for (CoreId hole : slots_from(s, env.depth, v.coords.size())) at.push_back(hole);
  v.body = core::access(s.m, family, std::move(at), span);
  return v;
}

std::string show_coords(const Sema&, const std::vector<core::Coord>& coords) {
  std::string out = "[";
  for (const core::Coord& c : coords) {
    if (out.size() > 1) out += ", ";
    out += c.name ? text(c.name) : "_";
  }
  return out + "]";
}

std::string show_value(const Sema& s, const Value& v) {
  if (v.kind == Value::Kind::Tuple) return fmt::format("a tuple of {} values", v.items.size());
  if (v.kind == Value::Kind::Function) return "a function";
  if (v.kind == Value::Kind::Text) return "a string";
  std::string type = v.typing == Typing::Int     ? "an untyped integer"
                     : v.typing == Typing::Float ? "an untyped float"
                                                 : "`" + std::string(name_of(v.type)) + "`";
  return v.scalar() ? type : type + " over " + show_coords(s, v.coords);
}

}  // namespace ein::sema

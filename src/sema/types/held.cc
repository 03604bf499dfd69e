// Families that hold values: what is shown, passed to a function, or named by a request.
#include "base/check.h"
#include "sema/names/names.h"
#include "sema/ranges/ranges.h"
#include "sema/state/definition_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

bool plain_read(const Sema& s, const Value& v) {
  return core::get_if<core::Access>(s.m, v.body) || core::get_if<core::FloatLit>(s.m, v.body) ||
         core::get_if<core::IntLit>(s.m, v.body);
}

}  // namespace

ClauseOut ranges_of(Sema& s, Env& env, const Value& v) {
  Site plain;
  ClauseOut out;
  out.site = env.site ? env.site : &plain;
  out.span = v.span;
  out.coords = v.coords;
  CoreId none = core::int_lit(s.m, 0);
  for (const core::Coord& c : v.coords) out.box.push_back({none, c.extent});
  out.body = moved(s.m, v, env.depth);
  out.body.coords.clear();
  out.body.depth = env.depth + static_cast<uint32_t>(v.coords.size());
  infer_ranges(s, out, {});
  out.site = env.site;
  return out;
}

namespace {

// The family of a value, which carries some slots of the clause around it. `cond`: where its cells
// are read; elsewhere they are zero.
FamilyId carried_family(Sema& s, Env& env, const Value& v, const std::string& name,
                        const std::vector<uint32_t>& carries, CoreId cond) {
  size_t prefix = env.site ? env.site->slots.size() : 0;
  // Reductions in the value get their ranges here, as in any other statement.
  auto rank = static_cast<uint32_t>(v.coords.size());
  ClauseOut out = ranges_of(s, env, v);
  if (out.bad) return {};
  core::Family f;
  f.name = fresh_family_name(s.names, name);
  f.dtype = v.type;
  f.generated = true;
  f.span = v.span;
  auto carried = static_cast<uint32_t>(carries.size());
  std::vector<CoreId> with(env.depth + rank);
  core::Clause clause, seen;  // `seen`: as the range inference of the enclosing clause sees it
  clause.span = seen.span = v.span;
  seen.box.resize(env.depth);
  for (uint32_t n = 0; n < prefix; ++n) seen.box[n] = env.site->slots[n].range;
  for (uint32_t k = 0; k < carried; ++k) {
    const SiteSlot& slot = env.site->slots[carries[k]];
    f.coords.push_back({slot.name, slot.extent});
    clause.box.push_back(slot.range);
    with[carries[k]] = core::slot(s.m, k);
  }
  for (uint32_t p = 0; p < rank; ++p) {
    f.coords.push_back(out.coords[p]);
    clause.box.push_back(out.box[p]);
    seen.box.push_back(out.box[p]);
    with[env.depth + p] = core::slot(s.m, carried + p);
  }
  seen.body = v.body;
  if (cond) {
    CoreId here = core::substitute(s.m, cond, std::vector<CoreId>(env.depth), env.depth + rank);
    seen.body = core::apply(s.m, core::Op::Select, {here, seen.body, zero(s.m, v.type)});
  }
  clause.body = core::substitute(s.m, seen.body, with, carried + rank);
  f.clauses.push_back(clause);
  FamilyId id = s.m.families.add(std::move(f));
  if (env.site) {
    s.definitions.made_at[id].push_back(env.site);
    env.site->lifted.push_back(std::move(seen));
  }
  if (carried > 0) {
    clause.box.resize(carried);
    s.definitions.lifted.push_back({id, clause.box});
  }
  gate_family(s, env, id);
  return id;
}

// Like carried_family, but carries only the slots in `needed`, and gives a read of the family.
Value read_carried(Sema& s, Env& env, const Value& v, const std::string& name, uint64_t needed,
                   CoreId cond) {
  std::vector<uint32_t> carries = enclosing_slots(env);
  std::erase_if(carries, [&](uint32_t n) { return !((needed >> n) & 1); });
  FamilyId family = carried_family(s, env, v, name, carries, cond);
  return family ? read_family(s.m, env, family, carries, v.span) : Value{};
}

// The slots of enclosing clauses, and of reductions, that a value or a condition reads.
uint64_t slots_below(const Sema& s, const Env& env, CoreId e) {
  return e ? s.m[e].free & ((uint64_t{1} << env.depth) - 1) : 0;
}

}  // namespace

FamilyId family_of(Sema& s, Env& env, const Value& v, const std::string& name) {
  EIN_CHECK(v.kind == Value::Kind::Data && v.typing == Typing::Fixed, "family of an open value");
  EIN_CHECK(!under_binder(env), "family made under a binder");
  return carried_family(s, env, moved(s.m, v, env.depth), name, enclosing_slots(env),
                        conditions(s.m, env));
}

Value bound_to_family(Sema& s, Env& env, const Value& v, const std::string& name) {
  FamilyId family = family_of(s, env, v, name);
  return family ? read_family(s.m, env, family, enclosing_slots(env), v.span) : Value{};
}

Value hold(Sema& s, Env& env, Value v, const std::string& name, bool always) {
  if (v.kind != Value::Kind::Data || v.scalar() || (!always && plain_read(s, v))) return v;
  if (v.typing != Typing::Fixed) return v;  // it takes the parameter's type first
  size_t prefix = env.site ? env.site->slots.size() : 0;
  v = moved(s.m, v, env.depth);
  uint64_t read = slots_below(s, env, v.body);
  if (read >> prefix) return v;  // it reads the index of a reduction around the call
  CoreId cond = conditions(s.m, env);
  if (read == 0 && slots_below(s, env, cond) != 0) cond = {};
  if (slots_below(s, env, cond) & ~read) return v;
  bool named = env.site && env.site->definition;
  return read_carried(s, env, v, named ? env.site->name + "_" + name : name, read, cond);
}

Value bound_to_local(Sema& s, Env& env, const Value& v, const Scope& scope,
                     const std::string& name) {
  Value inside = moved(s.m, v, env.depth);
  CoreId cond = conditions(s.m, env);
  uint64_t needed = slots_below(s, env, inside.body) | slots_below(s, env, cond);
  // What a request names is another binding at every step (decisions.md, 23).
  if (scope.step && !scope.requested.empty()) needed |= env.site->steps;
  return read_carried(s, env, inside, name, needed, cond);
}

}  // namespace ein::sema

// Values as data: making them, moving them between depths, reading families. Nothing here looks up
// a name or infers a range.
#pragma once

#include <functional>

#include "core/core.h"
#include "sema/state/scope.h"

namespace ein::sema {

// Placeholders are params that the module does not know; none is left when elaboration ends.
constexpr uint32_t kFirstPlaceholder = 1u << 30;
inline bool is_placeholder(ParamId p) { return p.v >= kFirstPlaceholder; }

Value data(const Env& env, DType type, CoreId body, Span span);
Value untyped_int(const Env& env, CoreId body, Span span);
// The scalar at the given indices, for use at `depth`.
CoreId cell(core::Module& m, const Value& v, const std::vector<CoreId>& at, uint32_t depth);
Value moved(core::Module& m, const Value& v, uint32_t depth);
// Operands moved to one depth with one coordinate list, ready for a builder.
std::vector<CoreId> aligned(core::Module& m, const Env& env, const std::vector<Value>& values,
                            size_t rank);
CoreId zero(core::Module& m, DType type);      // false for bool
bool closed(const core::Module& m, CoreId e);  // made of literals and extents alone

// `()`, which stands for an argument that was left out.
inline bool is_nothing(const Value& v) { return v.kind == Value::Kind::Tuple && v.items.empty(); }
// A value with every part that is no tuple replaced; poison as soon as one becomes poison. `path`
// says where the part is, as in ".enc.w"; it is empty for a value that has no parts.
Value map_leaves(const Value& v,
                 const std::function<Value(const Value& leaf, const std::string& path)>& f,
                 const std::string& path = {});
std::string as_suffix(std::string path);  // ".enc.w" as part of a name: "_enc_w"
std::vector<Value> leaves_of(const Value& v);
std::optional<size_t> field_at(const Value& record, Symbol name);  // which item it is
// A record in the order of another one's fields, nested ones too; none if their fields differ. Other
// values stay as they are.
std::optional<Value> in_order_of(const Value& like, const Value& v);

// Whether a tuple has the items that its type says; a record is brought into the type's order.
bool fit_fields(const ast::TupleType& type, Value& v);

// The conditions around this place as one; invalid when there are none. Binders of reductions in
// them are renumbered from the depth where a condition was made to this one.
CoreId conditions(core::Module& m, const Env& env);

// The family that `v` reads as a whole; invalid when `v` is anything else.
FamilyId whole_family(const core::Module& m, const Value& v);
// The whole family, read at the current place: its first coordinates are at the slots `carries`.
Value read_family(core::Module& m, const Env& env, FamilyId family,
                  const std::vector<uint32_t>& carries, Span span);

// Inside a reduction that binds slots the enclosing clause does not have.
inline bool under_binder(const Env& env) {
  return env.depth != (env.site ? env.site->slots.size() : 0);
}
// The place of the clause itself, outside of the reductions around.
Env outside_reductions(const core::Module& m, const Env& env);
// The slots around the current place, all of them.
std::vector<uint32_t> enclosing_slots(const Env& env);
// The same with their names and ranges: those of the enclosing clause, then the binders.
std::vector<SiteSlot> slots_around(const Env& env);

}  // namespace ein::sema

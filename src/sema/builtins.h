// What a call means without any definition: the table builtins.def, which builtins.cc reads, and
// the scalar primitives of core/ops.def. Everything that has to know a built-in function asks here.
#pragma once

#include <optional>
#include <span>

#include "sema/state/state.h"

namespace ein::sema {

struct Builtin;
using Elaborator = Value (*)(Sema&, Env&, const Builtin&, const ast::Call&, Span);

constexpr size_t kManyArguments = static_cast<size_t>(-1);

struct Builtin {
  enum class Id : uint8_t {
#define EIN_BUILTIN(id, spelling, kind, fewest, most, guess, by) id,
#define EIN_REDUCTION(id, spelling, op, guess) id,
#include "sema/builtins.def"
#undef EIN_BUILTIN
#undef EIN_REDUCTION
  };
  enum class Kind : uint8_t { Reduction, Value, Effect };
  enum class TypeGuess : uint8_t { Arguments, Extent, I32, Bool, F32 };

  Id id;
  const char* spelling;
  Kind kind;
  size_t fewest, most;  // arguments in parentheses
  TypeGuess guess;
  Elaborator elaborate;
  core::ReduceOp op = core::ReduceOp::Sum;  // of a Reduction

  bool takes(size_t arguments) const { return fewest <= arguments && arguments <= most; }
};

std::span<const Builtin> builtins();
const Builtin* builtin_named(Symbol name);    // null when there is none
const Builtin* reduction_named(Symbol name);  // the same, reductions alone
bool is_effect(Symbol name);
bool takes_names(const Builtin& b);  // named arguments, which it checks itself
// The entry of a call by a single name, whatever that name means where the call stands; or null.
const Builtin* spelled_builtin(const ast::Ast& ast, const ast::Call& call);
bool spells(const ast::Ast& ast, const ast::Call& call, Builtin::Id id);

std::optional<core::Op> primitive_named(Symbol name);
// A call of this name means something without any definition: built in, or a primitive.
bool is_builtin(Symbol name);

}  // namespace ein::sema

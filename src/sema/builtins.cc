#include "sema/builtins.h"

#include <cctype>
#include <string_view>
#include <unordered_map>

#include "sema/calls/calls.h"
#include "sema/definitions/definitions.h"
#include "sema/effects/effects.h"
#include "sema/expressions/expressions.h"
#include "sema/names/trees.h"

namespace ein::sema {
namespace {

constexpr Builtin kBuiltins[] = {
#define EIN_BUILTIN(id, spelling, kind, fewest, most, guess, by) \
  {Builtin::Id::id, spelling, Builtin::Kind::kind, fewest, most, Builtin::TypeGuess::guess, by, {}},
#define EIN_REDUCTION(id, spelling, op, guess) \
  {Builtin::Id::id,                            \
   spelling,                                   \
   Builtin::Kind::Reduction,                   \
   1,                                          \
   1,                                          \
   Builtin::TypeGuess::guess,                  \
   elaborate_reduction,                        \
   core::ReduceOp::op},
#include "sema/builtins.def"
#undef EIN_BUILTIN
#undef EIN_REDUCTION
};

}  // namespace

std::span<const Builtin> builtins() { return kBuiltins; }

const Builtin* builtin_named(Symbol name) {
  static const auto table = [] {
    std::unordered_map<std::string_view, const Builtin*> t;
    for (const Builtin& b : kBuiltins) t.emplace(b.spelling, &b);
    return t;
  }();
  auto it = name ? table.find(text(name)) : table.end();
  return it == table.end() ? nullptr : it->second;
}

const Builtin* reduction_named(Symbol name) {
  const Builtin* b = builtin_named(name);
  return b && b->kind == Builtin::Kind::Reduction ? b : nullptr;
}

bool is_effect(Symbol name) {
  const Builtin* b = builtin_named(name);
  return b && b->kind == Builtin::Kind::Effect;
}

bool takes_names(const Builtin& b) {
  return b.id == Builtin::Id::Dbg || b.id == Builtin::Id::Load || b.id == Builtin::Id::Print ||
         b.id == Builtin::Id::Eprint;
}

const Builtin* spelled_builtin(const ast::Ast& ast, const ast::Call& call) {
  return builtin_named(path_name(ast, call.callee));
}

bool spells(const ast::Ast& ast, const ast::Call& call, Builtin::Id id) {
  const Builtin* b = spelled_builtin(ast, call);
  return b && b->id == id;
}

std::optional<core::Op> primitive_named(Symbol name) {
  static const auto table = [] {
    std::unordered_map<std::string_view, core::Op> t;
#define EIN_OP(op, spelling, arity, cls)                                                         \
  if (core::OpClass::cls == core::OpClass::Arith || core::OpClass::cls == core::OpClass::Real || \
      core::OpClass::cls == core::OpClass::Whole) {                                              \
    if (std::isalpha(static_cast<unsigned char>((spelling)[0]))) t[spelling] = core::Op::op;     \
  }
#include "core/ops.def"
#undef EIN_OP
    return t;
  }();
  auto it = name ? table.find(text(name)) : table.end();
  if (it == table.end()) return std::nullopt;
  return it->second;
}

bool is_builtin(Symbol name) {
  const Builtin* b = builtin_named(name);
  return b || primitive_named(name);
}

}  // namespace ein::sema

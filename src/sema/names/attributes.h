// Attributes of statements: `#[allow(…)]`, `#[checkpoint]`, `#[surrogate]`, `#[nested]`.
#pragma once

#include "sema/state/state.h"

namespace ein::sema {

enum class Attribute : uint8_t { Allow, Checkpoint, Surrogate, Nested };

// The attribute as it is written before the statement; null where there is none.
const ast::Attribute* find_attribute(const ast::Stmt& stmt, Attribute which);

std::vector<const char*> attribute_names();

// Reports attributes that do not exist, or not on this kind of statement (E0114).
void check_attributes(Sema& s, const ast::Stmt& stmt);

// How many steps at a time `#[checkpoint]` wants on this definition (core::Family::checkpoint).
int64_t checkpoint_wish(const Sema& s, const Definition& d);

// Warns where `#[checkpoint]` has no effect (W0603); asked when the definition is complete.
void check_checkpoint(Sema& s, const Definition& d);

}  // namespace ein::sema

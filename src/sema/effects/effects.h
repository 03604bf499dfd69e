// Effects in source order: `print` and `assert` (effects.cc), `save` and the value that `load`
// gives (files.cc). What a statement does, `perform`, is in state/on_demand.h (statements.cc).
#pragma once

#include "sema/builtins.h"
#include "sema/state/state.h"

namespace ein::sema {

// The pieces of a line that show a value; false after an error.
bool add_value(Sema& s, Env& env, const Value& v, const std::string& format,
               std::vector<core::Piece>& out);
// These three give no value.
Value elaborate_print(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span);
Value elaborate_assert(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span);
Value elaborate_save(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span);
// The value itself, which is reported when the program runs (reports.h).
Value elaborate_dbg(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span);
Value elaborate_load(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span);

}  // namespace ein::sema

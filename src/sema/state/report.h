// Words for messages: names in backticks, values and extents as the user knows them.
#pragma once

#include "sema/state/state.h"

namespace ein::sema {

inline std::string quoted(Symbol name) { return "`" + text(name) + "`"; }
// By value: std::quoted takes references, and must not be the better match.
inline std::string quoted(std::string name) { return "`" + std::move(name) + "`"; }
// Adds "did you mean", with a fix to be checked; false when nothing is near.
bool suggest(Diagnostic& d, const std::string& near, Span span);
// Reports the first named argument of a call that takes none; true when there is one.
bool reject_names(Sema& s, const ast::Call& call, const std::string& callee);
void warn_unused_value(Sema& s, Span statement);  // once for each statement
Value unsupported(Sema& s, Span span, const std::string& what, const std::string& help = {});
// Core numbers at most core::kMaxSlots indices; a derivative needs those of two definitions.
bool too_many_indices(Sema& s, size_t count, Span span);

std::string show_coords(const Sema& s, const std::vector<core::Coord>& coords);
std::string show(const Sema& s, CoreId extent);
// Says in every message since `before` that it is about this part of a record, as in ".enc.w".
void note_part(Sema& s, size_t before, const std::string& path);
std::string show_fields(const std::vector<Symbol>& fields);  // "fields `a, b`"
std::string show_value(const Sema& s, const Value& v);       // "`f32` over [b, class]"

}  // namespace ein::sema

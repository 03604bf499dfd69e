// Ast → Core: what every name means, which coordinates a value carries, how far every index runs,
// and every error about it. The result satisfies the invariants of core.h when no error was
// reported; after an error it holds whatever made sense and is good for tools only.
//
// How it works, in one paragraph. The tree is evaluated abstractly: an expression becomes a Value,
// a scalar Core expression in which the coordinates that the value still carries are slots above
// the indices in scope (state/value.h). Calls are inlined by evaluating the body with parameters
// bound to Values. Ranges that are not written are placeholders until the statement is complete;
// then all accesses of its Core body are collected, and the largest box in which every access is in
// bounds replaces them (ranges/infer.cc). Definitions are elaborated on demand, so the order of
// statements is free; families that read each other agree on a header first
// (definitions/define.cc).
#pragma once

#include "base/diag.h"
#include "core/core.h"
#include "sema/file_lookup.h"
#include "sema/modules.h"

namespace ein::sema {

struct Meanings;  // state/meanings.h

core::Module elaborate(const Program& program, Diagnostics& diags, const FileLookup& files = {},
                       const InputShapes& inputs = {}, Meanings* meanings = nullptr);

// A `test` block as a program of its own: the file's definitions and the block's in one scope, the
// block's effects alone. Mistakes in the file are reported again; the caller has them already.
// `shared`: what test_definitions gives, where it is known already; a file may have many tests.
core::Module elaborate_test(const Program& program, const ast::Test& test, Diagnostics& diags,
                            const FileLookup& files = {}, const InputShapes& inputs = {},
                            const std::vector<ast::StmtId>* shared = nullptr,
                            Meanings* meanings = nullptr);
// The items of the file that its tests see: all but the tests.
std::vector<ast::StmtId> test_definitions(const Program& program);

}  // namespace ein::sema

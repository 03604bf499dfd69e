// What is elaborated on demand, from any folder of sema. An extent in a type is an expression, an
// expression may be a call, a call is inlined by elaborating a body, and a name that is read first
// may be defined last. These few functions close that circle; everything else is called downwards
// only (tests/meta/layers.py). The folder that defines each of them is named beside it.
#pragma once

#include "sema/state/state.h"

namespace ein::sema {

// types
const LeftSide& left_side(Sema& s, const Definition& d, ast::StmtId stmt);  // packs expanded

// expressions
Value elaborate(Sema& s, Env& env, TreeId e);
CoreId elaborate_index(Sema& s, Env& env, TreeId e);   // i64; invalid after an error
Value elaborate_base(Sema& s, Env& env, TreeId base);  // of an access: never an index

// calls
Value elaborate_call(Sema& s, Env& env, const ast::Call& call, Span span);
Value elaborate_tangent(Sema& s, Env& env, const ast::Request& request, Span span);
// The gates of the calls around apply to a family that was just defined.
void gate_family(Sema& s, const Env& env, FamilyId family);
// A recurrence among the definitions of a body: its families are gated together.
void begin_gated_recurrence(const Env& env);
void end_gated_recurrence(Sema& s, const Env& env);

// definitions
void define(Sema& s, Definition& d);
Value read_definition(Sema& s, Env& env, Definition& d, Span span);
// The record type that is written for a value: `let p: Net = …` or `let p = … as Net`.
ast::TypeId record_type(const ast::Ast& ast, const Definition& d);
// `until` sees the locals of the block before it: it is elaborated in `inside`, which is set to the
// place after the statements.
Value elaborate_block(Sema& s, Env& env, const ast::Block& block, Span span, TreeId until = {},
                      Env* inside = nullptr);
// The scope of a block with its statements defined; `until` is what reads them besides its value.
Scope& open_block(Sema& s, Env& env, const ast::Block& block, TreeId until = {});
// The body of a function called as a statement: its statements in order, its value too.
void elaborate_procedure(Sema& s, Env& env, const ast::Block& block);

// effects
// `load("model.npz") as Net`: every part of the record by its path.
Value load_record(Sema& s, Env& env, const ast::Cast& cast, const ast::Call& call, Span span);
// `load("t.csv") as f64`, `let t: [f64; n] = load("t.csv")`: the numbers of a text are read as what
// is asked for. `v` is the value of `e`; any other expression is left as it is.
Value load_as(Sema& s, Env& env, TreeId e, Value v, DType type);
// `dbg(e);`: reported although nothing uses the value. False when the statement is another one.
bool report_statement(Sema& s, Env& env, TreeId e);
void elaborate_statement(Sema& s, const Env& env, TreeId value);
// Does what a statement does; false when that is nothing.
bool perform(Sema& s, const Env& env, TreeId value);

}  // namespace ein::sema

// What every function of sema is given. The mutable parts are owned by one folder each and declared
// in headers of their own, which a file includes when it needs them (name_state.h, range_state.h,
// definition_state.h, call_state.h).
#pragma once

#include <set>

#include "base/diag.h"
#include "core/build.h"
#include "core/core.h"
#include "core/prove.h"
#include "core/rewrite.h"
#include "sema/file_lookup.h"
#include "sema/modules.h"
#include "sema/state/scope.h"
#include "syntax/ast.h"

namespace ein::sema {

struct Names;
struct Ranges;
struct Definitions;
struct Calls;
struct Meanings;

struct Sema {
  const Program& program;
  const ast::Ast& ast;
  Diagnostics& diags;
  const FileLookup& files;
  const InputShapes& inputs;
  core::Module m;
  Names& names;
  Ranges& ranges;
  Definitions& definitions;
  Calls& calls;
  Meanings* meanings = nullptr;  // what tools want to know; null: nobody asked
  std::set<std::pair<uint32_t, uint32_t>> warned = {};  // places of warnings

  const ast::Expr& operator[](TreeId id) const { return ast.exprs[id]; }
};

}  // namespace ein::sema

// The part of the state that names own: scopes and what they hold stay where they are until
// elaboration ends.
#pragma once

#include <unordered_map>

#include "sema/state/scope.h"

namespace ein::sema {

struct Names {
  std::deque<Scope> scopes;
  std::deque<Frame> frames;
  std::deque<Index> indices;
  std::vector<Scope*> modules;                             // as in the program; the root is last
  std::vector<std::vector<Definition*>> groups;            // that read each other, by number
  std::map<ast::StmtId, std::set<Symbol>> function_names;  // free names of functions
  std::set<Symbol> reserved;                               // names that generated ones must avoid
  std::unordered_map<std::string, int> fresh;              // the next number to try behind a name
};

}  // namespace ein::sema

// The part of the state that definitions own: where clauses are elaborated and which families they
// became.
#pragma once

#include <deque>
#include <unordered_map>

#include "sema/state/definition.h"

namespace ein::sema {

// A local that became a family of its own, with the slots of the enclosing clause in front.
struct Lifted {
  FamilyId family;
  std::vector<core::Range> prefix;  // outside of these ranges the family is zero
};

struct Definitions {
  std::deque<Site> sites;
  std::vector<Definition*> busy;                    // being elaborated, outermost first
  std::unordered_map<FamilyId, Definition*> owner;  // of families the user named
  // Where a family's clauses were elaborated.
  std::unordered_map<FamilyId, std::vector<const Site*>> made_at;
  std::vector<Lifted> lifted;
  std::deque<Ending> endings;
};

}  // namespace ein::sema

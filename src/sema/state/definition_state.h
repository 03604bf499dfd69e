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

// A `dbg`, whose value is marked with its number (effects/reports.h).
struct Dbg {
  Span span;
  std::string text;   // what is reported, as written
  int64_t every = 1;  // steps between two reports
};
// A family that was made to report a value. Nothing reads it.
struct Watched {
  const Site* site = nullptr;     // where the value is used
  std::vector<uint32_t> carries;  // slots of that clause: the first coordinates
};

struct Definitions {
  std::deque<Site> sites;
  std::vector<Definition*> busy;                    // being elaborated, outermost first
  std::unordered_map<FamilyId, Definition*> owner;  // of families the user named
  // Where a family's clauses were elaborated.
  std::unordered_map<FamilyId, std::vector<const Site*>> made_at;
  std::vector<Lifted> lifted;
  std::deque<Ending> endings;
  std::vector<Dbg> dbgs;
  std::unordered_map<FamilyId, Watched> watched;
};

}  // namespace ein::sema

// The part of the state that calls own: what is being inlined, and what is known of functions.
#pragma once

#include <deque>
#include <map>
#include <set>

#include "sema/state/scope.h"

namespace ein::sema {

// An `assert` of a function that a call has to meet (contracts.cc).
struct Contract {
  CoreId cond;
  std::string message;
  Span call, written;
};

struct Calls {
  std::vector<ast::StmtId> stack;  // functions being inlined; lambdas are invalid
  std::vector<Span> places;        // of those calls, outermost first
  std::vector<std::map<Symbol, DType>> element_types;  // and their type parameters
  size_t inlined = 0;                                  // calls so far
  std::set<ast::StmtId> called;                        // functions that some call was checked for
  std::set<ast::StmtId> bad;                           // whose body was reported already
  std::map<ast::StmtId, bool> recursive;               // which call themselves, once asked
  std::map<ast::StmtId, core::FunctionId> functions;   // those of them that are called
  std::map<ast::StmtId, bool> scalar;                  // which are scalar, once asked
  // The other functions of Core, by what their arguments are (scalar_functions.cc); invalid if that
  // does not make one.
  std::map<std::pair<ast::StmtId, std::vector<uint64_t>>, core::FunctionId> instances;

  std::set<TreeId> bad_defaults;       // of parameters, which were reported
  std::vector<Contract> contracts;     // whose extents are not known yet
  size_t broken_contracts = 0;         // errors so far that are a call's fault, not the function's
  std::vector<Symbol> constant_along;  // result coordinates that the last body did not spell

  std::deque<GatedCall> gated;  // those so far
};

}  // namespace ein::sema

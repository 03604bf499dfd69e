// What reverse differentiation did, for people: `ein grad` comments its output with it,
// `ein explain` walks it. Recorded where the work is done (transpose.cc), from the terms and the
// solved sums themselves, so that it cannot contradict the derivative.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/core.h"

namespace ein::autodiff {

// One read of a value on the path, turned around: what it adds to the sensitivity of that value.
struct Flow {
  Symbol num;         // whose derivative this is
  Symbol of;          // the value that is read
  Symbol reader;      // the value that reads it
  Symbol adjoint;     // d num / d of
  Symbol incoming;    // d num / d reader; invalid: the reader is the numerator itself
  std::string cell;   // the cell whose adjoint this is: `A[i, k]`
  std::string read;   // as it is read: `input[b, ic, oh + kh]`
  std::string by;     // the cells that read it: `C[i, j]`
  std::string local;  // the local derivative: `B[k, j]`
  std::string gate;   // where the read counts; empty: everywhere
  std::string added;  // what is added to the adjoint, as an expression
  struct Summed {
    Symbol name;
    bool of_reader;  // a coordinate of the reader; otherwise its reduction runs over it
  };
  std::vector<Summed> summed;
  struct Solved {
    Symbol name;        // a coordinate of the reader
    std::string value;  // what it has to be: `ih - kh`
    std::string read;   // because the reader reads the value at `oh + kh`
  };
  std::vector<Solved> solved;
  std::vector<std::string> routes;  // `idx[k] == i`: data chooses the cell
  Span span;                        // of the read
};

struct Record {
  std::vector<Flow> flows;  // per numerator, in the order in which sensitivities come back
  // Adjoint → the families that read it, before generated ones are inlined again.
  std::map<Symbol, std::vector<Symbol>> readers;
  // What flows mention and the program does not define, as text: parts of its expressions, `y_1[b, f] = x[b, f] - mu[f]`,
  // and functions, `fn d_f_d_z(z: f32) -> f32 { 2.0 * z }`.
  std::map<Symbol, std::string> parts;
};

// Comments for the printed program, by family: which coordinates are summed, and why.
std::map<Symbol, std::vector<std::string>> comments(const Record& record, const core::Module& m);

// A family as it is defined, without ranges; several clauses with `; ` between them.
std::string definition_text(const core::Module& m, core::FamilyId id);

// The names of the summed coordinates: `i`, or `b, t`.
std::string summed_text(const Flow& flow);

}  // namespace ein::autodiff

// Which values a session already has, and how it computes the others.
//
// Each value is kept with a hash of everything that it is computed from: its own definition in Core
// and the definitions that it reads, derivatives included. Values are pure, so an unchanged hash
// means an unchanged value. When other values are computed, a kept value replaces its definition:
// it becomes an input of the compiled code.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/core.h"
#include "runtime/tensor.h"

namespace ein::session {

struct Kept {
  uint64_t key = 0;
  Tensor value;
};
using KeptValues = std::map<std::string, Kept>;  // by the name of the family

// The hash of every family of a program before autodiff.
std::unordered_map<core::FamilyId, uint64_t> value_keys(const core::Module& asked);

// The families behind a name of the program: one, or one for each part of a record or tuple.
std::vector<core::FamilyId> families_of(const core::Module& m, const std::string& name);

// The program with its known values turned into inputs, for a run that computes the rest. Fills
// `given` with those inputs.
core::Module with_known(const core::Module& m, const KeptValues& known,
                        std::map<std::string, Tensor>& given);

// Whether any input has no value. Most programs have none, which is found out quickly.
bool has_missing_inputs(const core::Module& m);
// The inputs without a value that a family depends on, spelled as in the program.
std::vector<std::string> missing_inputs(const core::Module& m, core::FamilyId family);

}  // namespace ein::session

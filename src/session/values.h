// Which values a session has already, and computing the others.
//
// A value is kept with a hash of everything that it is computed from: its own definition in Core, and those of all
// that it reads, derivatives included. As long as the hash is the same, the value is, because values are pure. What is
// kept stands in for its definition when others are computed: it becomes an input of the compiled code.
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

// The families that a name of the program stands for: one, or the parts of a record or tuple.
std::vector<core::FamilyId> families_of(const core::Module& m, const std::string& name);

// The program with the values that are known as inputs, for a run that computes the rest. `given` gets those inputs.
core::Module with_known(const core::Module& m, const KeptValues& known,
                        std::map<std::string, Tensor>& given);

// The inputs without a value that a family depends on, by how the program spells them.
// Most programs have none, which is quickly seen.
bool has_missing_inputs(const core::Module& m);
std::vector<std::string> missing_inputs(const core::Module& m, core::FamilyId family);

}  // namespace ein::session

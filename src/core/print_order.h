// What a printed program consists of, and in which order.
#pragma once

#include <set>
#include <vector>

#include "core/core.h"

namespace ein::core {

// What `roots` are computed from, themselves included; an extent is computed from the input that
// says it.
std::vector<FamilyId> needed_for(const Module& m, const std::vector<FamilyId>& roots);
// Whether an effect shows one of `values`, or what the compiler made of one to show it.
bool shows(const Module& m, const Effect& e, const std::set<FamilyId>& values);
// What families call, directly or through functions, in the order of definition.
std::set<FunctionId> called_functions(const Module& m, const std::vector<FamilyId>& families);
// Families in the order of definition, each generated one just before its first reader.
std::vector<FamilyId> reading_order(const Module& m, const std::vector<FamilyId>& wanted);
// A function that is called like an array gets another name: in source they share a scope.
void part_names(Module& m);

}  // namespace ein::core

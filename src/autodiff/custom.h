// Derivatives that the user gives: `@fn`. A call of a function with a rule is Rule(value, tangent):
// the value, and the rule's body, in which Tangent(x) stands for the tangent of an argument. The
// body is linear in the tangents, so it is linearised like any other expression, with everything
// but the tangents held (linearise.h: Mode::Rule). Reductions of the body become families of their
// own: those are the tangent families, linear too. What is left of a first derivative are
// coefficients, ordinary values that a second derivative differentiates.
//
// An integer may have a rule: its tangent is a float, and flows where the integer becomes a float.
#pragma once

#include <set>

#include "core/core.h"

namespace ein::autodiff {

bool is_rule(const core::Module& m, core::ExprId e);
core::ExprId rule_value(const core::Module& m, core::ExprId e);

bool has_rules(const core::Module& m);

// Families whose value is a tangent: a Tangent stands in them outside of any rule.
std::set<core::FamilyId> tangent_families(const core::Module& m);

// Every clause is the value of a rule.
bool has_rule(const core::Module& m, core::FamilyId family);
// The type of a family's tangent: its own, or that of its rule when it is an integer.
core::DType tangent_type(const core::Module& m, core::FamilyId family);

// Replaces every rule by its value. Tangent families lose their meaning; nothing reads them then.
void drop_rules(core::Module& m);

}  // namespace ein::autodiff

// Any legal plan gives the same values: random programs under random plans.
#include <gtest/gtest.h>

#include <random>

#include "codegen/native.h"
#include "generate.h"
#include "properties.h"

namespace ein {
namespace {

NativeOptions random_options(std::mt19937& rng) {
  NativeOptions o;
  o.opt_level = rng() % 4 == 0 ? 0 : 2;
  o.choices.inlines = [&](core::FamilyId) { return rng() % 2 == 0; };
  o.choices.vector_axis = [&](core::FamilyId, size_t) {
    uint32_t axis = rng() % 4;
    return axis == 3 ? core::kMaxSlots : axis;
  };
  o.choices.reduce_width = [&](core::ExprId) { return 1u << rng() % 4; };
  o.choices.contractions = rng() % 2 == 0;
  return o;
}

std::string differs(core::Module& m, const core::Inputs& inputs, uint64_t seed,
                    const std::vector<core::FamilyId>& wanted) {
  core::EvalResult want = core::evaluate(m, inputs, wanted);
  std::mt19937 rng(static_cast<uint32_t>(seed));
  for (int plan = 0; plan < 2; ++plan) {
    auto compiled = compile_native(m, wanted, random_options(rng));
    if (auto* why = std::get_if<std::string>(&compiled)) return *why;
    Native& native = *std::get<std::shared_ptr<Native>>(compiled);
    NativeResult got = run(native, inputs);
    if (want.error.has_value() != got.error.has_value()) {
      return want.error ? "no error: " + want.error->message : "error: " + got.error->message;
    }
    if (want.error) continue;
    for (core::FamilyId f : wanted) {
      std::string where;
      if (close(want.values.at(f), got.values.at(f), 1e-9, where)) continue;
      return text(m[f].name) + ", " + where + "\n" + emit(native, Emit::Plan) +
             emit(native, Emit::Loops);
    }
  }
  return "";
}

TEST(NativePlans, RandomPlansOfRandomProgramsAgree) {
  int checked = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    fuzz::Generated g = fuzz::generate(seed);
    fuzz::Subject subject;
    if (!fuzz::compile_source(g.source, subject).empty()) continue;  // another test's concern
    core::Module& m = subject.compiled.module;
    std::vector<core::FamilyId> wanted;
    for (const std::string& name : g.values) wanted.push_back(m.find(intern(name)));
    ++checked;
    EXPECT_EQ(differs(m, g.inputs, seed, wanted), "") << "seed " << seed << "\n" << g.source;
  }
  EXPECT_GT(checked, 10);
}

}  // namespace
}  // namespace ein

// Strip-mining: the memory and the work that a plan announces are those of the run.
#include "optimise/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/eval.h"
#include "core/groups.h"
#include "core/steps.h"
#include "properties.h"

namespace ein {
namespace {

using core::FamilyId;

std::string recurrence(int64_t steps) {
  return "let w: f64;\nlet h[0]: f64 = 0.5;\nlet h[t in 1.." + std::to_string(steps) +
         "] = tanh(w * h[t - 1] + 0.1);\nlet loss = sum[t](h[t] * h[t]);\nlet dw = @loss / @w;\n";
}

struct Measured {
  optimise::SegmentPlan plan;
  double work = 0;  // operations of the cut program divided by those of the whole one
};

Measured measure(int64_t steps, uint64_t budget) {
  Measured out;
  fuzz::Subject subject;
  EXPECT_EQ(fuzz::compile_source(recurrence(steps), subject), "");
  core::Module& m = subject.compiled.module;
  std::vector<FamilyId> wanted{m.find(intern("loss")), m.find(intern("dw"))};
  optimise::Checkpointed planned = optimise::checkpoint(m, wanted, {}, budget);
  EXPECT_EQ(planned.plans.size(), 1u);
  if (planned.plans.empty()) return out;
  out.plan = planned.plans[0];
  core::Inputs inputs;
  inputs["w"] = Tensor(DType::F64, {});
  inputs["w"].set_float(0, 0.9);
  core::EvalResult whole = core::evaluate(m, inputs, wanted);
  core::EvalResult cut = core::evaluate(planned.module, inputs, wanted);
  EXPECT_FALSE(whole.error || cut.error);
  for (FamilyId f : wanted) {
    double a = whole.values.at(f).get_float(0), b = cut.values.at(f).get_float(0);
    EXPECT_NEAR(a, b, 1e-9 * std::fabs(a));
  }
  out.work = static_cast<double>(cut.operations) / static_cast<double>(whole.operations);
  return out;
}

TEST(Checkpoint, MemoryGrowsWithTheRootOfTheSteps) {
  Measured small = measure(1'000, 0), large = measure(100'000, 0);
  ASSERT_GT(small.plan.segment, 0);
  ASSERT_GT(large.plan.segment, 0);
  double growth = static_cast<double>(large.plan.bytes) / static_cast<double>(small.plan.bytes);
  EXPECT_NEAR(growth, 10, 1);  // √100
  EXPECT_LT(large.plan.bytes * 50, large.plan.bytes_whole);
}

TEST(Checkpoint, TheWorkIsTheOneAnnounced) {
  Measured x = measure(10'000, 0);
  EXPECT_GT(x.plan.work, 1.0);
  EXPECT_LT(x.plan.work, 2.0);
  EXPECT_NEAR(x.work, x.plan.work, 0.1 * x.work);
}

TEST(Checkpoint, AllStepsAreKeptWhileTheyFit) {
  Measured x = measure(1'000, 1 << 20);
  EXPECT_EQ(x.plan.segment, 0);
  EXPECT_EQ(x.plan.bytes, x.plan.bytes_whole);
  EXPECT_EQ(x.work, 1.0);
}

TEST(Checkpoint, ABudgetThatCannotBeMetIsSaid) {
  EXPECT_NE(measure(1'000, 100).plan.reason.find("exceeded"), std::string::npos);
}

// The value of a recurrence alone needs no more steps than the next one reads.
TEST(Rings, OnlyTheStepsStillReadAreKept) {
  fuzz::Subject subject;
  std::string source =
      "let f[0]: f64 = 1.0;\nlet f[1] = 1.0;\nlet f[t in 2..90] = f[t - 1] + f[t - 2];\n"
      "let last = f[89];\nlet all[i in 0..3] = f[i];\n";
  ASSERT_EQ(fuzz::compile_source(source, subject), "");
  core::Module& m = subject.compiled.module;
  FamilyId f = m.find(intern("f")), last = m.find(intern("last")), all = m.find(intern("all"));
  auto rings = core::find_rings(m, core::schedule(m, {last}), {last});
  ASSERT_TRUE(rings.contains(f));
  EXPECT_EQ(rings.at(f).kept, 3);
  EXPECT_FALSE(core::find_rings(m, core::schedule(m, {last, all}), {last, all}).contains(f));
  EXPECT_FALSE(core::find_rings(m, core::schedule(m, {last, f}), {last, f}).contains(f));
  core::EvalResult r = core::evaluate(m, {}, {last});
  EXPECT_EQ(r.values.at(last).get_float(0), 2880067194370816120.0);
  EXPECT_EQ(r.values.at(f).size(), 90);  // the reference keeps them all
}

}  // namespace
}  // namespace ein

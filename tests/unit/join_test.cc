// Recurrences that run along the same steps, and sums taken while the steps are made: how many
// loops over steps are left, and that the values are still those of the reference.
#include <gtest/gtest.h>

#include "driver/agree.h"
#include "driver/compile.h"
#include "plan/plan.h"
#include "properties.h"

namespace ein {
namespace {

struct Joined {
  size_t kernels = 0;
  std::string loops;
};

Joined joined(const std::string& source, const std::vector<std::string>& wanted,
              const core::Inputs& inputs) {
  fuzz::Subject s;
  EXPECT_EQ(fuzz::compile_source(source, s), "");
  core::Module& m = s.compiled.module;
  EXPECT_EQ(native_agrees(m, inputs, wanted, {}), "");
  std::vector<core::FamilyId> families;
  for (const std::string& name : wanted) families.push_back(m.find(intern(name)));
  plan::Plan plan = plan_of(m, families, {});
  loops::Program p = loops_of(plan);
  EXPECT_EQ(loops::verify(p), std::vector<std::string>{});
  return {p.kernels.size(), print(p)};
}

core::Inputs numbers(int64_t n) {
  Tensor u(DType::F64, {n});
  for (int64_t i = 0; i < n; ++i) u.set_float(i, 0.3 * static_cast<double>(i % 5) - 0.4);
  return {{"u", u}};
}

std::string two(const std::string& second) {
  return "let u: [f64; n];\n"
         "let a[0]: f64 = 0.5;\n"
         "let a[t in 1..n] = 0.9 * a[t - 1] + u[t];\n"
         "let b[0]: f64 = 1.0;\n"
         "let b[t in 1..n] = " +
         second + ";\n";
}

TEST(Join, ARecurrenceRunsAlongWithTheOneItReads) {
  for (const char* read : {"a[t]", "a[t - 1]"}) {
    std::string step = std::string("0.5 * b[t - 1] + ") + read;
    EXPECT_EQ(joined(two(step), {"a", "b"}, numbers(9)).kernels, 1u) << read;
    EXPECT_EQ(joined(two(step), {"a", "b"}, numbers(1)).kernels, 1u) << read;
  }
}

TEST(Join, NotWhenItReadsWhatIsNotThereYet) {
  EXPECT_EQ(joined(two("0.5 * b[t - 1] + a[n - t]"), {"a", "b"}, numbers(9)).kernels, 2u);
  EXPECT_EQ(joined(two("0.5 * b[t - 1] + (if t + 1 < n { a[t + 1] } else { 0.0 })"), {"a", "b"},
                   numbers(9))
                .kernels,
            2u);
  EXPECT_EQ(joined(two("0.5 * b[t - 1] + sum[s](a[s])"), {"a", "b"}, numbers(9)).kernels, 2u);
}

TEST(Join, NotWhenTheStepsAreOthers) {
  std::string shorter = two("0.5 * b[t - 1] + a[t]");
  shorter.replace(shorter.find("b[t in 1..n]"), 12, "b[t in 1..5]");
  EXPECT_EQ(joined(shorter, {"a", "b"}, numbers(9)).kernels, 2u);
}

// The gradient by a small matrix is a sum over the steps of the backward recurrence.
TEST(Join, ASumOverStepsIsTakenWhereTheyAreMade) {
  std::string source =
      "let u: [f64; n];\n"
      "let F[i in 0..2, j in 0..2]: f64 = u[0] * (1.0 + i as f64) - 0.3 * (j as f64);\n"
      "let x[0, i in 0..2]: f64 = 0.1;\n"
      "let x[t in 1..n, i in 0..2] = tanh(sum[k in 0..2](F[i, k] * x[t - 1, k])) + u[t];\n"
      "let loss = sum[t, i](x[t, i] ** 2.0);\n"
      "let d = @loss / @F;\n";
  Joined all = joined(source, {"loss", "d"}, numbers(9));
  size_t back = all.loops.find("downward {");
  ASSERT_NE(back, std::string::npos);
  EXPECT_EQ(all.loops.find("reduce t.", back), std::string::npos) << all.loops;
  for (int64_t n : {1, 2, 3}) joined(source, {"loss", "d"}, numbers(n));
}

}  // namespace
}  // namespace ein

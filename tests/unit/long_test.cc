// Programs long enough to be compiled in pieces: the values stay those of the reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/deep_stack.h"
#include "driver/agree.h"
#include "properties.h"

namespace ein {
namespace {

void expect_agrees(const std::string& source, const std::vector<std::string>& wanted) {
  Tensor u(DType::F64, {9});
  for (int64_t i = 0; i < 9; ++i) u.set_float(i, 0.1 * static_cast<double>(i % 5) - 0.2);
  on_deep_stack([&] {
    fuzz::Subject s;
    ASSERT_EQ(fuzz::compile_source("let u: [f64; n];\n" + source, s), "");
    EXPECT_EQ(native_agrees(s.compiled.module, {{"u", u}}, wanted, {}), "");
  });
}

TEST(Long, AGroupOfManyRecurrences) {
  constexpr int kMembers = 700;  // more buffers than have their addresses kept
  std::string source;
  for (int i = 0; i < kMembers; ++i) {
    source += fmt::format("let r{}[0]: f64 = {}.5;\n", i, i % 3);
    source += fmt::format("let r{0}[t in 1..n] = r{0}[t - 1] * 0.5 + r{1}[t - 1] * u[t];\n", i,
                          (i + 1) % kMembers);
  }
  expect_agrees(source, {"r0", "r350", "r699"});
}

TEST(Long, MoreRecurrencesThanWaysToRunOne) {
  std::string source;
  for (int i = 0; i < 300; ++i) {
    source += fmt::format("let r{}[0]: f64 = {}.5;\n", i, i % 3);
    source += fmt::format("let r{0}[t in 1..n] = r{0}[t - 1] * 0.5 + u[t];\n", i);
  }
  expect_agrees(source, {"r0", "r299"});
}

TEST(Long, AStepOfManyValuesWithItsGradient) {
  std::string source = "let w: f64 = 0.5;\nlet h[0] = w;\nlet h[t in 1..n] = {\n";
  source += "  let a0 = h[t - 1] * 0.5 + u[t];\n";
  for (int i = 1; i < 1000; ++i) {
    source += fmt::format("  let a{} = a{} * w + a{} * 0.{};\n", i, i - 1, i / 2, 1 + i % 3);
    if (i % 7 == 0) source += fmt::format("  let b{0} = sin(a{0});\n", i);
  }
  source += "  sin(a999) + b7 + b994\n};\nlet loss = sum[t](h[t]);\nlet d = @loss / @w;\n";
  expect_agrees(source, {"h", "loss", "d"});
}

TEST(Long, AnExpressionOfManyTerms) {
  std::string sum = "u[i]", arms;
  for (int i = 0; i < 3000; ++i) {
    sum += fmt::format(" {} u[i] * {}.25", i % 2 ? "+" : "-", i % 9);
    arms += fmt::format("if i * 7 == {} {{ {}.5 }} else ", i, i % 11);
  }
  expect_agrees("let y[i] = " + sum + ";\nlet z[i] = u[i] * (" + arms + "{ 0.0 });\n", {"y", "z"});
}

TEST(Long, ACellOfManySums) {
  std::string sum = "u[i]", nested = "u[i]";
  for (int i = 0; i < 300; ++i) {
    sum += fmt::format(" {} sum[j](u[j] * {}.25 * u[i] + u[i])", i % 2 ? "+" : "-", i % 9);
    nested +=
        fmt::format(" + {}.5 * sum[j](sin(u[j]) * max[k](u[k] * u[j] - {}.0 * u[i]))", i % 7, i);
  }
  expect_agrees("let y[i] = " + sum + ";\nlet z[i] = " + nested + ";\n", {"y", "z"});
}

TEST(Long, ACellOfManyCalls) {
  std::string source =
      "fn f(a: f64, k: i32) -> f64 { if k <= 0 { a } else { f(a * 0.5, k - 1) } }\n";
  std::string calls = "u[i]";
  for (int i = 0; i < 600; ++i) {
    calls += fmt::format(" {} f(u[i] * {}.5 + u[0], {})", i % 3 ? "+" : "*", i % 7, i % 4);
    if (i % 50 == 0) calls = fmt::format("(if u[i] > 0.0 {{ {} }} else {{ f(u[i], 2) }})", calls);
  }
  expect_agrees(source + "let y[i] = " + calls + ";\n", {"y"});
}

}  // namespace
}  // namespace ein

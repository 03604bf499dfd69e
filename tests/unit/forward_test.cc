// Derivatives from either side: the same values, from the side that is cheaper, and contractions of
// a Jacobian without the Jacobian. Costs are the reference evaluator's operations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/eval.h"
#include "core/print.h"
#include "properties.h"

namespace ein {
namespace {

using autodiff::Direction;

Tensor random_tensor(std::vector<int64_t> shape, uint32_t seed) {
  Tensor t(DType::F64, std::move(shape));
  std::mt19937 rng(seed);
  for (int64_t i = 0; i < t.size(); ++i) t.set_float(i, static_cast<double>(rng()) * 0x1p-31 - 1);
  return t;
}

struct CompiledText {
  fuzz::Subject subject;
  explicit CompiledText(const std::string& source, Direction direction = Direction::Auto) {
    EXPECT_EQ(fuzz::compile_source(source, subject, direction), "");
  }
  core::Module& module() { return subject.compiled.module; }
  core::EvalResult run(const core::Inputs& inputs, const std::vector<std::string>& names) {
    std::vector<core::FamilyId> wanted;
    for (const std::string& n : names) wanted.push_back(module().find(intern(n)));
    core::EvalResult r = core::evaluate(module(), inputs, wanted);
    EXPECT_FALSE(r.error) << r.error->message;
    return r;
  }
  uint64_t operations(const core::Inputs& inputs, const std::vector<std::string>& names) {
    return run(inputs, names).operations;
  }
  // The most cells that any computed value has.
  int64_t largest(const core::Inputs& inputs, const std::vector<std::string>& names) {
    int64_t cells = 0;
    for (const auto& [id, value] : run(inputs, names).values) {
      if (module()[id].kind == core::Family::Kind::Defined) cells = std::max(cells, value.size());
    }
    return cells;
  }
};

// `prints`: what is derived can be printed and read again; coordinates without a name get one.
void expect_same(const std::string& source, const core::Inputs& inputs,
                 const std::vector<std::string>& names, bool prints = true) {
  CompiledText reverse(source, Direction::Reverse);
  for (Direction d : {Direction::Auto, Direction::Forward}) {
    CompiledText other(source, d);
    EXPECT_EQ(fuzz::check_same_values(reverse.module(), other.module(), inputs, names), "")
        << core::print(other.module());
    if (prints) { EXPECT_EQ(printed_agrees(other.module()), ""); }
  }
}

// ---- sides --------------------------------------------------------------------------------------

// A chain of two dense layers, from n values to m.
const char* kLayers = R"(
let x: [f64; n];
let A: [f64; h, n];
let B: [f64; m, h];
let a[i] = tanh(sum[k](A[i, k] * x[k]));
let y[i] = tanh(sum[k](B[i, k] * a[k]));
)";

core::Inputs layers(int64_t n, int64_t h, int64_t m) {
  return {{"x", random_tensor({n}, 1)},
          {"A", random_tensor({h, n}, 2)},
          {"B", random_tensor({m, h}, 3)}};
}

TEST(Forward, JacobiansAgreeFromBothSides) {
  std::string source = std::string(kLayers) + "let J = @y / @x;\nlet K = @y / @a;\n";
  expect_same(source, layers(3, 4, 5), {"J", "K"});
}

TEST(Forward, TheSmallerSideIsTaken) {
  auto jacobian = [](int n, int m) {
    return "let x: [f64; " + std::to_string(n) + "];\nlet A: [f64; 20, " + std::to_string(n) +
           "];\nlet B: [f64; " + std::to_string(m) +
           ", 20];\nlet a[i] = tanh(sum[k](A[i, k] * x[k]));\n"
           "let y[i] = tanh(sum[k](B[i, k] * a[k]));\nlet J = @y / @x;\n";
  };
  for (auto [n, m] : {std::pair{2, 30}, {30, 2}}) {
    core::Inputs in = layers(n, 20, m);
    uint64_t forward = CompiledText(jacobian(n, m), Direction::Forward).operations(in, {"J"});
    uint64_t reverse = CompiledText(jacobian(n, m), Direction::Reverse).operations(in, {"J"});
    EXPECT_EQ(CompiledText(jacobian(n, m)).operations(in, {"J"}), std::min(forward, reverse));
    EXPECT_EQ(forward < reverse, n < m) << forward << " forward, " << reverse << " reverse";
  }
}

TEST(Forward, AScalarDenominatorCostsOneSweep) {
  std::string source =
      "let s: f64;\nlet w: [f64; n];\nlet h[0]: f64 = s;\n"
      "let h[t in 1..200] = tanh(0.9 * h[t - 1] + s * w[t]);\nlet d = @h / @s;\n";
  core::Inputs in{{"s", random_tensor({}, 1)}, {"w", random_tensor({200}, 2)}};
  CompiledText c(source);
  EXPECT_LE(c.operations(in, {"h", "d"}), 4 * c.operations(in, {"h"}));
  expect_same(source, in, {"d"});
}

TEST(Forward, ElementwiseJacobianIsItsDiagonal) {
  std::string source =
      "let x: [f64; n];\nlet a[i] = sin(x[i]);\nlet y[i] = exp(a[i]) * a[i];\n"
      "let d[i] = @y[i] / @x[i];\n";
  for (Direction direction : {Direction::Auto, Direction::Forward, Direction::Reverse}) {
    core::Inputs in{{"x", random_tensor({50}, 1)}};
    CompiledText c(source, direction);
    EXPECT_EQ(c.largest(in, {"d"}), 50);
    EXPECT_LE(c.operations(in, {"y", "d"}), 4 * c.operations(in, {"y"}));
  }
}

// ---- contractions -------------------------------------------------------------------------------

TEST(Contraction, JacobianTimesVectorIsOneForwardSweep) {
  std::string source =
      std::string(kLayers) + "let v: [f64; n];\nlet jv[i] = sum[j]((@y[i] / @x[j]) * v[j]);\n";
  core::Inputs in = layers(30, 30, 30);
  in["v"] = random_tensor({30}, 4);
  CompiledText c(source);
  EXPECT_LE(c.operations(in, {"y", "jv"}), 4 * c.operations(in, {"y"}));
  EXPECT_EQ(c.largest(in, {"jv"}), 30);
  expect_same(source, in, {"jv"});
}

TEST(Contraction, VectorTimesJacobianIsOneReverseSweep) {
  std::string source =
      std::string(kLayers) + "let u: [f64; m];\nlet uj[j] = sum[i](u[i] * (@y[i] / @x[j]));\n";
  core::Inputs in = layers(30, 30, 30);
  in["u"] = random_tensor({30}, 4);
  CompiledText c(source);
  EXPECT_LE(c.operations(in, {"y", "uj"}), 4 * c.operations(in, {"y"}));
  EXPECT_EQ(c.largest(in, {"uj"}), 30);
  expect_same(source, in, {"uj"});
}

TEST(Contraction, OfANamedJacobianThatNobodyPrints) {
  std::string source = std::string(kLayers) +
                       "let v: [f64; n];\nlet J = @y / @x;\n"
                       "let jv[i] = -sum[j](2.0 * J[i, j] * v[j] / (1.0 + x[j] ** 2.0));\n";
  core::Inputs in = layers(30, 30, 30);
  in["v"] = random_tensor({30}, 4);
  EXPECT_EQ(CompiledText(source).largest(in, {"jv"}), 30);
  expect_same(source, in, {"jv"});
}

TEST(Contraction, FromBothSidesWithAGate) {
  std::string source = std::string(kLayers) +
                       "let v: [f64; n];\nlet u: [f64; m];\n"
                       "let q = sum[i, j](u[i] * (@y[i] / @x[j]) * v[j] where v[j] > 0.0);\n";
  core::Inputs in = layers(30, 30, 30);
  in["v"] = random_tensor({30}, 4);
  in["u"] = random_tensor({30}, 5);
  EXPECT_EQ(CompiledText(source).largest(in, {"q"}), 30);
  expect_same(source, in, {"q"});
}

TEST(Contraction, SeveralDirectionsAtOnce) {
  std::string source = std::string(kLayers) +
                       "let V: [f64; n, 2];\nlet JV[i, c] = sum[j]((@y[i] / @x[j]) * V[j, c]);\n";
  core::Inputs in = layers(30, 30, 30);
  in["V"] = random_tensor({30, 2}, 4);
  EXPECT_EQ(CompiledText(source).largest(in, {"JV"}), 60);
  expect_same(source, in, {"JV"});
}

// The direction itself depends on what is differentiated: the pushed sum is an ordinary value.
TEST(Contraction, IsDifferentiatedAgain) {
  std::string source = std::string(kLayers) +
                       "let jv[i] = sum[j]((@y[i] / @x[j]) * sin(x[j]));\n"
                       "let uj[j] = sum[i](y[i] * (@y[i] / @x[j]));\n"
                       "let a_loss = sum[i](jv[i] ** 2.0);\nlet b_loss = sum[j](uj[j] ** 3.0);\n"
                       "let da = @a_loss / @x;\nlet db = @b_loss / @x;\n";
  core::Inputs in = layers(3, 4, 5);
  expect_same(source, in, {"da", "db"});
  int skipped = 0;
  CompiledText c(source);
  core::Module& m = c.module();
  EXPECT_EQ(fuzz::check_gradient(m, in, "a_loss", {{"x", "da"}}, 4, skipped), "");
  EXPECT_EQ(fuzz::check_gradient(m, in, "b_loss", {{"x", "db"}}, 4, skipped), "");
}

TEST(Contraction, OneCellOfANumeratorOrDenominatorIsOneSweep) {
  auto source = [](int n) {
    std::string size = std::to_string(n), last = std::to_string(n - 1);
    return "let x: [f64; " + size + "];\nlet w: [f64; " + size + "];\nlet h[i, 0] = x[i];\n" +
           "let h[i, t in 1.." + size + "] = tanh(h[i, t - 1] * w[i] + h[" + last +
           " - i, t - 1]);\nlet by_w = @h[3, " + last + "] / @w;\nlet by_cell = @h / @x[2];\n" +
           "let own[t in 0.." + size + "] = @h[0, " + last + "] / @h[0, t];\n";
  };
  auto inputs = [](int64_t n) {
    return core::Inputs{{"x", random_tensor({n}, 1)}, {"w", random_tensor({n}, 2)}};
  };
  CompiledText c(source(30));
  for (const char* name : {"by_w", "by_cell", "own"}) {
    EXPECT_LE(c.operations(inputs(30), {"h", name}), 4 * c.operations(inputs(30), {"h"})) << name;
    EXPECT_EQ(c.largest(inputs(30), {name}), 30 * 30) << name;
  }
  expect_same(source(6), inputs(6), {"by_w", "by_cell", "own"}, false);
}

// ---- Hessians -----------------------------------------------------------------------------------

const char* kLoss = R"(
let x: [f64; n];
let A: [f64; n, n];
let v: [f64; n];
let r[i] = tanh(sum[j](A[i, j] * x[j]));
let loss = sum[i](r[i] ** 2.0 * exp(x[i]));
let g = @loss / @x;
)";

core::Inputs loss_inputs(int64_t n) {
  return {
      {"x", random_tensor({n}, 1)}, {"A", random_tensor({n, n}, 2)}, {"v", random_tensor({n}, 3)}};
}

TEST(Hessian, TimesAVectorCostsAFewGradients) {
  std::string source =
      std::string(kLoss) + "let hv[p] = sum[q]((@(@loss / @x[p]) / @x[q]) * v[q]);\n";
  for (int64_t n : {10, 40}) {
    CompiledText c(source);
    core::Inputs in = loss_inputs(n);
    EXPECT_LE(c.operations(in, {"hv"}), 4 * c.operations(in, {"g"})) << n;
    EXPECT_EQ(c.largest(in, {"hv"}), n);
  }
  expect_same(source, loss_inputs(5), {"hv"});
}

TEST(Hessian, WholeIsSymmetricAndAgrees) {
  std::string source = std::string(kLoss) + "let H[p, q] = @g[p] / @x[q];\n";
  core::Inputs in = loss_inputs(6);
  expect_same(source, in, {"H"});
  CompiledText c(source);
  core::EvalResult r = c.run(in, {"H"});
  const Tensor& h = r.values.at(c.module().find(intern("H")));
  for (int64_t p = 0; p < 6; ++p) {
    for (int64_t q = 0; q < 6; ++q)
      EXPECT_NEAR(h.get_float(6 * p + q), h.get_float(6 * q + p), 1e-12);
  }
}

}  // namespace
}  // namespace ein

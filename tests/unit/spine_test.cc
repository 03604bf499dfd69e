// The programs of tests/grad through the whole line: source → Core → derivative → printed source →
// reference and native code, at two sizes with one compilation.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>

#include "codegen/native.h"
#include "core/print.h"
#include "properties.h"

namespace ein {
namespace {

using core::Inputs;
using fuzz::Subject;

std::string read_program(const std::string& name) {
  std::ifstream in(std::string(EIN_SOURCE_DIR) + "/tests/grad/" + name + ".ein");
  EXPECT_TRUE(in) << name;
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

struct Draw {
  std::mt19937 rng{7};
  Tensor real(std::vector<int64_t> shape) {
    Tensor t(DType::F64, std::move(shape));
    for (int64_t i = 0; i < t.size(); ++i)
      t.set_float(i, static_cast<double>(rng()) / 2147483648.0 - 1);
    return t;
  }
  Tensor whole(std::vector<int64_t> shape, uint32_t below) {
    Tensor t(DType::I32, std::move(shape));
    for (int64_t i = 0; i < t.size(); ++i) t.set_int(i, rng() % below);
    return t;
  }
  Tensor truth(std::vector<int64_t> shape) {  // mostly true, and no row all false
    Tensor t(DType::Bool, std::move(shape));
    for (int64_t i = 0; i < t.size(); ++i)
      t.set_int(i, i % t.shape().back() == 0 || rng() % 3 != 0);
    return t;
  }
};

struct Case {
  std::string file;
  std::function<Inputs(int64_t n)> inputs;  // n: the extent that grows
  std::string loss;
  std::vector<std::pair<std::string, std::string>> gradients;  // input, derivative
  std::vector<std::string> reads;                              // the printed derivative contains
};

std::vector<Case> cases() {
  static Draw d;
  return {
      {"matmul",
       [](int64_t n) {
         return Inputs{{"A", d.real({n, 4})}, {"B", d.real({4, 3})}};
       },
       "loss",
       {{"A", "dA"}, {"B", "dB"}},
       {"= sum[j in 0..j](d_loss_d_C[i, j] * B[k, j]);",
        "= sum[i in 0..i](d_loss_d_C[i, j] * A[i, k]);"}},
      {"conv",
       [](int64_t n) {
         return Inputs{{"x", d.real({2, 2, n, 5})}, {"w", d.real({3, 2, 3, 3})}};
       },
       "loss",
       {{"x", "dx"}, {"w", "dw"}},
       {"let dx[", "let dw["}},
      {"conv_valid",
       [](int64_t n) {
         return Inputs{{"x", d.real({2, 2, n, 5})}, {"w", d.real({3, 2, 3, 2})}};
       },
       "loss",
       {{"x", "dx"}, {"w", "dw"}},
       {"[b, oc, ih - kh, iw - kw]"}},
      {"softmax",
       [](int64_t n) {
         return Inputs{
             {"logits", d.real({3, n})}, {"valid", d.truth({3, n})}, {"target", d.real({3, n})}};
       },
       "loss",
       {{"logits", "dlogits"}},
       {"where valid[b, c]"}},
      {"gather",
       [](int64_t n) {
         return Inputs{{"table", d.real({6, 3})}, {"idx", d.whole({n}, 5)}};
       },
       "loss",
       {{"table", "dtable"}},
       {"where idx[n] == r"}},
      {"coupled",
       [](int64_t n) {
         return Inputs{{"x", d.real({n})}, {"w", d.real({})}, {"u", d.real({})}};
       },
       "loss",
       {{"x", "dx"}, {"w", "dw"}, {"u", "du"}},
       {"[t + 1]"}},
      {"regression",
       [](int64_t n) {
         return Inputs{{"x", d.real({n, 3})}, {"y", d.real({n})}};
       },
       "err",
       {{"y", "dy"}},
       {"let W[s in 1..20, j"}},
  };
}

class Spine : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    std::string wrong = fuzz::compile_source(read_program(GetParam().file), subject_);
    ASSERT_EQ(wrong, "");
  }
  core::Module& module() { return subject_.compiled.module; }
  std::vector<core::FamilyId> wanted() {
    std::vector<core::FamilyId> out{module().find(intern(GetParam().loss))};
    for (const auto& [input, gradient] : GetParam().gradients)
      out.push_back(module().find(intern(gradient)));
    return out;
  }
  Subject subject_;
};

TEST_P(Spine, PrintedSourceIsReadableAndParsesToTheSameCore) {
  std::string printed = core::print(module());
  for (const std::string& part : GetParam().reads)
    EXPECT_NE(printed.find(part), std::string::npos) << part << "\n" << printed;
  EXPECT_EQ(printed.find('@'), std::string::npos);
  EXPECT_EQ(printed_agrees(module()), "");
}

TEST_P(Spine, GradientsEqualFiniteDifferences) {
  Inputs inputs = GetParam().inputs(6);
  int skipped = 0;
  for (const auto& [input, gradient] : GetParam().gradients) {
    EXPECT_EQ(
        fuzz::check_gradient(module(), inputs, GetParam().loss, {{input, gradient}}, 8, skipped),
        "");
  }
  EXPECT_EQ(skipped, 0);
}

TEST_P(Spine, GradientCostsAtMostFourTimesTheValue) {
  Inputs inputs = GetParam().inputs(40);
  uint64_t value = core::evaluate(module(), inputs, {wanted()[0]}).operations;
  uint64_t all = core::evaluate(module(), inputs, wanted()).operations;
  RecordProperty("ratio", std::to_string(static_cast<double>(all) / static_cast<double>(value)));
  EXPECT_LE(all, 4 * value) << core::print(module());
}

TEST_P(Spine, NativeEqualsReferenceAtTwoSizesWithOneCompilation) {
  auto compiled = compile_native(module(), wanted(), {});
  ASSERT_TRUE(std::holds_alternative<std::shared_ptr<Native>>(compiled))
      << std::get<std::string>(compiled);
  Native& native = *std::get<std::shared_ptr<Native>>(compiled);
  uint64_t compilations = native_compile_count();
  for (int64_t n : {17, 10000}) {
    Inputs inputs = GetParam().inputs(n);
    core::EvalResult reference = core::evaluate(module(), inputs, wanted());
    ASSERT_FALSE(reference.error) << reference.error->message;
    NativeResult result = run(native, inputs);
    ASSERT_FALSE(result.error) << result.error->message;
    for (core::FamilyId f : wanted()) {
      std::string where;
      EXPECT_TRUE(close(reference.values.at(f), result.values.at(f), 1e-9, where))
          << text(module()[f].name) << " at extent " << n << ": " << where;
    }
  }
  EXPECT_EQ(native_compile_count(), compilations);
}

TEST(Product, GradientIsExactWhenFactorsAreZero) {
  Subject subject;
  ASSERT_EQ(fuzz::compile_source("let x: [f64; n];\nlet p = prod[i](x[i]);\nlet dp = @p / @x;\n",
                                 subject),
            "");
  core::Module& m = subject.compiled.module;
  Tensor x(DType::F64, {4});
  double values[] = {2, 0, 3, 4}, want[] = {0, 24, 0, 0};
  for (int64_t i = 0; i < 4; ++i) x.set_float(i, values[i]);
  core::FamilyId dp = m.find(intern("dp"));
  core::EvalResult r = core::evaluate(m, {{"x", x}}, {dp});
  ASSERT_FALSE(r.error);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(r.values.at(dp).get_float(i), want[i]);
  EXPECT_EQ(native_agrees(m, {{"x", x}}, {"p", "dp"}), "");
}

INSTANTIATE_TEST_SUITE_P(Programs, Spine, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.file; });

}  // namespace
}  // namespace ein

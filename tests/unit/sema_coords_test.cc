// Coordinate and pack parameters: lifted arguments (decisions.md, 1), matching (decisions.md, 4),
// mapped calls (decisions.md, 6) and gates over calls (decisions.md, 17).
#include <cmath>

#include "properties.h"
#include "sema_util.h"

namespace ein::test {
namespace {

using V = std::vector<double>;

const std::string kSoftmax =
    "fn softmax[j](x: [f32; ..left, j, ..right]) -> [f32; ..left, j, ..right] {"
    "  let m[..left, ..right] = max[j](x[..left, j, ..right]);"
    "  let e[..left, j, ..right] = exp(x[..left, j, ..right] - m[..left, ..right]);"
    "  e[..left, j, ..right] / sum[j](e[..left, j, ..right])"
    "}";
const std::string kLayerNorm =
    "fn layer_norm[feature](x: [f32; ..b, feature], gamma: [f32; feature], beta: [f32; feature])"
    "    -> [f32; ..b, feature] {"
    "  let mean_val[..b] = mean[feature](x[..b, feature]);"
    "  let centered[..b, feature] = x[..b, feature] - mean_val[..b];"
    "  let var[..b] = mean[feature](centered[..b, feature] ** 2.0);"
    "  (centered[..b, feature] / (var[..b] ** 0.5 + 1e-5)) * gamma[feature] + beta[feature]"
    "}";

void expect_near(const V& got, const V& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << "cell " << i;
}

V softmax(const V& x) {
  double sum = 0;
  V out;
  for (double v : x) sum += std::exp(v);
  for (double v : x) out.push_back(std::exp(v) / sum);
  return out;
}

TEST(SemaCoords, SoftmaxOverAnyRank) {
  const std::string in = kSoftmax +
                         "let raw = [[0.0, 1.0, 2.0], [1.0, 5.0, 1.0]];"
                         "let x[b, class] = raw[b, class];";
  V row0 = softmax({0, 1, 2}), row1 = softmax({1, 5, 1}), both = row0;
  both.insert(both.end(), row1.begin(), row1.end());
  expect_near(values(in + "let p = softmax[class](x);", "p"), both);
  expect_near(values(in + "let p[b, class] = softmax[class](x[b, class]);", "p"), both);
  expect_near(values(in + "let p[b, j] = softmax[class](x[b, class]);", "p"), both);
  expect_near(values(in + "let p = softmax[class](x[1]);", "p"), row1);
  expect_near(values(in + "let p[class] = softmax[class](x[0, class]);", "p"), row0);
  V c0 = softmax({0, 1}), c1 = softmax({1, 5}), c2 = softmax({2, 1});
  expect_near(values(in + "let p = softmax[b](x);", "p"),
              {c0[0], c1[0], c2[0], c0[1], c1[1], c2[1]});
  expect_near(values(in + "let p[class, b] = softmax[class](x[b, class]);", "p"),
              {row0[0], row1[0], row0[1], row1[1], row0[2], row1[2]});
  expect_near(values(in + "let s = sum[b, class](softmax[class](x[b, class]) * x[b, class]);", "s"),
              {row0[1] + 2 * row0[2] + row1[0] + 5 * row1[1] + row1[2]});
}

TEST(SemaCoords, SoftmaxBetweenTwoPacks) {
  const std::string in = kSoftmax +
                         "let raw = [[[0.0, 1.0], [2.0, 1.0], [4.0, 3.0]]];"
                         "let x[b, class, t] = raw[b, class, t];";
  V a = softmax({0, 2, 4}), b = softmax({1, 1, 3});
  V want{a[0], b[0], a[1], b[1], a[2], b[2]};
  expect_near(values(in + "let p[b, class, t] = softmax[class](x[b, class, t]);", "p"), want);
  expect_near(values(in + "let p = softmax[class](x);", "p"), want);
  expect_near(values(in + "let p[t, class] = softmax[class](x[0, class, t]);", "p"),
              {a[0], a[1], a[2], b[0], b[1], b[2]});
}

TEST(SemaCoords, CalleeNamesStayInside) {
  // The caller uses the callee's own names, in another order.
  const std::string in = kSoftmax + "let raw = [[0.0, 1.0], [2.0, 5.0]]; let x[j, m] = raw[j, m];";
  V a = softmax({0, 1}), b = softmax({2, 5});
  expect_near(values(in + "let p[j, m] = softmax[m](x[j, m]);", "p"), {a[0], a[1], b[0], b[1]});
  EXPECT_EQ(definition(kSoftmax + "let x: [f32; n, c]; let y = softmax[c](x);", "y"),
            "let y[n in 0..n, c in 0..c] = y_e[n, c] / sum[j in 0..extent(x, 1)](y_e[n, j]);\n");
}

TEST(SemaCoords, LayerNormEndsInFreeCoordinates) {
  const std::string in = kLayerNorm +
                         "let raw = [[0.0, 1.0, 2.0], [1.0, 3.0, 2.0]]; let x[t, c] = raw[t, c];"
                         "let g = [1.0, 2.0, 3.0]; let gamma[c] = g[c];";
  V want{-0.22473, 2, 6.67419, -0.22473, 4.44946, 3};
  expect_near(values(in + "let y = layer_norm[c](x, gamma, gamma);", "y"), want);
  // Unnamed arguments adopt the name.
  expect_near(values(in + "let y[t, c] = layer_norm[c](x[t, c], g, gamma[c]);", "y"), want);
  expect_near(values(in + "let y = layer_norm[c](x[1], g, g);", "y"), {-0.22473, 4.44946, 3});
}

TEST(SemaCoords, PacksInStatements) {
  const std::string in = "let raw = [[1.0, 2.0], [3.0, 4.0]]; let x[t, c] = raw[t, c];";
  EXPECT_EQ(values(in + "let y[..b] = x[..b] * 2.0;", "y"), (V{2, 4, 6, 8}));
  EXPECT_EQ(values(in + "let y[..b, i] = x[..b, i] + 1.0;", "y"), (V{2, 3, 4, 5}));
  EXPECT_EQ(values(in + "let y[i, ..b] = x[i, ..b] + 1.0;", "y"), (V{2, 3, 4, 5}));
  EXPECT_EQ(values(in + "let y[i, j, ..b] = x[i, j, ..b];", "y"), (V{1, 2, 3, 4}));
  EXPECT_EQ(values(in + "let y = sum[..b](x[..b]);", "y"), V{10});
  EXPECT_EQ(values(in + "let y[j] = sum[..b](x[..b, j]);", "y"), (V{4, 6}));
  EXPECT_EQ(values(in + "let y[..b] = max[c](x[..b, c]);", "y"), (V{2, 4}));
  EXPECT_EQ(definition("let x: [f32; n, m]; let y[..b] = x[..b] * 2.0;", "y"),
            "let y[n in 0..n, m in 0..m] = x[n, m] * 2.0;\n");
}

TEST(SemaCoords, BatchedMatmul) {
  const std::string matmul =
      "fn matmul[k](a: [f32; ..batch, m, k], b: [f32; ..batch, k, n]) -> [f32; ..batch, m, n] {"
      "  let out[..batch, i, j] = sum[k](a[..batch, i, k] * b[..batch, k, j]);"
      "  out"
      "}";
  EXPECT_EQ(values(matmul + "let p = [[1.0, 2.0], [3.0, 4.0]]; let A[r, k] = p[r, k];"
                            "let B[k, c] = p[k, c]; let C = matmul[k](A, B);",
                   "C"),
            (V{7, 10, 15, 22}));
  EXPECT_EQ(definition(matmul + "let A: [f32; z, r, k]; let B: [f32; z, k, c];"
                                "let C = matmul[k](A, B);",
                       "C"),
            "let C[z in 0..z, r in 0..r, c in 0..c] = C_out[z, r, c];\n");
}

TEST(SemaCoords, PackParametersAndExtents) {
  const std::string pool =
      "fn pool[..s](x: [f32; ..l, ..s]) -> [f32; ..l] { mean[..s](x[..l, ..s]) }"
      "fn scaled[j](x: [f32; ..l, j]) -> [f32; ..l, j] { x[..l, j] * (extent(j) as f32) }"
      "let raw = [[[1.0, 2.0], [3.0, 6.0]]]; let x[b, h, w] = raw[b, h, w];";
  EXPECT_EQ(values(pool + "let y = pool[(h, w)](x);", "y"), V{3});
  EXPECT_EQ(values(pool + "let y[b] = pool[(h, w)](x[b, h, w]);", "y"), V{3});
  EXPECT_EQ(values(pool + "let y = pool[(w)](x[0]);", "y"), (V{1.5, 4.5}));
  EXPECT_EQ(values(pool + "let y = scaled[w](x[0]);", "y"), (V{2, 4, 6, 12}));
}

TEST(SemaCoords, NestedCalls) {
  const std::string twice =
      kSoftmax +
      "fn twice[c](x: [f32; ..l, c]) -> [f32; ..l, c] { softmax[c](softmax[c](x[..l, c])) }"
      "let raw = [0.0, 1.0]; let x[j] = raw[j];";
  expect_near(values(twice + "let y = twice[j](x);", "y"), softmax(softmax({0, 1})));
  expect_near(values(twice + "let y[j] = softmax[j](softmax[j](x[j]) * 2.0);", "y"),
              softmax({2 * softmax({0, 1})[0], 2 * softmax({0, 1})[1]}));
}

TEST(SemaCoords, AttentionComputesScoresOnce) {
  std::string text = definition(kSoftmax +
                                    "let Q: [f32; q, d]; let K: [f32; k, d];"
                                    "let w[q, k] = softmax[k](sum[d](Q[q, d] * K[k, d]));",
                                "w_m");
  EXPECT_EQ(text, "let w_m[q in 0..q] = max[j in 0..k](w_softmax_x[q, j]);\n");
}

TEST(SemaCoords, FixedIndicesComeFirst) {
  const std::string in = kSoftmax +
                         "let raw = [[0.0, 1.0], [2.0, 5.0]]; let x[t, c] = raw[t, c];"
                         "let pick = [1, 0];";
  V a = softmax({0, 1}), b = softmax({2, 5});
  expect_near(values(in + "let p[i, c] = softmax[c](x[pick[i], c]);", "p"),
              {b[0], b[1], a[0], a[1]});
  expect_near(values(in + "let h[0, c] = x[0, c];"
                          "let h[t in 1..2, c] = softmax[c](h[t-1, c] + x[t, c]);",
                     "h"),
              {0, 1, softmax({2, 6})[0], softmax({2, 6})[1]});
}

TEST(SemaCoords, ScalarParametersMap) {
  const std::string in =
      "fn relu(x: f32) -> f32 { if x > 0.0 { x } else { 0.0 } }"
      "fn spread(x: f32, w: [f32; n]) -> f32 { sum[n](w[n] * x) }"
      "let raw = [[1.0, -2.0], [-3.0, 4.0]]; let z[b, n] = raw[b, n]; let w = [2.0, 3.0];";
  EXPECT_EQ(values(in + "let y = relu(z);", "y"), (V{1, 0, 0, 4}));
  EXPECT_EQ(definition("fn relu(x: f32) -> f32 { max(x, 0.0) }"
                       "let z: [f32; b, out]; let y = relu(z);",
                       "y"),
            "let y[b in 0..b, out in 0..out] = relu(z[b, out]);\n");
  // The parameter is a cell: its own coordinate `n` is not the one that is summed.
  EXPECT_EQ(values(in + "let y = spread(z, w);", "y"), (V{5, -10, -15, 20}));
}

TEST(SemaCoords, GateRestrictsTheCoordinate) {
  const std::string in =
      kSoftmax +
      "fn centre[j](x: [f32; ..l, j]) -> [f32; ..l, j] { x[..l, j] - mean[j](x[..l, j]) }"
      "fn both[j](x: [f32; ..l, j]) -> [f32; ..l, j] { softmax[j](x) + centre[j](x) }"
      "let raw = [[0.0, 1.0, 2.0], [1.0, 3.0, 7.0]];"
      "let ok = [[true, true, false], [false, true, true]];"
      "let x[b, c] = raw[b, c];";
  V a = softmax({0, 1}), b = softmax({3, 7});
  V masked{a[0], a[1], 0, 0, b[0], b[1]};
  expect_near(values(in + "let p[b, c] = softmax[c](x[b, c]) where ok[b, c];", "p"), masked);
  expect_near(values(in + "let p = softmax[c](x) where x[b, c] != 2.0 && ok[b, c];", "p"), masked);
  expect_near(values(in + "let p[b, c] = centre[c](x[b, c]) where ok[b, c];", "p"),
              {-0.5, 0.5, 0, 0, -2, 2});
  expect_near(values(in + "let p[b, c] = both[c](x[b, c]) where ok[b, c];", "p"),
              {a[0] - 0.5, a[1] + 0.5, 0, 0, b[0] - 2, b[1] + 2});
  expect_near(values(in + "let p[b, c] = softmax[c](x[b, c]) where c <= b;", "p"),
              {1, 0, 0, softmax({1, 3})[0], softmax({1, 3})[1], 0});
  // Cells outside are never read: NaN does not leak.
  expect_near(values(in + "let y[b, c] = log(x[b, c] - 0.5);"
                          "let p[b, c] = softmax[c](y[b, c]) where x[b, c] > 0.5;",
                     "p"),
              {0, softmax({std::log(0.5), std::log(1.5)})[0],
               softmax({std::log(0.5), std::log(1.5)})[1], 0.5 / 9.5, 2.5 / 9.5, 6.5 / 9.5});
}

TEST(SemaCoords, MaskedSoftmaxGradient) {
  fuzz::Subject subject;
  std::string source =
      "fn softmax[j](x: [f64; ..left, j]) -> [f64; ..left, j] {"
      "  let m[..left] = max[j](x[..left, j]);"
      "  let e[..left, j] = exp(x[..left, j] - m[..left]);"
      "  e[..left, j] / sum[j](e[..left, j])"
      "}"
      "let x: [f64; b, c]; let ok: [bool; b, c]; let w: [f64; b, c];"
      "let p[b, c] = softmax[c](x[b, c]) where ok[b, c];"
      "let loss = sum[b, c](p[b, c] * w[b, c]);"
      "let dx = @loss / @x;";
  ASSERT_EQ(fuzz::compile_source(source, subject), "");
  core::Inputs in;
  in["x"] = tensor({2, 3}, {0.1, 0.9, 2.0, -1.0, 0.5, 0.3}, DType::F64);
  in["w"] = tensor({2, 3}, {1.0, -2.0, 0.5, 0.7, 0.2, 3.0}, DType::F64);
  in["ok"] = tensor({2, 3}, {1, 1, 0, 0, 1, 1}, DType::Bool);
  int skipped = 0;
  EXPECT_EQ(fuzz::check_gradient(subject.compiled.module, in, "loss", {{"x", "dx"}}, 6, skipped),
            "");
  EXPECT_EQ(printed_agrees(subject.compiled.module), "");
}

}  // namespace
}  // namespace ein::test

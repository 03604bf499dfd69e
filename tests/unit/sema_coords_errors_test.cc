// Errors of coordinate and pack parameters: code, message, place.
#include "sema_util.h"

namespace ein::test {
namespace {

const std::string kSoftmaxCall =
    "fn softmax[j](x: [f32; ..left, j, ..right]) -> [f32; ..left, j, ..right] {"
    "  let e[..left, j, ..right] = exp(x[..left, j, ..right]);"
    "  e[..left, j, ..right] / sum[j](e[..left, j, ..right])"
    "}"
    "let x: [f32; b, class]; let ok: [bool; b, class];";

std::string help_of(const std::string& source) {
  Checked c;
  check(c, source);
  return c.rendered();
}

TEST(SemaCoordErrors, Grounding) {
  const std::string raw = kSoftmaxCall + "let raw = [[0.0, 1.0], [1.0, 2.0]];";
  expect_only(raw + "let p = softmax[c](raw);", "E0311",
              "argument `x` of `softmax` has no coordinate named `c`", "c");
  EXPECT_NE(help_of(raw + "let p = softmax[c](raw);").find("`let named[i0, c] = raw[i0, c];`"),
            std::string::npos);
  expect_only(
      "fn f[j](x: [f32; ..l, j]) -> [f32; ..l] { sum[j](x) } let raw = [1.0]; let p = f[c](raw);",
      "E0311", "has no coordinate named `c`", "c");
  expect_only(kSoftmaxCall + "let p = softmax[clas](x);", "E0305",
              "argument `x` of `softmax` has no coordinate `clas`", "clas");
  EXPECT_NE(help_of(kSoftmaxCall + "let p = softmax[clas](x);").find("did you mean `class`?"),
            std::string::npos);
  expect_only(kSoftmaxCall + "let p = softmax[class](x[b, class]);", "E0303",
              "index `b` is neither on the left nor reduced", "softmax[class](x[b, class])");
}

TEST(SemaCoordErrors, Brackets) {
  expect_only(kSoftmaxCall + "let p = softmax[b, class](x);", "E0312",
              "`softmax` takes 1 coordinate in brackets, not 2", "b, class");
  expect_only(kSoftmaxCall + "let p = softmax(x);", "E0312",
              "`softmax` takes 1 coordinate in brackets, not 0", "softmax(x)");
  expect_only(kSoftmaxCall + "let p = softmax[(b, class)](x);", "E0312",
              "a group is given for `j` of `softmax`, which is a single coordinate", "(b, class)");
  expect_only(kSoftmaxCall + "let p = softmax[class in 0..2](x);", "E0312",
              "`softmax` takes coordinates, not ranges", "0..2");
  expect_only(kSoftmaxCall + "fn g(x) { x } let p = g[class](x);", "E0312",
              "`g` takes no coordinates in brackets", "g[class](x)");
  expect_only(
      "fn f[i, j](x: [f32; ..l, i, j]) -> [f32; ..l] { sum[i, j](x) } let x: [f32; a, b];"
      "let p = f[a, a](x);",
      "E0312", "`a` is given twice to `f`", "a");
}

TEST(SemaCoordErrors, Matching) {
  expect_only(
      "fn f[i, j](x: [f32; i, ..m, j]) -> [f32; ..m] { sum[i, j](x) }"
      "let x: [f32; a, b, c]; let p = f[c, a](x);",
      "E0314", "`a` comes before `c` in the argument, but after it in the signature", "x");
  expect_only(
      "fn f[j](x: [f32; ..l, j], y: [f32; j]) -> [f32; ..l, j] { x[..l, j] * y[j] }"
      "let x: [f32; b, 3]; let y: [f32; 4]; let z[i, c] = x[i, c]; let p = f[c](z, y);",
      "E0314", "coordinate `c` has two different extents in this call", "y");
  expect_only(
      "fn f[j](x: [f32; ..l, j], y: [f32; ..l]) -> [f32; ..l, j] { x[..l, j] * y[..l] }"
      "let x: [f32; a, c]; let y: [f32; b]; let p = f[c](x, y);",
      "E0314", "coordinate `..l` of `f` is `a` in one argument and `b` in another", "y");
  expect_only(
      "fn f[j](x: [f32; ..l, ..r, j]) -> [f32; j] { sum[..l, ..r](x[..l, ..r, j]) }"
      "let x: [f32; a, b, c]; let p = f[c](x);",
      "E0314", "are next to each other, so it is not known where one ends", "[f32; ..l, ..r, j]");
  expect_only(
      "fn f[j](x: [f32; j, n, ..l]) -> [f32; ..l] { sum[j, n](x) }"
      "let x: [f32; c]; let p = f[c](x);",
      "E0314", "argument `x` of `f` does not match its type", "x");
}

TEST(SemaCoordErrors, Results) {
  expect_only(
      "fn f[j](x: [f32; ..l, j]) -> [f32; ..l, k] { x } let x: [f32; b, c];"
      "let p = f[c](x);",
      "E0315", "the return type of `f` names `k`, which comes from no parameter", "k");
  expect_only(
      "fn f[j](x: [f32; ..l, j]) -> [f32; j, ..l] { x } let x: [f32; b, c];"
      "let p = f[c](x);",
      "E0405", "coordinate 0 of the result of `f` is `b`, but its type says `j`", "[f32; j, ..l]");
  expect_only(
      "fn f[j](x: [f32; ..l, j]) -> [f32; ..l] { x } let x: [f32; b, c];"
      "let p = f[c](x);",
      "E0405", "the result of `f` has 2 coordinates, but its type has 1", "[f32; ..l]");
}

TEST(SemaCoordErrors, Packs) {
  expect_only("let x: [f32; n]; let y[..b] = 1.0;", "E0313",
              "it is not known which coordinates `..b` has", "b");
  expect_only("let x: [f32; n]; let y[i] = x[..b] + x[i];", "E0313",
              "pack `..b` is neither on the left nor reduced", "b");
}

TEST(SemaCoordErrors, GatesThroughCalls) {
  expect_only(kSoftmaxCall +
                  "fn d[j](x: [f32; ..l, j]) -> [f32; ..l, j] { x[..l, j] - x[..l, 0] }"
                  "let p[b, class] = d[class](x[b, class]) where ok[b, class];",
              "E0316", "it reads the masked coordinate at an offset or through data", "where");
  expect_only(kSoftmaxCall +
                  "fn sz[j](x: [f32; ..l, j]) -> [f32; ..l] {"
                  "  sum[j](x[..l, j]) / (extent(j) as f32) }"
                  "let p[b] = sz[class](x[b, class]) where ok[b, class];",
              "E0316", "the function uses the extent of the coordinate", "where");
  expect_only(
      "fn p2[..s](x: [f32; ..s]) -> f32 { let r[i] = sum[k](x[i, k]); sum[i](r[i]) }"
      "let x: [f32; h, w]; let ok: [bool; h, w];"
      "let p = p2[(h, w)](x[h, w]) where ok[h, w];",
      "E0316", "a reduction does not run over all masked coordinates", "where");
}

}  // namespace
}  // namespace ein::test

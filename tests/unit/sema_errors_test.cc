// Every error that sema reports: code, message, place, and that it is the only one.
#include "sema_util.h"

namespace ein::test {
namespace {

const std::string kIn = "let x: [f32; n]; let A: [f32; i, j]; let idx: [i32; m]; let b: bool;\n";

TEST(SemaErrors, Names) {
  expect_only("let lenght = 3; let z = length + 1;", "E0201", "unknown name `length`", "length");
  expect_only("let x = 1; let x = 2;", "E0202", "`x` is defined twice", "x");
  expect_only("fn f(a) { a } fn f(b) { b }", "E0202", "function `f` is defined twice", "f");
  expect_only(kIn + "let y[i, i] = A[i, i];", "E0202", "`i` appears twice on the left", "i");
  expect_only(kIn + "let y = sum[k, k](x[k]);", "E0202", "`k` is reduced twice", "k");
  expect_only("let x = x * 2.0;", "E0203", "`x` depends on itself", "x");
  expect_only("let a = c + 1.0; let c = a + 1.0;", "E0203", "`a` depends on itself", "a");
  expect_only("let y = exo(1.0);", "E0204", "unknown function `exo`", "exo");
  expect_only("let y = exp(1.0, 2.0);", "E0205", "`exp` takes 1 argument, not 2", "exp(1.0, 2.0)");
  expect_only(kIn + "let y = sum(x);", "E0205", "`sum` needs coordinates", "sum(x)");
  expect_only("fn f(a) { a } let y = f(1, 2);", "E0205", "`f` takes 1 argument, not 2", "f(1, 2)");
  expect_only(kIn + "let y = x(3);", "E0206", "`x` is not a function", "x");
  expect_only(kIn + "let y = print(x);", "E0207", "`print` is an effect", "print(x)");
  expect_only(kIn + "x + 1.0;", "W0201", "no effect", "x + 1.0");
  expect_only(kIn + "let k = 2.0; let y[k] = x[k] * k;", "E0208", "index `k` hides a value", "k");
  expect_only(kIn + "let k = 2; let y[i] = x[i] where k = 3;", "E0209", "`k` already exists", "k");
  expect_only("let y = { let q: f32; 1.0 };", "E0210", "an input cannot be declared in a block",
              "q");
}

TEST(SemaErrors, Ranges) {
  expect_only("let x = [1.0, 2.0]; let y = [1.0, 2.0, 3.0]; let z[i] = x[i] + y[i];", "E0301",
              "index `i` has two different extents", "i");
  expect_only(kIn + "let y[p] = x[0] * x[0];", "E0302", "index `p` has no range", "p");
  expect_only(kIn + "let y[p, q] = x[p + q];", "E0302", "index `p` has no range", "p");
  expect_only("let h[0] = 1.0; let h[t] = h[t-1] * 2.0;", "E0302", "index `t` has no range", "t");
  expect_only(kIn + "let y[p] = A[p, k] * 2.0;", "E0303", "`k` is neither on the left nor reduced",
              "k");
  // A shape name alone in a slot is a forgotten index, not an extent.
  expect_only("let A: [f32; i, k]; let B: [f32; k, j]; let C[i, j] = A[i, k] * B[k, j];", "E0303",
              "`k` is neither on the left nor reduced", "k");
  expect_only(kIn + "let y = sum[kk](x);", "E0305", "no coordinate `kk`", "kk");
  expect_only(kIn + "let y = sum[n](x[n] * x);", "E0304",
              "an operand without indices has that coordinate too", "x[n] * x");
  expect_only("let a: [f32; n, n]; let y = sum[n](a);", "E0305", "is the name of two coordinates",
              "n");
  expect_only(kIn + "let y = extent(A, k);", "E0305", "no such coordinate", "k");
  expect_only(kIn + "let y[p in 0..n] = x[p+1];", "E0306", "access to `x` is out of bounds", "p+1");
  expect_only("let h[0] = 1.0; let h[t in 1..5] = h[t-2];", "E0306", "access to `h`", "t-2");
  expect_only("let x = [1.0, 2.0]; let y = x[2];", "E0306", "access to `x`", "2");
  expect_only("let y[p in 3..2] = 1.0;", "E0307", "range runs backwards", "3..2");
  expect_only("let c = [1.0, 2.0]; let k = [1.0, 2.0, 3.0, 4.0]; let y[o] = sum[t](c[o+t] * k[t]);",
              "E0307", "no value of `o` keeps every access in bounds", "o");
  expect_only(kIn + "let y[p] = sum[p](x[p]) where x[p] > 0.0;", "E0308",
              "both an index on the left", "where");
  expect_only(kIn + "let y = sum[p](x[p]) + sum[q](x[q]) where x[p] > x[q];", "E0308",
              "no single reduction has all the indices", "where");
  expect_only(kIn + "let y = sum[p](x[p] where x[p] > 0.0 else 1.0);", "E0308", "`else` belongs",
              "1.0");
  expect_only(kIn + "let y[p, q in 0..p] = x[q];", "E0309",
              "depends on `p`, another index on the left", "0..p");
  expect_only(kIn + "let y[p in 0..idx[0]] = 1.0;", "E0309", "depends on values", "0..idx[0]");
  expect_only(kIn + "let y[p] = x[p, 0];", "E0310", "`x` has 1 coordinate, not 2", "x[p, 0]");
}

TEST(SemaErrors, Clauses) {
  expect_only(kIn + "let d[p] = x[p] - x[p-1];", "E0401", "nothing defines d[0]", "d[p");
  expect_only("let h[0] = 1.0; let h[t in 2..5] = h[t-1];", "E0401", "nothing defines h[1]", "h[0");
  expect_only("let h[t in 0..9]: f32 = h[t] + 1.0;", "E0402", "no order", "h[t]");
  expect_only("let h[t in 0..9]: f32 = h[9 - t] where t > 5;", "E0402", "no order", "h[9 - t]");
  expect_only("let h[t in 1..9] = h[t-1];", "E0403", "its type is not known", "h");
  expect_only("let y[0] = 1.0; let y[1] = true;", "E0403", "`y` is `bool`", "1.0");
  expect_only(kIn + "let y = A + A[0];", "E0404", "different coordinates", "A + A[0]");
  expect_only(kIn + "let P[j, i] = A;", "E0404",
              "`j` would be matched with a coordinate of another name", "j");
  expect_only(kIn + "let y[p] = A[p] * 2.0;", "E0404", "still has coordinates [j]", "A[p] * 2.0");
  expect_only("let a = [1.0, 2.0]; let c = [1.0, 2.0, 3.0]; let y = a + c;", "E0404",
              "two different extents", "c");
  expect_only("let a = [[1.0], [2.0, 3.0]];", "E0404", "lengths 1 and 2", "[2.0, 3.0]");
  expect_only("let a: [f32; 2] = [1.0, 2.0, 3.0];", "E0405", "has extent 3, but its type says 2",
              "2");
  expect_only(kIn + "let a: [f32; n, n] = x;", "E0405", "has 1 coordinate, but its type has 2",
              "[f32; n, n]");
  expect_only(kIn + "let a: [f32; j, i] = A;", "E0405", "lists the coordinates", "[f32; j, i]");
}

TEST(SemaErrors, Types) {
  expect_only(kIn + "let y[p] = x[p] + idx[p];", "E0501", "types differ: `f32` and `i32`",
              "idx[p]");
  expect_only("fn f(a: f32) { a } let k: i32 = 1; let y = f(k);", "E0501", "argument `a` of `f`",
              "k");
  expect_only(kIn + "let y[p] = x[p] * (1 / 2);", "E0502", "integer division", "(1 / 2)");
  expect_only(kIn + "let y = -b;", "E0502", "takes numbers", "b");
  expect_only(kIn + "let y = !x[0];", "E0502", "takes `bool`", "x[0]");
  expect_only(kIn + "let y = exp(idx[0]);", "E0502", "takes floats", "idx[0]");
  expect_only(kIn + "let y = mean[p](idx[p]);", "E0502", "`mean` takes floats, not integers",
              "idx[p]");
  expect_only(kIn + "let y = all[p](x[p]);", "E0502", "`all` takes `bool`", "x[p]");
  expect_only("let y = 1 / 0;", "E0502", "division by zero", "0");
  expect_only("let y = 0..3;", "E0502", "a range is not a value", "0..3");
  expect_only(kIn + "let y = if b { 1.0 };", "E0502", "`if` without `else`", "if b { 1.0 }");
  expect_only("let y: i8 = 300;", "E0503", "300 does not fit in `i8`", "300");
  expect_only(kIn + "let y = if x[0] { 1.0 } else { 2.0 };", "E0504", "condition is not", "x[0]");
  expect_only(kIn + "let y[p] = x[p] where x[p];", "E0504", "condition is not", "x[p]");
  expect_only(kIn + "let y[p] = x[x[p]];", "E0505", "the index is not an integer", "x[p]");
  expect_only(kIn + "let y = x[idx];", "E0505", "the index is a whole array", "idx");
  expect_only("let y: i32 = 2.5;", "E0405", "annotated as `i32`", "2.5");
}

TEST(SemaErrors, Tuples) {
  expect_only("let (a, c) = (1, 2, 3);", "E0502", "the pattern has 2 names", "(1, 2, 3)");
  expect_only("let a = (1, 2) + 1;", "E0502", "a tuple of 2 values is used where", "(1, 2)");
  expect_only("let a = (1, 2).2;", "E0502", "there is no field 2", "(1, 2).2");
}

TEST(SemaErrors, InsideFunctionsOncePerCause) {
  expect_only("fn f(a) { a + missing } let y = f(1.0); let z = f(2.0);", "E0201", "`missing`",
              "missing");
}

TEST(SemaErrors, Requests) {
  expect_only(kIn + "let l = sum[p](x[p]); let g = @l / @idx;", "E0602", "denominator", "idx");
  expect_only(kIn + "let g = @idx / @x;", "E0602", "numerator", "idx");
  expect_only(kIn + "let l = sum[p](x[p]); let g = @l / @(x + x);", "E0603", "must be a name",
              "(x + x)");
  expect_only(kIn + "let g = sum[p](x[p] * @(x[p] * x[p]) / @x[p]);", "E0701", "parentheses",
              "(x[p] * x[p])");
}

TEST(SemaErrors, Limits) {
  expect_only("fn f(a) { f(a) } let y = f(1.0);", "E0216", "its parameter `a` has no type", "a");
}

TEST(SemaWarnings, Places) {
  expect_only("let L: [f32; b, class]; let y[b, class] = L[class, b];", "W0301",
              "index `class` is used for", "class");
  expect_only(kIn + "let y = sum[k](x[k+1]);", "W0302", "never read", "k+1");
}

TEST(SemaErrors, OnePerCause) {
  // Everything made from a value in error is silent.
  expect_only("let a = unknown + 1.0; let c = a * 2.0; let d[i in 0..3] = c + a; print(d);",
              "E0201", "unknown name", "unknown");
}

TEST(SemaErrors, FreeIndexOffersASum) {
  Checked c;
  check(c, "let A: [f32; m, p]; let B: [f32; p, n]; let C[i, j] = A[i, q] * B[q, j];");
  ASSERT_EQ(c.diags.all().size(), 1u) << c.rendered();
  const Diagnostic& d = c.diags.all().front();
  ASSERT_EQ(d.fixes.size(), 1u);
  ASSERT_EQ(d.fixes[0].edits.size(), 2u);
  EXPECT_EQ(d.fixes[0].edits[0].replacement, "sum[q](");
  EXPECT_EQ(d.fixes[0].edits[1].replacement, ")");
}

}  // namespace
}  // namespace ein::test

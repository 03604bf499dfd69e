// What programs mean: ranges, gates, clauses, recurrences, blocks, functions, literals, requests.
#include "sema_util.h"

namespace ein::test {
namespace {

using V = std::vector<double>;

TEST(SemaRanges, MatmulIsInferred) {
  EXPECT_EQ(definition("let A: [f32; m, p]; let B: [f32; p, n];"
                       "let C[i, j] = sum[k](A[i, k] * B[k, j]);",
                       "C"),
            "let C[i in 0..m, j in 0..n] = sum[k in 0..p](A[i, k] * B[k, j]);\n");
}

TEST(SemaRanges, Decision9) {
  const std::string in = "let x: [f32; n]; let y: [f32; m]; let w: [f32; k];";
  auto range = [&](const std::string& let, const std::string& name) {
    std::string line = definition(in + let, name);
    return line.substr(0, line.find(" ="));
  };
  EXPECT_EQ(range("let z[i] = x[i] + x[i+1];", "z"), "let z[i in 0..n - 1]");
  EXPECT_EQ(range("let z[i] = x[i] + y[2*i];", "z"), "let z[i in 0..min(n, (m + 1) / 2)]");
  EXPECT_EQ(range("let z[o] = sum[j](x[o + j] * w[j]);", "z"), "let z[o in 0..n - k + 1]");
  EXPECT_EQ(range("let z[o] = sum[j](x[2*o + j] * w[j]);", "z"), "let z[o in 0..(n - k + 2) / 2]");
  EXPECT_EQ(range("let z[i] = sum[k in 0..=i](x[k]);", "z"), "let z[i in 0..n]");
  EXPECT_EQ(range("let z[i] = sum[k in 0..i](x[k]);", "z"), "let z[i in 0..n + 1]");
  EXPECT_EQ(range("let z[i in 0..3, j] = x[i + j];", "z"), "let z[i in 0..3, j in 0..n - 2]");
  EXPECT_EQ(range("let z[i] = x[n - 1 - i];", "z"), "let z[i in 0..n]");
}

TEST(SemaRanges, GatesExcuseButDoNotNarrow) {
  EXPECT_EQ(values("let a = [1.0, 4.0, 9.0]; let d[i] = a[i] - a[i-1] where i > 0;", "d"),
            (V{0, 3, 5}));
  EXPECT_EQ(definition("let a: [f32; n]; let d[i] = a[i-1] where i > 0;", "d"),
            "let d[i in 0..n + 1] = a[i - 1] where i > 0;\n");
  EXPECT_EQ(values("let a = [1.0, 2.0, 3.0];"
                   "let w[i] = if i == 0 { a[0] } else { a[i-1] + a[i] };",
                   "w"),
            (V{1, 3, 5}));
  EXPECT_EQ(values("let x = [1.0, 2.0, 3.0]; let k = [1.0, 1.0, 1.0];"
                   "let y[o in 0..3] = sum[j](x[p] * k[j]) where p = o + j - 1, p >= 0, p < 3;",
                   "y"),
            (V{3, 6, 5}));
}

TEST(SemaRanges, UnequalSymbolicExtentsBecomeConstraints) {
  Checked c;
  check(c, "let x: [f32; n]; let y: [f32; m]; let z[i] = x[i] + y[i];");
  ASSERT_FALSE(c.diags.has_errors()) << c.rendered();
  ASSERT_EQ(c.m.constraints.size(), 1u);
  EXPECT_EQ(c.m.constraints[0].message,
            "index `i` is coordinate `n` of `x` (extent n) and coordinate `m` of `y` (extent m)");
}

TEST(SemaReductions, OperatorsAndShorthand) {
  const std::string in = "let A = [[1.0, 2.0], [5.0, 4.0]];";
  const std::string a = in + "let N[r, c] = A[r, c];";
  EXPECT_EQ(values(a + "let s = sum[r, c](N[r, c]);", "s"), V{12});
  EXPECT_EQ(values(a + "let s = prod[r, c](N);", "s"), V{40});
  EXPECT_EQ(values(a + "let s = max[c](N);", "s"), (V{2, 5}));
  EXPECT_EQ(values(a + "let s = min[r](N);", "s"), (V{1, 2}));
  EXPECT_EQ(values(a + "let s = mean[r, c](N);", "s"), V{3});
  EXPECT_EQ(values(a + "let s[r] = argmax[c](N[r, c]);", "s"), (V{1, 0}));
  EXPECT_EQ(values(a + "let s = argmin[r](N);", "s"), (V{0, 0}));
  EXPECT_EQ(values(a + "let s = all[r, c](N > 0.0);", "s"), V{1});
  EXPECT_EQ(values(a + "let s = any[r, c](N[r, c] > 7.0);", "s"), V{0});
  EXPECT_EQ(values(a + "let s = sum[c](max[r](N));", "s"), V{9});
  EXPECT_EQ(values(a + "let s = mean[r, c](N[r, c] where N[r, c] > 1.5);", "s")[0],
            static_cast<double>(11.0f / 3.0f));
  EXPECT_EQ(values(a + "let s = sum[r, c](1 where N[r, c] > 1.5);", "s"), V{3});
  EXPECT_EQ(values(a + "let s[i in 0..3] = sum[k in 0..=i](k);", "s"), (V{0, 1, 3}));
}

TEST(SemaGates, InsideAndOutsideMeanTheSame) {
  const std::string in = "let x: [f32; n]; let ok: [bool; n, m]; let A: [f32; n, m];";
  std::string inside = definition(in + "let s = sum[i](x[i] where x[i] > 0);", "s");
  EXPECT_EQ(inside, definition(in + "let s = sum[i](x[i]) where x[i] > 0;", "s"));
  EXPECT_EQ(inside, "let s = sum[i in 0..n](x[i] where x[i] > 0.0);\n");
  EXPECT_EQ(definition(in + "let s = sum[b](max[c](A[b, c])) where ok[b, c];", "s"),
            definition(in + "let s = sum[b](max[c](A[b, c] where ok[b, c]));", "s"));
  EXPECT_EQ(definition(in + "let y[i] = x[i] where x[i] > 0 else -1;", "y"),
            "let y[i in 0..n] = if x[i] > 0.0 { x[i] } else { -1.0 };\n");
  EXPECT_EQ(definition(in + "let h = sum[m](A where ok);", "h"),
            "let h[n in 0..n] = sum[m in 0..m](A[n, m] where ok[n, m]);\n");
}

TEST(SemaClauses, LaterOnesWin) {
  EXPECT_EQ(values("let x = [1.0, -2.0, 3.0]; let y[i] = x[i]; let y[i] = 9.0 where x[i] < 0.0;"
                   "let y[0] = 7.0;",
                   "y"),
            (V{7, 9, 3}));
  EXPECT_EQ(values("let g[i in 0..3, j in 0..3] = 1.0;"
                   "let g[i in 1..3, j in 1..3] = g[i-1, j] + g[i, j-1];",
                   "g"),
            (V{1, 1, 1, 1, 2, 3, 1, 3, 6}));
}

TEST(SemaClauses, LiteralClauseAsksForOneCell) {
  Checked c;
  check(c, "let x: [f32; T]; let h[0] = 0.0; let h[t in 1..T] = h[t-1] + x[t];");
  ASSERT_FALSE(c.diags.has_errors()) << c.rendered();
  ASSERT_EQ(c.m.constraints.size(), 1u);
  EXPECT_EQ(c.m.constraints[0].message,
            "`h` has a clause that extends to 0, so T must be at least 1");
}

TEST(SemaRecurrences, Shapes) {
  EXPECT_EQ(values("let T = 8; let fib[0] = 0; let fib[1] = 1;"
                   "let fib[t in 2..T] = fib[t-1] + fib[t-2];",
                   "fib"),
            (V{0, 1, 1, 2, 3, 5, 8, 13}));
  EXPECT_EQ(values("let up[3] = 1.0; let up[t in 0..3] = up[t+1] * 2.0;", "up"), (V{8, 4, 2, 1}));
  EXPECT_EQ(values("let a[0] = 1.0; let b[0] = 0.0; let a[t in 1..3] = a[t-1] + b[t-1];"
                   "let b[t in 1..3] = b[t-1] + a[t];",
                   "b"),
            (V{0, 1, 3}));
  EXPECT_EQ(values("let x[t in 0..4] = if t == 0 { 1.0 } else { x[t-1] + 1.0 };", "x"),
            (V{1, 2, 3, 4}));
  // A bare literal adapts to what the recurrence computes.
  EXPECT_EQ(values("let x = [0.5, 0.5, 0.5]; let s[0] = 0; let s[t in 1..3] = s[t-1] + x[t];", "s"),
            (V{0, 0.5, 1}));
}

TEST(SemaRecurrences, TrailingCoordinates) {
  EXPECT_EQ(definition("let W0: [f32; out, in]; let W[0] = W0;"
                       "let W[s in 1..5] = { let w = W[s-1]; w * 0.5 };",
                       "W"),
            "let W[0, out in 0..out, in in 0..in] = W0[out, in];\n"
            "let W[s in 1..5, out in 0..out, in in 0..in] = W_w[s, out, in] * 0.5;\n");
}

TEST(SemaBlocks, LocalsBecomeFamiliesOfTheStep) {
  const std::string program =
      "let W0: [f32; in]; let x: [f32; b, in]; let W[0] = W0;"
      "let W[s in 1..5] = { let w = W[s-1]; let p[b] = sum[i](x[b, i] * w[i]);"
      "  let loss = mean[b](p[b] ** 2); let g = @loss / @w; w - 0.1 * g };";
  EXPECT_EQ(definition(program, "W_g"),
            "let W_g[s in 1..5, in in 0..in] = @W_loss[s] / @W_w[s, in];\n"
            "let W_g[0, in in 0..in] = 0.0;\n");
  EXPECT_EQ(definition(program, "W_p"),
            "let W_p[s in 1..5, b in 0..b] = sum[i in 0..in](x[b, i] * W_w[s, i]);\n"
            "let W_p[0, b in 0..b] = 0.0;\n");
}

TEST(SemaBlocks, LocalsOfAnArmAreGated) {
  EXPECT_EQ(values("let x = [1.0, 2.0, 3.0]; let y[t in 0..3] ="
                   " if t > 0 { let p = sum[k in 0..t](x[k]); p * x[t-1] } else { 0.0 };",
                   "y"),
            (V{0, 1, 6}));
  EXPECT_EQ(definition("let x: [f32; n]; let y[t in 0..n] ="
                       " if t > 0 { let p[j] = x[j] * x[t-1]; sum[j](p[j]) } else { 0.0 };",
                       "y_p"),
            "let y_p[t in 0..n, j in 0..n] = x[j] * x[t - 1] where t > 0;\n");
}

TEST(SemaBlocks, UnderABinderTheyAreInlined) {
  EXPECT_EQ(values("let x = [1.0, 2.0]; let s = sum[k]({ let a = x[k] * 2.0;"
                   " let b[j] = x[j] * a; sum[j](b[j]) });",
                   "s"),
            V{18});
  EXPECT_EQ(values("let w = { let q[0] = 1.0; let q[t in 1..5] = q[t-1] * 2.0; q[4] };", "w"),
            V{16});
}

TEST(SemaFunctions, InlinedAtEveryCall) {
  const std::string fns =
      "fn relu(v) { if v > 0 { v } else { 0 } }"
      "fn dot(a: [f32; k], b: [f32; k]) -> f32 { sum[i](a[i] * b[i]) }"
      "fn scaled(a, c) { let s = sum[i](a[i]); a * c / s }"
      "let x = [1.0, -2.0, 3.0]; let M: [f32; n, m];";
  EXPECT_EQ(values(fns + "let y[i] = relu(x[i]);", "y"), (V{1, 0, 3}));
  EXPECT_EQ(values(fns + "let y = relu(x);", "y"), (V{1, 0, 3}));
  EXPECT_EQ(values(fns + "let y = dot(x, x);", "y"), V{14});
  EXPECT_EQ(values(fns + "let y = scaled(x, 4);", "y"), (V{2, -4, 6}));
  EXPECT_EQ(definition(fns + "let y[p] = dot(M[p], M[p]);", "y"),
            "let y[p in 0..n] = sum[i in 0..m](M[p, i] * M[p, i]);\n");
  EXPECT_EQ(definition(fns + "let y[p] = scaled(M[p], 2);", "y"),
            "let y[p in 0..n, m in 0..m] = M[p, m] * 2.0 / y_s[p];\n");
}

TEST(SemaCoordinates, Decision3) {
  const std::string in = "let A: [f32; i, j];";
  EXPECT_EQ(definition(in + "let y[p, q] = A;", "y"), "let y[p in 0..i, q in 0..j] = A[p, q];\n");
  EXPECT_EQ(definition(in + "let y[p] = A[p];", "y"), "let y[p in 0..i, j in 0..j] = A[p, j];\n");
  EXPECT_EQ(definition(in + "let y[p, q] = A[p] * 2.0;", "y"),
            "let y[p in 0..i, q in 0..j] = A[p, q] * 2.0;\n");
  EXPECT_EQ(definition(in + "let y = A + A * 2;", "y"),
            "let y[i in 0..i, j in 0..j] = A[i, j] + A[i, j] * 2.0;\n");
}

TEST(SemaCoordinates, Gathers) {
  const std::string in = "let M = [[1.0, 2.0], [3.0, 4.0]]; let r = [1, 0]; let c = [0, 0];";
  EXPECT_EQ(values(in + "let y[k] = M[r[k], c[k]];", "y"), (V{3, 1}));
  EXPECT_EQ(values(in + "let y[i, j] = M[r[i], c[j]];", "y"), (V{3, 3, 1, 1}));
  EXPECT_EQ(values(in + "let y[k] = M[r[k]];", "y"), (V{3, 4, 1, 2}));
  EXPECT_EQ(values(in + "let y[k] = M[r[r[k]], 1];", "y"), (V{2, 4}));
  EXPECT_EQ(values(in + "let y[k in 0..4] = M[k % 2, 0];", "y"), (V{1, 3, 1, 3}));
}

TEST(SemaTypes, LiteralsAdapt) {
  const std::string in = "let x: [f64; n];";
  EXPECT_EQ(definition(in + "let y[i] = x[i] * (1.0 / 3.0);", "y"),
            "let y[i in 0..n] = x[i] * (1.0 / 3.0);\n");
  EXPECT_EQ(definition(in + "let y[i] = x[i] * if x[i] > 0 { 1 } else { 0 };", "y"),
            definition(in + "let y[i] = x[i] * if x[i] > 0.0 { 1.0 } else { 0.0 };", "y"));
  auto type = [](const std::string& source) {
    Checked c;
    check(c, source);
    EXPECT_FALSE(c.diags.has_errors()) << c.rendered();
    return std::string(name_of(c.m[c.m.find(intern("y"))].dtype));
  };
  EXPECT_EQ(type("let y = 1;"), "i32");
  EXPECT_EQ(type("let y = 1.5;"), "f32");
  EXPECT_EQ(type("let y: f64 = 1;"), "f64");
  EXPECT_EQ(type("let y: [i64; 2] = [1, 2];"), "i64");
  EXPECT_EQ(type("let y[c in 0..3] = c + 1;"), "i32");
  EXPECT_EQ(type("let y[c in 0..3] = c * 0.5;"), "f32");
  EXPECT_EQ(type("let z: [f64; n]; let y = z ** 2;"), "f64");
  EXPECT_EQ(type("let z: [f64; n]; let k: i32; let y = z[0] ** k;"), "f64");
  EXPECT_EQ(type("let z: [f64; n]; let y = z[0] / n;"), "f64");
  EXPECT_EQ(values("let p = 2 ** 10; let q = 7 / 2 + 7 % 3;", "p"), V{1024});
  EXPECT_EQ(values("let p = 2 ** 10; let q = 7 / 2 + 7 % 3;", "q"), V{4});
}

TEST(SemaExtents, NamesAndQueries) {
  const std::string in = "let E: [f32; v, d];";
  EXPECT_EQ(definition(in + "let n = extent(E, v); let y[i in 0..n-1] = E[i+1, 0];", "y"),
            "let y[i in 0..v - 1] = E[i + 1, 0];\n");
  EXPECT_EQ(definition(in + "let y = extent(E, 1) + extent(v);", "y"), "let y = (d + v) as i32;\n");
  EXPECT_EQ(values("let a = [[1, 2, 3]]; let y = shape(a);", "y"), (V{1, 3}));
  EXPECT_EQ(values("let a = [[1, 2, 3]]; let y = len(a);", "y"), V{1});
  core::Inputs inputs{{"x", tensor({4}, {1, 2, 4, 8})}};
  EXPECT_EQ(values("let x: [f32; n + 1]; let y[i in 0..n] = x[i+1] - x[i];", "y", inputs),
            (V{1, 2, 4}));
  EXPECT_EQ(values("let x: [f32; 2 * n]; let y[i in 0..n] = x[2*i+1];", "y", inputs), (V{2, 8}));
}

TEST(SemaRequests, Forms) {
  const std::string in =
      "let x: [f32; n]; let A: [f32; n, m]; let y[i] = x[i] * x[i];"
      "let loss = sum[i](y[i]);";
  EXPECT_EQ(definition(in + "let g = @loss / @x;", "g"), "let g[n in 0..n] = @loss / @x[n];\n");
  EXPECT_EQ(definition(in + "let g[p] = @loss / @x[p];", "g"),
            "let g[p in 0..n] = @loss / @x[p];\n");
  EXPECT_EQ(definition(in + "let g[i] = @y[i] / @x[i];", "g"),
            "let g[i in 0..n] = @y[i] / @x[i];\n");
  EXPECT_EQ(definition(in + "let J = @y / @x;", "J"),
            "let J[i in 0..n, n in 0..n] = @y[i] / @x[n];\n");
  EXPECT_EQ(definition(in + "let z = x * 2.0; let J = @z / @x;", "J"),
            "let J[n in 0..n, d_n in 0..n] = @z[n] / @x[d_n];\n");
  EXPECT_EQ(definition(in + "let g = @(sum[i](x[i] ** 3)) / @x;", "g_of"),
            "let g_of = sum[i in 0..n](x[i] ** 3.0);\n");
  EXPECT_EQ(definition("let t = 2.0; let g = @(@(t * t) / @t) / @t;", "g"),
            "let g = @g_of_1 / @t;\n");
  EXPECT_EQ(definition("fn slope(v) { @(v * v) / @v } let g = slope(3.0);", "g"),
            "let g = @g_of / @g_v;\n");
  EXPECT_EQ(definition("let x: [f32; n]; let W[0, i] = x[i];"
                       "let loss[s in 0..9] = sum[i](W[s, i] ** 2);"
                       "let W[s in 1..9, i] = W[s-1, i] - 0.1 * @loss[s-1] / @W[s-1, i];",
                       "W"),
            "let W[0, i in 0..n] = x[i];\n"
            "let W[s in 1..9, i in 0..n] = W[s - 1, i] - 0.1 * @loss[s - 1] / @W[s - 1, i];\n");
}

TEST(SemaBlocks, LocalsCarryOnlyWhatTheyRead) {
  const std::string program =
      "fn normed(v) { let z = sum[i](v[i]); let r[i] = v[i] / z; r }"
      "let A: [f32; b, c]; let P[b, c] = normed(A[b])[c]; let t = sum[i](normed(A[0])[i]);";
  EXPECT_EQ(definition(program, "P_z"), "let P_z[b in 0..b] = sum[i in 0..c](A[b, i]);\n");
  EXPECT_EQ(definition(program, "t_z"), "let t_z = sum[i in 0..c](A[0, i]);\n");
  EXPECT_EQ(definition("let x: [f32; n]; let h[0, i] = x[i]; let h[t in 1..4, i] ="
                       " { let a[j] = h[t-1, j] * 2.0; a[i] / sum[j](a[j]) };",
                       "h_a"),
            "let h_a[t in 1..4, j in 0..n] = h[t - 1, j] * 2.0;\nlet h_a[0, j in 0..n] = 0.0;\n");
}

TEST(SemaBlocks, RecurrencesOfFunctionsCarryOnlyWhatTheyAreGiven) {
  const std::string fn =
      "fn deep(a: [f32; n], k: f32) { let x[0, n] = a[n]; let x[t in 1..4, n] = k * x[t - 1, n];"
      " let y[n] = x[3, n]; y }"
      "let v: [f32; m]; ";
  auto left = [&](const std::string& let) {
    std::string line = definition(fn + let, "z_x");
    return line.substr(0, line.find(" ="));
  };
  EXPECT_EQ(left("let z[i] = deep(v, 2.0);"), "let z_x[0, n in 0..m]");
  EXPECT_EQ(left("let z[i in 0..2, j] = deep(v, 2.0)[j] + v[i];"), "let z_x[0, n in 0..m]");
  EXPECT_EQ(left("let z[i in 0..2, j] = deep(v, v[i])[j];"), "let z_x[i in 0..2, 0, n in 0..m]");
  EXPECT_EQ(left("let z[i in 0..2, j] = if i > 0 { deep(v, 2.0)[j] } else { 0.0 };"),
            "let z_x[i in 0..2, 0, n in 0..m]");
}

TEST(SemaTuples, PatternsFieldsAndFamilies) {
  EXPECT_EQ(values("let (p, v)[0] = (1.0, 0.0);"
                   "let (p, v)[s in 1..4] = (p[s-1] + v[s-1], v[s-1] - p[s-1]);",
                   "v"),
            (V{0, -1, -2, -2}));
  EXPECT_EQ(values("fn ends(a) { (min[i](a[i]), max[i](a[i])) } let x = [3.0, 1.0, 2.0];"
                   "let (lo, hi) = ends(x); let w = hi - lo + ends(x).0;",
                   "w"),
            V{3});
  EXPECT_EQ(definition("let x: [f32; n]; let (a, c)[i] = (x[i], x[i] + x[i+1]);", "a"),
            "let a[i in 0..n - 1] = x[i];\n");
}

TEST(SemaTuples, AnOptimiserWithItsMoments) {
  const std::string program =
      "let W0: [f32; in]; let x: [f32; b, in];"
      "fn step(w, m) { let p[b] = sum[i](x[b, i] * w[i]); let loss = mean[b](p[b] ** 2);"
      "  let m2 = m * 0.9 + @loss / @w; (w - 0.1 * m2, m2) }"
      "let W[0] = W0; let m[0] = W0 * 0; let (W, m)[s in 1..5] = step(W[s-1], m[s-1]);";
  EXPECT_EQ(definition(program, "m"),
            "let m[0, in in 0..in] = W0[in] * 0.0;\n"
            "let m[s in 1..5, in in 0..in] = W_m2[s, in];\n");
}

TEST(SemaEffects, InSourceOrder) {
  Checked c;
  check(c, "print(\"a {x:.2f}\", y, y + 1); let x = 1.5; let y = 2; assert(x > 1.0, \"no {y}\");");
  ASSERT_FALSE(c.diags.has_errors()) << c.rendered();
  ASSERT_EQ(c.m.effects.size(), 2u);
  const core::Effect& print = c.m.effects[0];
  ASSERT_EQ(print.pieces.size(), 6u);
  EXPECT_EQ(print.pieces[0].text, "a ");
  EXPECT_EQ(print.pieces[1].format, ".2f");
  EXPECT_EQ(print.pieces[1].value, c.m.find(intern("x")));
  EXPECT_EQ(print.pieces[3].value, c.m.find(intern("y")));
  EXPECT_TRUE(c.m[print.pieces[5].value].generated);
  EXPECT_EQ(c.m.effects[1].kind, core::Effect::Kind::Assert);
}

TEST(SemaNames, OrderIsFree) {
  EXPECT_EQ(values("let c = a + b; let a = 1; let b = a * 2;", "c"), V{3});
  EXPECT_EQ(values("let x = 1.0; let y = { let x = 5.0; x } + x;", "y"), V{6});
}

}  // namespace
}  // namespace ein::test

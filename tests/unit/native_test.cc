// Whole programs: contractions, gathers, routed sums, recurrences, gates, dependent ranges.
#include "native_harness.h"

namespace ein {
namespace {

TEST(Native, Elementwise) {
  Program p;
  FamilyId x = p.input("x", DType::F32, 1);
  ExprId v = p.at(x, {p.s(0)});
  ExprId body =
      p.op(Op::Tanh, {p.add(p.mul(p.op(Op::Exp, {p.op(Op::Neg, {p.mul(v, v)})}), v), p.f(1))});
  p.wanted = {p.family("y", {p.extent(x, 0)}, body)};
  expect_same(p, {{{"x", random_tensor(DType::F32, {17}, 1)}},
                  {{"x", random_tensor(DType::F32, {10000}, 2)}},
                  {{"x", random_tensor(DType::F32, {0}, 3)}},
                  {{"x", random_tensor(DType::F32, {1}, 4)}}});
}

TEST(Native, MatrixProduct) {
  for (DType t : {DType::F32, DType::F64, DType::I32}) {
    Program p;
    FamilyId a = p.input("a", t, 2), b = p.input("b", t, 2);
    p.m.constraints.push_back(
        {p.op(Op::Eq, {p.extent(a, 1), p.extent(b, 0)}), "inner extents", {}, {}});
    ExprId body = p.sum(2, {{p.i(0), p.extent(a, 1)}},
                        p.mul(p.at(a, {p.s(0), p.s(2)}), p.at(b, {p.s(2), p.s(1)})));
    p.wanted = {p.family("c", {p.extent(a, 0), p.extent(b, 1)}, body)};
    auto pair = [&](int64_t m, int64_t k, int64_t n) {
      return Inputs{{"a", random_tensor(t, {m, k}, 1)}, {"b", random_tensor(t, {k, n}, 2)}};
    };
    expect_same(p,
                {pair(3, 4, 5), pair(17, 33, 65), pair(0, 4, 5), pair(2, 0, 3), pair(70, 300, 40)});
  }
}

TEST(Native, StridedConvolution) {
  Program p;
  FamilyId x = p.input("x", DType::F32, 3), w = p.input("w", DType::F32, 4);
  // y[oc, oh, ow] = Σ x[ic, 2·oh + kh, 2·ow + kw] · w[oc, ic, kh, kw], valid
  ExprId H = p.extent(x, 1), W = p.extent(x, 2), KH = p.extent(w, 2), KW = p.extent(w, 3);
  auto out = [&](ExprId n, ExprId k) {
    return p.op(Op::Div, {p.add(p.sub(n, k), p.i(2)), p.i(2)});
  };
  p.m.constraints.push_back({p.op(Op::Eq, {p.extent(x, 0), p.extent(w, 1)}), "channels", {}, {}});
  p.m.constraints.push_back({p.op(Op::Le, {KH, H}), "kernel", {}, {}});
  p.m.constraints.push_back({p.op(Op::Le, {KW, W}), "kernel", {}, {}});
  ExprId ih = p.add(p.mul(p.i(2), p.s(1)), p.s(4)), iw = p.add(p.mul(p.i(2), p.s(2)), p.s(5));
  ExprId body = p.sum(3, {{p.i(0), p.extent(x, 0)}, {p.i(0), KH}, {p.i(0), KW}},
                      p.mul(p.at(x, {p.s(3), ih, iw}), p.at(w, {p.s(0), p.s(3), p.s(4), p.s(5)})));
  p.wanted = {p.family("y", {p.extent(w, 0), out(H, KH), out(W, KW)}, body)};
  auto sizes = [&](int64_t c, int64_t h, int64_t wd, int64_t o, int64_t k) {
    return Inputs{{"x", random_tensor(DType::F32, {c, h, wd}, 5)},
                  {"w", random_tensor(DType::F32, {o, c, k, k}, 6)}};
  };
  expect_same(p, {sizes(2, 9, 11, 3, 3), sizes(4, 20, 37, 8, 3), sizes(1, 2, 2, 1, 2)});
}

TEST(Native, PaddedConvolutionReadsNothingOutside) {
  Program p;
  FamilyId x = p.input("x", DType::F32, 1), w = p.input("w", DType::F32, 1);
  ExprId ih = p.sub(p.add(p.s(0), p.s(1)), p.i(1));
  ExprId gate = both(p.m, p.op(Op::Ge, {ih, p.i(0)}), p.op(Op::Lt, {ih, p.extent(x, 0)}));
  ExprId product = p.mul(p.at(x, {ih}), p.at(w, {p.s(1)}));
  FamilyId gated_sum =
      p.family("y", {p.extent(x, 0)}, p.sum(1, {{p.i(0), p.extent(w, 0)}}, product, gate));
  // The same with the gate as a selection inside.
  FamilyId selected = p.family("z", {p.extent(x, 0)},
                               p.sum(1, {{p.i(0), p.extent(w, 0)}}, p.sel(gate, product, p.f(0))));
  p.wanted = {gated_sum, selected};
  expect_same(
      p, {{{"x", random_tensor(DType::F32, {40}, 5)}, {"w", random_tensor(DType::F32, {3}, 6)}},
          {{"x", random_tensor(DType::F32, {1}, 5)}, {"w", random_tensor(DType::F32, {3}, 6)}},
          {{"x", random_tensor(DType::F32, {40}, 5)}, {"w", random_tensor(DType::F32, {33}, 6)}}});
}

TEST(Native, GatherChecksItsBounds) {
  Program p;
  FamilyId x = p.input("x", DType::F32, 2), idx = p.input("idx", DType::I32, 1);
  ExprId k = cast(p.m, p.at(idx, {p.s(0)}), DType::I64);
  p.wanted = {p.family("y", {p.extent(idx, 0), p.extent(x, 1)}, p.at(x, {k, p.s(1)}))};
  Tensor t = random_tensor(DType::F32, {7, 20}, 1), empty = random_tensor(DType::F32, {7, 0}, 1);
  expect_same(p, {{{"x", t}, {"idx", ints(DType::I32, {6, 0, 3, 3})}},
                  {{"x", t}, {"idx", ints(DType::I32, {6, 0, 7, 3})}},
                  {{"x", t}, {"idx", ints(DType::I32, {0, -1})}},
                  {{"x", t}, {"idx", ints(DType::I32, {})}},
                  // No cell is read, so the bad index is harmless.
                  {{"x", empty}, {"idx", ints(DType::I32, {99})}}});
}

TEST(Native, GatherAlongTheVectorAxis) {
  Program p;
  FamilyId x = p.input("x", DType::F64, 1), idx = p.input("idx", DType::I64, 1);
  p.wanted = {p.family("y", {p.extent(idx, 0)}, p.at(x, {p.at(idx, {p.s(0)})}))};
  std::vector<int64_t> good, bad;
  for (int64_t i = 0; i < 100; ++i) good.push_back((i * 37) % 50);
  bad = good;
  bad[61] = 50;
  bad[80] = -4;
  Tensor t = random_tensor(DType::F64, {50}, 1);
  expect_same(
      p, {{{"x", t}, {"idx", ints(DType::I64, good)}}, {{"x", t}, {"idx", ints(DType::I64, bad)}}});
}

TEST(Native, RoutedSumWithCollisions) {
  Program p;
  FamilyId g = p.input("g", DType::F32, 2), idx = p.input("idx", DType::I32, 1);
  FamilyId table = p.input("table", DType::F32, 2);
  // d[r, c] = Σ_k g[k, c] where r == idx[k]
  Reduce r;
  r.op = ReduceOp::Sum;
  r.first = 2;
  r.over = {{p.i(0), p.extent(idx, 0)}};
  r.names = {intern("k")};
  r.routes = {{0, cast(p.m, p.at(idx, {p.s(2)}), DType::I64)}};
  r.body = p.at(g, {p.s(2), p.s(1)});
  p.m.constraints.push_back({p.op(Op::Eq, {p.extent(g, 0), p.extent(idx, 0)}), "rows", {}, {}});
  p.m.constraints.push_back(
      {p.op(Op::Eq, {p.extent(g, 1), p.extent(table, 1)}), "columns", {}, {}});
  FamilyId d = p.define("d", DType::F32, {p.extent(table, 0), p.extent(table, 1)});
  p.clause(d, reduce(p.m, r));
  // And one that is not a whole clause.
  FamilyId e = p.define("e", DType::F32, {p.extent(table, 0), p.extent(table, 1)});
  p.clause(e, p.add(p.at(table, {p.s(0), p.s(1)}), p.mul(p.f(2), reduce(p.m, r))));
  p.wanted = {d, e};
  auto with = [&](std::vector<int64_t> at) {
    auto n = static_cast<int64_t>(at.size());
    return Inputs{{"g", random_tensor(DType::F32, {n, 19}, 1)},
                  {"idx", ints(DType::I32, at)},
                  {"table", random_tensor(DType::F32, {5, 19}, 2)}};
  };
  // Routes outside the range contribute nothing.
  expect_same(p, {with({0, 1, 1, 4, 1, 0}), with({9, -1, 2, 2}), with({})});
}

TEST(Native, ForwardRecurrence) {
  Program p;
  FamilyId x = p.input("x", DType::F64, 2), h0 = p.input("h0", DType::F64, 1);
  FamilyId w = p.input("w", DType::F64, 2);
  ExprId T = p.extent(x, 0), N = p.extent(x, 1);
  for (ExprId e : {p.extent(h0, 0), p.extent(w, 0), p.extent(w, 1)}) {
    p.m.constraints.push_back({p.op(Op::Eq, {e, N}), "hidden", {}, {}});
  }
  FamilyId h = p.define("h", DType::F64, {T, N});
  p.clause(h, {{p.i(0), p.i(1)}, {p.i(0), N}}, p.at(h0, {p.s(1)}));
  ExprId before = p.sub(p.s(0), p.i(1));
  ExprId product =
      p.sum(2, {{p.i(0), N}}, p.mul(p.at(w, {p.s(1), p.s(2)}), p.at(h, {before, p.s(2)})));
  p.clause(h, {{p.i(1), T}, {p.i(0), N}},
           p.op(Op::Tanh, {p.add(product, p.at(x, {p.s(0), p.s(1)}))}));
  FamilyId last = p.family("last", {N}, p.at(h, {p.sub(T, p.i(1)), p.s(0)}));
  p.wanted = {h, last};
  auto with = [&](int64_t t, int64_t n) {
    return Inputs{{"x", random_tensor(DType::F64, {t, n}, 1)},
                  {"h0", random_tensor(DType::F64, {n}, 2)},
                  {"w", random_tensor(DType::F64, {n, n}, 3)}};
  };
  // The last one is large enough for the contraction to be a call at every step.
  expect_same(p, {with(1, 4), with(9, 21), with(30, 3), with(0, 0), with(4, 100)}, 1e-9);
}

TEST(Native, ContractionBesideOtherClausesOfAStep) {
  Program p;
  FamilyId x = p.input("x", DType::F64, 2), steps = p.input("steps", DType::F64, 1);
  ExprId N = p.extent(x, 0), M = p.extent(x, 1), T = p.extent(steps, 0);
  FamilyId w = p.define("w", DType::F64, {T, M}), pred = p.define("pred", DType::F64, {T, N});
  Range first{p.i(0), p.i(1)}, rest{p.i(1), T};
  ExprId before = p.sub(p.s(0), p.i(1));
  p.clause(pred, {first, {p.i(0), N}}, p.f(0, DType::F64));
  p.clause(pred, {rest, {p.i(0), N}},
           p.sum(2, {{p.i(0), M}}, p.mul(p.at(x, {p.s(1), p.s(2)}), p.at(w, {before, p.s(2)}))));
  p.clause(w, {first, {p.i(0), M}}, p.f(1, DType::F64));
  ExprId slope =
      p.sum(2, {{p.i(0), N}}, p.mul(p.at(pred, {p.s(0), p.s(2)}), p.at(x, {p.s(2), p.s(1)})));
  p.clause(w, {rest, {p.i(0), M}},
           p.sub(p.at(w, {before, p.s(1)}), p.mul(p.f(0.001, DType::F64), slope)));
  p.wanted = {w, pred};
  auto with = [&](int64_t t, int64_t n, int64_t m) {
    return Inputs{{"x", random_tensor(DType::F64, {n, m}, 1)},
                  {"steps", random_tensor(DType::F64, {t}, 2)}};
  };
  expect_same(p, {with(5, 7, 3), with(3, 200, 50)}, 1e-9);
}

TEST(Native, DownwardAndCoupledRecurrences) {
  Program p;
  FamilyId x = p.input("x", DType::F64, 1);
  ExprId T = p.extent(x, 0);
  // s[t] = x[t] + s[t + 1] / 2, from the end
  FamilyId s = p.define("s", DType::F64, {T});
  ExprId last = p.sub(T, p.i(1));
  ExprId xt = p.at(x, {p.s(0)});
  p.clause(s, {{p.i(0), last}},
           p.add(xt, p.mul(p.f(0.5, DType::F64), p.at(s, {p.add(p.s(0), p.i(1))}))));
  p.clause(s, {{last, T}}, xt);
  // a and b read each other's last step, c the present one
  FamilyId a = p.define("a", DType::F64, {T}), b = p.define("b", DType::F64, {T});
  FamilyId c = p.define("c", DType::F64, {T});
  ExprId before = p.sub(p.s(0), p.i(1));
  p.clause(a, {{p.i(0), p.i(1)}}, p.f(1, DType::F64));
  p.clause(b, {{p.i(0), p.i(1)}}, p.f(2, DType::F64));
  p.clause(c, p.mul(p.at(a, {p.s(0)}), p.at(b, {p.s(0)})));
  p.clause(a, {{p.i(1), T}}, p.add(p.mul(p.f(0.9, DType::F64), p.at(b, {before})), xt));
  p.clause(b, {{p.i(1), T}},
           p.sub(p.at(a, {p.s(0)}), p.mul(p.f(0.1, DType::F64), p.at(c, {before}))));
  p.wanted = {s, a, b, c};
  auto with = [&](int64_t t) { return Inputs{{"x", random_tensor(DType::F64, {t}, 7)}}; };
  expect_same(p, {with(1), with(2), with(17), with(1000)}, 1e-9);
}

TEST(Native, TwoDimensionalRecurrence) {
  Program p;
  FamilyId cost = p.input("cost", DType::F64, 2);
  ExprId N = p.extent(cost, 0), M = p.extent(cost, 1);
  FamilyId d = p.define("d", DType::F64, {N, M});
  Range first{p.i(0), p.i(1)}, rows{p.i(1), N}, columns{p.i(1), M};
  ExprId here = p.at(cost, {p.s(0), p.s(1)});
  ExprId up = p.sub(p.s(0), p.i(1)), left = p.sub(p.s(1), p.i(1));
  p.clause(d, {first, first}, here);
  p.clause(d, {first, columns}, p.add(here, p.at(d, {p.s(0), left})));
  p.clause(d, {rows, first}, p.add(here, p.at(d, {up, p.s(1)})));
  ExprId best = p.op(Op::Min, {p.at(d, {up, p.s(1)}),
                               p.op(Op::Min, {p.at(d, {p.s(0), left}), p.at(d, {up, left})})});
  p.clause(d, {rows, columns}, p.add(here, best));
  p.wanted = {d};
  auto with = [&](int64_t n, int64_t m) {
    return Inputs{{"cost", random_tensor(DType::F64, {n, m}, 3)}};
  };
  expect_same(p, {with(1, 1), with(5, 1), with(1, 5), with(13, 29)}, 0);
}

TEST(Native, StencilOverTime) {
  Program p;
  FamilyId u0 = p.input("u0", DType::F32, 1), steps = p.input("steps", DType::F32, 1);
  ExprId N = p.extent(u0, 0), T = p.extent(steps, 0);
  FamilyId u = p.define("u", DType::F32, {T, N});
  p.clause(u, {{p.i(0), p.i(1)}, {p.i(0), N}}, p.at(u0, {p.s(1)}));
  ExprId before = p.sub(p.s(0), p.i(1));
  auto cell = [&](int64_t by) {
    ExprId j = p.add(p.s(1), p.i(by));
    ExprId inside = both(p.m, p.op(Op::Ge, {j, p.i(0)}), p.op(Op::Lt, {j, N}));
    return p.sel(inside, p.at(u, {before, j}), p.f(0));
  };
  ExprId body =
      p.add(cell(0), p.mul(p.f(0.1), p.add(cell(-1), p.sub(cell(1), p.mul(p.f(2), cell(0))))));
  p.clause(u, {{p.i(1), T}, {p.i(0), N}}, body);
  p.wanted = {u};
  auto with = [&](int64_t t, int64_t n) {
    return Inputs{{"u0", random_tensor(DType::F32, {n}, 1)},
                  {"steps", random_tensor(DType::F32, {t}, 2)}};
  };
  expect_same(p, {with(1, 3), with(20, 37), with(5, 1), with(3, 0)});
}

TEST(Native, DependentRanges) {
  Program p;
  FamilyId x = p.input("x", DType::F64, 1);
  ExprId N = p.extent(x, 0);
  ExprId upto = p.add(p.s(0), p.i(1));
  FamilyId prefix = p.family("prefix", {N}, p.sum(1, {{p.i(0), upto}}, p.at(x, {p.s(1)})));
  FamilyId from = p.family("suffix", {N}, p.sum(1, {{p.s(0), N}}, p.at(x, {p.s(1)})));
  // Two binders, the second bounded by the first.
  FamilyId pairs = p.family(
      "pairs", {},
      p.sum(0, {{p.i(0), N}, {p.i(0), p.s(0)}}, p.mul(p.at(x, {p.s(0)}), p.at(x, {p.s(1)}))));
  // x[i − 1] is in bounds only because the loop over k has cells; it must not be read earlier.
  FamilyId pinned =
      p.family("pinned", {N}, p.sum(1, {{p.i(0), p.s(0)}}, p.at(x, {p.sub(p.s(0), p.i(1))})));
  p.wanted = {prefix, from, pairs, pinned};
  auto with = [&](int64_t n) { return Inputs{{"x", random_tensor(DType::F64, {n}, 7)}}; };
  expect_same(p, {with(0), with(1), with(5), with(70)}, 1e-12);
}

TEST(Native, GatesTightenLoops) {
  Program p;
  FamilyId q = p.input("q", DType::F32, 2), k = p.input("k", DType::F32, 2);
  ExprId N = p.extent(q, 0), D = p.extent(q, 1);
  p.m.constraints.push_back({p.op(Op::Eq, {N, p.extent(k, 0)}), "rows", {}, {}});
  p.m.constraints.push_back({p.op(Op::Eq, {D, p.extent(k, 1)}), "depth", {}, {}});
  ExprId dot = p.sum(2, {{p.i(0), D}}, p.mul(p.at(q, {p.s(0), p.s(2)}), p.at(k, {p.s(1), p.s(2)})));
  FamilyId score = p.family("score", {N, N}, dot);
  auto over = [&](ReduceOp op, ExprId body, ExprId gate) {
    return p.red(op, 1, {{p.i(0), N}}, body, gate);
  };
  ExprId causal = p.op(Op::Le, {p.s(1), p.s(0)});
  ExprId s01 = p.at(score, {p.s(0), p.s(1)});
  FamilyId top = p.family("top", {N}, over(ReduceOp::Max, s01, causal));
  FamilyId z = p.family(
      "z", {N}, over(ReduceOp::Sum, p.op(Op::Exp, {p.sub(s01, p.at(top, {p.s(0)}))}), causal));
  // Conditions that are not bounds: parity, data, both sides, an equality.
  ExprId even = p.op(Op::Eq, {p.op(Op::Mod, {p.s(1), p.i(2)}), p.i(0)});
  FamilyId evens = p.family("evens", {N}, over(ReduceOp::Sum, s01, both(p.m, causal, even)));
  ExprId positive = p.op(Op::Gt, {s01, p.f(0)});
  FamilyId data = p.family("data", {N}, over(ReduceOp::Sum, s01, both(p.m, positive, causal)));
  ExprId window = both(p.m, p.op(Op::Gt, {p.s(1), p.sub(p.s(0), p.i(3))}),
                       p.op(Op::Lt, {p.s(1), p.add(p.s(0), p.i(2))}));
  FamilyId local = p.family("local", {N}, over(ReduceOp::Sum, s01, window));
  ExprId mirror = p.op(Op::Eq, {p.add(p.s(0), p.s(1)), p.sub(N, p.i(1))});
  FamilyId anti = p.family("anti", {N}, over(ReduceOp::Sum, s01, mirror));
  p.wanted = {score, top, z, evens, data, local, anti};
  auto with = [&](int64_t n, int64_t d) {
    return Inputs{{"q", random_tensor(DType::F32, {n, d}, 1)},
                  {"k", random_tensor(DType::F32, {n, d}, 2)}};
  };
  expect_same(p, {with(1, 3), with(23, 17), with(40, 1), with(0, 2), with(2, 0)});
}

TEST(Native, TablesAndScalars) {
  Program p;
  FamilyId x = p.input("x", DType::F32, 1);
  FamilyId total = p.family("total", {}, p.sum(0, {{p.i(0), p.extent(x, 0)}}, p.at(x, {p.s(0)})));
  Family literal;
  literal.name = intern("literal");
  literal.kind = Family::Kind::Table;
  literal.coords = {{{}, p.i(2)}, {{}, p.i(2)}};
  literal.cells = {p.f(1), p.f(2), p.f(3), p.f(4)};
  FamilyId t = p.m.families.add(literal);
  literal.name = intern("mixed");
  literal.cells = {p.f(1), p.at(total, {}), p.f(3), p.mul(p.at(total, {}), p.at(total, {}))};
  FamilyId u = p.m.families.add(literal);
  FamilyId both_tables = p.family("both", {p.i(2), p.i(2)},
                                  p.add(p.at(t, {p.s(0), p.s(1)}), p.at(u, {p.s(1), p.s(0)})));
  p.wanted = {both_tables, t, u, x};
  expect_same(
      p, {{{"x", random_tensor(DType::F32, {50}, 1)}}, {{"x", random_tensor(DType::F32, {0}, 1)}}});
}

TEST(Native, InlinedChainsAndSharedWork) {
  Program p;
  FamilyId x = p.input("x", DType::F32, 1);
  ExprId N = p.extent(x, 0);
  FamilyId a = p.family("a", {N}, p.add(p.at(x, {p.s(0)}), p.f(1)));
  FamilyId b = p.family("b", {N}, p.mul(p.at(a, {p.s(0)}), p.at(a, {p.s(0)})));
  // The mean, written inside: the sum does not depend on i and leaves the loop.
  ExprId mean = p.sum(1, {{p.i(0), N}}, p.at(b, {p.s(1)}));
  FamilyId c = p.family("c", {N}, p.sub(p.at(b, {p.s(0)}), mean));
  // A selection nested deeply enough that duplicated code would not compile in a lifetime.
  ExprId e = p.at(c, {p.s(0)});
  for (int k = 0; k < 60; ++k) {
    ExprId cond = p.op(Op::Gt, {e, p.f(k)});
    e = p.sel(cond, p.mul(p.op(Op::Tanh, {p.op(Op::Exp, {e})}), p.f(0.5)), p.add(e, p.f(0.01)));
  }
  FamilyId d = p.family("d", {N}, e);
  p.wanted = {c, d};
  expect_same(p, {{{"x", random_tensor(DType::F32, {33}, 1)}}});
}

TEST(Native, MissingInputIsARunTimeError) {
  Program p;
  FamilyId x = p.input("x", DType::F32, 1);
  p.wanted = {p.family("y", {p.extent(x, 0)}, p.at(x, {p.s(0)}))};
  auto native = compiled(p);
  NativeResult r = run(*native, {});
  ASSERT_TRUE(r.error);
  EXPECT_EQ(r.error->message, evaluate(p.m, {}, p.wanted).error->message);
}

TEST(Native, SmallProgramCompilesFast) {
  Program p;
  FamilyId x = p.input("x", DType::F32, 1);
  ExprId v = p.at(x, {p.s(0)});
  p.wanted = {p.family("total", {}, p.sum(0, {{p.i(0), p.extent(x, 0)}}, p.mul(v, v)))};
  compiled(p);  // the first one in a process also registers the target
  double best = 1e9;
  std::string phases;
  for (int k = 0; k < 5; ++k) {
    auto native = compiled(p);
    auto times = compile_times(*native);
    if (times.back().second >= best) continue;
    best = times.back().second;
    phases.clear();
    for (const auto& [name, ms] : times) phases += " " + name + " " + std::to_string(ms);
  }
  std::printf("[ JIT ms   ]%s\n", phases.c_str());
  EXPECT_LT(best, 100) << "generous: the machine may be busy";
}

}  // namespace
}  // namespace ein

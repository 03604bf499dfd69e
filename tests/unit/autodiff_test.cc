// Differentiation of modules made with the builders: the form of what is derived, and its numbers
// against central differences.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "autodiff/differentiate.h"
#include "core/build.h"
#include "core/eval.h"
#include "core/print.h"
#include "core/solve_gates.h"
#include "core/verify.h"

namespace ein::core {
namespace {

constexpr DType kReal = DType::F64;

struct Maker {
  Module m;

  ExprId s(uint32_t n) { return slot(m, n); }
  ExprId n(int64_t v) { return int_lit(m, v); }
  ExprId real(double v) { return float_lit(m, v, kReal); }
  ExprId at(FamilyId f, std::vector<ExprId> i) { return access(m, f, std::move(i)); }

  // let name: [type; dims…]; each dimension is a new symbolic extent of that name, or a known one.
  FamilyId input(const std::string& name, const std::vector<std::string>& dims,
                 DType type = kReal) {
    Family f;
    f.name = intern(name);
    f.kind = Family::Kind::Input;
    f.dtype = type;
    FamilyId id(static_cast<uint32_t>(m.families.size()));
    for (size_t k = 0; k < dims.size(); ++k)
      f.coords.push_back({intern(dims[k]), extent(dims[k], id, k)});
    return m.families.add(f);
  }

  ExprId extent(const std::string& name, FamilyId source = {}, size_t axis = 0) {
    for (uint32_t p = 0; p < m.params.size(); ++p) {
      if (m.params[ParamId(p)].name == intern(name)) return param(m, ParamId(p));
    }
    return param(m, m.params.add({intern(name), source, static_cast<uint32_t>(axis)}));
  }

  FamilyId declare(const std::string& name, std::vector<Coord> coords, DType type = kReal) {
    Family f;
    f.name = intern(name);
    f.dtype = type;
    f.coords = std::move(coords);
    return m.families.add(f);
  }
  void clause(FamilyId f, std::vector<Range> box, ExprId body) {
    m.families[f].clauses.push_back({std::move(box), body, {}});
  }
  FamilyId let(const std::string& name, std::vector<Coord> coords, ExprId body) {
    FamilyId f = declare(name, coords, m[body].type);
    std::vector<Range> box;
    for (const Coord& c : coords) box.push_back({n(0), c.extent});
    clause(f, box, body);
    return f;
  }
  Coord coord(const std::string& name, ExprId extent) { return {intern(name), extent}; }

  ExprId sum(uint32_t first, std::vector<std::pair<std::string, ExprId>> over, ExprId body,
             ExprId gate = {}, ReduceOp op = ReduceOp::Sum) {
    Reduce r{op, first, {}, {}, gate, {}, body};
    for (auto& [name, hi] : over) {
      r.over.push_back({n(0), hi});
      r.names.push_back(intern(name));
    }
    return reduce(m, r);
  }

  // let d_den = @num / @den, for a scalar numerator.
  FamilyId gradient(const std::string& name, FamilyId num, FamilyId den) {
    std::vector<ExprId> slots;
    std::vector<Coord> coords = m[den].coords;
    for (uint32_t k = 0; k < coords.size(); ++k) slots.push_back(s(k));
    return let(name, coords, request(m, {num, {}, den, slots}));
  }
};

Tensor random_tensor(std::vector<int64_t> shape, std::mt19937& rng) {
  Tensor t(kReal, std::move(shape));
  std::uniform_real_distribution<double> u(-1, 1);
  for (int64_t i = 0; i < t.size(); ++i) t.set_float(i, u(rng));
  return t;
}

Tensor value_of(Module& m, const Inputs& inputs, const std::string& name) {
  FamilyId f = m.find(intern(name));
  EvalResult r = evaluate(m, inputs, {f});
  EXPECT_FALSE(r.error) << r.error->message;
  return r.values[f];
}

std::string line(Module& m, const std::string& name) { return print(m, {{m.find(intern(name))}}); }

Module derive(const Module& in) {
  Module m = in;
  solve_gates(m);
  Diagnostics diags;
  Module out = autodiff::differentiate(m, diags);
  for (const Diagnostic& d : diags.all()) ADD_FAILURE() << d.message;
  EXPECT_TRUE(autodiff::requests_left(out).empty());
  for (const std::string& problem : verify(out)) ADD_FAILURE() << problem;
  return out;
}

// The derived family `gradient` against central differences of `num` in the input `den`.
void expect_gradient(Module& m, Inputs inputs, const std::string& num, const std::string& den,
                     const std::string& gradient) {
  Tensor g = value_of(m, inputs, gradient);
  Tensor& x = inputs.at(den);
  ASSERT_EQ(g.shape(), x.shape());
  for (int64_t i = 0; i < x.size(); ++i) {
    double x0 = x.get_float(i), h = 1e-5 * std::max(1.0, std::fabs(x0));
    x.set_float(i, x0 + h);
    double up = value_of(m, inputs, num).get_float(0);
    x.set_float(i, x0 - h);
    double down = value_of(m, inputs, num).get_float(0);
    x.set_float(i, x0);
    double want = (up - down) / (2 * h);
    EXPECT_NEAR(g.get_float(i), want, 1e-6 * std::max(1.0, std::fabs(want)))
        << gradient << " at " << i;
  }
}

TEST(Autodiff, MatmulGradientsAreOneLineEach) {
  Maker k;
  FamilyId A = k.input("A", {"m", "n"}), B = k.input("B", {"n", "p"});
  ExprId M = k.extent("m"), N = k.extent("n"), P = k.extent("p");
  FamilyId C =
      k.let("C", {k.coord("i", M), k.coord("j", P)},
            k.sum(2, {{"k", N}}, mul(k.m, k.at(A, {k.s(0), k.s(2)}), k.at(B, {k.s(2), k.s(1)}))));
  ExprId c = k.at(C, {k.s(0), k.s(1)});
  FamilyId loss = k.let("loss", {}, k.sum(0, {{"i", M}, {"j", P}}, mul(k.m, c, c)));
  k.gradient("dA", loss, A);
  k.gradient("dB", loss, B);
  Module m = derive(k.m);
  EXPECT_EQ(line(m, "d_loss_d_C"), "let d_loss_d_C[i in 0..m, j in 0..p] = 2.0 * C[i, j];\n");
  EXPECT_EQ(line(m, "dA"),
            "let dA[m in 0..m, n in 0..n] = sum[j in 0..p](d_loss_d_C[m, j] * B[n, j]);\n");
  EXPECT_EQ(line(m, "dB"),
            "let dB[n in 0..n, p in 0..p] = sum[i in 0..m](d_loss_d_C[i, p] * A[i, n]);\n");
  std::mt19937 rng(1);
  Inputs in{{"A", random_tensor({3, 4}, rng)}, {"B", random_tensor({4, 2}, rng)}};
  expect_gradient(m, in, "loss", "A", "dA");
  expect_gradient(m, in, "loss", "B", "dB");
}

// loss = Σ out², out[oh] = Σ_kh x[s·oh + kh] w[kh]
Module convolution(int64_t stride) {
  Maker k;
  FamilyId x = k.input("x", {"ih"}), w = k.input("w", {"kh"});
  ExprId H = k.extent("ih"), K = k.extent("kh");
  // OH = (H − K) / stride + 1
  ExprId OH = add(k.m, apply(k.m, Op::Div, {sub(k.m, H, K), k.n(stride)}), k.n(1));
  ExprId at = add(k.m, mul(k.m, k.n(stride), k.s(0)), k.s(1));
  FamilyId out = k.let("out", {k.coord("oh", OH)},
                       k.sum(1, {{"kh", K}}, mul(k.m, k.at(x, {at}), k.at(w, {k.s(1)}))));
  ExprId o = k.at(out, {k.s(0)});
  FamilyId loss = k.let("loss", {}, k.sum(0, {{"oh", OH}}, mul(k.m, o, o)));
  k.gradient("dx", loss, x);
  k.gradient("dw", loss, w);
  return derive(k.m);
}

TEST(Autodiff, ConvolutionReadsTheInvertedAccess) {
  Module m = convolution(1);
  EXPECT_NE(line(m, "dx").find("d_loss_d_out[ih - kh] * w[kh]"), std::string::npos) << print(m);
  std::mt19937 rng(2);
  Inputs in{{"x", random_tensor({9}, rng)}, {"w", random_tensor({3}, rng)}};
  expect_gradient(m, in, "loss", "x", "dx");
  expect_gradient(m, in, "loss", "w", "dw");
}

TEST(Autodiff, StridedConvolutionVisitsOneResidueClass) {
  for (int64_t stride : {2, 3}) {
    Module m = convolution(stride);
    std::mt19937 rng(3);
    Inputs in{{"x", random_tensor({14}, rng)}, {"w", random_tensor({5}, rng)}};
    expect_gradient(m, in, "loss", "x", "dx");
    expect_gradient(m, in, "loss", "w", "dw");
    FamilyId loss = m.find(intern("loss")), dx = m.find(intern("dx")), dw = m.find(intern("dw"));
    uint64_t value = evaluate(m, in, {loss}).operations;
    uint64_t all = evaluate(m, in, {loss, dx, dw}).operations;
    EXPECT_LE(all, 4 * value) << print(m);
  }
}

TEST(Autodiff, GatherScattersAndAddsCollisions) {
  Maker k;
  FamilyId x = k.input("x", {"r"}), idx = k.input("idx", {"k"}, DType::I32);
  ExprId K = k.extent("k");
  ExprId read = k.at(x, {cast(k.m, k.at(idx, {k.s(0)}), DType::I64)});
  FamilyId y = k.let("y", {k.coord("k", K)}, mul(k.m, read, read));
  FamilyId loss = k.let("loss", {}, k.sum(0, {{"k", K}}, apply(k.m, Op::Sin, {k.at(y, {k.s(0)})})));
  k.gradient("dx", loss, x);
  Module m = derive(k.m);
  EXPECT_NE(line(m, "dx").find("where idx[k] == r"), std::string::npos) << print(m);
  std::mt19937 rng(4);
  Tensor i(DType::I32, {6});
  for (int64_t p = 0; p < 6; ++p) i.set_int(p, (p * p) % 4);
  Inputs in{{"x", random_tensor({5}, rng)}, {"idx", i}};
  expect_gradient(m, in, "loss", "x", "dx");
}

TEST(Autodiff, CoupledRecurrenceRunsBackward) {
  Maker k;
  FamilyId x = k.input("x", {"T"}), w = k.input("w", {});
  ExprId T = k.extent("T");
  FamilyId a = k.declare("a", {k.coord("t", T)}), b = k.declare("b", {k.coord("t", T)});
  ExprId before = sub(k.m, k.s(0), k.n(1));
  ExprId a1 = k.at(a, {before}), b1 = k.at(b, {before}), xt = k.at(x, {k.s(0)}), W = k.at(w, {});
  k.clause(a, {{k.n(0), k.n(1)}}, W);
  k.clause(a, {{k.n(1), T}}, apply(k.m, Op::Tanh, {add(k.m, mul(k.m, W, a1), mul(k.m, b1, xt))}));
  k.clause(b, {{k.n(0), k.n(1)}}, k.real(0.5));
  k.clause(b, {{k.n(1), T}}, add(k.m, mul(k.m, k.real(0.9), b1), mul(k.m, k.at(a, {k.s(0)}), W)));
  FamilyId loss =
      k.let("loss", {}, k.sum(0, {{"t", T}}, mul(k.m, k.at(b, {k.s(0)}), k.at(a, {k.s(0)}))));
  k.m.constraints.push_back({apply(k.m, Op::Ge, {T, k.n(1)}), "T", {}, {}});
  k.gradient("dx", loss, x);
  k.gradient("dw", loss, w);
  Module m = derive(k.m);
  EXPECT_NE(line(m, "d_loss_d_b").find("[t + 1]"), std::string::npos) << print(m);
  std::mt19937 rng(5);
  Inputs in{{"x", random_tensor({7}, rng)}, {"w", random_tensor({}, rng)}};
  expect_gradient(m, in, "loss", "x", "dx");
  expect_gradient(m, in, "loss", "w", "dw");
}

TEST(Autodiff, SecondDerivative) {
  Maker k;
  FamilyId x = k.input("x", {"n"});
  ExprId N = k.extent("n");
  ExprId xi = k.at(x, {k.s(0)});
  FamilyId loss = k.let(
      "loss", {}, k.sum(0, {{"i", N}}, mul(k.m, apply(k.m, Op::Sin, {xi}), mul(k.m, xi, xi))));
  FamilyId g = k.gradient("g", loss, x);
  FamilyId total =
      k.let("total", {}, k.sum(0, {{"i", N}}, mul(k.m, k.at(g, {k.s(0)}), k.at(g, {k.s(0)}))));
  k.gradient("h", total, x);
  Module m = derive(k.m);
  std::mt19937 rng(6);
  Inputs in{{"x", random_tensor({4}, rng)}};
  expect_gradient(m, in, "total", "x", "h");
}

// W[s] = W[s-1] − 0.1 · ∂loss[s]/∂w[s], with w[s] = W[s-1] and loss[s] = Σ (x·w − y)²
TEST(Autodiff, RequestInsideARecurrenceTakesSameStepPaths) {
  Maker k;
  FamilyId x = k.input("x", {"b", "f"}), y = k.input("y", {"b"});
  ExprId B = k.extent("b"), F = k.extent("f"), S = k.n(5);
  FamilyId W = k.declare("W", {k.coord("s", S), k.coord("j", F)});
  FamilyId w = k.declare("w", {k.coord("s", S), k.coord("j", F)});
  FamilyId loss = k.declare("loss", {k.coord("s", S)});
  k.clause(w, {{k.n(0), k.n(1)}, {k.n(0), F}}, k.real(0));
  k.clause(w, {{k.n(1), S}, {k.n(0), F}}, k.at(W, {sub(k.m, k.s(0), k.n(1)), k.s(1)}));
  ExprId pred =
      k.sum(2, {{"j", F}}, mul(k.m, k.at(x, {k.s(1), k.s(2)}), k.at(w, {k.s(0), k.s(2)})));
  ExprId err = sub(k.m, pred, k.at(y, {k.s(1)}));
  k.clause(loss, {{k.n(0), k.n(1)}}, k.real(0));
  k.clause(loss, {{k.n(1), S}}, k.sum(1, {{"b", B}}, mul(k.m, err, err)));
  k.clause(W, {{k.n(0), k.n(1)}, {k.n(0), F}}, k.real(0));
  ExprId step = request(k.m, {loss, {k.s(0)}, w, {k.s(0), k.s(1)}});
  k.clause(W, {{k.n(1), S}, {k.n(0), F}},
           sub(k.m, k.at(w, {k.s(0), k.s(1)}), mul(k.m, k.real(0.1), step)));
  Module m = derive(k.m);
  std::mt19937 rng(7);
  Inputs in{{"x", random_tensor({3, 2}, rng)}, {"y", random_tensor({3}, rng)}};
  Tensor got = value_of(m, in, "W");
  std::vector<double> v(2, 0.0);
  for (int64_t s = 1; s < 5; ++s) {
    std::vector<double> g(2, 0.0);
    for (int64_t b = 0; b < 3; ++b) {
      double e = -in["y"].get_float(b);
      for (int64_t f = 0; f < 2; ++f) e += in["x"].get_float(b * 2 + f) * v[static_cast<size_t>(f)];
      for (int64_t f = 0; f < 2; ++f)
        g[static_cast<size_t>(f)] += 2 * e * in["x"].get_float(b * 2 + f);
    }
    for (size_t f = 0; f < 2; ++f) v[f] -= 0.1 * g[f];
    for (int64_t f = 0; f < 2; ++f)
      EXPECT_NEAR(got.get_float(s * 2 + f), v[static_cast<size_t>(f)], 1e-12) << print(m);
  }
}

}  // namespace
}  // namespace ein::core

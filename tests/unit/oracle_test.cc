// The oracle that the compiler is compared with has to be right itself: its numbers against
// closed forms, its evaluation against answers worked out by hand, its shrinker, and that
// it notices errors.
#include <gtest/gtest.h>

#include <cmath>

#include "oracle/build.h"
#include "oracle/expected.h"
#include "oracle/generate.h"
#include "oracle/shrink.h"

namespace oracle {
namespace {

// The first four derivatives of f at x, along four infinitesimals.
std::vector<Real> derivatives(Function f, Real x) {
  Num n(x);
  for (int k = 1; k <= 4; ++k) n = perturbed(n, k, 1);
  Num y = apply(f, n);
  return {y.at(0), y.at(1), y.at(3), y.at(7), y.at(15)};
}

void expect_near(const std::vector<Real>& got, const std::vector<Real>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < got.size(); ++k)
    EXPECT_NEAR(static_cast<double>(got[k]), static_cast<double>(want[k]), 1e-14) << k;
}

TEST(Oracle, FunctionsHaveTheirDerivatives) {
  const Real x = 0.7L;
  Real s = std::sin(x), c = std::cos(x), e = std::exp(x), t = std::tanh(x);
  expect_near(derivatives(Function::Sin, x), {s, c, -s, -c, s});
  expect_near(derivatives(Function::Cos, x), {c, -s, -c, s, c});
  expect_near(derivatives(Function::Exp, x), {e, e, e, e, e});
  expect_near(derivatives(Function::Log, x),
              {std::log(x), 1 / x, -1 / (x * x), 2 / (x * x * x), -6 / (x * x * x * x)});
  expect_near(derivatives(Function::Cube, x), {x * x * x, 3 * x * x, 6 * x, 6, 0});
  Real r = std::sqrt(x);
  expect_near(derivatives(Function::Sqrt, x),
              {r, 0.5L / r, -0.25L / (r * x), 0.375L / (r * x * x), -0.9375L / (r * x * x * x)});
  Real d = 1 - t * t;
  expect_near(derivatives(Function::Tanh, x),
              {t, d, -2 * t * d, d * (6 * t * t - 2), d * t * (16 - 24 * t * t)});
  Real g = 1 / (1 + std::exp(-x)), h = g * (1 - g), u = 1 - 2 * g;
  expect_near(derivatives(Function::Sigmoid, x),
              {g, h, h * u, h * (u * u - 2 * h), h * u * (u * u - 8 * h)});
}

TEST(Oracle, ProductsAndQuotientsMixDirections) {
  // f(x, y) = x² / y at (3, 2): f_xy = −2x / y², f_xxy = −2 / y².
  Num x = perturbed(perturbed(Num(3), 1, 1), 2, 1), y = perturbed(Num(2), 3, 1);
  Num f = x * x / y;
  EXPECT_DOUBLE_EQ(static_cast<double>(f.at(0)), 4.5);
  EXPECT_DOUBLE_EQ(static_cast<double>(f.at(5)), -1.5);
  EXPECT_DOUBLE_EQ(static_cast<double>(f.at(7)), -0.5);
  EXPECT_DOUBLE_EQ(static_cast<double>(coefficient(f, 3).at(3)), -0.5);
}

struct Small {
  Program p;
  int x, j, k;
  Small() {
    p.extents = {{"n", 3}};
    p.vars = {"j", "k"};
    j = 0;
    k = 1;
    Definition d;
    d.name = "x";
    d.extents = {extent_node(0)};
    d.input = true;
    d.data = {2, 3, 4};
    p.defs = {d};
    p.order = {0};
    x = 0;
  }
  int add(const std::string& name, std::vector<Node> extents, std::vector<Slot> slots, Node body) {
    Definition d;
    d.name = name;
    d.extents = std::move(extents);
    Clause c;
    c.slots = std::move(slots);
    c.body = std::move(body);
    d.clauses = {c};
    p.defs.push_back(d);
    p.order.push_back(static_cast<int>(p.defs.size()) - 1);
    return p.order.back();
  }
  std::vector<double> cells(int def) {
    Answer a = evaluate(p, {}, 100000);
    EXPECT_EQ(a.wrong, "");
    std::vector<double> out;
    for (Real r : a.values.at(def).cells) out.push_back(static_cast<double>(r));
    return out;
  }
};

TEST(Oracle, DependentProductsAndTheirGradient) {
  // y[j] = prod[k in j..n](x[k]), loss = sum(y): by hand 24 + 12 + 4 and [12, 8 + 4, 6 + 3 + 1].
  Small s;
  Slot j{s.j, integer(0), extent_node(0), false};
  int y = s.add(
      "y", {extent_node(0)}, {j},
      reduce(Reduction::Prod, {{s.k, variable(s.j), extent_node(0)}}, read(s.x, {variable(s.k)})));
  EXPECT_EQ(s.cells(y), (std::vector<double>{24, 12, 4}));
  int l =
      s.add("l", {}, {},
            reduce(Reduction::Sum, {{s.k, integer(0), extent_node(0)}}, read(y, {variable(s.k)})));
  int d = s.add("d", {extent_node(0)}, {j}, request(whole(l, {}), s.x, {variable(s.j)}, true));
  EXPECT_EQ(s.cells(d), (std::vector<double>{12, 12, 10}));
  EXPECT_NE(print(s.p).find("let y[j in 0..n] = prod[k in j..n](x[k]);"), std::string::npos)
      << print(s.p);
}

TEST(Oracle, WhatIsAddedToOneBindingStaysWhenAnotherMoves) {
  // y = x[0]², z = x[0] · y, g = dz / dx[0] = y + x[0] · 2x[0]. An infinitesimal added to y moves g
  // by as much: the slope of y by x[0] does not depend on it.
  Small s;
  Node first = read(s.x, {integer(0)});
  int y = s.add("y", {}, {}, call(Function::Square, first));
  int z = s.add("z", {}, {}, multiply(first, whole(y, {})));
  int g = s.add("g", {}, {}, request(whole(z, {}), s.x, {integer(0)}, false));
  int d = s.add("d", {}, {}, request(whole(g, {}), y, {}, true));
  EXPECT_EQ(s.cells(g), std::vector<double>{12});
  EXPECT_EQ(s.cells(d), std::vector<double>{1});
}

TEST(Oracle, EmptyRangesAndReadsOutside) {
  Small s;
  Slot j{s.j, integer(0), extent_node(0), false};
  auto along = [&](Reduction r) {
    return reduce(r, {{s.k, integer(0), variable(s.j)}}, read(s.x, {variable(s.k)}));
  };
  EXPECT_EQ(s.cells(s.add("a", {extent_node(0)}, {j}, along(Reduction::Sum)))[0], 0);
  EXPECT_EQ(s.cells(s.add("b", {extent_node(0)}, {j}, along(Reduction::Prod)))[0], 1);
  EXPECT_EQ(s.cells(s.add("c", {extent_node(0)}, {j}, along(Reduction::Max)))[0], -INFINITY);
  EXPECT_TRUE(std::isnan(s.cells(s.add("e", {extent_node(0)}, {j}, along(Reduction::Mean)))[0]));
  s.add("f", {extent_node(0)}, {j}, read(s.x, {plus(variable(s.j), 1)}));
  EXPECT_EQ(evaluate(s.p, {}, 100000).wrong, "a read outside of x");
}

TEST(Oracle, DrawsTheSameProgramAgainAndKnowsItsAnswers) {
  int ready = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Program p = draw(seed, 0, {});
    EXPECT_EQ(print(p), print(draw(seed, 0, {})));
    Prepared expected = prepare(p);
    EXPECT_NE(expected.state, Prepared::State::Invalid) << expected.why << "\n" << print(p);
    ready += expected.state == Prepared::State::Ready;
  }
  EXPECT_GT(ready, 45);
}

TEST(Oracle, ShrinksToWhatFails) {
  Program p = draw(7, 0, {});
  auto has = [](const Program& q) { return print(q).find("loss") != std::string::npos; };
  Program small = shrink(p, has);
  EXPECT_TRUE(has(small));
  EXPECT_LT(print(small).size(), print(p).size() / 3) << print(small);
}

}  // namespace
}  // namespace oracle

// The plan and the loops themselves, where the values alone would not show a lost decision.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/build.h"
#include "driver/compile.h"
#include "loops/loops.h"
#include "native_harness.h"
#include "plan/plan.h"

namespace ein {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Lowered {
  plan::Plan plan;
  std::string table, loops;
};

Lowered lowered(Program& p, const plan::Choices& choices = {}) {
  Lowered out;
  out.plan = plan_of(p.m, p.wanted, choices);
  loops::Program program = loops_of(out.plan);
  EXPECT_EQ(loops::verify(program), std::vector<std::string>{});
  out.table = print(out.plan);
  out.loops = print(program);
  return out;
}

TEST(Plan, ContractionsAreReadOffCoordinateSets) {
  Program p;
  FamilyId a = p.input("a", DType::F32, 3), b = p.input("b", DType::F32, 3);
  for (uint32_t k : {0u, 2u}) {
    p.m.constraints.push_back({p.op(Op::Eq, {p.extent(a, k), p.extent(b, k)}), "equal", {}, {}});
  }
  // c[i, j, k] = Σ_l a[i, j, l] · b[i, k, l]
  ExprId body = p.sum(3, {{p.i(0), p.extent(a, 2)}},
                      p.mul(p.at(a, {p.s(0), p.s(1), p.s(3)}), p.at(b, {p.s(0), p.s(2), p.s(3)})));
  p.wanted = {p.family("c", {p.extent(a, 0), p.extent(a, 1), p.extent(b, 1)}, body)};
  EXPECT_TRUE(contains(lowered(p).table, "contract batch {i} m {j} n {k} k {#3}"));
  EXPECT_TRUE(contains(lowered(p).loops, "contract("));
  plan::Choices none;
  none.contractions = false;
  EXPECT_FALSE(contains(lowered(p, none).loops, "contract("));
}

TEST(Plan, InliningKeepsWhatCouldStopTheProgram) {
  Program p;
  FamilyId x = p.input("x", DType::F32, 1), idx = p.input("idx", DType::I64, 1);
  ExprId N = p.extent(x, 0);
  FamilyId twice = p.family("twice", {N}, p.mul(p.at(x, {p.s(0)}), p.f(2)));
  FamilyId picked = p.family("picked", {p.extent(idx, 0)}, p.at(x, {p.at(idx, {p.s(0)})}));
  // Only the first cell of `picked` is read; a bad index elsewhere must still stop the program.
  ExprId head = p.sel(p.op(Op::Gt, {p.extent(idx, 0), p.i(0)}), p.at(picked, {p.i(0)}), p.f(0));
  p.wanted = {p.family("y", {N}, p.add(p.at(twice, {p.s(0)}), head))};
  plan::Choices all;
  all.inlines = [](FamilyId) { return true; };
  Lowered l = lowered(p, all);
  EXPECT_TRUE(contains(l.table, "twice            inline"));
  EXPECT_TRUE(contains(l.table, "picked           materialise"));
}

TEST(Lower, InvariantReductionsLeaveTheirLoops) {
  Program p;
  FamilyId x = p.input("x", DType::F64, 1);
  ExprId N = p.extent(x, 0);
  ExprId total = p.sum(1, {{p.i(0), N}}, p.at(x, {p.s(1)}));
  p.wanted = {p.family("y", {N}, p.sub(p.at(x, {p.s(0)}), total))};
  std::string loops = lowered(p).loops;
  EXPECT_LT(loops.find("fold sum"), loops.find("vector(8)")) << loops;
}

TEST(Lower, AffineGatesBecomeLoopBounds) {
  Program p;
  FamilyId x = p.input("x", DType::F64, 2);
  ExprId N = p.extent(x, 0);
  ExprId causal = p.op(Op::Le, {p.s(1), p.s(0)});
  p.m.constraints.push_back({p.op(Op::Eq, {N, p.extent(x, 1)}), "square", {}, {}});
  p.wanted = {p.family("y", {N}, p.sum(1, {{p.i(0), N}}, p.at(x, {p.s(0), p.s(1)}), causal))};
  std::string loops = lowered(p).loops;
  EXPECT_TRUE(contains(loops, "min(")) << loops;
  EXPECT_FALSE(contains(loops, "if ")) << loops;
  EXPECT_FALSE(contains(loops, "select")) << loops;
}

TEST(Lower, ProvenAccessesHaveNoChecks) {
  Program p;
  FamilyId x = p.input("x", DType::F64, 1), idx = p.input("idx", DType::I64, 1);
  ExprId N = p.extent(x, 0);
  ExprId left = p.sub(p.s(0), p.i(1));
  ExprId inside = p.op(Op::Ge, {left, p.i(0)});
  p.wanted = {p.family("y", {N}, p.sel(inside, p.at(x, {left}), p.at(x, {p.s(0)})))};
  EXPECT_FALSE(contains(lowered(p).loops, "check")) << lowered(p).loops;
  p.wanted = {p.family("z", {p.extent(idx, 0)}, p.at(x, {p.at(idx, {p.s(0)})}))};
  EXPECT_TRUE(contains(lowered(p).loops, "check"));
}

// A loop over a buffer `out` of one dimension, with `body` inside.
loops::Program one_loop(loops::Axis axis,
                        const std::function<loops::Block(loops::Program&, loops::VarId)>& body) {
  loops::Program p;
  p.buffers.add({"out", {}, DType::F32, {core::ExprId(0)}, loops::Buffer::Space::Output});
  loops::VarId i = p.vars.add({"i", DType::I64});
  loops::ExprId zero = p.exprs.add({loops::IntConst{0}, DType::I64});
  loops::ExprId n = p.exprs.add({loops::Param{0}, DType::I64});
  loops::Block inside = body(p, i);
  p.kernels.push_back({"k", {{loops::Loop{i, zero, n, axis, false, {}, std::move(inside)}}}});
  return p;
}

TEST(LoopsVerify, ReportsWhatLoopsMayNotDo) {
  using loops::Axis;
  auto add_at = [](bool update) {
    return [update](loops::Program& p, loops::VarId i) {
      loops::ExprId at = p.exprs.add({loops::Get{i}, DType::I64});
      loops::ExprId v = p.exprs.add({loops::FloatConst{1}, DType::F32});
      if (update) return loops::Block{{loops::Update{loops::BufferId(0), {at}, v}}};
      return loops::Block{{loops::Store{loops::BufferId(0), {at}, v}}};
    };
  };
  EXPECT_TRUE(loops::verify(one_loop({Axis::Kind::Vector, 8}, add_at(false))).empty());
  EXPECT_TRUE(loops::verify(one_loop({Axis::Kind::Seq, 1}, add_at(true))).empty());
  auto updates = loops::verify(one_loop({Axis::Kind::Reduce, 8}, add_at(true)));
  ASSERT_EQ(updates.size(), 1u);
  EXPECT_TRUE(contains(updates[0], "update")) << updates[0];

  auto wrong_type = loops::verify(one_loop({}, [](loops::Program& p, loops::VarId i) {
    loops::ExprId at = p.exprs.add({loops::Get{i}, DType::I64});
    return loops::Block{{loops::Store{loops::BufferId(0), {at}, at}}};
  }));
  ASSERT_EQ(wrong_type.size(), 1u);
  EXPECT_TRUE(contains(wrong_type[0], "expected f32, got i64")) << wrong_type[0];

  auto unbound = loops::verify(one_loop({}, [](loops::Program& p, loops::VarId) {
    loops::VarId other = p.vars.add({"j", DType::I64});
    loops::ExprId at = p.exprs.add({loops::Get{other}, DType::I64});
    loops::ExprId v = p.exprs.add({loops::FloatConst{1}, DType::F32});
    return loops::Block{{loops::Store{loops::BufferId(0), {at}, v}}};
  }));
  ASSERT_EQ(unbound.size(), 1u);
  EXPECT_TRUE(contains(unbound[0], "not visible")) << unbound[0];
}

}  // namespace
}  // namespace ein

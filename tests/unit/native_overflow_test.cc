// Integer overflow that stops the program: the same operations, numbers and cells as in the
// reference, in lanes too.
#include "native_harness.h"

namespace ein {
namespace {

int64_t least_of(DType t) {
  return t == DType::U8    ? 0
         : t == DType::I8  ? INT8_MIN
         : t == DType::I16 ? INT16_MIN
         : t == DType::I32 ? INT32_MIN
                           : INT64_MIN;
}
int64_t most_of(DType t) { return t == DType::U8 ? 255 : -(least_of(t) + 1); }

std::vector<NativeOptions> stopping() {
  std::vector<NativeOptions> out(3);
  out[1].opt_level = 0;
  out[1].processor = Processor::Sse2;
  out[2].choices.vector_axis = [](FamilyId, size_t) { return 0u; };
  out[2].choices.reduce_width = [](ExprId) { return 4u; };
  for (NativeOptions& o : out) o.choices.overflow = core::Overflow::Stops;
  return out;
}

void expect_same_stop(Program& p, const std::vector<Inputs>& cases) {
  for (const NativeOptions& options : stopping()) {
    auto native = compiled(p, options);
    ASSERT_TRUE(native);
    for (const Inputs& inputs : cases) {
      EvalResult want = evaluate(p.m, inputs, p.wanted, {}, {true});
      NativeResult got = run(*native, inputs);
      ASSERT_EQ(want.error.has_value(), got.error.has_value())
          << (want.error ? want.error->message : got.error->message);
      if (want.error) {
        ASSERT_EQ(want.error->code, got.error->code);
        ASSERT_EQ(want.error->message, got.error->message);
        continue;
      }
      for (FamilyId f : p.wanted) expect_equal(want.values.at(f), got.values.at(f), 0, "fits");
    }
  }
}

TEST(NativeOverflow, EveryOperationAtTheLimits) {
  for (DType t : {DType::I8, DType::U8, DType::I32, DType::I64}) {
    for (Op o : {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Pow, Op::Neg, Op::Abs}) {
      Program p;
      FamilyId a = p.input("a", t, 1), b = p.input("b", t, 1);
      ExprId N = p.extent(a, 0);
      p.m.constraints.push_back({p.op(Op::Eq, {N, p.extent(b, 0)}), "equal", {}, {}});
      std::vector<ExprId> args{p.at(a, {p.s(0)}), p.at(b, {p.s(0)})};
      args.resize(info(o).arity);
      p.wanted = {p.family("y", {N}, p.op(o, args))};
      std::vector<Inputs> cases;
      int64_t least = least_of(t), most = most_of(t);
      std::vector<int64_t> values{least, most, 0, 1, 2, most / 2 + 1};
      if (t != DType::U8) values.push_back(-1);
      for (int64_t x : values) {
        for (int64_t y : values) {
          // In the tail, and in the last lanes of a full vector.
          std::vector<int64_t> xs(37, 1), ys(37, 1);
          xs[15] = x;
          ys[15] = y;
          cases.push_back({{"a", ints(t, {x})}, {"b", ints(t, {y})}});
          cases.push_back({{"a", ints(t, xs)}, {"b", ints(t, ys)}});
        }
      }
      expect_same_stop(p, cases);
    }
  }
}

TEST(NativeOverflow, SumsInTheOrderOfTheReference) {
  for (DType t : {DType::I8, DType::I64}) {
    Program p;
    FamilyId a = p.input("a", t, 1);
    Range all{p.i(0), p.extent(a, 0)};
    ExprId x = p.at(a, {p.s(0)});
    ExprId positive = p.op(Op::Gt, {x, int_lit(p.m, 0, t)});
    p.wanted = {p.family("sum", {}, p.sum(0, {all}, x)),
                p.family("gated", {}, p.sum(0, {all}, x, positive)),
                p.family("prod", {}, p.red(ReduceOp::Prod, 0, {all}, x))};
    int64_t most = most_of(t);
    expect_same_stop(p, {{{"a", ints(t, {most, 1, -1})}},
                         {{"a", ints(t, {most, -1, 1})}},
                         {{"a", ints(t, {1, most - 1, -1, -1, 0})}},
                         {{"a", ints(t, {most / 2, -3, most / 2})}},
                         {{"a", ints(t, std::vector<int64_t>(40, 3))}},
                         {{"a", ints(t, {})}}});
  }
}

// Steps of a long expression, sides that are not taken, indices that stay free of checks.
TEST(NativeOverflow, OnlyWhatIsEvaluated) {
  Program p;
  FamilyId a = p.input("a", DType::I64, 1);
  ExprId N = p.extent(a, 0), x = p.at(a, {p.s(0)});
  ExprId small = p.op(Op::Lt, {x, p.i(1000)});
  ExprId longer = p.add(p.add(p.mul(p.i(5), x), p.s(0)), p.i(7));
  p.wanted = {p.family("guarded", {N}, p.sel(small, p.mul(p.i(3), x), p.i(0))),
              p.family("steps", {N}, p.sel(small, longer, x))};
  p.wanted.push_back(p.family("free", {N}, longer));
  expect_same_stop(p, {{{"a", ints(DType::I64, {1, 2, 3})}},
                       {{"a", ints(DType::I64, {1, INT64_MAX, 3})}},
                       {{"a", ints(DType::I64, {1, INT64_MIN, 3})}},
                       {{"a", ints(DType::I64, std::vector<int64_t>(33, 9))}}});
}

}  // namespace
}  // namespace ein

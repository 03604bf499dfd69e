// Scalar semantics: every operation and type, NaN and ties, laziness, integer division.
#include "native_harness.h"

namespace ein {
namespace {

TEST(NativeNumbers, SelectIsLazy) {
  Program p;
  FamilyId x = p.input("x", DType::F32, 1), d = p.input("d", DType::I32, 1);
  ExprId N = p.extent(x, 0);
  p.m.constraints.push_back({p.op(Op::Eq, {N, p.extent(d, 0)}), "equal", {}, {}});
  ExprId first = p.op(Op::Gt, {p.s(0), p.i(0)});
  // x[i - 1] only where i > 0; the index is proven by the condition alone.
  FamilyId shift = p.family("shift", {N}, p.sel(first, p.at(x, {p.sub(p.s(0), p.i(1))}), p.f(-7)));
  // An integer division that only the taken side may evaluate.
  ExprId di = p.at(d, {p.s(0)});
  ExprId nonzero = p.op(Op::Ne, {di, int_lit(p.m, 0, DType::I32)});
  ExprId hundred = int_lit(p.m, 100, DType::I32);
  FamilyId ratio = p.family(
      "ratio", {N}, p.sel(nonzero, p.op(Op::Div, {hundred, di}), int_lit(p.m, -1, DType::I32)));
  // && and || stop early too.
  ExprId even = p.op(Op::Eq, {p.op(Op::Mod, {hundred, di}), int_lit(p.m, 0, DType::I32)});
  FamilyId divides = p.family("divides", {N}, p.op(Op::And, {nonzero, even}));
  FamilyId either = p.family("either", {N}, p.op(Op::Or, {negate(p.m, nonzero), even}));
  // log is not evaluated for effect: NaN must not leak out of the side not taken.
  ExprId xi = p.at(x, {p.s(0)});
  FamilyId logs =
      p.family("logs", {N}, p.sel(p.op(Op::Gt, {xi, p.f(0)}), p.op(Op::Log, {xi}), p.f(0)));
  p.wanted = {shift, ratio, divides, either, logs};
  std::vector<int64_t> by;
  for (int64_t i = 0; i < 40; ++i) by.push_back(i % 5 - 2);
  expect_same(p, {{{"x", random_tensor(DType::F32, {40}, 1)}, {"d", ints(DType::I32, by)}},
                  {{"x", random_tensor(DType::F32, {3}, 1)}, {"d", ints(DType::I32, {0, 0, 7})}}});
}

TEST(NativeNumbers, DivisionByZeroStops) {
  Program p;
  FamilyId a = p.input("a", DType::I64, 1), b = p.input("b", DType::I64, 1);
  p.m.constraints.push_back({p.op(Op::Eq, {p.extent(a, 0), p.extent(b, 0)}), "equal", {}, {}});
  ExprId x = p.at(a, {p.s(0)}), y = p.at(b, {p.s(0)});
  p.wanted = {p.family("q", {p.extent(a, 0)}, p.op(Op::Div, {x, y})),
              p.family("r", {p.extent(a, 0)}, p.op(Op::Mod, {x, y}))};
  int64_t least = INT64_MIN;
  expect_same(p, {{{"a", ints(DType::I64, {7, -7, 7, -7, least, least})},
                   {"b", ints(DType::I64, {2, 2, -2, -2, -1, 1})}},
                  {{"a", ints(DType::I64, {1, 2})}, {"b", ints(DType::I64, {1, 0})}}});
}

TEST(NativeNumbers, SelectionWithNaNAndTies) {
  double nan = std::nan(""), inf = INFINITY;
  for (DType t : {DType::F32, DType::F64}) {
    Program p;
    FamilyId x = p.input("x", t, 1), y = p.input("y", t, 2);
    ExprId N = p.extent(x, 0);
    const std::pair<const char*, ReduceOp> ops[] = {{"max", ReduceOp::Max},
                                                    {"min", ReduceOp::Min},
                                                    {"argmax", ReduceOp::ArgMax},
                                                    {"argmin", ReduceOp::ArgMin}};
    for (auto [name, op] : ops) {
      ExprId r = p.red(op, 0, {{p.i(0), N}}, p.at(x, {p.s(0)}));
      p.wanted.push_back(p.family(name, {}, r));
      // Over the slow coordinate, so that the lanes are independent results.
      ExprId q = p.red(op, 1, {{p.i(0), p.extent(y, 0)}}, p.at(y, {p.s(1), p.s(0)}));
      p.wanted.push_back(p.family(std::string(name) + "_columns", {p.extent(y, 1)}, q));
      ExprId gate = p.op(Op::Lt, {p.at(x, {p.s(0)}), float_lit(p.m, 0, t)});
      ExprId g = p.red(op, 0, {{p.i(0), N}}, p.at(x, {p.s(0)}), gate);
      p.wanted.push_back(p.family(std::string(name) + "_gated", {}, g));
    }
    Tensor columns = random_tensor(t, {6, 37}, 4);
    for (int64_t i = 0; i < 37; ++i) {
      if (i % 3 == 0) columns.set_float(i + 37 * (i % 6), nan);
      if (i % 5 == 0) columns.set_float(i + 37 * 2, columns.get_float(i + 37 * 4));
    }
    std::vector<Inputs> cases;
    for (const std::vector<double>& v : {std::vector<double>{1, 3, 3, 2},
                                         {2, nan, 5, nan},
                                         {nan},
                                         {-inf, inf, inf},
                                         {},
                                         {-1, -5, -5, -2, 7},
                                         {0, -0.0, 0}}) {
      cases.push_back({{"x", floats(t, v)}, {"y", columns}});
    }
    cases.push_back({{"x", random_tensor(t, {1000}, 9)}, {"y", random_tensor(t, {0, 3}, 9)}});
    expect_same(p, cases, 0);
  }
}

TEST(NativeNumbers, IntegerOperations) {
  for (DType t : {DType::I8, DType::I16, DType::I32, DType::I64, DType::U8}) {
    Program p;
    FamilyId a = p.input("a", t, 1), b = p.input("b", t, 1);
    ExprId N = p.extent(a, 0);
    p.m.constraints.push_back({p.op(Op::Eq, {N, p.extent(b, 0)}), "equal", {}, {}});
    ExprId x = p.at(a, {p.s(0)}), y = p.at(b, {p.s(0)});
    for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Mod, Op::Pow, Op::Min, Op::Max, Op::Lt,
                  Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne}) {
      p.wanted.push_back(p.family(info(op).name, {N}, p.op(op, {x, y})));
    }
    for (Op op : {Op::Neg, Op::Abs, Op::Sign, Op::BitLength}) {
      p.wanted.push_back(p.family(info(op).name, {N}, p.op(op, {x})));
    }
    for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min,
                        ReduceOp::ArgMax, ReduceOp::ArgMin}) {
      p.wanted.push_back(p.family(name_of(op), {}, p.red(op, 0, {{p.i(0), N}}, x)));
    }
    int64_t most = t == DType::U8 ? 255 : t == DType::I8 ? 127 : 32767;
    int64_t least = t == DType::U8 ? 0 : t == DType::I8 ? -128 : -32768;
    Tensor u(t, {50}), v(t, {50});
    for (int64_t i = 0; i < 50; ++i) {
      u.set_int(i, i % 7 == 0 ? least : i % 7 == 1 ? most : i * 13 - 300);
      v.set_int(i, i % 5 == 0 ? (t == DType::U8 ? 255 : -1) : i % 11 + 1);
    }
    if (t == DType::I32) u.set_int(0, INT32_MIN);
    if (t == DType::I64) u.set_int(0, INT64_MIN);
    expect_same(p, {{{"a", u}, {"b", v}}, {{"a", Tensor(t, {0})}, {"b", Tensor(t, {0})}}});
  }
}

TEST(NativeNumbers, FloatOperations) {
  double nan = std::nan(""), inf = INFINITY;
  for (DType t : {DType::F32, DType::F64}) {
    Program p;
    FamilyId a = p.input("a", t, 1), b = p.input("b", t, 1);
    ExprId N = p.extent(a, 0);
    p.m.constraints.push_back({p.op(Op::Eq, {N, p.extent(b, 0)}), "equal", {}, {}});
    ExprId x = p.at(a, {p.s(0)}), y = p.at(b, {p.s(0)});
    for (Op op : {
#define EIN_OP(name, spelling, arity, cls) Op::name,
#include "core/ops.def"
#undef EIN_OP
         }) {
      OpClass cls = info(op).cls;
      if (cls != OpClass::Arith && cls != OpClass::Real && cls != OpClass::Compare) continue;
      std::vector<ExprId> args{x, y};
      args.resize(info(op).arity);
      p.wanted.push_back(p.family(info(op).name, {N}, p.op(op, args)));
    }
    for (double e : {1.0, 2.0, 3.0, -1.0, 0.5}) {
      p.wanted.push_back(p.family("pow" + std::to_string(p.wanted.size()), {N},
                                  p.op(Op::Pow, {x, float_lit(p.m, e, t)})));
    }
    std::vector<double> special{0.0, -0.0, 1, -1, 0.5, 2.5, 3.5, -2.5, inf, -inf, nan, 1e-3, 30};
    std::vector<double> u, v;
    for (double i : special) {
      for (double j : special) {
        u.push_back(i);
        v.push_back(j);
      }
    }
    expect_same(p, {{{"a", floats(t, u)}, {"b", floats(t, v)}}}, t == DType::F32 ? 1e-6 : 1e-14);
  }
}

TEST(NativeNumbers, Casts) {
  const DType types[] = {DType::Bool, DType::I8, DType::I16, DType::I32,
                         DType::I64,  DType::U8, DType::F32, DType::F64};
  for (DType from : types) {
    Program p;
    FamilyId x = p.input("x", from, 1);
    for (DType to : types) {
      if (to == from) continue;
      p.wanted.push_back(p.family(std::string("to_") + name_of(to), {p.extent(x, 0)},
                                  cast(p.m, p.at(x, {p.s(0)}), to)));
    }
    Tensor t = random_tensor(from, {40}, 3);
    if (is_float(from)) {
      std::vector<double> v{0,        -0.0,  0.4,    -0.9, 1e30,  -1e30, std::nan(""),
                            INFINITY, 255.9, -128.5, 3e9,  40000, 9.3e18};
      for (size_t i = 0; i < v.size(); ++i) t.set_float(static_cast<int64_t>(i), v[i]);
    } else if (from == DType::I64) {
      t.set_int(0, (int64_t{1} << 60) + 1);
      t.set_int(1, INT64_MIN);
      t.set_int(2, 9007199791611905);
    }
    expect_same(p, {{{"x", t}}}, 0);
  }
}

TEST(NativeNumbers, Booleans) {
  Program p;
  FamilyId a = p.input("a", DType::Bool, 1), b = p.input("b", DType::Bool, 1);
  ExprId N = p.extent(a, 0);
  p.m.constraints.push_back({p.op(Op::Eq, {N, p.extent(b, 0)}), "equal", {}, {}});
  ExprId x = p.at(a, {p.s(0)}), y = p.at(b, {p.s(0)});
  p.wanted = {p.family("both", {N}, p.op(Op::And, {x, y})),
              p.family("one", {N}, p.op(Op::Or, {x, y})),
              p.family("not", {N}, p.op(Op::Not, {x})),
              p.family("less", {N}, p.op(Op::Lt, {x, y})),
              p.family("same", {N}, p.op(Op::Eq, {x, y})),
              p.family("all", {}, p.red(ReduceOp::All, 0, {{p.i(0), N}}, x)),
              p.family("any", {}, p.red(ReduceOp::Any, 0, {{p.i(0), N}}, x))};
  expect_same(
      p, {{{"a", random_tensor(DType::Bool, {45}, 1)}, {"b", random_tensor(DType::Bool, {45}, 2)}},
          {{"a", ints(DType::Bool, std::vector<int64_t>(33, 1))},
           {"b", ints(DType::Bool, std::vector<int64_t>(33, 0))}},
          {{"a", Tensor(DType::Bool, {0})}, {"b", Tensor(DType::Bool, {0})}}});
}

TEST(NativeNumbers, AllAndAnyStopAtTheDecidingCell) {
  Program p;
  FamilyId x = p.input("x", DType::F32, 1), idx = p.input("idx", DType::I64, 1);
  ExprId positive = p.op(Op::Gt, {p.at(x, {p.at(idx, {p.s(0)})}), p.f(0)});
  Range over{p.i(0), p.extent(idx, 0)};
  p.wanted = {p.family("all", {}, p.red(ReduceOp::All, 0, {over}, positive)),
              p.family("any", {}, p.red(ReduceOp::Any, 0, {over}, negate(p.m, positive)))};
  Tensor t = floats(DType::F32, {1, -1, 1});
  expect_same(p, {{{"x", t}, {"idx", ints(DType::I64, {0, 1, 99})}},
                  {{"x", t}, {"idx", ints(DType::I64, {0, 99, 1})}},
                  {{"x", t}, {"idx", ints(DType::I64, {0, 2})}}});
}

}  // namespace
}  // namespace ein

// f16 and bf16: every value, every rounding, on processors with and without instructions for them.
#include <bit>
#include <cstring>

#include "native_harness.h"

namespace ein {
namespace {

const Processor kBoth[] = {Processor::Native, Processor::Sse2};

Tensor output(Program& p, FamilyId id, const Inputs& inputs, Processor processor) {
  NativeOptions options;
  options.processor = processor;
  return run(*compiled(p, options), inputs).values.at(id);
}

void expect_same_values(const Tensor& want, const Tensor& got) {
  ASSERT_EQ(want.shape(), got.shape());
  for (int64_t i = 0; i < want.size(); ++i) {
    double a = want.get_float(i), b = got.get_float(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    ASSERT_EQ(a, b) << "at " << i;
    ASSERT_EQ(std::signbit(a), std::signbit(b)) << "at " << i;
  }
}

Tensor every_half(DType type) {
  Tensor t(type, {65536});
  for (int64_t i = 0; i < t.size(); ++i) t.as<uint16_t>()[i] = static_cast<uint16_t>(i);
  return t;
}

TEST(NativeHalf, EveryValueIsReadAndWritten) {
  for (DType type : {DType::F16, DType::BF16}) {
    Program p;
    FamilyId x = p.input("x", type, 1);
    FamilyId wide = p.family("wide", {p.extent(x, 0)}, cast(p.m, p.at(x, {p.s(0)}), DType::F32));
    FamilyId same = p.family("same", {p.extent(x, 0)}, p.op(Op::Neg, {p.at(x, {p.s(0)})}));
    p.wanted = {wide, same};
    Tensor all = every_half(type), want(DType::F32, {65536}), negated(type, {65536});
    for (int64_t i = 0; i < all.size(); ++i) {
      want.set_float(i, all.get_float(i));
      negated.set_float(i, -all.get_float(i));
    }
    for (Processor processor : kBoth) {
      expect_same_values(want, output(p, wide, {{"x", all}}, processor));
      expect_same_values(negated, output(p, same, {{"x", all}}, processor));
    }
  }
}

// Around every value and every tie between two of them, and far outside.
TEST(NativeHalf, RoundsToNearestEven) {
  for (DType type : {DType::F16, DType::BF16}) {
    Tensor all = every_half(type), x(DType::F32, {65536 * 6});
    for (int64_t i = 0; i < all.size(); ++i) {
      auto v = static_cast<float>(all.get_float(i));
      float next = static_cast<float>(all.get_float(i + 1 < all.size() ? i + 1 : i));
      float tie = v / 2 + next / 2;
      float at[] = {v,   std::nextafterf(v, INFINITY),   std::nextafterf(v, -INFINITY),
                    tie, std::nextafterf(tie, INFINITY), std::nextafterf(tie, -INFINITY)};
      std::memcpy(x.as<float>() + 6 * i, at, sizeof at);
    }
    Program p;
    FamilyId in = p.input("x", DType::F32, 1);
    FamilyId y = p.family("y", {p.extent(in, 0)}, cast(p.m, p.at(in, {p.s(0)}), type));
    p.wanted = {y};
    Tensor want(type, x.shape());
    for (int64_t i = 0; i < x.size(); ++i) want.set_float(i, x.get_float(i));
    for (Processor processor : kBoth) {
      expect_same_values(want, output(p, y, {{"x", x}}, processor));
    }
  }
}

TEST(NativeHalf, ArithmeticIsTheReferences) {
  for (DType type : {DType::F16, DType::BF16}) {
    Program p;
    FamilyId a = p.input("a", type, 1), b = p.input("b", type, 1);
    ExprId N = p.extent(a, 0);
    p.m.constraints.push_back({p.op(Op::Eq, {N, p.extent(b, 0)}), "equal", {}, {}});
    ExprId x = p.at(a, {p.s(0)}), y = p.at(b, {p.s(0)});
    for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Mod, Op::Min, Op::Max, Op::Lt, Op::Eq}) {
      p.wanted.push_back(p.family(info(op).name, {N}, p.op(op, {x, y})));
    }
    for (Op op : {Op::Neg, Op::Abs, Op::Sign, Op::Sqrt, Op::Floor, Op::Ceil, Op::Round}) {
      p.wanted.push_back(p.family(info(op).name, {N}, p.op(op, {x})));
    }
    // Rounded after the product and after the sum, and no literal is longer than its type.
    ExprId tenth = float_lit(p.m, 0.1, type);
    p.wanted.push_back(p.family("steps", {N}, p.add(p.mul(x, y), p.mul(x, tenth))));
    for (DType to : {DType::I8, DType::I32, DType::I64, DType::F32, DType::F64, DType::Bool}) {
      p.wanted.push_back(p.family(std::string("to_") + name_of(to), {N}, cast(p.m, x, to)));
    }
    p.wanted.push_back(p.family("largest", {}, p.red(ReduceOp::Max, 0, {{p.i(0), N}}, x)));
    Tensor u = random_tensor(type, {1000}, 5), v = random_tensor(type, {1000}, 6);
    for (int64_t i = 0; i < 300; ++i) {
      u.as<uint16_t>()[i] = static_cast<uint16_t>(i * 219);
      v.as<uint16_t>()[i] = static_cast<uint16_t>(i * i * 7);
    }
    expect_same(p, {{{"a", u}, {"b", v}}}, 0);
  }
}

TEST(NativeHalf, SumsAreTakenInF32) {
  for (DType type : {DType::F16, DType::BF16}) {
    Program p;
    FamilyId a = p.input("a", type, 2), b = p.input("b", type, 2),
             idx = p.input("idx", DType::I64, 1);
    p.m.constraints.push_back({p.op(Op::Eq, {p.extent(a, 1), p.extent(b, 0)}), "equal", {}, {}});
    Range k{p.i(0), p.extent(a, 1)};
    // A product of matrices, and a sum that would stop growing in plain f16.
    ExprId product = p.sum(2, {k}, p.mul(p.at(a, {p.s(0), p.s(2)}), p.at(b, {p.s(2), p.s(1)})));
    p.wanted.push_back(p.family("c", {p.extent(a, 0), p.extent(b, 1)}, product));
    ExprId ones = p.sum(1, {{p.i(0), p.i(5000)}}, float_lit(p.m, 1, type));
    p.wanted.push_back(p.family("many", {p.extent(idx, 0)}, ones));
    ExprId prod = p.red(ReduceOp::Prod, 1, {k}, p.at(a, {p.s(0), p.s(1)}));
    p.wanted.push_back(p.family("prod", {p.extent(a, 0)}, prod));
    double tolerance = type == DType::F16 ? 1e-3 : 8e-3;  // one unit: sums are associated freely
    expect_same(p,
                {{{"a", random_tensor(type, {7, 40}, 1)},
                  {"b", random_tensor(type, {40, 19}, 2)},
                  {"idx", ints(DType::I64, {0, 1, 2})}}},
                tolerance);
  }
}

TEST(NativeHalf, Functions) {
  for (DType type : {DType::F16, DType::BF16}) {
    Program p;
    FamilyId a = p.input("a", type, 1);
    ExprId x = p.at(a, {p.s(0)});
    for (Op op : {Op::Exp, Op::Log, Op::Sin, Op::Tanh, Op::Erf, Op::Atan, Op::Expm1}) {
      p.wanted.push_back(p.family(info(op).name, {p.extent(a, 0)}, p.op(op, {x})));
    }
    expect_same(p, {{{"a", random_tensor(type, {500}, 5)}}}, type == DType::F16 ? 1e-3 : 8e-3);
  }
}

}  // namespace
}  // namespace ein

// Shared by the tests of native code: Core built by hand, and the comparison with the reference
// evaluator. Every program runs under several plans, wise and unwise; floats compare within a
// tolerance where sums may be associated differently, and exactly elsewhere.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "codegen/native.h"
#include "core/build.h"
#include "core/eval.h"
#include "core/verify.h"
#include "driver/compile.h"
#include "driver/run.h"

namespace ein {

using namespace core;

// A module under construction, with the few shorthands the tests need.
struct Program {
  Module m;
  std::vector<FamilyId> wanted;

  ExprId n(const std::string& name, FamilyId source, uint32_t axis) {
    return param(m, m.params.add({intern(name), source, axis}));
  }
  ExprId i(int64_t v) { return int_lit(m, v); }
  ExprId s(uint32_t k) { return slot(m, k); }
  ExprId f(double v, DType t = DType::F32) { return float_lit(m, v, t); }
  ExprId add(ExprId a, ExprId b) { return core::add(m, a, b); }
  ExprId sub(ExprId a, ExprId b) { return core::sub(m, a, b); }
  ExprId mul(ExprId a, ExprId b) { return core::mul(m, a, b); }
  ExprId op(Op o, std::vector<ExprId> args) { return apply(m, o, std::move(args)); }
  ExprId at(FamilyId family, std::vector<ExprId> index) {
    return access(m, family, std::move(index));
  }
  ExprId sel(ExprId c, ExprId a, ExprId b) { return op(Op::Select, {c, a, b}); }

  // An input whose extents are fresh params.
  FamilyId input(const std::string& name, DType type, uint32_t rank) {
    Family family;
    family.name = intern(name);
    family.kind = Family::Kind::Input;
    family.dtype = type;
    FamilyId id = m.families.add(family);
    for (uint32_t k = 0; k < rank; ++k) {
      ExprId extent = n(name + "_" + std::to_string(k), id, k);
      m.families[id].coords.push_back({intern(name + "_c" + std::to_string(k)), extent});
    }
    return id;
  }
  ExprId extent(FamilyId id, uint32_t k) { return m[id].coords[k].extent; }

  FamilyId define(const std::string& name, DType type, std::vector<ExprId> extents) {
    Family family;
    family.name = intern(name);
    family.dtype = type;
    const char* names[] = {"i", "j", "k", "l"};
    for (size_t k = 0; k < extents.size(); ++k) {
      family.coords.push_back({intern(names[k]), extents[k]});
    }
    return m.families.add(family);
  }
  void clause(FamilyId id, ExprId body) {
    std::vector<Range> box;
    for (const Coord& c : m[id].coords) box.push_back({i(0), c.extent});
    clause(id, box, body);
  }
  void clause(FamilyId id, std::vector<Range> box, ExprId body) {
    m.families[id].clauses.push_back({std::move(box), body, {}});
  }
  FamilyId family(const std::string& name, std::vector<ExprId> extents, ExprId body) {
    FamilyId id = define(name, m[body].type, std::move(extents));
    clause(id, body);
    return id;
  }
  ExprId red(ReduceOp o, uint32_t first, std::vector<Range> over, ExprId body, ExprId gate = {}) {
    Reduce r;
    r.op = o;
    r.first = first;
    r.over = std::move(over);
    for (size_t k = 0; k < r.over.size(); ++k) r.names.push_back(intern("r"));
    r.gate = gate;
    r.body = body;
    return reduce(m, r);
  }
  ExprId sum(uint32_t first, std::vector<Range> over, ExprId body, ExprId gate = {}) {
    return red(ReduceOp::Sum, first, std::move(over), body, gate);
  }
};

inline Tensor random_tensor(DType type, std::vector<int64_t> shape, uint32_t seed) {
  Tensor t(type, std::move(shape));
  std::mt19937 rng(seed);
  for (int64_t i = 0; i < t.size(); ++i) {
    if (is_float(type)) {
      t.set_float(i, std::uniform_real_distribution<double>(-1, 1)(rng));
    } else {
      t.set_int(i, type == DType::Bool ? static_cast<int64_t>(rng() % 2)
                                       : static_cast<int64_t>(rng() % 200) - 100);
    }
  }
  return t;
}

inline Tensor ints(DType type, const std::vector<int64_t>& v) {
  Tensor t(type, {static_cast<int64_t>(v.size())});
  for (size_t i = 0; i < v.size(); ++i) t.set_int(static_cast<int64_t>(i), v[i]);
  return t;
}
inline Tensor floats(DType type, const std::vector<double>& v) {
  Tensor t(type, {static_cast<int64_t>(v.size())});
  for (size_t i = 0; i < v.size(); ++i) t.set_float(static_cast<int64_t>(i), v[i]);
  return t;
}

inline void expect_equal(const Tensor& want, const Tensor& got, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(want.dtype(), got.dtype()) << what;
  ASSERT_EQ(want.shape(), got.shape()) << what;
  for (int64_t i = 0; i < want.size(); ++i) {
    if (!is_float(want.dtype())) {
      ASSERT_EQ(want.get_int(i), got.get_int(i)) << what << " at " << i;
      continue;
    }
    double a = want.get_float(i), b = got.get_float(i);
    if (std::isnan(a) || std::isinf(a) || std::isnan(b) || std::isinf(b)) {
      ASSERT_EQ(std::isnan(a), std::isnan(b)) << what << " at " << i;
      if (!std::isnan(a)) { ASSERT_EQ(a, b) << what << " at " << i; }
      continue;
    }
    ASSERT_LE(std::fabs(a - b), tolerance * (1 + std::fabs(a))) << what << " at " << i << ": " << a;
  }
}

inline std::shared_ptr<Native> compiled(Program& p, const NativeOptions& options = {}) {
  auto problems = verify(p.m);
  EXPECT_TRUE(problems.empty()) << problems[0];
  auto out = compile_native(p.m, p.wanted, options);
  if (auto* why = std::get_if<std::string>(&out)) {
    ADD_FAILURE() << *why;
    return nullptr;
  }
  return std::get<std::shared_ptr<Native>>(out);
}

// The same values (or the same failure) from the reference and from native code, under several
// plans.
inline void expect_same(Program& p, const std::vector<Inputs>& cases, double tolerance = 1e-5) {
  std::vector<NativeOptions> all(4);
  all[0].opt_level = 0;
  all[2].choices.contractions = false;
  all[3].choices.inlines = [](FamilyId) { return false; };
  all[3].choices.vector_axis = [](FamilyId, size_t) { return kMaxSlots; };
  all[3].choices.reduce_width = [](ExprId) { return 1u; };
  // Poorer processors give the same values.
  all[0].processor = best_here() == Processor::Sse2 ? Processor::Sse2 : Processor::Avx2;
  all[3].processor = Processor::Sse2;
  // Lanes wherever they are legal, wise or not.
  NativeOptions wild;
  wild.choices.inlines = [](FamilyId) { return true; };
  wild.choices.vector_axis = [](FamilyId, size_t) { return 0u; };
  wild.choices.reduce_width = [](ExprId) { return 4u; };
  wild.choices.contractions = false;
  all.push_back(wild);
  for (size_t o = 0; o < all.size(); ++o) {
    auto native = compiled(p, all[o]);
    ASSERT_TRUE(native);
    uint64_t before = native_compile_count();
    for (size_t c = 0; c < cases.size(); ++c) {
      std::string what = "plan " + std::to_string(o) + ", case " + std::to_string(c);
      EvalResult want = evaluate(p.m, cases[c], p.wanted);
      NativeResult got = run(*native, cases[c]);
      ASSERT_EQ(want.error.has_value(), got.error.has_value())
          << what << ": " << (want.error ? want.error->message : got.error->message);
      if (want.error) {
        EXPECT_EQ(want.error->message, got.error->message) << what;
        continue;
      }
      for (FamilyId f : p.wanted) {
        ASSERT_TRUE(got.values.contains(f)) << what;
        expect_equal(want.values.at(f), got.values.at(f), tolerance,
                     what + ", " + text(p.m[f].name));
      }
    }
    EXPECT_EQ(before, native_compile_count()) << "a second shape compiled something";
    if (testing::Test::HasFailure()) {
      GTEST_LOG_(INFO) << plan::print(lowered_of(*native)->plan)
                       << loops::print(lowered_of(*native)->program);
      return;
    }
  }
}

}  // namespace ein

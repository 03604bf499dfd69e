// Any legal plan gives the same values: random programs under random plans.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "codegen/native.h"
#include "generate.h"
#include "properties.h"

namespace ein {
namespace {

// What native code under each of these plans computes differently from the reference, for each of
// these inputs; "" for nothing.
std::string differs(core::Module& m, const std::vector<core::Inputs>& inputs,
                    const std::vector<core::FamilyId>& wanted,
                    const std::vector<plan::Choices>& plans) {
  std::vector<core::EvalResult> want;
  for (const core::Inputs& in : inputs) want.push_back(core::evaluate(m, in, wanted));
  for (size_t i = 0; i < plans.size(); ++i) {
    NativeOptions options;
    options.opt_level = i % 4 == 0 ? 0 : 2;
    options.choices = plans[i];
    auto compiled = compile_native(m, wanted, options);
    if (auto* why = std::get_if<std::string>(&compiled)) return *why;
    Native& native = *std::get<std::shared_ptr<Native>>(compiled);
    for (size_t k = 0; k < inputs.size(); ++k) {
      NativeResult got = run(native, inputs[k]);
      if (want[k].error.has_value() != got.error.has_value()) {
        return want[k].error ? "no error: " + want[k].error->message
                             : "error: " + got.error->message;
      }
      if (want[k].error) continue;
      for (core::FamilyId f : wanted) {
        std::string where;
        if (close(want[k].values.at(f), got.values.at(f), 1e-9, where)) continue;
        return text(m[f].name) + ", " + where + "\n" + plan::print(lowered_of(native)->plan) +
               loops::print(lowered_of(native)->program);
      }
    }
  }
  return "";
}

TEST(NativePlans, RandomPlansOfRandomProgramsAgree) {
  int checked = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    fuzz::Generated g = fuzz::generate(seed);
    fuzz::Subject subject;
    if (!fuzz::compile_source(g.source, subject).empty()) continue;  // another test's concern
    core::Module& m = subject.compiled.module;
    std::vector<core::FamilyId> wanted;
    for (const std::string& name : g.values) wanted.push_back(m.find(intern(name)));
    ++checked;
    std::vector<plan::Choices> plans{fuzz::random_choices(2 * seed),
                                     fuzz::random_choices(2 * seed + 1)};
    EXPECT_EQ(differs(m, {g.inputs}, wanted, plans), "") << "seed " << seed << "\n" << g.source;
  }
  EXPECT_GT(checked, 10);
}

// A program with something to decide for each of the numbers.
const char* const kDecisions = R"(
let a[i in 0..24, k in 0..20]: f64 = sin((i * 20 + k) as f64);
let at[i in 0..24]: i32 = i * 7 % 5;
fn bend(x) { if x > 0.5 { exp(-x) } else if x > 0.0 { x * x } else { 0.25 * x } }
let product[i in 0..24, j in 0..24] = sum[k](a[i, k] * a[j, k]);
let small[i in 0..3, j in 0..3] = sum[k in 0..3, l in 0..3](a[i, k] * a[k, l] * a[l, j]);
let bent[i in 0..24, k in 0..20] = bend(a[i, k]) + bend(product[i, k]);
let running[i in 0..24, k in 0..20] = sum[l in 0..k + 1](bent[i, l]);
let row[i in 0..24, 0] = bent[i, 0];
let row[i in 0..24, k in 1..20] = 0.5 * row[i, k - 1] + a[i, k];
let table[0, 0]: f64 = 0.0;
let table[0, j in 1..40] = table[0, j - 1] + 1.0;
let table[i in 1..40, 0] = table[i - 1, 0] + 1.0;
let table[i in 1..40, j in 1..40] = min(table[i - 1, j], table[i, j - 1]) + a[i % 24, j % 20];
let taken[i in 0..24, k in 0..20] = running[at[i], k] * row[i, k];
let cells[c in 0..4] = sum[i in 0..24](if c == 0 { a[i, 0] } else if c == 1 { a[i, 1] * a[i, 2] } else { a[i, c] });
let loss = sum[i, k](taken[i, k]) + table[39, 39] + sum[i, j](small[i, j]) + sum[c](cells[c]);
let da = @loss / @a;
)";

TEST(NativePlans, EitherEndOfEveryNumberGivesTheSameValues) {
  fuzz::Subject subject;
  ASSERT_EQ(fuzz::compile_source(kDecisions, subject), "");
  core::Module& m = subject.compiled.module;
  std::vector<core::FamilyId> wanted;
  for (const char* name : {"da", "loss", "table", "running"})
    wanted.push_back(m.find(intern(name)));
  for (const Tunable& t : tunables()) {
    Tuning chosen;
    EXPECT_LE(t.least, chosen.*t.field) << t.name;
    EXPECT_GE(t.most, chosen.*t.field) << t.name;
    std::vector<plan::Choices> plans(2);
    plans[0].tuning.*t.field = t.least;
    plans[1].tuning.*t.field = t.most;
    EXPECT_EQ(differs(m, {core::Inputs{}}, wanted, plans), "") << t.name;
  }
}

// Scores, their softmax and weighted sums: with a condition (`key <= query`) and without, with
// gradients, and with numbers that zeros must not be multiplied by.
const char* const kRows = R"(
fn wave(x, s) -> f64 { sin((x * s) as f64 * 0.1 + s as f64) }
let q[b in 0..2, h in 0..2, t in 0..11, d in 0..4]: f64 = wave(((b * 2 + h) * 11 + t) * 4 + d, 1);
let k[b in 0..2, h in 0..2, t in 0..11, d in 0..4]: f64 = wave(((b * 2 + h) * 11 + t) * 4 + d, 2);
let v0[b in 0..2, h in 0..2, t in 0..11, d in 0..4]: f64 = wave(((b * 2 + h) * 11 + t) * 4 + d, 3);
let w[b in 0..2, h in 0..2, t in 0..11, d in 0..4]: f64 = wave(((b * 2 + h) * 11 + t) * 4 + d, 5);
let huge: [f64; count];
let v[b in 0..2, h in 0..2, t in 0..11, d in 0..4] = if h == 1 && t == 7 && d == 2 { huge[b] } else { v0[b, h, t, d] };
fn softmax_to[t, s](x: [f64; ..l, t, s]) -> [f64; ..l, t, s] {
    let top[..l, t] = max[s](x[..l, t, s] where s <= t);
    let e[..l, t, s] = if s <= t { exp(x[..l, t, s] - top[..l, t]) } else { 0.0 };
    let total[..l, t] = sum[s](e[..l, t, s]);
    let p[..l, t, s] = if s <= t { e[..l, t, s] / total[..l, t] } else { 0.0 };
    p
}
let x[b, h, t, s] = sum[d](q[b, h, t, d] * k[b, h, s, d]);
let p[b, h, t, s] = softmax_to[t, s](x[b, h, t, s]);
let y[b, h, t, d] = sum[s](p[b, h, t, s] * v[b, h, s, d]);
let gated[b, h, t, d] = sum[s](p[b, h, t, s] * v[b, h, s, d] where s <= t);
let every[b, h, t, d] = sum[s](exp(0.1 * x[b, h, t, s]) * v[b, h, s, d]);
let loss = sum[b, h, t, d](w[b, h, t, d] * (y[b, h, t, d] + 0.5 * gated[b, h, t, d] + every[b, h, t, d] ** 2.0));
let dq = @loss / @q;
let dk = @loss / @k;
let dv = @loss / @v0;
)";

TEST(NativePlans, BandsOfAnyHeightGiveTheSameValues) {
  fuzz::Subject subject;
  ASSERT_EQ(fuzz::compile_source(kRows, subject), "");
  core::Module& m = subject.compiled.module;
  std::vector<core::FamilyId> wanted, some;
  for (const char* name : {"y", "gated", "every", "dq", "dk", "dv"})
    wanted.push_back(m.find(intern(name)));
  some = {wanted[0], wanted[3]};
  std::vector<plan::Choices> plans;
  for (int64_t rows : {1, 2, 3, 5, 11, 64}) {
    plans.emplace_back().tuning.band_rows = rows;
    plans.back().tuning.contraction_work = 1;
    plans.back().tuning.written_extent = 0;
    plans.back().tuning.band_parts = rows == 3 ? 2 : 128;
  }
  plans.push_back(plans[1]);
  plans.back().bands = false;
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<core::Inputs> inputs;
  for (double value : {0.5, infinity, -infinity, std::nan("")}) {
    Tensor huge(DType::F64, {2});
    huge.as<double>()[0] = 0.25;
    huge.as<double>()[1] = value;
    inputs.push_back({{"huge", huge}});
  }
  EXPECT_EQ(differs(m, inputs, wanted, plans), "");
  EXPECT_EQ(differs(m, inputs, some, plans), "");
}

TEST(NativePlans, ScoresAreStoredForABandAtATime) {
  fuzz::Subject subject;
  ASSERT_EQ(fuzz::compile_source(kRows, subject), "");
  core::Module& m = subject.compiled.module;
  NativeOptions options;
  options.choices.tuning.written_extent = 0;
  options.choices.tuning.contraction_work = 1;
  auto compiled = compile_native(m, {m.find(intern("y"))}, options);
  ASSERT_TRUE(std::holds_alternative<std::shared_ptr<Native>>(compiled));
  const plan::Plan& plan = lowered_of(*std::get<std::shared_ptr<Native>>(compiled))->plan;
  ASSERT_EQ(plan.bands.size(), 1u) << plan::print(plan);
  for (const auto& [id, how] : plan.families) {
    const core::Family& f = plan.module[id];
    bool square = f.rank() == 4 && f.coords[2].extent == f.coords[3].extent;
    EXPECT_FALSE(square && how.storage == plan::Storage::Full) << text(f.name);
  }
}

// Filters and trajectories of many members, upward and downward, with states of several lengths.
const char* const kMembers = R"(
let u: [f64; m, t];
let w: [f64; 3] = [0.4, -0.3, 0.2];
let x[a in 0..extent(u, m), 0, i in 0..3]: f64 = 0.1 * ((a + i) as f64);
let gain[a in 0..extent(u, m), s in 0..extent(u, t)] = 1.0 / (2.0 + x[a, s, 0] ** 2.0);
let x[a in 0..extent(u, m), s in 1..extent(u, t), i in 0..3] =
    tanh(sum[k](w[(i + k) % 3] * x[a, s - 1, k]) + gain[a, s - 1] * u[a, s]);
let P[0, a in 0..extent(u, m), i in 0..2, j in 0..2]: f64 = if i == j { 1.0 } else { 0.0 };
let P[s in 1..extent(u, t), a in 0..extent(u, m), i in 0..2, j in 0..2] =
    sum[k, l](w[i + k] * (P[s - 1, a, k, l] - gain[a, s] * P[s - 1, a, 0, l]) * w[j + l]) + x[a, s, j];
let last[a, i] = x[a, extent(u, t) - 1, i];
let loss = sum[a, i](last[a, i] ** 2.0) + sum[s, a](log(2.0 + P[s, a, 0, 1] ** 2.0));
let du = @loss / @u;
let dw = @loss / @w;
)";

TEST(NativePlans, MembersOfARecurrenceSideBySideGiveTheSameValues) {
  fuzz::Subject subject;
  ASSERT_EQ(fuzz::compile_source(kMembers, subject), "");
  core::Module& m = subject.compiled.module;
  std::vector<core::FamilyId> wanted;
  for (const char* name : {"last", "loss", "du", "dw"}) wanted.push_back(m.find(intern(name)));
  std::vector<plan::Choices> plans(6);
  plans[1].tuning.unwatched_parts = 1;
  plans[1].tuning.unwatched_work = 1;
  plans[2].tuning.held_nodes = 0;
  plans[3].ensembles = false;
  plans[4].tuning.accumulated_cells = 0;
  plans[5].rings = false;
  std::vector<core::Inputs> inputs;
  for (auto [members, steps] : {std::pair{1, 1}, {1, 5}, {7, 4}, {8, 3}, {21, 6}, {3, 0}, {0, 3}}) {
    Tensor u(DType::F64, {members, steps});
    for (int64_t i = 0; i < u.size(); ++i) u.as<double>()[i] = std::sin(static_cast<double>(i));
    inputs.push_back({{"u", u}});
  }
  EXPECT_EQ(differs(m, inputs, wanted, plans), "");

  NativeOptions options;
  auto compiled = compile_native(m, wanted, options);
  ASSERT_TRUE(std::holds_alternative<std::shared_ptr<Native>>(compiled));
  const plan::Plan& plan = lowered_of(*std::get<std::shared_ptr<Native>>(compiled))->plan;
  EXPECT_GE(plan.ensembles.size(), 3u) << plan::print(plan);
}

}  // namespace
}  // namespace ein

// Which instructions generated code may have: those of the levels that are tested, on every
// processor, however new.
#include "codegen/machine.h"

#include <regex>

#include "codegen/jit.h"
#include "driver/compile.h"
#include "native_harness.h"

namespace ein {
namespace {

using codegen::Host;
using codegen::machine_for;

const std::set<std::string> kV3 = {"avx",   "avx2",   "bmi",    "bmi2",   "f16c",
                                   "fma",   "lzcnt",  "movbe",  "xsave",  "sse3",
                                   "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16"};

std::set<std::string> with(std::set<std::string> features, const std::vector<std::string>& more) {
  features.insert(more.begin(), more.end());
  return features;
}

const std::vector<std::string> kAvx512 = {"avx512f", "avx512bw", "avx512cd", "avx512dq",
                                          "avx512vl"};

// What the newest processors have, and a feature that nobody knows yet.
Host newest() {
  auto features = with(with(kV3, kAvx512),
                       {"avx512fp16", "avx512bf16", "avxvnni", "amx-tile", "amx-bf16", "amx-fp16",
                        "amx-int8", "avx10.1-512", "avxneconvert", "avx99-fused-sums"});
  return {codegen::host().triple, "sapphirerapids", features};
}

TEST(Machine, TheRichestLevelThatIsWhole) {
  auto level = [](std::set<std::string> features) {
    return machine_for(Processor::Native, {"", "znver9", std::move(features)}).cpu;
  };
  EXPECT_EQ(level({}), "x86-64");
  EXPECT_EQ(level({"sse4.2", "avx", "avx2"}), "x86-64");
  EXPECT_EQ(level(kV3), "x86-64-v3");
  EXPECT_EQ(level(with(kV3, {"avx512f", "avx512bf16"})), "x86-64-v3");
  EXPECT_EQ(level(with(kV3, kAvx512)), "x86-64-v4");
  // A host has a level only with everything below it.
  EXPECT_EQ(level({kAvx512.begin(), kAvx512.end()}), "x86-64");
}

TEST(Machine, NewerFeaturesStayOff) {
  auto m = machine_for(Processor::Native, newest());
  EXPECT_EQ(m.cpu, "x86-64-v4");
  EXPECT_EQ(m.tune, "sapphirerapids");
  for (Processor p : {Processor::Avx512, Processor::Avx2, Processor::Sse2, Processor::Portable}) {
    EXPECT_EQ(machine_for(p, newest()).tune, "");
  }
}

// Products into sums, products alone, sums alone, and a sum of products.
Program halves(DType type) {
  Program p;
  FamilyId a = p.input("a", type, 1), b = p.input("b", type, 1);
  ExprId N = p.extent(a, 0);
  p.m.constraints.push_back({p.op(Op::Eq, {N, p.extent(b, 0)}), "equal", {}, {}});
  ExprId x = p.at(a, {p.s(0)}), y = p.at(b, {p.s(0)});
  ExprId tenth = float_lit(p.m, 0.1, type);
  p.wanted = {p.family("steps", {N}, p.add(p.mul(x, y), p.mul(x, tenth))),
              p.family("root", {N}, p.op(Op::Sqrt, {p.op(Op::Div, {x, y})})),
              p.family("dot", {}, p.sum(0, {{p.i(0), N}}, p.mul(x, y)))};
  return p;
}

std::string assembly(Program& p, const Host& host, int opt_level) {
  plan::Plan plan = plan_of(p.m, p.wanted);
  loops::Program program = loops_of(plan);
  return codegen::assembly_text(
      program, {.opt_level = opt_level, .processor = Processor::Native, .host = &host});
}

TEST(Machine, ShortFloatsAreComputedInF32) {
  const Host host = newest();
  // Arithmetic in halves (vaddph, vfmadd231sh, …), conversions of AVX512-FP16 and BF16, products
  // of bf16 or of tiles.
  const std::regex half(R"(\bv(?!cvtph2ps\b|cvtps2ph\b)\w*(ph|sh)x?\b)"),
      brief(R"(\b(v\w*bf16\w*|vcvtne\w*|tdp\w+|tileload\w*)\b)");
  for (DType type : {DType::F16, DType::BF16}) {
    for (int level : {0, 2}) {
      Program p = halves(type);
      std::string text = assembly(p, host, level);
      std::smatch found;
      EXPECT_FALSE(std::regex_search(text, found, half)) << found.str();
      EXPECT_FALSE(std::regex_search(text, found, brief)) << found.str();
      if (type == DType::F16) { EXPECT_NE(text.find("vcvtps2ph"), std::string::npos); }
    }
  }
}

}  // namespace
}  // namespace ein

// What a device would compute, by the processor: random programs laid out at random, threads that may
// not meet, and launches that no device could run.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "codegen/native.h"
#include "generate.h"
#include "launches.h"
#include "loops/walk.h"
#include "properties.h"

namespace ein {
namespace {

using Values = std::unordered_map<core::FamilyId, Tensor>;

// A seed, and whether threads run in the opposite order: mappings are drawn from the rest of it.
NativeOptions emulated(uint64_t seed, bool backwards) {
  NativeOptions options;
  options.choices.device = Device::Emulated;
  options.choices.mapping = 2 * seed + backwards;
  return options;
}

NativeResult run_emulated(core::Module& m, const core::Inputs& inputs,
                          const std::vector<core::FamilyId>& wanted, const NativeOptions& how) {
  auto compiled = compile_native(m, wanted, how);
  if (auto* why = std::get_if<std::string>(&compiled)) {
    ADD_FAILURE() << *why;
    return {};
  }
  return run(*std::get<std::shared_ptr<Native>>(compiled), inputs);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), static_cast<size_t>(a.size()) * size_of(a.dtype())) == 0;
}

TEST(Device, RandomMappingsOfRandomProgramsAgree) {
  int checked = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    fuzz::Generated g = fuzz::generate(seed);
    fuzz::Subject subject;
    if (!fuzz::compile_source(g.source, subject).empty()) continue;  // another test's concern
    core::Module& m = subject.compiled.module;
    std::vector<core::FamilyId> wanted;
    for (const std::string& name : g.values) wanted.push_back(m.find(intern(name)));
    core::EvalResult want = core::evaluate(m, g.inputs, wanted);
    NativeResult got = run_emulated(m, g.inputs, wanted, emulated(seed % 3 ? seed : 0, false));
    NativeResult other = run_emulated(m, g.inputs, wanted, emulated(seed % 3 ? seed : 0, true));
    ++checked;
    ASSERT_EQ(want.error.has_value(), got.error.has_value()) << "seed " << seed << "\n" << g.source;
    ASSERT_EQ(want.error.has_value(), other.error.has_value()) << "seed " << seed;
    if (want.error) {
      EXPECT_EQ(want.error->message, got.error->message) << "seed " << seed;
      continue;
    }
    for (core::FamilyId f : wanted) {
      std::string where;
      EXPECT_TRUE(close(want.values.at(f), got.values.at(f), 1e-9, where))
          << "seed " << seed << ": " << text(m[f].name) << ", " << where << "\n"
          << g.source;
      EXPECT_TRUE(same_bits(got.values.at(f), other.values.at(f)))
          << "seed " << seed << ": " << text(m[f].name) << " depends on the order of threads\n"
          << g.source;
    }
  }
  EXPECT_GT(checked, 10);
}

// ---- threads that meet --------------------------------------------------------------------------

std::string race_of(core::Module& m, const core::Inputs& inputs,
                    const std::vector<core::FamilyId>& wanted, uint64_t mapping,
                    const std::function<void(loops::Program&)>& change, fuzz::Watched& out) {
  NativeResult here = run_emulated(m, inputs, wanted, emulated(0, false));
  if (here.error) return "";  // there is no order in which threads stop
  plan::Choices choices;
  choices.device = Device::Gpu;
  choices.mapping = mapping;
  plan::Plan plan = plan_of(m, wanted, choices);
  loops::Program p = loops_of(plan);
  change(p);
  out = fuzz::watch_launches(plan, p, inputs, here.params);
  if (!out.refused.empty() || out.stopped || !out.race.empty()) return out.race;
  for (core::FamilyId f : wanted) {
    auto it = out.outputs.find(text(m[f].name));
    std::string where;
    if (it != out.outputs.end() && !close(here.values.at(f), it->second, 1e-5, where)) {
      return text(m[f].name) + ", " + where;
    }
  }
  return "";
}

TEST(Device, ThreadsOfRandomProgramsDoNotMeet) {
  int watched = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    fuzz::Generated g = fuzz::generate(seed);
    fuzz::Subject subject;
    if (!fuzz::compile_source(g.source, subject).empty()) continue;
    core::Module& m = subject.compiled.module;
    std::vector<core::FamilyId> wanted;
    for (const std::string& name : g.values) wanted.push_back(m.find(intern(name)));
    fuzz::Watched out;
    EXPECT_EQ(race_of(
                  m, g.inputs, wanted, 2 * (seed % 3), [](loops::Program&) {}, out),
              "")
        << "seed " << seed << "\n"
        << g.source;
    watched += !out.outputs.empty();
  }
  EXPECT_GT(watched, 10);
}

// `s` reads what other threads have left of `e`.
constexpr char kMirror[] =
    "let x: [f32; n, k];\nlet e[i, j] = exp(x[i, j]);\n"
    "let s[i] = sum[j](e[i, k - 1 - j] * x[i, j]);\nlet p[i, j] = e[i, j] / s[i];\n";

TEST(Device, AMissingBarrierIsARace) {
  fuzz::Subject subject;
  ASSERT_EQ(fuzz::compile_source(kMirror, subject), "");
  core::Module& m = subject.compiled.module;
  Tensor x(DType::F32, {3, 70});
  for (int64_t i = 0; i < x.size(); ++i) x.set_float(i, 0.01 * static_cast<double>(i));
  std::vector<core::FamilyId> wanted{m.find(intern("e")), m.find(intern("p"))};
  core::Inputs inputs{{"x", x}};
  for (uint64_t mapping = 0; mapping < 12; mapping += 2) {
    fuzz::Watched out;
    EXPECT_EQ(race_of(
                  m, inputs, wanted, mapping, [](loops::Program&) {}, out),
              "");
    EXPECT_EQ(out.refused, "");
    int removed = 0;
    std::string race = race_of(
        m, inputs, wanted, mapping,
        [&](loops::Program& p) {
          auto remove = [&](auto& self, loops::Block& block) -> void {
            removed += static_cast<int>(std::erase_if(block, [](const loops::Stmt& s) {
              return std::holds_alternative<loops::Barrier>(s.node);
            }));
            for (loops::Stmt& s : block) {
              loops::for_each_block(s, [&](loops::Block& inner) { self(self, inner); });
            }
          };
          for (loops::Kernel& k : p.kernels) remove(remove, k.body);
        },
        out);
    EXPECT_EQ(race.empty(), removed == 0) << race;
  }
}

// ---- launches that are not well formed ---------------------------------------------------------

// A launch over `x`, whose body `breaks` may spoil.
struct Broken {
  fuzz::Subject subject;
  plan::Plan plan;
  loops::Program p;

  explicit Broken(const char* source) {
    EXPECT_EQ(fuzz::compile_source(source, subject), "");
    core::Module& m = subject.compiled.module;
    plan::Choices choices;
    choices.device = Device::Gpu;  // so that the launches stay
    plan = plan_of(m, {m.find(intern("y"))}, choices);
    p = loops_of(plan);
  }
  loops::Launch& launch() {
    loops::Launch* out = nullptr;
    for (loops::Kernel& k : p.kernels) {
      loops::for_each_stmt(k.body, [&](loops::Stmt& s) {
        if (auto* n = std::get_if<loops::Launch>(&s.node); n && !out) out = n;
      });
    }
    EXPECT_TRUE(out);
    return *out;
  }
  bool is_refused(const char* what) const {
    for (const std::string& line : loops::verify(p)) {
      if (line.find(what) != std::string::npos) return true;
    }
    return false;
  }
};

constexpr char kEach[] = "let x: [f32; n];\nlet y[i] = exp(x[i]);\n";
constexpr char kRows[] = "let x: [f32; n, k];\nlet y[i] = sum[k](x[i, k] * x[i, k]);\n";

TEST(Device, ABarrierInsideOfThreadsIsRefused) {
  Broken b(kEach);
  ASSERT_TRUE(loops::verify(b.p).empty());
  auto& loop = std::get<loops::Loop>(b.launch().body[0].node);
  loop.body.push_back({loops::Barrier{loops::Scope::Threads}});
  EXPECT_TRUE(b.is_refused("a barrier that some threads never meet"));
}

TEST(Device, AStoreByNoThreadIsRefused) {
  Broken b(kRows);
  ASSERT_TRUE(loops::verify(b.p).empty());
  loops::Block& body = b.launch().body;
  loops::ExprId zero = b.p.exprs.add({loops::IntConst{0}, DType::I64});
  loops::ExprId value = b.p.exprs.add({loops::FloatConst{0}, DType::F32});
  loops::BufferId out;
  for (uint32_t i = 0; i < b.p.buffers.size(); ++i) {
    if (b.p.buffers[loops::BufferId(i)].name == "y") out = loops::BufferId(i);
  }
  body.push_back({loops::Store{out, {zero}, value}});
  EXPECT_TRUE(b.is_refused("by no thread"));
}

TEST(Device, ASharedVariableIsNotAssignedByAThread) {
  Broken b(kEach);
  auto& launch = b.launch();
  loops::VarId v = b.p.vars.add({"v", DType::I64});
  loops::ExprId zero = b.p.exprs.add({loops::IntConst{0}, DType::I64});
  launch.body.insert(launch.body.begin(), loops::Stmt{loops::Declare{v, zero}});
  auto& loop = std::get<loops::Loop>(launch.body[1].node);
  loop.body.push_back({loops::Assign{v, zero}});
  EXPECT_TRUE(b.is_refused("belongs outside"));
}

TEST(Device, ABlockHasNoMoreThreadsThanTheLaunchSays) {
  Broken b(kEach);
  auto& loop = std::get<loops::Loop>(b.launch().body[0].node);
  loop.hi = b.p.exprs.add({loops::IntConst{2048}, DType::I64});
  EXPECT_TRUE(b.is_refused("threads that are not there"));
}

}  // namespace
}  // namespace ein

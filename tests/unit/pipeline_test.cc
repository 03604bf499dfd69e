// Every pass is timed, verified and printed, and what a broken one gives goes no further.
#include "driver/pipeline.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/check.h"
#include "core/build.h"
#include "driver/compile.h"
#include "driver/run.h"
#include "properties.h"

namespace ein {
namespace {

constexpr char kSource[] =
    "let x[i in 0..4, k in 0..3]: f64 = (i as f64) + 0.5 * (k as f64);\n"
    "let y[i] = sum[k](x[i, k] * x[i, k]);\n"
    "let h[0] = y[0];\n"
    "let h[t in 1..4] = 0.5 * h[t - 1] + y[t];\n"
    "let loss = sum[t](h[t]);\n"
    "let d = @loss / @x;\n";

fuzz::Subject compiled() {
  fuzz::Subject s;
  EXPECT_EQ(fuzz::compile_source(kSource, s), "");
  return s;
}

// What is reported after a pass that turns `in` into something broken.
template <class T, class F>
std::string said_behind(T in, const F& breaks) {
  Trace trace;
  Pipeline run(trace);
  try {
    run.pass("broken", std::move(in), breaks);
  } catch (const std::exception& e) { return e.what(); }
  return "nothing was noticed";
}

bool is_caught(const std::string& said) { return said.find("after broken: ") != std::string::npos; }

// A slot that nothing binds, in a program before or after planning.
auto break_wanted = [](auto in) {
  in.module.families[in.wanted[0]].clauses[0].body = core::slot(in.module, 7);
  return in;
};

TEST(Pipeline, ABrokenPassOverCoreIsCaughtBehindIt) {
  std::string said = said_behind(compiled().compiled.module, [](core::Module m) {
    m.families[m.find(intern("y"))].clauses[0].body = core::slot(m, 7);
    return m;
  });
  EXPECT_TRUE(is_caught(said)) << said;
}

TEST(Pipeline, ABrokenPassOverAProgramToBePlannedIsCaughtBehindIt) {
  core::Module m = compiled().compiled.module;
  std::string said = said_behind(optimise::Program{m, {m.find(intern("loss"))}}, break_wanted);
  EXPECT_TRUE(is_caught(said)) << said;
}

TEST(Pipeline, ABrokenPlanIsCaughtBehindIt) {
  core::Module m = compiled().compiled.module;
  std::string said = said_behind(plan_of(m, {m.find(intern("loss"))}), break_wanted);
  EXPECT_TRUE(is_caught(said)) << said;
}

TEST(Pipeline, ABrokenPassOverLoopsIsCaughtBehindIt) {
  core::Module m = compiled().compiled.module;
  plan::Plan plan = plan_of(m, {m.find(intern("loss"))});
  std::string said = said_behind(loops_of(plan), [](loops::Program p) {
    loops::VarId unbound = p.vars.add({"unbound", DType::F64});
    loops::ExprId read = p.exprs.add({loops::Get{unbound}, DType::F64});
    p.kernels[0].body.push_back({loops::Let{p.vars.add({"v", DType::F64}), read}});
    return p;
  });
  EXPECT_TRUE(is_caught(said)) << said;
}

// Before compile_native, or for a device.
const std::set<std::string> kOnRequest{"shard", "checkpoint", "map-device", "note-touches",
                                       "emulate"};

TEST(Pipeline, EveryNativePassIsPrintedAndTimed) {
  core::Module m = compiled().compiled.module;
  Trace all;
  NativeOptions options;
  options.trace = &all;
  compile_native(m, {m.find(intern("loss")), m.find(intern("d"))}, options);
  size_t timed = 0;
  for (const std::string& pass : pass_names()) {
    if (!is_native_pass(pass)) continue;
    if (pass == "ptx") continue;  // has assembly, and only with a device
    auto text = native_dump(m, {}, pass);
    ASSERT_TRUE(std::holds_alternative<std::string>(text)) << pass;
    EXPECT_NE(std::get<std::string>(text), "") << pass;
    if (kOnRequest.contains(pass)) continue;
    ASSERT_LT(timed, all.times.size());
    EXPECT_EQ(all.times[timed++].pass, pass);
  }
  EXPECT_EQ(timed, all.times.size());
}

TEST(Pipeline, EveryPassUpToAutodiffIsPrintedAndTimed) {
  for (const std::string& pass : pass_names()) {
    if (is_native_pass(pass)) continue;
    SourceMap sources;
    FileId file = sources.add("program.ein", kSource);
    CompileOptions options;
    options.dump_after = pass;
    Diagnostics diags;
    Compiled c = compile(file, sources, options, diags);
    EXPECT_TRUE(c.ok) << pass;
    EXPECT_NE(c.trace.dump, "") << pass;
    EXPECT_EQ(c.trace.times.size(), 5u);
  }
}

TEST(Pipeline, LookingAtAStageMakesNoMachineCode) {
  core::Module m = compiled().compiled.module;
  uint64_t before = native_compile_count();
  for (const char* pass : {"checkpoint", "expand-calls", "plan", "lower", "cut-kernels"}) {
    EXPECT_TRUE(std::holds_alternative<std::string>(native_dump(m, {}, pass))) << pass;
  }
  for (const char* stage : {"plan", "loops", "llvm"}) {
    EXPECT_TRUE(std::holds_alternative<std::string>(emit(m, {}, {}, stage))) << stage;
  }
  EXPECT_EQ(native_compile_count(), before);
}

// How a recurrence is cut depends on extents. Where they are not known, it is shown whole.
TEST(Pipeline, AStageIsShownWithoutInputs) {
  fuzz::Subject s;
  ASSERT_EQ(fuzz::compile_source("let x: [f64; i];\n"
                                 "let w: f64;\n"
                                 "#[checkpoint]\n"
                                 "let h[0] = x[0];\n"
                                 "let h[t in 1..i] = tanh(w * h[t - 1] + x[t]);\n"
                                 "let loss = h[i - 1];\n"
                                 "let d = @loss / @w;\n",
                                 s),
            "");
  core::Module& m = s.compiled.module;
  auto whole = native_dump(m, {}, "plan");
  ASSERT_TRUE(std::holds_alternative<std::string>(whole));
  EXPECT_EQ(std::get<std::string>(whole).find("h_run"), std::string::npos);
  auto cut =
      native_dump(m, {{"x", Tensor(DType::F64, {100})}, {"w", Tensor(DType::F64, {})}}, "plan");
  ASSERT_TRUE(std::holds_alternative<std::string>(cut));
  EXPECT_NE(std::get<std::string>(cut).find("h_run"), std::string::npos);
}

}  // namespace
}  // namespace ein

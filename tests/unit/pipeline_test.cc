// Every pass is timed, verified and printed, and what a broken one gives goes no further.
#include "driver/pipeline.h"

#include <gtest/gtest.h>

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

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& e) { return e.what(); }
  return "nothing was noticed";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Pipeline, ABrokenPassOverCoreIsCaughtBehindIt) {
  Trace trace;
  Pipeline run(trace);
  auto breaks = [](core::Module m) {
    m.families[m.find(intern("y"))].clauses[0].body = core::slot(m, 7);
    return m;
  };
  std::string said = message_of([&] { run.pass("core-pass", compiled().compiled.module, breaks); });
  EXPECT_TRUE(contains(said, "after core-pass: ")) << said;
}

TEST(Pipeline, ABrokenPassOverAProgramToBePlannedIsCaughtBehindIt) {
  Trace trace;
  Pipeline run(trace);
  core::Module m = compiled().compiled.module;
  optimise::Program p{m, {m.find(intern("loss"))}};
  auto breaks = [](optimise::Program in) {
    in.module.families[in.wanted[0]].clauses[0].body = core::slot(in.module, 7);
    return in;
  };
  std::string said = message_of([&] { run.pass("optimise-pass", std::move(p), breaks); });
  EXPECT_TRUE(contains(said, "after optimise-pass: ")) << said;
}

TEST(Pipeline, ABrokenPlanIsCaughtBehindIt) {
  Trace trace;
  Pipeline run(trace);
  core::Module m = compiled().compiled.module;
  auto breaks = [](plan::Plan in) {
    in.module.families[in.wanted[0]].clauses[0].body = core::slot(in.module, 7);
    return in;
  };
  plan::Plan plan = plan_of(m, {m.find(intern("loss"))});
  std::string said = message_of([&] { run.pass("plan-pass", std::move(plan), breaks); });
  EXPECT_TRUE(contains(said, "after plan-pass: ")) << said;
}

TEST(Pipeline, ABrokenPassOverLoopsIsCaughtBehindIt) {
  Trace trace;
  Pipeline run(trace);
  core::Module m = compiled().compiled.module;
  plan::Plan plan = plan_of(m, {m.find(intern("loss"))});
  auto breaks = [](loops::Program p) {  // a read of a variable that nothing binds
    loops::VarId unbound = p.vars.add({"unbound", DType::F64});
    loops::ExprId read = p.exprs.add({loops::Get{unbound}, DType::F64});
    p.kernels[0].body.push_back({loops::Let{p.vars.add({"v", DType::F64}), read}});
    return p;
  };
  std::string said = message_of([&] { run.pass("loops-pass", loops_of(plan), breaks); });
  EXPECT_TRUE(contains(said, "after loops-pass: ")) << said;
}

TEST(Pipeline, EveryNativePassIsPrintedAndTimed) {
  core::Module m = compiled().compiled.module;
  Trace all;
  NativeOptions options;
  options.trace = &all;
  compile_native(m, {m.find(intern("loss")), m.find(intern("d"))}, options);
  size_t timed = 0;
  for (const std::string& pass : pass_names()) {
    if (!is_native_pass(pass)) continue;
    EXPECT_NE(native_dump(m, pass), "") << pass;
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
    EXPECT_EQ(c.trace.times.size(), 4u);
  }
}

}  // namespace
}  // namespace ein

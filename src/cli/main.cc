// `ein`: the verbs and their options. A bare file name means `ein run`.
#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>

#include "base/check.h"
#include "base/deep_stack.h"
#include "cli/cli.h"

namespace ein::cli {
namespace {

void add_error_format(CLI::App& app, CommonOptions& o) {
  app.add_option("--error-format", o.error_format, "how diagnostics look")
      ->check(CLI::IsMember({"human", "short", "json"}));
  app.add_option("--color", o.color, "colours in diagnostics")
      ->check(CLI::IsMember({"auto", "always", "never"}));
}

// For every verb that compiles a program: `load` reads headers then.
void add_allow_read(CLI::App& app, CommonOptions& o) {
  app.add_option("--allow-read", o.allow_read,
                 "a folder or file that `load` may read, besides the program's and this folder")
      ->allow_extra_args(false);
}

void add_allow_write(CLI::App& app, CommonOptions& o) {
  app.add_option("--allow-write", o.allow_write,
                 "a folder or file that `save` may write, besides this folder")
      ->allow_extra_args(false);
}

void add_csv_headings(CLI::App& app, CommonOptions& o) {
  app.add_flag("--csv-headings", o.csv_headings,
               "csv files of --in begin with a line of headings, even where it has numbers");
}

void add_common(CLI::App& app, CommonOptions& o) {
  app.add_option("FILE", o.file, "the program; - for standard input");
  app.add_option("-c", o.code, "the program's text");
  add_error_format(app, o);
  app.add_option("--dump-after", o.dump_after, "print the program after a pass")
      ->check(CLI::IsMember(pass_names()));
  app.add_flag("--time-passes", o.time_passes, "how long each pass took, on standard error");
  add_allow_read(app, o);
  add_csv_headings(app, o);
}

// For inputs whose type leaves the rank open; nothing else is read from the files.
void add_grad_memory(CLI::App& app, std::string& size) {
  app.add_option(
      "--grad-memory", size,
      "bytes for all values (512MiB, 2GB): steps of recurrences that derivatives need are "
      "computed again rather than kept");
}

void add_input_files(CLI::App& app, std::vector<std::string>& in) {
  app.add_option("--in", in, "NAME=FILE: the file that an input of unknown rank will come from")
      ->allow_extra_args(false);
}

void add_direction(CLI::App& app, const char* option, std::string& direction) {
  app.add_option(option, direction, "take derivatives from this side; auto is the cheaper one")
      ->check(CLI::IsMember({"auto", "forward", "reverse"}));
}

void add_no_cache(CLI::App& app, bool& no_cache) {
  app.add_flag("--no-cache", no_cache, "compile again, and keep nothing of it on disk");
}

// The exit status of a verb that ended with `status`: output that got lost is a failure, whatever
// the rest was.
int finish(int status, const CommonOptions& common) {
  auto why = lost_output();
  if (!why) return status;
  int lost = runtime_error({Code::E0808, "cannot write to standard output: " + *why}, common);
  return status == kInternal || status == kInterrupted ? status : lost;
}

int dispatch(int argc, char** argv) {
  CLI::App app{"Einlang: tensors whose coordinates have names"};
  app.name("ein");
  app.set_version_flag("--version", "ein " EIN_VERSION);
  app.require_subcommand(1);

  RunCommand run;
  CLI::App* run_app = app.add_subcommand("run", "compile and run a program");
  add_common(*run_app, run.common);
  add_allow_write(*run_app, run.common);
  run_app
      ->add_option("--in", run.in,
                   "NAME=FILE: an input from a file (npy, npz, csv, safetensors, idx, pgm, ppm)")
      ->allow_extra_args(false);
  run_app->add_option("--set", run.set, "NAME=VALUE: a scalar input")->allow_extra_args(false);
  run_app->add_option("--out", run.out, "NAME=FILE: write a value to a file")
      ->allow_extra_args(false);
  run_app->add_option("--show", run.show, "values to show at the end")
      ->delimiter(',')
      ->allow_extra_args(false);
  run_app->add_option("--watch", run.watch, "recurrences whose last step the progress line shows")
      ->delimiter(',')
      ->allow_extra_args(false);
  run_app->add_option("--progress", run.progress, "how far a long run is, on standard error")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  run_app->add_option("--format", run.format, "how --show looks")
      ->check(CLI::IsMember({"text", "json"}));
  run_app->add_option("--backend", run.backend, "machine code, or the reference evaluator")
      ->check(CLI::IsMember({"native", "ref"}));
  run_app->add_flag("--check-overflow", run.check_overflow,
                    "integer overflow stops the program instead of wrapping");
  run_app->add_flag("--check-bounds", run.check_bounds,
                    "check every address that machine code uses: a test of the compiler");
  run_app
      ->add_option("--precision", run.precision,
                   "what the operands of sums of products are rounded to")
      ->check(CLI::IsMember({"f32", "bf16-mixed", "f16-mixed"}));
  add_grad_memory(*run_app, run.grad_memory);
  run_app->add_option("-O", run.opt_level, "optimisation level")->check(CLI::Range(0, 3));
  run_app->add_option("--threads", run.threads, "that share loops (default: one per processor)")
      ->check(CLI::Range(1, 1024));
  run_app->add_option("--cpu", run.cpu, "the instructions that machine code may use")
      ->check(CLI::IsMember({"native", "avx512", "avx2", "sse2", "portable"}));
  add_direction(*run_app, "--grad-mode", run.direction);
  run_app->add_option("--emit", run.emit, "print a stage of the compilation instead of running")
      ->check(CLI::IsMember({"plan", "loops", "llvm", "asm"}));
  run_app->add_flag("--time", run.time, "where the time went, on standard error");
  add_no_cache(*run_app, run.no_cache);
  run_app->add_flag("--cache-stats", run.cache_stats)->group("");  // hidden: for the tests

  BuildCommand build;
  CLI::App* build_app = app.add_subcommand(
      "build", "compile ahead of time: a shared library with a C header, or a program");
  add_common(*build_app, build.common);
  add_input_files(*build_app, build.in);
  build_app->add_option("-o,--output", build.output,
                        "the file to write; its header lies beside it");
  build_app->add_option("--name", build.name,
                        "what the C functions are called: NAME_run, NAME_free");
  build_app
      ->add_option("--show", build.show,
                   "the values that a library computes; every value of the program when left out")
      ->delimiter(',')
      ->allow_extra_args(false);
  build_app->add_option("--emit", build.emit, "what to write")
      ->check(CLI::IsMember({"core", "loops", "llvm", "asm", "obj", "lib", "exe"}));
  build_app->add_option("-O", build.opt_level, "optimisation level")->check(CLI::Range(0, 3));
  build_app->add_option("--cpu", build.cpu, "the instructions that machine code may use")
      ->check(CLI::IsMember({"native", "avx512", "avx2", "sse2", "portable"}));
  add_direction(*build_app, "--grad-mode", build.direction);

  BenchCommand bench;
  CLI::App* bench_app = app.add_subcommand(
      "bench", "run a program many times: time per family against the peaks of this machine");
  add_common(*bench_app, bench.common);
  bench_app->add_option("--in", bench.in, "NAME=FILE: an input; those not given are made up")
      ->allow_extra_args(false);
  bench_app->add_option("--set", bench.set, "NAME=VALUE: a scalar input")->allow_extra_args(false);
  bench_app->add_option("--out", bench.out, "NAME=FILE: write a value of the last run to a file")
      ->allow_extra_args(false);
  bench_app->add_option("--show", bench.show, "values to compute besides what is printed")
      ->delimiter(',')
      ->allow_extra_args(false);
  bench_app->add_option("--repeat", bench.repeat, "runs to measure; as many as fit into a second")
      ->check(CLI::Range(1, 1'000'000));
  bench_app->add_flag("--no-peaks", bench.no_peaks, "do not measure the machine");
  bench_app->add_option("--format", bench.format, "how the report looks")
      ->check(CLI::IsMember({"text", "json"}));
  bench_app->add_option("-O", bench.opt_level, "optimisation level")->check(CLI::Range(0, 3));
  bench_app->add_option("--threads", bench.threads, "that share loops (default: one per processor)")
      ->check(CLI::Range(1, 1024));
  add_grad_memory(*bench_app, bench.grad_memory);
  add_direction(*bench_app, "--grad-mode", bench.direction);

  CheckCommand check;
  CLI::App* check_app =
      app.add_subcommand("check", "report every mistake in a program, run nothing");
  add_common(*check_app, check.common);
  add_input_files(*check_app, check.in);
  check_app->add_flag("--facts", check.facts, "what is known of every family");
  add_grad_memory(*check_app, check.grad_memory);
  check_app->add_flag("--strict", check.strict, "extents must be proven equal");
  check_app->add_option("--format", check.format, "how --facts looks")
      ->check(CLI::IsMember({"text", "json"}));

  GradCommand grad;
  CLI::App* grad_app =
      app.add_subcommand("grad", "print the program with its derivatives as source");
  add_common(*grad_app, grad.common);
  add_input_files(*grad_app, grad.in);
  grad_app->add_option("--of", grad.of, "the value to differentiate");
  grad_app->add_option("--wrt", grad.wrt, "with respect to these values")->delimiter(',');
  add_direction(*grad_app, "--mode", grad.direction);

  GradcheckCommand gradcheck;
  CLI::App* gradcheck_app =
      app.add_subcommand("gradcheck", "compare every derivative with differences");
  add_common(*gradcheck_app, gradcheck.common);
  gradcheck_app
      ->add_option("--in", gradcheck.in, "NAME=FILE: an input; those not given are made up")
      ->allow_extra_args(false);
  gradcheck_app->add_option("--set", gradcheck.set, "NAME=VALUE: a scalar input")
      ->allow_extra_args(false);
  gradcheck_app->add_option("--of", gradcheck.of, "only the derivative of this value");
  gradcheck_app->add_option("--wrt", gradcheck.wrt, "with respect to these values")->delimiter(',');
  gradcheck_app->add_option("--value", gradcheck.value,
                            "compare this value of the program instead of what is derived");
  gradcheck_app->add_flag("--seed-tolerances", gradcheck.seed_tolerances,
                          "a fixed table of tolerances and steps per type");
  gradcheck_app->add_flag("--quick", gradcheck.quick,
                          "leave out the printed source, the reference evaluator and products");
  gradcheck_app->add_option("--format", gradcheck.format, "how the report looks")
      ->check(CLI::IsMember({"text", "json"}));

  FmtCommand format;
  CLI::App* fmt_app = app.add_subcommand("fmt", "rewrite programs in the one style");
  fmt_app->add_option("FILES", format.files, "the programs; - for standard input")->required();
  fmt_app->add_flag("--check", format.check, "list the files that differ, change none");
  add_error_format(*fmt_app, format.common);

  FixCommand fix;
  CLI::App* fix_app = app.add_subcommand("fix", "apply the safe fixes of a program's diagnostics");
  fix_app->add_option("FILE", fix.common.file, "the program; - for standard input")->required();
  fix_app->add_flag("--dry-run", fix.dry_run, "say what would be done, change nothing");
  add_error_format(*fix_app, fix.common);
  add_allow_read(*fix_app, fix.common);

  ExplainCommand explain;
  CLI::App* explain_app = app.add_subcommand(
      "explain", "explain a diagnostic (no argument: list all), or a derivative step by step");
  explain_app->add_option("CODE|FILE", explain.common.file, "such as E0301; or a program");
  explain_app->add_option("-c", explain.common.code, "the program's text");
  add_error_format(*explain_app, explain.common);
  add_allow_read(*explain_app, explain.common);
  add_csv_headings(*explain_app, explain.common);
  add_input_files(*explain_app, explain.in);
  explain_app->add_option("--of", explain.of, "the value to differentiate");
  explain_app->add_option("--wrt", explain.wrt, "with respect to these values")->delimiter(',');
  explain_app->add_option("--format", explain.format, "how it looks")
      ->check(CLI::IsMember({"text", "json"}));
  explain_app->add_option("--html", explain.html, "write a page with a drawing to this file");

  AuditCommand audit;
  CLI::App* audit_app = app.add_subcommand(
      "audit", "what every operand is repeated along, and what its gradient sums");
  add_common(*audit_app, audit.common);
  add_input_files(*audit_app, audit.in);
  audit_app->add_flag("--deny", audit.deny, "status 1 when an omission looks unintended");
  audit_app->add_option("--format", audit.format, "how it looks")
      ->check(CLI::IsMember({"text", "json"}));

  TestCommand test;
  CLI::App* test_app =
      app.add_subcommand("test", "run the test blocks and doc examples of programs");
  test_app->add_option("FILES", test.files,
                       "the programs; every .ein file below this folder when left out");
  test_app->add_option("--backend", test.backend, "machine code, or the reference evaluator")
      ->check(CLI::IsMember({"native", "ref"}));
  add_no_cache(*test_app, test.no_cache);
  add_error_format(*test_app, test.common);
  add_allow_read(*test_app, test.common);
  add_allow_write(*test_app, test.common);

  DocCommand doc;
  CLI::App* doc_app = app.add_subcommand("doc", "write the reference of modules from doc comments");
  doc_app->add_option("FILES", doc.files, "the modules; - for standard input");
  doc_app->add_flag("--library", doc.library, "describe the standard library");
  doc_app->add_option("--out", doc.out, "a folder: a page for every module, and index.md");
  doc_app->add_option("--format", doc.format, "how it looks; json runs no examples")
      ->check(CLI::IsMember({"markdown", "json"}));
  add_error_format(*doc_app, doc.common);
  add_allow_read(*doc_app, doc.common);
  add_allow_write(*doc_app, doc.common);

  NewCommand create;
  CLI::App* new_app = app.add_subcommand("new", "start a program in a new folder");
  new_app->add_option("NAME", create.name, "the folder")->required();

  // `ein FILE …` is `ein run FILE …`.
  std::vector<std::string> args(argv + 1, argv + argc);
  auto is_verb = [&](const std::string& a) {
    auto verbs = app.get_subcommands([](CLI::App*) { return true; });
    return std::any_of(verbs.begin(), verbs.end(), [&](CLI::App* v) { return v->get_name() == a; });
  };
  if (!args.empty() && !is_verb(args[0]) && args[0] != "--help" && args[0] != "-h" &&
      args[0] != "--version") {
    args.insert(args.begin(), "run");
  }
  std::reverse(args.begin(), args.end());  // CLI11 takes them last first
  try {
    app.parse(args);
  } catch (const CLI::ParseError& e) {
    std::ostringstream out, err;
    int status = app.exit(e, out, err) == 0 ? kFine : kUsage;
    put(out.str());
    put_error(err.str());
    return finish(status, {});
  }
  if (*run_app) return finish(run_verb(run), run.common);
  if (*build_app) return finish(build_verb(build), build.common);
  if (*bench_app) return finish(bench_verb(bench), bench.common);
  if (*check_app) return finish(check_verb(check), check.common);
  if (*gradcheck_app) return finish(gradcheck_verb(gradcheck), gradcheck.common);
  if (*fmt_app) return finish(fmt_verb(format), format.common);
  if (*fix_app) return finish(fix_verb(fix), fix.common);
  if (*explain_app) return finish(explain_verb(explain), explain.common);
  if (*audit_app) return finish(audit_verb(audit), audit.common);
  if (*test_app) return finish(test_verb(test), test.common);
  if (*doc_app) return finish(doc_verb(doc), doc.common);
  if (*new_app) return finish(new_verb(create), {});
  return finish(grad_verb(grad), grad.common);
}

}  // namespace
}  // namespace ein::cli

namespace {

int guarded(int argc, char** argv) {
  ein::cli::report_faults();
  std::string fault;
  try {
    return ein::cli::dispatch(argc, argv);
  } catch (const std::bad_alloc&) {
    ein::put_error("error[E0807]: out of memory\n");
    ein::flush_output();
    return ein::cli::kRuntimeFailure;
  } catch (const std::exception& e) { fault = e.what(); }
  ein::flush_output();
  ein::cli::print_error(
      "ein: a fault in the compiler: {}\nplease report it with the program that caused it\n",
      fault);
  return ein::cli::kInternal;
}

}  // namespace

int main(int argc, char** argv) {
  // The compiler runs in a thread of its own; with a heap of its own too it would grow that page by
  // page.
  mallopt(M_ARENA_MAX, 1);
  ein::take_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of writing, not the end
  int status = 0;
  ein::on_deep_stack([&] { status = guarded(argc, argv); });
  return status;
}

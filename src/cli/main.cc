// `ein`: the verbs and their options. A bare file name means `ein run`.
#include <einlang/einlang.h>
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
  app.add_option("--error-format", o.error_format, "format of error messages")
      ->check(CLI::IsMember({"human", "short", "json"}));
  app.add_option("--color", o.color, "whether to colour error messages")
      ->check(CLI::IsMember({"auto", "always", "never"}));
}

// For every verb that compiles a program: `load` reads headers then.
void add_allow_read(CLI::App& app, CommonOptions& o) {
  app.add_option(
         "--allow-read", o.allow_read,
         "let `load` read this file or folder, besides the program's folder and the current one")
      ->allow_extra_args(false);
}

void add_allow_write(CLI::App& app, CommonOptions& o) {
  app.add_option("--allow-write", o.allow_write,
                 "let `save` write to this file or folder, besides the current folder")
      ->allow_extra_args(false);
}

void add_input_options(CLI::App& app, CommonOptions& o) {
  app.add_flag("--csv-headings", o.csv_headings,
               "the first line of every --in csv file is a heading, even if it contains numbers");
  app.add_option(
      "--csv", o.csv,
      "how to read every --in csv file: headings; columns = a, b; labels; missing = nan; "
      "separator = tab; decimal = comma");
  app.add_flag("--convert", o.convert,
               "convert --in files whose numbers have another type than the input, rounding them");
}

void add_common(CLI::App& app, CommonOptions& o) {
  app.add_option("FILE", o.file, "the program; - for standard input");
  app.add_option("-c", o.code, "the program, as text on the command line");
  add_error_format(app, o);
  app.add_option("--dump-after", o.dump_after, "print the program as it is after this pass")
      ->check(CLI::IsMember(pass_names()));
  app.add_flag("--time-passes", o.time_passes, "report on standard error how long each pass took");
  add_allow_read(app, o);
  add_input_options(app, o);
}

void add_grad_memory(CLI::App& app, std::string& size) {
  app.add_option(
      "--grad-memory", size,
      "memory limit for all values (512MiB, 2GB); to stay below it, derivatives recompute steps of "
      "recurrences instead of keeping them");
}

void add_tune(CLI::App& app, std::vector<std::string>& tune) {
  app.add_option("--tune", tune, "NAME=NUMBER: change one of the planner's tuned numbers")
      ->allow_extra_args(false);
}

// For inputs whose type leaves the rank open; nothing else is read from the files.
void add_input_files(CLI::App& app, std::vector<std::string>& in) {
  app.add_option("--in", in,
                 "NAME=FILE: the file for an input whose number of coordinates is not declared")
      ->allow_extra_args(false);
}

void add_direction(CLI::App& app, const char* option, std::string& direction) {
  app.add_option(option, direction, "how to compute derivatives; auto picks the cheaper mode")
      ->check(CLI::IsMember({"auto", "forward", "reverse"}));
}

void add_no_cache(CLI::App& app, bool& no_cache) {
  app.add_flag("--no-cache", no_cache, "neither use nor store compiled programs on disk");
}

// The exit status of a verb that ended with `status`: output that got lost is a failure, whatever
// the rest was.
int finish(int status, const CommonOptions& common) {
  auto why = lost_output();
  if (!why) return status;
  int lost = runtime_error({Code::E0808, "cannot write to standard output: " + *why}, common);
  return status == kInternal || status == kInterrupted ? status : lost;
}

constexpr const char* kStatuses =
    "exit statuses: 0 success; 1 a mistake in the program, or a check that failed; 2 wrong usage;\n"
    "  3 a failure while the program ran, or output that could not be written; 70 a bug in the\n"
    "  compiler; 130 interrupted";

// `--help` shows what an option is when it is not given.
void show_defaults(CLI::App& verb) {
  for (CLI::Option* option : verb.get_options()) {
    option->capture_default_str();
    std::string shown = option->get_default_str();
    // Lists are empty, and a 0 stands for what the option's text says.
    if (shown == "[]" || shown == "{}" || (shown == "0" && !option->check_name("-O"))) {
      option->default_str("");
    }
  }
}

// `--help` and `--version` too end the reading of the command line.
int parse_failure(const CLI::App& app, const std::string& verb, const CLI::ParseError& e) {
  std::ostringstream out, err;
  if (app.exit(e, out, err) == 0) {
    put(out.str());
    return kFine;
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&e) == nullptr) {
    return usage_error(fmt::format("{}\n`ein {} --help` shows what it takes", e.what(), verb));
  }
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_subcommand(verb)->get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  return unexpected_words(verb, app.remaining(true), known);
}

int dispatch(int argc, char** argv) {
  CLI::App app{"Einlang: tensors whose coordinates have names"};
  app.name("ein");
  app.set_version_flag("--version", "ein " EIN_VERSION);
  app.require_subcommand(1);
  app.footer(kStatuses);  // the verbs inherit it

  RunCommand run;
  CLI::App* run_app = app.add_subcommand("run", "compile and run a program");
  add_common(*run_app, run.common);
  add_allow_write(*run_app, run.common);
  run_app
      ->add_option("--in", run.in,
                   "NAME=FILE: read an input from a file (npy, npz, csv, safetensors, idx, png, "
                   "pgm, ppm, txt)")
      ->allow_extra_args(false);
  run_app->add_option("--set", run.set, "NAME=VALUE: set a scalar input")->allow_extra_args(false);
  run_app->add_option("--out", run.out, "NAME=FILE: write a value to a file")
      ->allow_extra_args(false);
  run_app->add_option("--show", run.show, "values to print at the end (NAME,NAME)")
      ->delimiter(',')
      ->allow_extra_args(false);
  run_app
      ->add_option("--watch", run.watch,
                   "values to show in the progress line at each step (default: loss)")
      ->delimiter(',')
      ->allow_extra_args(false);
  run_app
      ->add_option("--progress", run.progress, "show the progress of a long run on standard error")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  run_app->add_option("--log", run.log,
                      "write the watched values of every step to a file (.csv or .jsonl)");
  run_app->add_option("--plot", run.plot,
                      "draw the watched values into a file (.svg) as they come");
  run_app->add_option("--save-state", run.save_state,
                      "keep the state of a long run in this folder, also on Ctrl-C");
  run_app->add_option("--every", run.every,
                      "how often: 30s, 10m, 1h, or a number of steps (default: 10m)");
  run_app->add_option("--resume", run.resume, "go on from the state in this folder");
  run_app->add_option("--format", run.format, "format of --show")
      ->check(CLI::IsMember({"text", "json"}));
  run_app->add_option("--backend", run.backend, "run machine code, or the slow reference evaluator")
      ->check(CLI::IsMember({"native", "ref"}));
  run_app->add_flag("--check-overflow", run.check_overflow,
                    "stop the program on integer overflow instead of wrapping around");
  run_app
      ->add_option("--trap", run.trap, "stop the program at the first cell that is NaN or infinite")
      ->check(CLI::IsMember({"nan"}));
  run_app->add_flag("--check-bounds", run.check_bounds,
                    "check every memory access of the machine code (for testing the compiler)");
  run_app
      ->add_option("--precision", run.precision,
                   "number format to round the operands of sums of products to")
      ->check(CLI::IsMember({"f32", "bf16-mixed", "f16-mixed"}));
  add_grad_memory(*run_app, run.grad_memory);
  run_app->add_option("-O", run.opt_level, "0: compile faster, run slower; 1 to 3: optimise")
      ->check(CLI::Range(0, 3));
  run_app
      ->add_option("--threads", run.threads, "how many threads to use (default: one per processor)")
      ->check(CLI::Range(1, 1024));
  run_app->add_option("--cpu", run.cpu, "instruction set that the machine code may use")
      ->check(CLI::IsMember({"native", "avx512", "avx2", "sse2", "portable"}));
  add_direction(*run_app, "--grad-mode", run.direction);
  run_app
      ->add_option("--emit", run.emit,
                   "print a stage of the compilation instead of running the program")
      ->check(CLI::IsMember({"plan", "loops", "llvm", "asm"}));
  run_app->add_flag("--time", run.time, "report on standard error where the time went");
  add_tune(*run_app, run.tune);
  add_no_cache(*run_app, run.no_cache);
  run_app->add_flag("--cache-stats", run.cache_stats)->group("");  // hidden: for the tests

  BuildCommand build;
  CLI::App* build_app = app.add_subcommand(
      "build", "compile ahead of time: a shared library with a C header, or a program");
  add_common(*build_app, build.common);
  add_input_files(*build_app, build.in);
  build_app->add_option("-o,--output", build.output,
                        "the file to write; the C header is written next to it");
  build_app->add_option("--name", build.name, "prefix of the C functions: NAME_run, NAME_free");
  build_app
      ->add_option("--show", build.show,
                   "values that the library computes (default: every value of the program)")
      ->delimiter(',')
      ->allow_extra_args(false);
  build_app->add_option("--emit", build.emit, "kind of file to write")
      ->check(CLI::IsMember({"core", "loops", "llvm", "asm", "obj", "lib", "exe"}));
  build_app->add_option("-O", build.opt_level, "0: compile faster, run slower; 1 to 3: optimise")
      ->check(CLI::Range(0, 3));
  build_app->add_option("--cpu", build.cpu, "instruction set that the machine code may use")
      ->check(CLI::IsMember({"native", "avx512", "avx2", "sse2", "portable"}));
  add_direction(*build_app, "--grad-mode", build.direction);

  BenchCommand bench;
  CLI::App* bench_app = app.add_subcommand(
      "bench",
      "run a program many times and compare the time of each array with the machine's peak");
  add_common(*bench_app, bench.common);
  bench_app
      ->add_option("--in", bench.in,
                   "NAME=FILE: read an input from a file; missing inputs get made-up values")
      ->allow_extra_args(false);
  bench_app->add_option("--set", bench.set, "NAME=VALUE: set a scalar input")
      ->allow_extra_args(false);
  bench_app->add_option("--out", bench.out, "NAME=FILE: write a value of the last run to a file")
      ->allow_extra_args(false);
  bench_app
      ->add_option("--show", bench.show,
                   "values to compute in addition to those the program prints")
      ->delimiter(',')
      ->allow_extra_args(false);
  bench_app
      ->add_option("--repeat", bench.repeat,
                   "number of runs to measure (default: as many as fit into a second)")
      ->check(CLI::Range(1, 1'000'000));
  bench_app->add_flag("--no-peaks", bench.no_peaks, "do not measure the machine's peak speed");
  add_tune(*bench_app, bench.tune);
  bench_app->add_option("--format", bench.format, "format of the report")
      ->check(CLI::IsMember({"text", "json"}));
  bench_app->add_option("-O", bench.opt_level, "0: compile faster, run slower; 1 to 3: optimise")
      ->check(CLI::Range(0, 3));
  bench_app
      ->add_option("--threads", bench.threads,
                   "how many threads to use (default: one per processor)")
      ->check(CLI::Range(1, 1024));
  add_grad_memory(*bench_app, bench.grad_memory);
  add_direction(*bench_app, "--grad-mode", bench.direction);

  CheckCommand check;
  CLI::App* check_app =
      app.add_subcommand("check", "report every mistake in a program without running it");
  add_common(*check_app, check.common);
  add_input_files(*check_app, check.in);
  check_app->add_flag("--facts", check.facts,
                      "print what is known about every value: coordinates, extents, recurrences");
  add_grad_memory(*check_app, check.grad_memory);
  check_app->add_flag("--strict", check.strict,
                      "report extents that cannot be proven equal as errors");
  check_app->add_option("--format", check.format, "format of --facts")
      ->check(CLI::IsMember({"text", "json"}));

  GradCommand grad;
  CLI::App* grad_app =
      app.add_subcommand("grad", "print the derivatives that a program asks for as source");
  add_common(*grad_app, grad.common);
  add_input_files(*grad_app, grad.in);
  grad_app->add_option("--of", grad.of, "the value to differentiate");
  grad_app->add_option("--wrt", grad.wrt, "differentiate with respect to these values (NAME,NAME)")
      ->delimiter(',');
  add_direction(*grad_app, "--grad-mode,--mode", grad.direction);
  grad_app->add_flag("--all", grad.all,
                     "print the whole program, not only what the derivatives need");

  GradcheckCommand gradcheck;
  CLI::App* gradcheck_app =
      app.add_subcommand("gradcheck", "check every derivative against finite differences");
  add_common(*gradcheck_app, gradcheck.common);
  gradcheck_app
      ->add_option("--in", gradcheck.in,
                   "NAME=FILE: read an input from a file; missing inputs get made-up values")
      ->allow_extra_args(false);
  gradcheck_app->add_option("--set", gradcheck.set, "NAME=VALUE: set a scalar input")
      ->allow_extra_args(false);
  gradcheck_app->add_option("--of", gradcheck.of, "check only the derivative of this value");
  gradcheck_app
      ->add_option("--wrt", gradcheck.wrt, "differentiate with respect to these values (NAME,NAME)")
      ->delimiter(',');
  gradcheck_app
      ->add_option("--value", gradcheck.claimed,
                   "check these values of the program, one for each --wrt, instead of the "
                   "compiler's derivatives")
      ->delimiter(',');
  gradcheck_app->add_flag("--seed-tolerances", gradcheck.seed_tolerances,
                          "use fixed tolerances and step sizes for each type");
  gradcheck_app->add_flag(
      "--quick", gradcheck.quick,
      "skip the checks with printed source, the reference evaluator and vector products");
  gradcheck_app->add_option("--format", gradcheck.format, "format of the report")
      ->check(CLI::IsMember({"text", "json"}));

  FmtCommand format;
  CLI::App* fmt_app = app.add_subcommand("fmt", "format programs in the standard style");
  fmt_app->add_option("FILES", format.files, "the programs; - for standard input")->required();
  fmt_app->add_flag("--check", format.check,
                    "list the files that are not formatted and change nothing");
  add_error_format(*fmt_app, format.common);

  FixCommand fix;
  CLI::App* fix_app = app.add_subcommand("fix", "apply the safe fixes that error messages suggest");
  fix_app->add_option("FILE", fix.common.file, "the program; - for standard input")->required();
  fix_app->add_flag("--dry-run", fix.dry_run, "print the changes without making them");
  add_error_format(*fix_app, fix.common);
  add_allow_read(*fix_app, fix.common);

  ExplainCommand explain;
  CLI::App* explain_app = app.add_subcommand(
      "explain", "explain an error code (no argument: list all), or a derivative step by step");
  explain_app->add_option("CODE|FILE", explain.common.file,
                          "an error code such as E0301, or a program");
  explain_app->add_option("-c", explain.common.code, "the program, as text on the command line");
  add_error_format(*explain_app, explain.common);
  add_allow_read(*explain_app, explain.common);
  add_input_options(*explain_app, explain.common);
  add_input_files(*explain_app, explain.in);
  explain_app->add_option("--of", explain.of, "the value to differentiate");
  explain_app
      ->add_option("--wrt", explain.wrt, "differentiate with respect to these values (NAME,NAME)")
      ->delimiter(',');
  explain_app->add_option("--format", explain.format, "format of the output")
      ->check(CLI::IsMember({"text", "json"}));
  explain_app->add_option("--html", explain.html, "write an HTML page with a diagram to this file");

  AuditCommand audit;
  CLI::App* audit_app = app.add_subcommand(
      "audit", "list every broadcast: along which coordinates operands are repeated");
  add_common(*audit_app, audit.common);
  add_input_files(*audit_app, audit.in);
  audit_app->add_flag("--deny", audit.deny, "exit with status 1 if a broadcast looks unintended");
  audit_app->add_option("--format", audit.format, "format of the output")
      ->check(CLI::IsMember({"text", "json"}));

  TestCommand test;
  CLI::App* test_app =
      app.add_subcommand("test", "run the test blocks and doc examples of programs");
  test_app->add_option("FILES", test.files,
                       "the programs (default: every .ein file below the current folder)");
  test_app
      ->add_option("--backend", test.backend, "run machine code, or the slow reference evaluator")
      ->check(CLI::IsMember({"native", "ref"}));
  add_no_cache(*test_app, test.no_cache);
  add_error_format(*test_app, test.common);
  add_allow_read(*test_app, test.common);
  add_allow_write(*test_app, test.common);

  DocCommand doc;
  CLI::App* doc_app =
      app.add_subcommand("doc", "write reference pages for modules from their doc comments");
  doc_app->add_option("FILES", doc.files, "the modules; - for standard input");
  doc_app->add_flag("--library", doc.library, "describe the standard library");
  doc_app->add_option("--out", doc.out,
                      "folder to write to: a page for every module, and index.md");
  doc_app
      ->add_option("--format", doc.format, "format of the output; json does not run the examples")
      ->check(CLI::IsMember({"markdown", "json"}));
  add_error_format(*doc_app, doc.common);
  add_allow_read(*doc_app, doc.common);
  add_allow_write(*doc_app, doc.common);

  NewCommand create;
  CLI::App* new_app = app.add_subcommand("new", "create a new program in a new folder");
  new_app->add_option("NAME", create.name, "the folder to create")->required();

  LspCommand lsp;
  CLI::App* lsp_app = app.add_subcommand(
      "lsp", "serve editors: the language server protocol on standard input and output");
  lsp_app->add_flag("--stdio", lsp.stdio, "standard input and output; there is no other way");

  std::vector<std::string> verbs;
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) {
    show_defaults(*verb);
    verbs.push_back(verb->get_name());
  }
  std::vector<std::string> args(argv + 1, argv + argc);
  if (args.empty()) {
    put_error(app.help());
    return finish(kUsage, {});
  }
  if (auto status = read_verb(args, verbs)) return finish(*status, {});
  const std::string verb = args[0];
  std::reverse(args.begin(), args.end());  // CLI11 takes them last first
  try {
    app.parse(args);
  } catch (const CLI::ParseError& e) { return finish(parse_failure(app, verb, e), {}); }
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
  if (*lsp_app) return finish(lsp_verb(lsp), {});
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
      "ein: a bug in the compiler: {}\nplease report it together with the program that caused it\n",
      fault);
  return ein::cli::kInternal;
}

}  // namespace

extern "C" int ein_main(int argc, char** argv) {
  // The compiler runs in a thread of its own. If that had a heap of its own too, it would
  // grow page by page.
  mallopt(M_ARENA_MAX, 1);
  ein::take_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of writing, not the end
  int status = 0;
  ein::on_deep_stack([&] { status = guarded(argc, argv); });
  return status;
}

// `ein`: the verbs. A bare file name means `ein run`.
#include <einlang/einlang.h>
#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <sstream>

#include "base/check.h"
#include "base/deep_stack.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "runtime/pool.h"

namespace ein::cli {
namespace {

// The exit status of a verb that ended with `status`: lost output counts as a failure.
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

// Makes `--help` show the default of every option.
void show_defaults(CLI::App& verb) {
  for (CLI::Option* option : verb.get_options()) {
    option->capture_default_str();
    std::string shown = option->get_default_str();
    // Lists are empty, and for 0 the option's text gives the default.
    if (shown == "[]" || shown == "{}" || (shown == "0" && !option->check_name("-O"))) {
      option->default_str("");
    }
  }
}

// Also called for `--help` and `--version`, which end parsing.
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

// The verbs that were added to `app`, and the function that runs each of them with its options.
struct Verbs {
  CLI::App& app;
  std::vector<std::pair<CLI::App*, std::function<int()>>> all;

  template <class Command>
  void add(const char* name, const char* text, void (*options)(CLI::App&, Command&),
           int (*run)(const Command&)) {
    CLI::App* verb = app.add_subcommand(name, text);
    auto command = std::make_shared<Command>();
    options(*verb, *command);
    show_defaults(*verb);
    all.emplace_back(verb, [=] { return finish(run(*command), command->common); });
  }
};

void add_verbs(Verbs& verbs) {
  verbs.add("run", "compile and run a program", run_options, run_verb);
  verbs.add("build", "compile ahead of time: a shared library with a C header, or a program",
            build_options, build_verb);
  verbs.add("plan", "estimate what a program would move between ranks, without running it",
            plan_options, plan_verb);
  verbs.add("bench",
            "run a program many times and compare the time of each array with the machine's peak",
            bench_options, bench_verb);
  verbs.add("check", "report every mistake in a program without running it", check_options,
            check_verb);
  verbs.add("grad", "print the derivatives that a program asks for as source", grad_options,
            grad_verb);
  verbs.add("gradcheck", "check every derivative against finite differences", gradcheck_options,
            gradcheck_verb);
  verbs.add("fmt", "format programs in the standard style", fmt_options, fmt_verb);
  verbs.add("fix", "apply the safe fixes that error messages suggest", fix_options, fix_verb);
  verbs.add("explain",
            "explain an error code (no argument: list all), or a derivative step by step",
            explain_options, explain_verb);
  verbs.add("audit", "list every broadcast: along which coordinates operands are repeated",
            audit_options, audit_verb);
  verbs.add("test", "run the test blocks and doc examples of programs", test_options, test_verb);
  verbs.add("doc", "write reference pages for modules from their doc comments", doc_options,
            doc_verb);
  verbs.add("new", "create a new program in a new folder", new_options, new_verb);
  verbs.add("repl", "a prompt: enter definitions and see their types and values", repl_options,
            repl_verb);
  verbs.add("lsp", "serve editors: the language server protocol on standard input and output",
            lsp_options, lsp_verb);
  verbs.add("explore", "show a program in a page: values, derivatives, coordinates",
            explore_options, explore_verb);
}

int dispatch(int argc, char** argv) {
  CLI::App app{"Einlang: tensors whose coordinates have names"};
  app.name("ein");
  app.set_version_flag("--version", "ein " EIN_VERSION);
  app.require_subcommand(1);
  app.footer(kStatuses);  // inherited by the verbs
  Verbs verbs{app, {}};
  add_verbs(verbs);
  std::vector<std::string> names;
  for (const auto& [verb, run] : verbs.all) names.push_back(verb->get_name());

  std::vector<std::string> args(argv + 1, argv + argc);
  if (args.empty()) {
    put_error(app.help());
    return finish(kUsage, {});
  }
  if (auto status = read_verb(args, names)) return finish(*status, {});
  const std::string name = args[0];
  std::reverse(args.begin(), args.end());  // CLI11 expects them in reverse
  try {
    app.parse(args);
  } catch (const CLI::ParseError& e) { return finish(parse_failure(app, name, e), {}); }
  for (const auto& [verb, run] : verbs.all) {
    if (*verb) return run();
  }
  EIN_UNREACHABLE("no verb, though one is required");
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
  // The compiler runs in a thread of its own. If that thread had its own heap, the heap would grow
  // page by page.
  mallopt(M_ARENA_MAX, 1);
  ein::take_streams();
  ein::pin_threads();
  // Exceeding the limit on file sizes becomes a write error, and does not end the process.
  std::signal(SIGXFSZ, SIG_IGN);
  int status = 0;
  ein::on_deep_stack([&] { status = guarded(argc, argv); });
  return status;
}

// The options of each verb.
#include "cli/options.h"

#include "driver/compile.h"

namespace ein::cli {
namespace {

void add_error_format(CLI::App& app, CommonOptions& o) {
  app.add_option("--error-format", o.error_format, "format of error messages")
      ->check(CLI::IsMember({"human", "short", "json"}));
  app.add_option("--color", o.color, "whether to colour error messages")
      ->check(CLI::IsMember({"auto", "always", "never"}));
}

// For every verb that compiles a program, because that is when `load` reads headers.
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

void add_backend(CLI::App& app, std::string& backend) {
  app.add_option("--backend", backend, "run machine code, or the slow reference evaluator")
      ->check(CLI::IsMember({"native", "ref"}));
}

void add_device(CLI::App& app, std::string& device) {
  app.add_option("--device", device,
                 "where the program runs; emulated: on the processor, as a GPU would compute it")
      ->check(CLI::IsMember({"cpu", "gpu", "emulated"}));
}

void add_tune(CLI::App& app, std::vector<std::string>& tune) {
  app.add_option("--tune", tune, "NAME=NUMBER: change one of the planner's tuned numbers")
      ->allow_extra_args(false);
}

// For inputs whose type does not give a rank; nothing else is read from the files.
void add_input_files(CLI::App& app, std::vector<std::string>& in) {
  app.add_option("--in", in,
                 "NAME=FILE: the file for an input whose number of coordinates is not declared")
      ->allow_extra_args(false);
}

void add_direction(CLI::App& app, const char* option, std::string& direction) {
  app.add_option(option, direction, "how to compute derivatives; auto picks the cheaper mode")
      ->check(CLI::IsMember({"auto", "forward", "reverse"}));
}

void add_precision(CLI::App& app, std::string& precision) {
  app.add_option("--precision", precision,
                 "number format to round the operands of sums of products to")
      ->check(CLI::IsMember({"f32", "bf16-mixed", "f16-mixed"}));
}

void add_mesh(CLI::App& app, std::string& mesh, std::string& shard) {
  app.add_option("--mesh", mesh,
                 "run on several ranks: named axes and their sizes (data=4,model=2)");
  app.add_option("--shard", shard,
                 "which coordinates to split, along which axes (\"batch: data, W.k: model\")");
}

void add_no_cache(CLI::App& app, bool& no_cache) {
  app.add_flag("--no-cache", no_cache, "neither use nor store compiled programs on disk");
}

}  // namespace

void run_options(CLI::App& app, RunCommand& o) {
  add_common(app, o.common);
  add_allow_write(app, o.common);
  app.add_option("--in", o.in,
                 "NAME=FILE: read an input from a file (npy, npz, csv, safetensors, idx, png, "
                 "pgm, ppm, txt)")
      ->allow_extra_args(false);
  app.add_option("--set", o.set, "NAME=VALUE: set a scalar input")->allow_extra_args(false);
  app.add_option("--out", o.out, "NAME=FILE: write a value to a file")->allow_extra_args(false);
  app.add_option("--show", o.show, "values to print at the end (NAME,NAME)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--watch", o.watch,
                 "values to show in the progress line at each step (default: loss)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--progress", o.progress, "show the progress of a long run on standard error")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_option("--log", o.log,
                 "write the watched values of every step to a file (.csv or .jsonl)");
  app.add_option("--plot", o.plot,
                 "draw the watched values as curves into an .svg file while the program runs");
  app.add_option("--save-state", o.save_state,
                 "save the state of a long run to this folder, regularly and on Ctrl-C");
  app.add_option("--every", o.every,
                 "how often to save the state: 30s, 10m, 1h, or a number of steps (default: 10m)");
  app.add_option("--resume", o.resume, "continue the run whose state is in this folder");
  app.add_option("--format", o.format, "format of --show")->check(CLI::IsMember({"text", "json"}));
  add_backend(app, o.backend);
  add_device(app, o.device);
  app.add_flag("--check-overflow", o.check_overflow,
               "stop the program on integer overflow instead of wrapping around");
  app.add_option("--trap", o.trap, "stop the program at the first cell that is NaN or infinite")
      ->check(CLI::IsMember({"nan"}));
  app.add_flag("--check-bounds", o.check_bounds,
               "check every memory access of the machine code (for testing the compiler)");
  add_precision(app, o.precision);
  add_grad_memory(app, o.grad_memory);
  app.add_option("-O", o.opt_level, "0: compile faster, run slower; 1 to 3: optimise")
      ->check(CLI::Range(0, 3));
  app.add_option("--threads", o.threads, "how many threads to use (default: one per processor)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--cpu", o.cpu, "instruction set that the machine code may use")
      ->check(CLI::IsMember({"native", "avx512-bf16", "avx512", "avx2", "sse2", "portable"}));
  add_direction(app, "--grad-mode", o.direction);
  app.add_option("--emit", o.emit,
                 "print a stage of the compilation instead of running the program")
      ->check(CLI::IsMember({"plan", "loops", "llvm", "asm", "ptx"}));
  app.add_flag("--time", o.time, "report on standard error where the time went");
  add_mesh(app, o.mesh, o.shard);
  add_tune(app, o.tune);
  add_no_cache(app, o.no_cache);
  app.add_flag("--cache-stats", o.cache_stats)->group("");  // hidden; for tests
}

void plan_options(CLI::App& app, PlanCommand& o) {
  add_common(app, o.common);
  app.add_option("--in", o.in, "NAME=FILE: an input; only its extents matter")
      ->allow_extra_args(false);
  app.add_option("--set", o.set, "NAME=NUMBER: an extent, or a scalar input")
      ->allow_extra_args(false);
  app.add_option("--show", o.show, "values to compute in addition to those the program prints")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_mesh(app, o.mesh, o.shard);
  app.add_option("--network", o.network, "latency and bandwidth of the network: 5us,12GB/s");
  app.add_option("--sweep", o.sweep,
                 "print a line for each size of a mesh axis, doubling it: data=1..4096");
  app.add_option("--format", o.format, "format of the plan")
      ->check(CLI::IsMember({"text", "json"}));
  add_direction(app, "--grad-mode", o.direction);
}

void build_options(CLI::App& app, BuildCommand& o) {
  add_common(app, o.common);
  add_input_files(app, o.in);
  app.add_option("-o,--output", o.output, "the file to write; the C header is written next to it");
  app.add_option("--name", o.name, "prefix of the C functions: NAME_run, NAME_free");
  app.add_option("--show", o.show,
                 "values that the library computes (default: every value of the program)")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--emit", o.emit, "kind of file to write")
      ->check(CLI::IsMember({"core", "loops", "llvm", "asm", "obj", "lib", "exe"}));
  app.add_option("-O", o.opt_level, "0: compile faster, run slower; 1 to 3: optimise")
      ->check(CLI::Range(0, 3));
  app.add_option("--cpu", o.cpu, "instruction set that the machine code may use")
      ->check(CLI::IsMember({"native", "avx512-bf16", "avx512", "avx2", "sse2", "portable"}));
  add_direction(app, "--grad-mode", o.direction);
}

void bench_options(CLI::App& app, BenchCommand& o) {
  add_common(app, o.common);
  app.add_option("--in", o.in,
                 "NAME=FILE: read an input from a file; missing inputs get made-up values")
      ->allow_extra_args(false);
  app.add_option("--set", o.set, "NAME=VALUE: set a scalar input")->allow_extra_args(false);
  app.add_option("--out", o.out, "NAME=FILE: write a value of the last run to a file")
      ->allow_extra_args(false);
  app.add_option("--show", o.show, "values to compute in addition to those the program prints")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--repeat", o.repeat,
                 "number of runs to measure (default: as many as fit into a second)")
      ->check(CLI::Range(1, 1'000'000));
  add_device(app, o.device);
  app.add_flag("--no-peaks", o.no_peaks, "do not measure the machine's peak speed");
  add_tune(app, o.tune);
  app.add_option("--format", o.format, "format of the report")
      ->check(CLI::IsMember({"text", "json"}));
  add_precision(app, o.precision);
  app.add_option("-O", o.opt_level, "0: compile faster, run slower; 1 to 3: optimise")
      ->check(CLI::Range(0, 3));
  app.add_option("--threads", o.threads, "how many threads to use (default: one per processor)")
      ->check(CLI::Range(1, 1024));
  add_grad_memory(app, o.grad_memory);
  add_direction(app, "--grad-mode", o.direction);
}

void check_options(CLI::App& app, CheckCommand& o) {
  add_common(app, o.common);
  add_input_files(app, o.in);
  app.add_flag("--facts", o.facts,
               "print what is known about every value: coordinates, extents, recurrences");
  add_grad_memory(app, o.grad_memory);
  app.add_flag("--strict", o.strict, "report extents that cannot be proven equal as errors");
  app.add_option("--format", o.format, "format of --facts")->check(CLI::IsMember({"text", "json"}));
}

void grad_options(CLI::App& app, GradCommand& o) {
  add_common(app, o.common);
  add_input_files(app, o.in);
  app.add_option("--of", o.of, "the value to differentiate");
  app.add_option("--wrt", o.wrt, "differentiate with respect to these values (NAME,NAME)")
      ->delimiter(',');
  add_direction(app, "--grad-mode,--mode", o.direction);
  app.add_flag("--all", o.all, "print the whole program, not only what the derivatives need");
}

void gradcheck_options(CLI::App& app, GradcheckCommand& o) {
  add_common(app, o.common);
  app.add_option("--in", o.in,
                 "NAME=FILE: read an input from a file; missing inputs get made-up values")
      ->allow_extra_args(false);
  app.add_option("--set", o.set, "NAME=VALUE: set a scalar input")->allow_extra_args(false);
  app.add_option("--of", o.of, "check only the derivative of this value");
  app.add_option("--wrt", o.wrt, "differentiate with respect to these values (NAME,NAME)")
      ->delimiter(',');
  app.add_option("--value", o.claimed,
                 "check these values of the program, one for each --wrt, instead of the "
                 "compiler's derivatives")
      ->delimiter(',');
  app.add_flag("--seed-tolerances", o.seed_tolerances,
               "use fixed tolerances and step sizes for each type");
  app.add_flag("--quick", o.quick,
               "skip the checks with printed source, the reference evaluator and vector products");
  app.add_option("--format", o.format, "format of the report")
      ->check(CLI::IsMember({"text", "json"}));
}

void fmt_options(CLI::App& app, FmtCommand& o) {
  app.add_option("FILES", o.files, "the programs; - for standard input")->required();
  app.add_flag("--check", o.check, "list the files that are not formatted and change nothing");
  add_error_format(app, o.common);
}

void fix_options(CLI::App& app, FixCommand& o) {
  app.add_option("FILE", o.common.file, "the program; - for standard input")->required();
  app.add_flag("--dry-run", o.dry_run, "print the changes without making them");
  add_error_format(app, o.common);
  add_allow_read(app, o.common);
}

void explain_options(CLI::App& app, ExplainCommand& o) {
  app.add_option("CODE|FILE", o.common.file, "an error code such as E0301, or a program");
  app.add_option("-c", o.common.code, "the program, as text on the command line");
  add_error_format(app, o.common);
  add_allow_read(app, o.common);
  add_input_options(app, o.common);
  add_input_files(app, o.in);
  app.add_option("--of", o.of, "the value to differentiate");
  app.add_option("--wrt", o.wrt, "differentiate with respect to these values (NAME,NAME)")
      ->delimiter(',');
  app.add_option("--format", o.format, "format of the output")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option("--html", o.html, "write an HTML page with a diagram to this file");
}

void audit_options(CLI::App& app, AuditCommand& o) {
  add_common(app, o.common);
  add_input_files(app, o.in);
  app.add_flag("--deny", o.deny, "exit with status 1 if a broadcast looks unintended");
  app.add_option("--format", o.format, "format of the output")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option("--html", o.html, "write an HTML page beside the source to this file");
}

void test_options(CLI::App& app, TestCommand& o) {
  app.add_option("FILES", o.files,
                 "the programs (default: every .ein file below the current folder)");
  add_backend(app, o.backend);
  add_no_cache(app, o.no_cache);
  add_error_format(app, o.common);
  add_allow_read(app, o.common);
  add_allow_write(app, o.common);
}

void doc_options(CLI::App& app, DocCommand& o) {
  app.add_option("FILES", o.files, "the modules; - for standard input");
  app.add_flag("--library", o.library, "describe the standard library");
  app.add_option("--out", o.out, "folder to write to: a page for every module, and index.md");
  app.add_option("--format", o.format, "format of the output; json does not run the examples")
      ->check(CLI::IsMember({"markdown", "json"}));
  add_error_format(app, o.common);
  add_allow_read(app, o.common);
  add_allow_write(app, o.common);
}

void new_options(CLI::App& app, NewCommand& o) {
  app.add_option("NAME", o.name, "the folder to create")->required();
}

void repl_options(CLI::App& app, ReplCommand& o) {
  app.add_option("FILES", o.files, "programs whose definitions are entered first");
  add_backend(app, o.backend);
  add_no_cache(app, o.no_cache);
  add_error_format(app, o.common);
  add_allow_read(app, o.common);
  add_allow_write(app, o.common);
}

void lsp_options(CLI::App& app, LspCommand& o) {
  app.add_flag("--stdio", o.stdio,
               "use standard input and output; this is always so, but many editors pass it");
}

void explore_options(CLI::App& app, ExploreCommand& o) {
  app.add_option("FILE", o.common.file, "the program")->required();
  app.add_option("--port", o.port, "serve on this port (default: any that is free)")
      ->check(CLI::Range(0, 65535));
  app.add_option("--page", o.page, "the page to serve (default: the one that is installed)");
  app.add_flag("--answers", o.answers)->group("");
}

}  // namespace ein::cli

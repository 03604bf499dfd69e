// The command line. A verb is a function from its options to an exit status; main.cc holds the
// table.
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/diag.h"
#include "base/render.h"
#include "base/source.h"
#include "core/eval.h"
#include "driver/compile.h"
#include "runtime/device.h"
#include "runtime/paths.h"
#include "runtime/row_file.h"
#include "runtime/streams.h"
#include "runtime/tensor.h"
#include "shard/mesh.h"

namespace ein {
struct RunOptions;
}

namespace ein::cli {

// Exit statuses, part of the interface.
enum Exit {
  kFine = 0,
  kProgramWrong = 1,
  kUsage = 2,
  kRuntimeFailure = 3,
  kInternal = 70,
  kInterrupted = 130
};

// Print to standard output and standard error. fmt::print would throw if they cannot be written.
template <class... T>
void print_out(fmt::format_string<T...> format, T&&... args) {
  put(fmt::format(format, std::forward<T>(args)...));
}
template <class... T>
void print_error(fmt::format_string<T...> format, T&&... args) {
  put_error(fmt::format(format, std::forward<T>(args)...));
}

// Options of every verb that reads a program.
struct CommonOptions {
  std::string file;                 // a path, `-` for standard input
  std::optional<std::string> code;  // -c
  std::string error_format = "human";
  std::string color = "auto";
  std::string dump_after;
  bool time_passes = false;
  // In addition to the folders that are always allowed.
  std::vector<std::string> allow_read, allow_write;
  bool csv_headings = false;  // csv files of --in have a line of headings
  std::string csv;            // how csv files are read (csv_options.h)
  bool convert = false;       // convert files of --in to the types of the inputs
};

struct RunCommand {
  CommonOptions common;
  std::vector<std::string> in, set, out;  // NAME=FILE, NAME=VALUE, NAME=FILE
  std::vector<std::string> show, watch;
  std::string progress = "auto";
  std::string log, plot;                  // files to which watched values are written
  std::string save_state, every, resume;  // --save-state DIR, --every, --resume DIR
  std::string format = "text";
  std::string backend = "native", device = "cpu";
  int opt_level = 2;
  int threads = 0;
  std::string cpu = "native";
  std::string mesh, shard;  // for several ranks; empty: one rank
  bool check_overflow = false;
  std::string trap;  // `nan`: stop at the first cell that is not finite
  bool check_bounds = false;
  std::string precision = "f32";
  std::string direction = "auto";  // --grad-mode
  std::string grad_memory;         // a size; empty: no limit
  std::string emit;                // print a stage of the compilation instead of running
  std::vector<std::string> tune;   // NAME=NUMBER, of base/tuning.def
  bool no_cache = false;
  bool cache_stats = false;
  bool time = false;  // where the time went, on standard error
};

struct PlanCommand {
  CommonOptions common;
  std::vector<std::string> in, set;  // as for `run`; --set also accepts extents
  std::vector<std::string> show;
  std::string mesh, shard;
  std::string network = "5us,12GB/s";
  std::string sweep;  // data=1..4096
  std::string format = "text";
  std::string direction = "auto";
};

struct BuildCommand {
  CommonOptions common;
  std::vector<std::string> in;    // as for `check`
  std::vector<std::string> show;  // empty: every value of the program
  std::string output, name;
  std::string emit = "lib";
  std::string cpu = "native";
  std::string direction = "auto";
  int opt_level = 2;
};

struct BenchCommand {
  CommonOptions common;
  std::vector<std::string> in, set, out;  // as for `run`; missing inputs get made-up values
  std::vector<std::string> show;
  std::string format = "text", device = "cpu";
  std::string direction = "auto";
  std::string grad_memory;
  std::string precision = "f32";
  int opt_level = 2;
  int threads = 0;
  int repeat = 0;  // 0: as many as fit into a second
  bool no_peaks = false;
  std::vector<std::string> tune;  // NAME=NUMBER, of base/tuning.def
};

Device device_named(const std::string& name);  // `name` must be one that --device accepts

struct CheckCommand {
  CommonOptions common;
  std::vector<std::string> in;  // NAME=FILE: only the rank is read
  bool facts = false;
  bool strict = false;
  std::string format = "text";  // of --facts
  std::string grad_memory;      // as for `run`: the facts include the plan
};

struct GradCommand {
  CommonOptions common;
  std::vector<std::string> in;  // as for `check`
  std::string of;
  std::vector<std::string> wrt;
  std::string direction = "auto";  // --grad-mode
  bool all = false;                // print the whole program
};

struct GradcheckCommand {
  CommonOptions common;
  std::vector<std::string> in, set;  // as for `run`; missing inputs get made-up values
  std::string of;
  std::vector<std::string> claimed;  // a value for each of `wrt`
  std::vector<std::string> wrt;
  bool seed_tolerances = false;
  bool quick = false;
  std::string format = "text";
};

struct FmtCommand {
  std::vector<std::string> files;  // `-` for standard input to standard output
  bool check = false;
  CommonOptions common;  // how diagnostics are displayed
};

struct FixCommand {
  CommonOptions common;
  bool dry_run = false;
};

struct ExplainCommand {
  CommonOptions common;  // `file` is a diagnostic's code, or a program; empty: list all codes
  std::vector<std::string> in;  // as for `check`
  std::string of;
  std::vector<std::string> wrt;
  std::string format = "text";
  std::string html;  // write a page to this file instead
};

struct AuditCommand {
  CommonOptions common;
  std::vector<std::string> in;
  bool deny = false;
  std::string format = "text";
  std::string html;  // write a page to this file instead
};

struct TestCommand {
  std::vector<std::string> files;  // empty: every .ein file below the current folder
  std::string backend = "native";
  bool no_cache = false;
  CommonOptions common;  // how diagnostics are displayed
};

struct DocCommand {
  std::vector<std::string> files;
  bool library = false;  // describe the standard library instead
  std::string out;       // a folder for pages; empty: standard output
  std::string format = "markdown";
  CommonOptions common;  // how diagnostics are displayed
};

struct NewCommand {
  CommonOptions common;
  std::string name;
};

struct ReplCommand {
  CommonOptions common;
  std::vector<std::string> files;  // entered before anything else
  std::string backend = "native";
  bool no_cache = false;
};

struct LspCommand {
  CommonOptions common;
  bool stdio = false;  // accepted because clients pass it by habit
};

struct ExploreCommand {
  CommonOptions common;
  int port = 0;
  std::string page;
  bool answers = false;  // run as the process that answers (answers.h)
};

int run_verb(const RunCommand& command);
int plan_verb(const PlanCommand& command);
int build_verb(const BuildCommand& command);
int bench_verb(const BenchCommand& command);
int check_verb(const CheckCommand& command);
int grad_verb(const GradCommand& command);
int gradcheck_verb(const GradcheckCommand& command);
int fmt_verb(const FmtCommand& command);
int fix_verb(const FixCommand& command);
int explain_verb(const ExplainCommand& command);
int audit_verb(const AuditCommand& command);
int test_verb(const TestCommand& command);
int doc_verb(const DocCommand& command);
int new_verb(const NewCommand& command);
int repl_verb(const ReplCommand& command);
int lsp_verb(const LspCommand& command);
int explore_verb(const ExploreCommand& command);

// A program, read and compiled. Its diagnostics are already on standard error.
struct Program {
  SourceMap sources;
  FileId root;  // of the program itself
  Diagnostics diags;
  Compiled compiled;
  CompileOptions options;  // the options that it was compiled with
  std::shared_ptr<const FileAccess> access;
  int status = kFine;  // kUsage: the file cannot be read; kProgramWrong: it has errors
};
struct LoadOptions {
  ExtraRequest extra;
  bool tests = false;
  bool strict = false;
  bool doc_examples = false;       // treat examples in doc comments as tests, too
  std::vector<std::string> in;     // NAME=FILE, for inputs whose type does not give a rank
  std::string direction = "auto";  // of derivatives: forward, reverse, or auto for the cheaper one
  bool keep_asked = false;
  autodiff::Record* record = nullptr;
  bool runs = false;  // the verb runs the program, so it dumps native passes itself
  std::optional<uint64_t> grad_memory = {};  // for native passes that are dumped here
};
Program load(const CommonOptions& options, const LoadOptions& what = {});
// Prints what `--dump-after` asks for if it is a native pass. Returns an exit status after a
// failure.
std::optional<int> dump_native(core::Module& m, const core::Inputs& inputs,
                               const RunOptions& options, const CommonOptions& common);

// A source text under the name that messages use. If it cannot be read, the reason is on standard
// error and `status` is kUsage.
struct Text {
  std::string name, text;
  int status = kFine;
};
Text read_source(const CommonOptions& options);
struct Pair {
  std::string name, value;
};
// A value of the program. If there is none, the result is invalid and `problem` says why.
core::FamilyId find_value(const core::Module& m, const std::string& name, std::string& problem);
// The paths of the parts of a record; empty if there is no record of that name.
std::vector<std::string> parts_of(const core::Module& m, const std::string& name);
// The name of a part of that record in files.
std::string member_name(const core::Family& part, const std::string& record);
// The values that `--show` asks for, with records replaced by their parts.
std::vector<std::string> shown_parts(const core::Module& m, const std::vector<std::string>& names);
// Those of them that have derivatives, by the names of their families.
std::vector<std::string> float_parts(const core::Module& m, const std::vector<std::string>& names);
// Fills `inputs` from --in and --set. Returns an exit status if something is wrong. If `later` is
// given, files that can be read row by row are recorded there with their names instead of being
// read.
std::optional<int> read_inputs(const std::vector<std::string>& in,
                               const std::vector<std::string>& set, const core::Module& m,
                               core::Inputs& inputs, const CommonOptions& common,
                               std::map<std::string, RowFile>* later = nullptr);
// The targets of --out. Returns an exit status if one cannot be written.
std::optional<int> read_outputs(const std::vector<std::string>& out, std::vector<Pair>& targets);
DType operands_named(const std::string& precision);
// Reads `--mesh` and `--shard`. Returns an exit status if they make no sense.
std::optional<int> read_mesh(const std::string& mesh, const std::string& rules,
                             const CommonOptions& common, shard::Spec& spec);
// Reads --grad-memory. Returns an exit status if it is wrong.
std::optional<int> read_grad_memory(const std::string& text, std::optional<uint64_t>& bytes);
// `--tune NAME=NUMBER`
std::optional<int> read_tuning(const std::vector<std::string>& written, Tuning& out);
std::optional<Pair> split(const std::string& text);  // NAME=VALUE
// The name of the tensor to take from a file with several: the one named like the input. Empty if
// there is only one.
std::string member_for(const Pair& given, const CommonOptions& options);
std::optional<std::string> read_file(const std::string& path);
// Returns the exit status. If the file could not be written, the reason is on standard error.
int write_file(const std::string& path, const std::string& text);
// What the program may read and write: its folder, the current one, and what options name. `wrong`
// is the exit status if options name something that does not exist.
std::shared_ptr<const FileAccess> access_of(const CommonOptions& options,
                                            std::optional<int>& wrong);
void print_times(const Trace& trace);  // of passes, on standard error
RenderOptions render_options(const CommonOptions& options);
void show_diagnostics(const Diagnostics& diags, const SourceMap& sources,
                      const CommonOptions& options);

// Makes `args` begin with a verb or `--help`, and repeats options for further pairs. If the first
// word is neither a verb nor a file, returns an exit status, with the reason on standard error.
std::optional<int> read_verb(std::vector<std::string>& args, const std::vector<std::string>& verbs);
// Reports words that the verb does not take. `options` are the options that it has.
int unexpected_words(const std::string& verb, const std::vector<std::string>& words,
                     const std::vector<std::string>& options);
int usage_error(const std::string& message);
void show_thread_note();  // after a run with fewer threads than were requested
void report_faults();     // for this thread: reports signals such as SIGSEGV, with status 70
// Reports a failure of the running program like any other diagnostic; without `sources`, it has no
// place.
int runtime_error(const RuntimeError& error, const CommonOptions& options,
                  const SourceMap* sources = nullptr, const std::string& help = {});
// After a run failed because an input is missing: how to supply it. Empty after other failures.
std::string how_to_supply(const core::Module& m, const core::Inputs& given,
                          const RuntimeError& error);
std::string place_text(const SourceMap& sources, Span at);  // file:line:col

}  // namespace ein::cli

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

// To standard output and error. fmt::print would throw where they cannot be written.
template <class... T>
void print_out(fmt::format_string<T...> format, T&&... args) {
  put(fmt::format(format, std::forward<T>(args)...));
}
template <class... T>
void print_error(fmt::format_string<T...> format, T&&... args) {
  put_error(fmt::format(format, std::forward<T>(args)...));
}

// What every verb that reads a program takes.
struct CommonOptions {
  std::string file;                 // a path, `-` for standard input
  std::optional<std::string> code;  // -c
  std::string error_format = "human";
  std::string color = "auto";
  std::string dump_after;
  bool time_passes = false;
  std::vector<std::string> allow_read, allow_write;  // besides the folders that are always allowed
  bool csv_headings = false;                         // csv files of --in have a line of headings
  std::string csv;                                   // how they are read (csv_options.h)
  bool convert = false;                              // files of --in become what inputs hold
};

struct RunCommand {
  CommonOptions common;
  std::vector<std::string> in, set, out;  // NAME=FILE, NAME=VALUE, NAME=FILE
  std::vector<std::string> show, watch;
  std::string progress = "auto";
  std::string log, plot;                  // files that watched values are written to
  std::string save_state, every, resume;  // folders, and how often
  std::string format = "text";
  std::string backend = "native", device = "cpu";
  int opt_level = 2;
  int threads = 0;
  std::string cpu = "native";
  std::string mesh, shard;  // several ranks; empty: one
  bool check_overflow = false;
  std::string trap;  // `nan`: stop at a cell that is not finite
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
  std::vector<std::string> in, set;  // as for `run`; --set also gives extents
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
  std::vector<std::string> in, set, out;  // as for `run`; inputs that are not given are made up
  std::vector<std::string> show;
  std::string format = "text", device = "cpu";
  std::string direction = "auto";
  std::string grad_memory;
  std::string precision = "f32";
  int opt_level = 2;
  int threads = 0;
  int repeat = 0;  // 0: a second's worth
  bool no_peaks = false;
  std::vector<std::string> tune;  // NAME=NUMBER, of base/tuning.def
};

Device device_named(const std::string& name);  // one that --device accepts

struct CheckCommand {
  CommonOptions common;
  std::vector<std::string> in;  // NAME=FILE: only the rank is read
  bool facts = false;
  bool strict = false;
  std::string format = "text";  // of --facts
  std::string grad_memory;      // as for `run`: the plan is among the facts
};

struct GradCommand {
  CommonOptions common;
  std::vector<std::string> in;  // as for `check`
  std::string of;
  std::vector<std::string> wrt;
  std::string direction = "auto";  // --grad-mode
  bool all = false;                // the whole program
};

struct GradcheckCommand {
  CommonOptions common;
  std::vector<std::string> in, set;  // as for `run`; inputs that are not given are made up
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
  CommonOptions common;  // how diagnostics look
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
  std::string html;  // a page instead
};

struct AuditCommand {
  CommonOptions common;
  std::vector<std::string> in;
  bool deny = false;
  std::string format = "text";
  std::string html;  // a page instead
};

struct TestCommand {
  std::vector<std::string> files;  // empty: every .ein file below the current folder
  std::string backend = "native";
  bool no_cache = false;
  CommonOptions common;  // how diagnostics look
};

struct DocCommand {
  std::vector<std::string> files;
  bool library = false;  // the standard library instead
  std::string out;       // a folder for pages; empty: to standard output
  std::string format = "markdown";
  CommonOptions common;  // how diagnostics look
};

struct NewCommand {
  CommonOptions common;
  std::string name;
};

struct ReplCommand {
  CommonOptions common;
  std::vector<std::string> files;  // entered first
  std::string backend = "native";
  bool no_cache = false;
};

struct LspCommand {
  CommonOptions common;
  bool stdio = false;  // what clients pass by habit
};

struct ExploreCommand {
  CommonOptions common;
  int port = 0;
  std::string page;
  bool answers = false;  // the process that answers (answers.h)
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

// A program read and compiled, its diagnostics already on standard error.
struct Program {
  SourceMap sources;
  FileId root;  // of the program itself
  Diagnostics diags;
  Compiled compiled;
  CompileOptions options;  // that it was compiled with
  std::shared_ptr<const FileAccess> access;
  int status = kFine;  // kUsage: the file cannot be read; kProgramWrong: it has errors
};
struct LoadOptions {
  ExtraRequest extra;
  bool tests = false;
  bool strict = false;
  bool doc_examples = false;       // examples in doc comments are tests too
  std::vector<std::string> in;     // NAME=FILE: inputs, for those whose type leaves the rank open
  std::string direction = "auto";  // of derivatives: forward, reverse, or the cheaper one
  bool keep_asked = false;
  autodiff::Record* record = nullptr;
  bool runs = false;  // the verb runs the program, so it prints native passes itself
  std::optional<uint64_t> grad_memory = {};  // for the native passes that are printed here
};
Program load(const CommonOptions& options, const LoadOptions& what = {});
// Prints what `--dump-after` asks for if it is a native pass; a status after a failure.
std::optional<int> dump_native(core::Module& m, const core::Inputs& inputs,
                               const RunOptions& options, const CommonOptions& common);

// A source by the name messages give it. `status` is kUsage, and the reason on standard error, when
// it cannot be read.
struct Text {
  std::string name, text;
  int status = kFine;
};
Text read_source(const CommonOptions& options);
struct Pair {
  std::string name, value;
};
// A value of the program; invalid, and what to say about it, when there is none.
core::FamilyId find_value(const core::Module& m, const std::string& name, std::string& problem);
// The paths of the parts of a record; empty when there is no record of that name.
std::vector<std::string> parts_of(const core::Module& m, const std::string& name);
// What files call a part of the record of that name.
std::string member_name(const core::Family& part, const std::string& record);
// The values that `--show` asks for; a record is shown part by part.
std::vector<std::string> shown_parts(const core::Module& m, const std::vector<std::string>& names);
// Of the same, those that have derivatives, by the names of their families.
std::vector<std::string> float_parts(const core::Module& m, const std::vector<std::string>& names);
// Fills `inputs` from --in and --set; the exit status when something is wrong.
// With `later`, files from which rows can be read are put there, with their name, and not read.
std::optional<int> read_inputs(const std::vector<std::string>& in,
                               const std::vector<std::string>& set, const core::Module& m,
                               core::Inputs& inputs, const CommonOptions& common,
                               std::map<std::string, RowFile>* later = nullptr);
// The targets of --out; the exit status when one cannot be written.
std::optional<int> read_outputs(const std::vector<std::string>& out, std::vector<Pair>& targets);
DType operands_named(const std::string& precision);
// `--mesh` and `--shard`; a status if they make no sense.
std::optional<int> read_mesh(const std::string& mesh, const std::string& rules,
                             const CommonOptions& common, shard::Spec& spec);
// The value of --grad-memory; the exit status when it is wrong.
std::optional<int> read_grad_memory(const std::string& text, std::optional<uint64_t>& bytes);
// `--tune NAME=NUMBER`
std::optional<int> read_tuning(const std::vector<std::string>& written, Tuning& out);
std::optional<Pair> split(const std::string& text);  // NAME=VALUE
// The tensor to take from a file with several: the one named like the input; empty:
// there is only one.
std::string member_for(const Pair& given, const CommonOptions& options);
std::optional<std::string> read_file(const std::string& path);
// Returns the exit status; why it could not be written is on standard error.
int write_file(const std::string& path, const std::string& text);
// What the program may read and write: its folder, the current one, and what options name. `wrong`
// is the exit status when they name nothing.
std::shared_ptr<const FileAccess> access_of(const CommonOptions& options,
                                            std::optional<int>& wrong);
void print_times(const Trace& trace);  // of passes, on standard error
RenderOptions render_options(const CommonOptions& options);
void show_diagnostics(const Diagnostics& diags, const SourceMap& sources,
                      const CommonOptions& options);

// Makes `args` begin with a verb or `--help`, and repeats options for further pairs; a status, and
// the reason on standard error, when the first word is neither a verb nor a file.
std::optional<int> read_verb(std::vector<std::string>& args, const std::vector<std::string>& verbs);
// Reports words that the verb does not take; `options` are those that it has.
int unexpected_words(const std::string& verb, const std::vector<std::string>& words,
                     const std::vector<std::string>& options);
int usage_error(const std::string& message);
void show_thread_note();  // after a run: fewer threads could be started than were asked for
void report_faults();     // of this thread: signals such as SIGSEGV are reported, with status 70
// A failure while the program ran, like any other diagnostic; without `sources` it has no place.
int runtime_error(const RuntimeError& error, const CommonOptions& options,
                  const SourceMap* sources = nullptr, const std::string& help = {});
// After a run without an input: how to supply it. Empty after other failures.
std::string how_to_supply(const core::Module& m, const core::Inputs& given,
                          const RuntimeError& error);
std::string place_text(const SourceMap& sources, Span at);  // file:line:col

}  // namespace ein::cli

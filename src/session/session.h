// A session: named definitions that grow entry by entry, as at a prompt or in a notebook.
//
// Each entry is compiled as a program that continues the definitions before it (sema/earlier.h). A
// definition with an existing name replaces the old one, and everything that depends on it is
// computed again. An entry that is wrong, fails or is interrupted changes nothing. Values are
// computed once (values.h), and compiled code comes from the cache.
//
// An earlier definition that does not fit a new one is forgotten, and the reply says so: the newer
// entry wins.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/render.h"
#include "driver/run.h"
#include "ide/analysis.h"
#include "runtime/paths.h"
#include "session/reading.h"
#include "session/values.h"

namespace ein::session {

// The exit statuses of the command line (cli/cli.h).
enum Status : uint8_t { kFine = 0, kWrong = 1, kUsage = 2, kFailed = 3, kStopped = 130 };

struct Options {
  RenderOptions render;  // how diagnostics are displayed
  Backend backend = Backend::Native;
  ImageCache* cache = nullptr;
  // Null: the session may read and write any file.
  std::shared_ptr<const FileAccess> access = nullptr;
};

// The texts of modules and headers of data files as they were when first read: a definition keeps
// its meaning until it is entered again.
struct Seen {
  std::map<std::string, std::string> modules;
  std::map<std::string, sema::FoundFile> files;
};

struct State {
  Pieces pieces;  // oldest first
  KeptValues kept;
  Seen seen;
};

struct Session {
  Options options;
  State state = {};
  std::deque<State> before = {};  // states for `:undo`, the newest at the end
  int entries = 0;                // how many entries have been numbered
};

// A definition that was made by an entry, or computed again because of it.
struct Defined {
  std::string name, type, value;        // `value` only if it is short
  bool again = false, large = false;    // it was computed again; it is too large to be kept
  std::vector<std::string> waits = {};  // the inputs it depends on that have no value yet
};

struct Reply {
  int status = kFine;
  std::string text;      // written to standard output
  std::string problems;  // written to standard error: errors, warnings, what was forgotten
  std::vector<Defined> defined = {};
  bool quit = false;
  // What was made on the way. Dropping it takes time; whoever shows the reply first can do so while nobody waits.
  std::shared_ptr<const void> spent = nullptr;
};

// How a caller watches and stops a run. `stop` is also asked between passes of the compiler.
struct Watching {
  Monitor* monitor = nullptr;
  std::function<bool()> stop = {};
};

// Enters definitions and statements, or a command such as `:type x`. `name` is what messages call
// the entry; if it is empty, the entry's number.
Reply enter(Session& s, const std::string& text, const Watching& watching = {},
            std::string name = {});
// Runs a command. The line begins with `:` and its name.
Reply run_command(Session& s, const std::string& line, const Watching& watching);
std::vector<std::string> command_names();
// The definitions of the session as one program.
std::string program_text(const State& state);

// ---- for line editors and notebooks

struct Suggestion {
  std::string text, detail;
  uint32_t begin = 0, end = 0;  // the bytes of the entry that the completion replaces
};
std::vector<Suggestion> complete(const Session& s, const std::string& text, uint32_t offset);
// Markdown about the name at this position; empty if nothing is known.
std::string inspect(const Session& s, const std::string& text, uint32_t offset);
// The value of a definition, if it has one.
std::optional<Tensor> value_of(const Session& s, const std::string& name);

// ---- within this folder

// The documents for compiling an entry: its text, and the definitions of `state` before it.
ide::Documents documents_of(State& state, const Options& options, bool fresh_files);
std::string rendered(const Diagnostics& diags, const SourceMap& sources, const Options& options);
void remember(Session& s);  // saves the state for `:undo`

}  // namespace ein::session

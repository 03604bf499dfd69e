// A session: a set of definitions by name that grows entry by entry, as at a prompt or in a notebook.
//
// An entry is compiled as a program that goes on from the definitions before it (sema/earlier.h). A definition with an
// old name replaces the old one, and what depended on that is computed again. An entry that is wrong, fails or is
// stopped changes nothing. Values are computed once (values.h), and compiled code comes from the cache.
//
// A definition that does not fit a new one any more is forgotten, and the reply says so: the new entry counts.
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

// As the command line's (cli/cli.h).
enum Status : uint8_t { kFine = 0, kWrong = 1, kUsage = 2, kFailed = 3, kStopped = 130 };

struct Options {
  RenderOptions render;  // how mistakes look
  Backend backend = Backend::Native;
  ImageCache* cache = nullptr;
  std::shared_ptr<const FileAccess> access = nullptr;  // null: the session is trusted
};

// What the texts of modules and the headers of data were when they were first read: a definition keeps its meaning
// until it is entered again.
struct Seen {
  std::map<std::string, std::string> modules;
  std::map<std::string, sema::FoundFile> files;
};

struct State {
  Pieces pieces;  // the oldest first
  KeptValues kept;
  Seen seen;
};

struct Session {
  Options options;
  State state = {};
  std::deque<State> before = {};  // for `:undo`, the last one at the end
  int entries = 0;                // that were given a number
};

// A definition that an entry made, or that was computed again because of it.
struct Defined {
  std::string name, type, value;        // `value` only where it is short
  bool again = false, large = false;    // computed again; too large to be kept
  std::vector<std::string> waits = {};  // for these inputs, which have no value
};

struct Reply {
  int status = kFine;
  std::string text;      // for standard output
  std::string problems;  // for standard error: mistakes, warnings, what was forgotten
  std::vector<Defined> defined = {};
  bool quit = false;
  // What was made on the way. Dropping it takes time; whoever shows the reply first can do so while nobody waits.
  std::shared_ptr<const void> spent = nullptr;
};

// What a run is watched by. `stop` is asked between passes of the compiler.
struct Watching {
  Monitor* monitor = nullptr;
  std::function<bool()> stop = {};
};

// Enters definitions and statements, or a command such as `:type x`. `name` is what messages call the entry; empty:
// its number.
Reply enter(Session& s, const std::string& text, const Watching& watching = {},
            std::string name = {});
// A command, `:` and its name first.
Reply run_command(Session& s, const std::string& line, const Watching& watching);
std::vector<std::string> command_names();
// The text of the session as a program.
std::string program_text(const State& state);

// ---- for line editors and notebooks

struct Suggestion {
  std::string text, detail;
  uint32_t begin = 0, end = 0;  // the bytes of the entry that it replaces
};
std::vector<Suggestion> complete(const Session& s, const std::string& text, uint32_t offset);
// What is known of the name at a place, as Markdown; empty: nothing.
std::string inspect(const Session& s, const std::string& text, uint32_t offset);
// The value of a definition.
std::optional<Tensor> value_of(const Session& s, const std::string& name);

// ---- within this folder

// The entry as a program, with the definitions of `state`.
ide::Documents documents_of(State& state, const Options& options, bool fresh_files);
std::string rendered(const Diagnostics& diags, const SourceMap& sources, const Options& options);
void remember(Session& s);  // what `:undo` goes back to

}  // namespace ein::session

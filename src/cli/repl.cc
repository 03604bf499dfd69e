// `ein repl`: the prompt. Here lines are collected into entries, and replies are shown; the session
// decides what an entry does (session/session.h).
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/cli.h"
#include "cli/interrupts.h"
#include "cli/line_editor.h"
#include "driver/cache.h"
#include "session/session.h"

namespace ein::cli {
namespace {

struct Prompt {
  session::Session session;
  bool typed = false;  // a person types at a terminal
  size_t lines = 0;    // lines read so far
  std::string entry;   // the unfinished entry
  size_t first = 0;    // the line on which it begins
  bool block = false;  // between `:{` and `:}`
  bool over = false;
  int status = kFine;
  std::shared_ptr<const void> spent = nullptr;  // of the last entry
};

void show_reply(Prompt& p, const session::Reply& reply) {
  put_error(reply.problems);
  put(reply.text);
  if (reply.status == session::kStopped) put_error("stopped; nothing has changed\n");
  flush_output();
  p.over = reply.quit;
  if (!p.typed && reply.status != session::kFine) {
    p.status = reply.status;
    p.over = true;
  }
}

void take(Prompt& p) {
  p.block = false;
  std::string text = std::move(p.entry);
  p.entry.clear();
  session::Reply reply;
  {
    PromptMonitor monitor;
    session::Watching watching{&monitor, interrupted};
    if (p.typed) {
      reply = session::enter(p.session, text, watching);
    } else {  // a script: messages refer to its lines
      bool command = text.find_first_not_of(" \t\n") == text.find(':');
      std::string before = command ? "" : std::string(p.first - 1, '\n');
      reply = session::enter(p.session, before + text, watching, "<standard input>");
    }
  }
  forget_interrupt();
  show_reply(p, reply);
  p.spent = std::move(reply.spent);
}

bool ends_itself(const std::string& entry) {
  size_t last = entry.find_last_not_of(" \t\n");
  return last != std::string::npos && (entry[last] == ';' || entry[last] == '}');
}

std::string without_blanks(const std::string& line) {
  size_t begin = line.find_first_not_of(" \t"), end = line.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : line.substr(begin, end + 1 - begin);
}

// Adds a line to a block. False if it is not part of one.
bool in_block(Prompt& p, const std::string& line) {
  if (!p.block && p.entry.empty() && without_blanks(line) == ":{") {
    p.block = true;
    p.first = p.lines + 1;
  } else if (p.block && without_blanks(line) == ":}") {
    take(p);
  } else if (p.block) {
    p.entry += line + "\n";
  } else {
    return false;
  }
  return true;
}

// Adds a line. Typed text is entered as soon as it is complete. In pasted text or a script, the
// next line may still belong to the entry, unless the entry ends with `;` and is not a clause that
// more clauses of the same value may follow.
void add_line(Prompt& p, const TypedLine& line) {
  if (p.block) {
    in_block(p, line.text);
    return;
  }
  bool begun = session::read_entry(p.entry) != session::Reading::Nothing;
  if (begun && session::read_entry(p.entry) == session::Reading::Finished &&
      !session::goes_on(line.text) && !session::more_clauses(p.entry, line.text)) {
    take(p);
    if (p.over) return;
  }
  if (in_block(p, line.text)) return;
  if (p.entry.empty()) p.first = p.lines;
  p.entry += (p.entry.empty() ? "" : "\n") + line.text;
  switch (session::read_entry(p.entry)) {
    case session::Reading::Nothing: p.entry.clear(); return;
    case session::Reading::Unfinished:
      // An empty line ends an unfinished entry.
      if (p.typed && !line.more && line.text.find_first_not_of(" \t") == std::string::npos) take(p);
      return;
    case session::Reading::Finished: break;
  }
  bool command = p.entry.find_first_not_of(" \t\n") == p.entry.find(':');
  bool alone = p.typed && !line.more;  // the next line is not known yet
  bool ended = ends_itself(p.entry) && !session::ends_with_clause(p.entry);
  if (alone || command || ended) take(p);
}

std::vector<LineEditor::Choice> choices_of(const Prompt& p, const std::string& line,
                                           size_t cursor) {
  std::string before = p.entry.empty() ? "" : p.entry + "\n";
  auto at = static_cast<uint32_t>(before.size() + cursor);
  std::vector<LineEditor::Choice> out;
  for (session::Suggestion& s : session::complete(p.session, before + line, at)) {
    out.push_back({std::move(s.text), std::move(s.detail), at - s.begin});
  }
  return out;
}

void read_lines(Prompt& p) {
  std::string folder = p.typed ? state_folder() : "";
  LineEditor editor(
      folder.empty() ? "" : folder + "/history",
      [&p](const std::string& line, size_t cursor) { return choices_of(p, line, cursor); },
      [&p] { p.spent.reset(); });
  if (p.typed && !editor.note().empty()) put_error("note: " + editor.note() + "\n");
  while (!p.over) {
    TypedLine line = editor.read(p.entry.empty() && !p.block ? "> " : ". ");
    if (line.kind == TypedLine::Kind::Interrupted) {
      forget_interrupt();
      p.entry.clear();
      p.block = false;
      if (!p.typed) {
        p.status = kInterrupted;
        return;
      }
      continue;
    }
    if (line.kind == TypedLine::Kind::End) {
      if (session::read_entry(p.entry) != session::Reading::Nothing) take(p);
      if (p.typed && !p.over) put("\n");
      return;
    }
    ++p.lines;
    add_line(p, line);
  }
}

}  // namespace

int repl_verb(const ReplCommand& command) {
  std::optional<int> wrong;
  Prompt p;
  CommonOptions common = command.common;
  session::Options& options = p.session.options;
  options.access = access_of(common, wrong);
  if (wrong) return *wrong;
  options.render = render_options(common);
  if (command.backend == "ref") options.backend = Backend::Reference;
  std::string note;
  std::unique_ptr<DiskCache> cache = command.no_cache ? nullptr : open_cache(&note);
  if (!note.empty()) print_error("note: {}\n", note);
  options.cache = cache.get();
  p.typed = isatty(STDIN_FILENO) != 0;
  watch_interrupts();
  if (p.typed)
    print_out("ein {}  :help lists the commands, Ctrl-D ends the session\n", EIN_VERSION);
  for (const std::string& file : command.files) {
    PromptMonitor monitor;
    session::Reply reply =
        session::run_command(p.session, ":load " + file, {&monitor, interrupted});
    forget_interrupt();
    show_reply(p, reply);
    if (reply.status != session::kFine) return reply.status;
  }
  read_lines(p);
  return p.status;
}

}  // namespace ein::cli

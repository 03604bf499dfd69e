#include "cli/line_editor.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/render.h"
#include "cli/interrupts.h"
#include "runtime/files.h"
#include "runtime/streams.h"

namespace ein::cli {
namespace libedit {

// The declarations of <histedit.h>. The header itself is not used: where it is installed, LLVM's
// CMake files look for more than this build has.
struct EditLine;
struct History;
struct HistEvent {
  int num;
  const char* str;
};
struct LineInfo {
  const char *buffer, *cursor, *lastchar;
};
enum : int {
  kPrompt = 0,
  kEditor = 2,
  kSignal = 3,
  kBind = 4,
  kAddFunction = 9,
  kHistory = 10,
  kGetCharacter = 13,
  kPrepareTerminal = 16
};
enum : int { kSetSize = 1, kEnter = 10, kSetUnique = 20 };
enum : unsigned char { kRefresh = 4, kRedisplay = 8, kBeep = 9 };

}  // namespace libedit

using namespace libedit;

namespace {

constexpr size_t kMostHistory = 2000;
constexpr size_t kMostChoices = 60;

// Waits for a byte. False after Ctrl-C, or at the end.
bool next_byte(unsigned char& byte, const std::function<void()>& resized) {
  for (;;) {
    if (interrupted()) return false;
    if (take_resize()) resized();
    if (!wait_for_input()) continue;
    ssize_t got = ::read(STDIN_FILENO, &byte, 1);
    if (got == 1) return true;
    if (got < 0 && errno == EINTR) continue;
    return false;
  }
}

bool input_waits() {
  pollfd wait{STDIN_FILENO, POLLIN, 0};
  return poll(&wait, 1, 0) == 1 && (wait.revents & POLLIN) != 0;
}

size_t width_of(const std::string& text) {
  size_t out = 0;
  for (size_t i = 0; i < text.size();) {
    auto byte = static_cast<unsigned char>(text[i]);
    size_t length = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    char32_t c = byte < 0x80 ? byte : byte & (0xFF >> (length + 1));
    for (size_t k = 1; k < length && i + k < text.size(); ++k) {
      c = c << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3F);
    }
    out += static_cast<size_t>(display_width(c));
    i += length;
  }
  return out;
}

size_t terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

// In columns, as a shell lists files.
void list_choices(const std::vector<LineEditor::Choice>& choices) {
  size_t widest = 0, count = std::min(choices.size(), kMostChoices);
  for (size_t i = 0; i < count; ++i) widest = std::max(widest, width_of(choices[i].text));
  size_t columns = std::max<size_t>(1, terminal_width() / (widest + 2));
  std::string out = "\n";
  for (size_t i = 0; i < count; ++i) {
    bool last = i + 1 == count || (i + 1) % columns == 0;
    out += choices[i].text;
    out += last ? "\n" : std::string(widest + 2 - width_of(choices[i].text), ' ');
  }
  if (choices.size() > count) out += fmt::format("and {} more\n", choices.size() - count);
  std::fputs(out.c_str(), stdout);
  std::fflush(stdout);
}

std::string common_start(const std::vector<LineEditor::Choice>& choices) {
  std::string out = choices[0].text;
  for (const LineEditor::Choice& c : choices) {
    size_t k = 0;
    while (k < out.size() && k < c.text.size() && out[k] == c.text[k]) ++k;
    out.resize(k);
  }
  return out;
}

}  // namespace

struct LineEditor::Library {
  EditLine* (*init)(const char*, FILE*, FILE*, FILE*) = nullptr;
  void (*end)(EditLine*) = nullptr;
  const char* (*gets)(EditLine*, int*) = nullptr;
  int (*set)(EditLine*, int, ...) = nullptr;
  int (*get)(EditLine*, int, ...) = nullptr;
  void (*resize)(EditLine*) = nullptr;
  void (*reset)(EditLine*) = nullptr;
  const LineInfo* (*line)(EditLine*) = nullptr;
  int (*insert)(EditLine*, const char*) = nullptr;
  void (*remove)(EditLine*, int) = nullptr;
  int (*source)(EditLine*, const char*) = nullptr;
  History* (*history_init)() = nullptr;
  void (*history_end)(History*) = nullptr;
  int (*history)(History*, HistEvent*, int, ...) = nullptr;

  bool open() {
    void* from = dlopen("libedit.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!from) return false;
    auto take = [&](auto& to, const char* name) {
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(from, name));
      return to != nullptr;
    };
    return take(init, "el_init") && take(end, "el_end") && take(gets, "el_gets") &&
           take(set, "el_set") && take(get, "el_get") && take(resize, "el_resize") &&
           take(reset, "el_reset") && take(line, "el_line") && take(insert, "el_insertstr") &&
           take(remove, "el_deletestr") && take(source, "el_source") &&
           take(history_init, "history_init") && take(history_end, "history_end") &&
           take(history, "history");
  }
};

struct LineEditor::Self {
  Library library;
  EditLine* editor = nullptr;
  History* history = nullptr;
  Complete complete;
  std::function<void()> idle;
  std::string prompt;
};

namespace {

// libedit calls the prompt function without any argument of ours.
LineEditor::Self* g_self = nullptr;

const char* prompt_of(EditLine*) { return g_self->prompt.c_str(); }

// One character from UTF-8.
int next_character(EditLine* editor, wchar_t* out) {
  auto resized = [&] { g_self->library.resize(editor); };
  unsigned char first = 0;
  g_self->idle();
  if (!next_byte(first, resized)) return interrupted() ? -1 : 0;
  int further = first < 0x80 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
  auto c = static_cast<char32_t>(further == 0 ? first : first & (0x3F >> further));
  for (int k = 0; k < further; ++k) {
    unsigned char more = 0;
    if (!next_byte(more, resized)) return interrupted() ? -1 : 0;
    c = c << 6 | (more & 0x3F);
  }
  *out = static_cast<wchar_t>(c);
  return 1;
}

unsigned char complete_word(EditLine* editor, int) {
  const LineEditor::Library& library = g_self->library;
  const LineInfo* info = library.line(editor);
  std::string line(info->buffer, info->lastchar);
  auto cursor = static_cast<size_t>(info->cursor - info->buffer);
  if (line.find_first_not_of(" \t") >= cursor) {  // nothing precedes the cursor, so Tab indents
    library.insert(editor, "  ");
    return kRefresh;
  }
  std::vector<LineEditor::Choice> choices = g_self->complete(line, cursor);
  if (choices.empty()) return kBeep;
  std::string start = common_start(choices);
  size_t replaced = choices[0].replaced;
  std::string typed = line.substr(cursor - replaced, replaced);
  if (start.size() > typed.size() && start.starts_with(typed)) {
    library.insert(editor, start.substr(typed.size()).c_str());
    return kRefresh;
  }
  if (choices.size() == 1) return kRefresh;
  list_choices(choices);
  return kRedisplay;
}

}  // namespace

LineEditor::LineEditor(std::string history, Complete complete, std::function<void()> idle)
    : history_path_(std::move(history)), self_(std::make_unique<Self>()) {
  self_->complete = std::move(complete);
  self_->idle = std::move(idle);
  const char* terminal = std::getenv("TERM");
  bool edits = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  if (!edits || !terminal || std::strcmp(terminal, "dumb") == 0) return;
  std::setlocale(LC_CTYPE, "");
  if (MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
  Library& library = self_->library;
  if (!library.open()) {
    note_ = "lines cannot be edited: there is no libedit.so.2 (Debian's package libedit2)";
    return;
  }
  self_->editor = library.init("ein", stdin, stdout, stderr);
  if (!self_->editor) {
    note_ = fmt::format("lines cannot be edited on a terminal of type `{}`", terminal);
    return;
  }
  g_self = self_.get();
  EditLine* e = self_->editor;
  library.set(e, kPrompt, prompt_of);
  library.set(e, kEditor, "emacs");
  library.set(e, kSignal, 0);
  library.set(e, kGetCharacter, next_character);
  library.set(e, kAddFunction, "ein-complete", "completes the name before the cursor",
              complete_word);
  library.set(e, kBind, "^I", "ein-complete", nullptr);
  library.set(e, kBind, "^R", "em-inc-search-prev", nullptr);
  library.set(e, kBind, "^W", "ed-delete-prev-word", nullptr);
  library.source(e, nullptr);  // the user's ~/.editrc
  HistEvent event{};
  self_->history = library.history_init();
  library.history(self_->history, &event, kSetSize, static_cast<int>(kMostHistory));
  library.history(self_->history, &event, kSetUnique, 1);
  library.set(e, kHistory, library.history, self_->history);
  std::string known = history_path_.empty() ? "" : read_text(history_path_).value_or("");
  for (size_t at = 0; at < known.size();) {
    size_t end = std::min(known.find('\n', at), known.size());
    std::string line = known.substr(at, end - at);
    if (!line.empty()) library.history(self_->history, &event, kEnter, line.c_str());
    at = end + 1;
  }
}

LineEditor::~LineEditor() {
  if (self_->editor) {
    self_->library.history_end(self_->history);
    self_->library.end(self_->editor);
    g_self = nullptr;
  }
}

void LineEditor::remember(const std::string& line) {
  if (line.find_first_not_of(" \t") == std::string::npos) return;
  if (self_->editor) {
    HistEvent event{};
    self_->library.history(self_->history, &event, kEnter, line.c_str());
  }
  if (history_path_.empty() || !self_->editor) return;
  // Written at once, so that nothing is lost and two sessions can share the file.
  if (FILE* file = std::fopen(history_path_.c_str(), "a")) {
    std::fputs((line + "\n").c_str(), file);
    std::fclose(file);
  }
}

TypedLine LineEditor::read(const std::string& prompt) {
  TypedLine out;
  flush_output();
  if (self_->editor) {
    self_->prompt = prompt;
    int count = 0;
    self_->library.set(self_->editor, kPrepareTerminal,
                       1);  // before the prompt appears
    const char* line = self_->library.gets(self_->editor, &count);
    if (interrupted()) {
      self_->library.reset(self_->editor);  // a key that sends several characters may be half read
      std::fputs("^C\n", stdout);
      std::fflush(stdout);
      out.kind = TypedLine::Kind::Interrupted;
      return out;
    }
    if (!line || count <= 0) return out;
    out.text.assign(line, static_cast<size_t>(count));
  } else {
    if (isatty(STDIN_FILENO) != 0) {
      std::fputs(prompt.c_str(), stdout);
      std::fflush(stdout);
    }
    unsigned char byte = 0;
    bool any = false;
    self_->idle();
    while (next_byte(byte, [] {})) {
      any = true;
      out.text += static_cast<char>(byte);
      if (byte == '\n') break;
    }
    if (interrupted()) {
      out.kind = TypedLine::Kind::Interrupted;
      return out;
    }
    if (!any) return out;
  }
  if (!out.text.empty() && out.text.back() == '\n') out.text.pop_back();
  if (!out.text.empty() && out.text.back() == '\r') out.text.pop_back();
  out.kind = TypedLine::Kind::Text;
  out.more = input_waits();
  remember(out.text);
  return out;
}

std::string state_folder() {
  const char* named = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  std::string out;
  if (named && *named == '/') {
    out = named;
  } else if (home && *home) {
    out = std::string(home) + "/.local/state";
  }
  if (out.empty()) return "";
  out += "/einlang";
  std::error_code error;
  std::filesystem::create_directories(out, error);
  return std::filesystem::is_directory(out, error) ? out : "";
}

}  // namespace ein::cli

// Reads lines from a person or a file. On a terminal, libedit edits them if its library is
// installed: it is opened when it is first needed, so that nothing else depends on it. Otherwise
// lines are read as they are.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ein::cli {

struct TypedLine {
  enum class Kind : uint8_t { Text, End, Interrupted } kind = Kind::End;
  std::string text;   // without its newline
  bool more = false;  // more input is already waiting
};

class LineEditor {
 public:
  // A possible completion of the end of a line; it replaces the last `replaced` bytes.
  struct Choice {
    std::string text, detail;
    size_t replaced = 0;
  };
  using Complete = std::function<std::vector<Choice>(const std::string& line, size_t cursor)>;

  // `history`: a file, one line each; empty: none is kept.
  // `idle` is called when the prompt stands there and nothing was typed yet.
  LineEditor(std::string history, Complete complete, std::function<void()> idle);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  TypedLine read(const std::string& prompt);
  // Why lines cannot be edited; empty if they can.
  const std::string& note() const { return note_; }

  struct Library;
  struct Self;  // state for the functions that libedit calls

 private:
  void remember(const std::string& line);

  std::string history_path_, note_;
  std::unique_ptr<Self> self_;
};

// $XDG_STATE_HOME/einlang or ~/.local/state/einlang; created if needed. Empty if that is not
// possible.
std::string state_folder();

}  // namespace ein::cli

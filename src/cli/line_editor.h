// Lines from whoever types them. On a terminal libedit edits them, if its library is there: it is opened when it is
// first needed, so that nothing else depends on it. Otherwise lines are read as they come.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ein::cli {

struct TypedLine {
  enum class Kind : uint8_t { Text, End, Interrupted } kind = Kind::End;
  std::string text;   // without its newline
  bool more = false;  // more was typed or pasted already
};

class LineEditor {
 public:
  // What may stand at the end of a line; each replaces its last `replaced` bytes.
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
  // Why lines cannot be edited; empty when they can.
  const std::string& note() const { return note_; }

  struct Library;
  struct Self;  // what the functions that libedit calls see

 private:
  void remember(const std::string& line);

  std::string history_path_, note_;
  std::unique_ptr<Self> self_;
};

// $XDG_STATE_HOME/einlang, else ~/.local/state/einlang, which is made; empty when it cannot be.
std::string state_folder();

}  // namespace ein::cli

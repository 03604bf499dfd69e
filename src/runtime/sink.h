// Where text that a program prints or writes goes: to the standard streams and to disk, unless the
// thread has a sink. Notebooks and other programs that embed ours have standard streams of their
// own.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace ein {

struct Sink {
  std::function<void(std::string_view text, bool error)> write;
  // Returns true if it took the text; then nothing is written to disk. May be empty.
  std::function<bool(const std::string& path, const std::string& text)> file;
};

// The sink of this thread, or null.
const Sink* current_sink();

// Makes `sink` this thread's sink for the lifetime of the scope.
class SinkScope {
 public:
  explicit SinkScope(const Sink& sink);
  ~SinkScope();
  SinkScope(const SinkScope&) = delete;
  SinkScope& operator=(const SinkScope&) = delete;

 private:
  const Sink* before_;
};

}  // namespace ein

// Where text goes that a program prints or writes: to the standard streams and to disk, unless the thread has a
// sink. Notebooks and other programs that run ours have standard streams of their own.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace ein {

struct Sink {
  std::function<void(std::string_view text, bool error)> write;
  // True: taken, nothing is written to disk. May be empty.
  std::function<bool(const std::string& path, const std::string& text)> file;
};

// The sink of this thread; null when it has none.
const Sink* current_sink();

// `sink` is this thread's as long as this lives.
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

// Answers the playground's requests (web/web.h) with native code, in a process of its own, so that
// a program that never ends or takes all memory harms nobody: that process is killed, and a new one
// answers the next request.
#pragma once

#include <mutex>
#include <string>

namespace ein::cli {

// The main function of that process: requests on standard input, answers on standard output, each
// after a line with its length.
int answer_requests(const std::string& file);

class Answers {
 public:
  explicit Answers(std::string file) : file_(std::move(file)) {}
  ~Answers();
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  // Waits for its turn. A request that was stopped gets an answer that says so.
  std::string answer(const std::string& request);
  void stop();  // stops the request that is being answered

 private:
  bool start();
  void end();

  std::string file_;
  std::mutex turn_;   // held while a request is answered
  std::mutex child_;  // guards the process
  int pid_ = -1, in_ = -1, out_ = -1;
  bool stopped_ = false;
};

}  // namespace ein::cli

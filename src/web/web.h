// The compiler behind one function, `answer`: takes a request in JSON and returns an answer in
// JSON. A page calls it in WebAssembly, with the reference evaluator; `ein explore` calls it
// natively. Nothing here reads files or prints: what a program writes is part of the answer
// (docs/playground.md lists requests and answers).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "driver/library.h"
#include "driver/run.h"
#include "sema/file_lookup.h"

namespace ein::web {

// What the caller provides in addition to the texts in a request.
struct Surroundings {
  Backend backend = Backend::Reference;
  ReadFile read_file = {};                                       // modules
  std::function<sema::FileLookup(const SourceMap&)> files = {};  // answers `load`
  std::string name = "program.ein";  // the program's name, if the request has none
  std::string version = {};
};

// State between requests: the language server.
class Session {
 public:
  explicit Session(Surroundings surroundings);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Never throws. An invalid request gets an answer with status 2 and a reason.
  std::string answer(const std::string& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ein::web

// The compiler behind one function, `answer`: a request in JSON in, an answer in JSON out. A page calls it in
// WebAssembly, with the reference evaluator; `ein explore` calls it natively. Nothing here reads files or prints by
// itself: what a program writes is part of the answer (docs/playground.md lists requests and answers).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "driver/library.h"
#include "driver/run.h"
#include "sema/file_lookup.h"

namespace ein::web {

// What a caller has besides the texts of a request.
struct Surroundings {
  Backend backend = Backend::Reference;
  ReadFile read_file = {};                                       // modules
  std::function<sema::FileLookup(const SourceMap&)> files = {};  // what `load` finds
  std::string name = "program.ein";                              // of a program without another one
  std::string version = {};
};

// What is kept between requests: the language server.
class Session {
 public:
  explicit Session(Surroundings surroundings);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Never throws; a request that is not understood gets an answer with status 2 and a reason.
  std::string answer(const std::string& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ein::web

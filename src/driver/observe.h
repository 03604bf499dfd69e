// The values that a running program shows (`--watch` and the like): the state of the running
// recurrence, locals of its step, and values computed from its steps.
//
// The program itself is compiled as without watching, so its values are the same, bit for bit.
// Steps that it keeps are read from its memory. Everything else is computed by a separate program:
// for `loss[s]`, it contains everything between the state and the loss, with an input in place of
// `s`, and with steps of the state as further inputs. It runs only when a value is shown.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/source.h"
#include "core/core.h"
#include "core/eval.h"
#include "driver/run.h"
#include "runtime/image.h"
#include "runtime/monitor.h"

namespace ein {

// The values that `name` may mean, the likeliest first, or an error message. `asked`: the program
// before autodiff, which still has the locals of steps.
std::variant<Watched, std::string> find_watched(const core::Module& asked, const SourceMap& sources,
                                                const std::string& name);

// A recurrence as a back end runs it: what can be read of it between two steps.
struct RunningSteps {
  struct Member {
    std::string family;
    uint32_t position = 0;  // the coordinate of its steps
  };
  std::string family;  // its name in a Moment
  bool downward = false;
  std::vector<Member> members;
};
std::vector<RunningSteps> running_steps(const Image& image);
std::vector<RunningSteps> running_steps(const core::Module& m,
                                        const std::vector<core::FamilyId>& wanted);

class Observer {
 public:
  // `inputs`: those of the run, except what it reads from `streamed` step by step. `options` says
  // what is watched and how it is computed.
  Observer(const std::vector<RunningSteps>& recurrences, const core::Inputs& inputs,
           const std::map<std::string, RowFile>& streamed, const RunOptions& options);
  ~Observer();
  Observer(Observer&&) = delete;

  // Why something cannot be shown that was asked for; empty if everything can.
  const std::string& refused() const { return refused_; }
  // Adds the values of the last step. Values whose computation fails are left out.
  void look(Moment& now);
  bool failed() const { return failed_; }  // a computation failed at some step

 private:
  struct Running;
  const core::Inputs& inputs_;
  const std::map<std::string, RowFile>& streamed_;
  const RunOptions& options_;
  std::vector<std::unique_ptr<Running>> running_;
  std::vector<int64_t> params_;
  std::string refused_;
  bool failed_ = false;
};

}  // namespace ein

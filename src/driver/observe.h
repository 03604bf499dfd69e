// What a running program is asked to show, `--watch` and the like: the state of the recurrence that
// runs, locals of its step, and values computed from its steps.
//
// The program itself is compiled as if nobody looked, so its values are the same, bit for bit. What
// it keeps of its steps is read where it is kept; the rest is computed from that by a program of its
// own: for `loss[s]`, everything on the way from the state to it with `s` replaced by an input, and
// the steps of the state as further inputs. That runs only when somebody looks.
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

// The values that `name` may mean, likeliest first, or an error message. `asked` is the
// program before autodiff, which has the locals of steps.
std::variant<Watched, std::string> find_watched(const core::Module& asked, const SourceMap& sources,
                                                const std::string& name);

// A recurrence, as a back end runs it: what there is of it between two steps.
struct RunningSteps {
  struct Member {
    std::string family;
    uint32_t position = 0;  // of the steps
  };
  std::string family;  // that a Moment names
  bool downward = false;
  std::vector<Member> members;
};
std::vector<RunningSteps> running_steps(const Image& image);
std::vector<RunningSteps> running_steps(const core::Module& m,
                                        const std::vector<core::FamilyId>& wanted);

class Observer {
 public:
  // `inputs` are those of the run, except for what it reads from `streamed` step by step. `options`
  // says what is watched, and how it is computed.
  Observer(const std::vector<RunningSteps>& recurrences, const core::Inputs& inputs,
           const std::map<std::string, RowFile>& streamed, const RunOptions& options);
  ~Observer();
  Observer(Observer&&) = delete;

  // Why something was asked for that no recurrence of this run shows; empty: there is no such thing.
  const std::string& refused() const { return refused_; }
  // Adds the values of the last step. Those that are computed and fail there are left out.
  void look(Moment& now);
  bool failed() const { return failed_; }  // at some step

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

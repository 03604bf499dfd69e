// ein_run: calls with effects.
//
// Compiling needs a deep stack, so the run gets a thread of its own; callbacks to the caller are
// made on the caller's thread.
#include "driver/run.h"

#include <cstring>
#include <thread>

#include "base/deep_stack.h"
#include "capi/calls.h"
#include "capi/poll.h"
#include "capi/relay.h"
#include "runtime/pool.h"
#include "runtime/sink.h"
#include "runtime/streams.h"

namespace ein::capi {
namespace {

// Runs a program as the command line does (driver/run.h), which copies values and is slower than a
// call.
bool run_with_effects(ein_program& p, const ein_tensor* inputs, const ein_run_options& options,
                      Relay& relay, ein_result& result) {
  core::Inputs given = p.loaded;
  copy_inputs(p, inputs, given);
  RunOptions how;
  how.opt_level = p.opt_level;
  how.operands = p.operands;
  how.cache = p.cache.get();
  if (p.grad_memory > 0) how.grad_memory = p.grad_memory;
  if (!p.way.native && !p.wanted.empty()) how.backend = Backend::Reference;
  for (const auto& o : p.outputs) how.show.push_back(o->name);
  std::optional<CallMonitor> monitor;
  Asking asking{relay, options};
  if (options.poll) how.monitor = &monitor.emplace(ask, &asking);
  Sink sink = sink_of(options, relay);
  ThreadLimit limit(p.threads);
  SinkScope scope(sink);
  core::Module m = copy_of(p);
  RunResult done = run(m, given, how, [](const std::string& text) { put(text); });
  if (done.error) throw *done.error;
  if (done.stopped) return false;
  for (const auto& o : p.outputs) result.values.push_back(std::move(done.values.at(o->name)));
  return true;
}

ein_status run_program(ein_program& p, const ein_tensor* inputs, size_t count,
                       const ein_run_options& options, ein_result** result, ein_error* error) {
  ein_status status = EIN_INTERNAL;
  Failure failure;
  Relay relay;
  std::thread running([&] {
    on_deep_stack([&] {
      auto body = [&] {
        auto made = std::make_unique<ein_result>();
        check_counts(p, inputs, count);
        if (!run_with_effects(p, inputs, options, relay, *made)) return false;
        show_outputs(p, {nullptr, made.get()});
        *result = made.release();
        return true;
      };
      status = reported(p, body, error);
      failure = last_failure();
    });
    relay.end();
  });
  relay.serve();
  running.join();
  last_failure() = failure;
  return status;
}

}  // namespace
}  // namespace ein::capi

extern "C" ein_status ein_run(ein_program* program, const ein_tensor* inputs, size_t count,
                              const ein_run_options* options, ein_result** result,
                              ein_error* error) {
  if (!program || !result) {
    ein::capi::report(error, "", "a run needs a program, and somewhere to put the result");
    return EIN_USAGE;
  }
  *result = nullptr;
  ein_run_options known{};
  if (options) std::memcpy(&known, options, std::min(options->size, sizeof known));
  return ein::capi::guarded(
      [&] { return ein::capi::run_program(*program, inputs, count, known, result, error); }, error);
}

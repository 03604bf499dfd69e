// Private to src/capi: what calls and runs share.
#pragma once

#include <string>

#include "capi/handles.h"
#include "core/eval.h"

namespace ein::capi {

struct Usage {
  std::string why;
};

// Where a call writes its values: to memory of the caller if it gave any, otherwise into the
// result.
struct Target {
  const ein_tensor* given = nullptr;  // null, or one for each output
  ein_result* result = nullptr;

  bool has(size_t k) const { return given && given[k].rank >= 0; }
  void* at(size_t k) const { return has(k) ? given[k].data : result->values[k].data(); }
};

void check_counts(const ein_program& p, const ein_tensor* inputs, size_t count);  // throws Usage
void copy_inputs(const ein_program& p, const ein_tensor* inputs, core::Inputs& to);
// Fills `plain` of the result.
void show_outputs(const ein_program& p, const Target& target);

// What ein_failure returns, one for each thread.
struct Failure {
  std::string text, json;
};
Failure& last_failure();
void keep_failure(const ein_program& p, const RuntimeError& e);

// Runs `body` and turns its failures into a status and a report. `body` returns false if it was
// interrupted.
template <class F>
ein_status reported(const ein_program& p, const F& body, ein_error* error) {
  last_failure() = {};
  return guarded(
      [&] {
        try {
          if (!body()) {
            report(error, "", "the call was interrupted");
            return EIN_INTERRUPTED;
          }
          if (error) error->code[0] = error->message[0] = '\0';
          return EIN_OK;
        } catch (const Usage& u) {
          report(error, "", u.why);
          return EIN_USAGE;
        } catch (const RuntimeError& e) {
          keep_failure(p, e);
          report(error, info(e.code).name, error_text(p, e));
          return EIN_FAILED;
        }
      },
      error);
}

}  // namespace ein::capi

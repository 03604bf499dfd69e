// Private to src/capi: what the handles of einlang.h are.
#pragma once

#include <einlang/einlang.h>
#include <unistd.h>

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "base/source.h"
#include "codegen/native.h"
#include "core/core.h"
#include "core/eval.h"
#include "driver/compile.h"
#include "runtime/frame_pool.h"

namespace ein::capi {

// An ein_value with the memory behind its pointers.
struct Value {
  std::string name;
  DType dtype = DType::F32;
  std::vector<std::string> coords;
  std::vector<const char*> coord_texts;
  std::vector<int64_t> extents;
  std::string path;
  std::vector<std::string> extent_texts;
  std::vector<const char*> extent_pointers;
  bool needed = true;
  core::FamilyId family;
  ein_value plain = {};

  void finish();  // fills `plain`; the value must not move afterwards
};

// Machine code for a program, and how its values lie in it.
struct Way {
  std::shared_ptr<Native> native;
  std::vector<View> views;     // by the image's inputs; those of the caller not filled in
  std::vector<uint32_t> from;  // by the image's inputs: which of the program's, or kLoaded
  std::vector<uint32_t> output_buffers;  // by output
  std::vector<Effect> asserts;           // values are buffers
  bool has_steps = false;                // a call may be asked between steps whether to go on
  FramePool frames;
};

// Evaluations last long, so a fork does not wait for them: the child has a lock of its own.
class EvaluatorLock {
 public:
  std::unique_lock<std::mutex> take() {
    if (pid_ != getpid()) {
      new (&mutex_) std::mutex;
      pid_ = getpid();
    }
    return std::unique_lock(mutex_);
  }

 private:
  std::mutex mutex_;
  pid_t pid_ = getpid();
};

}  // namespace ein::capi

struct ein_program {
  std::string diagnostics, diagnostics_json, diagnostics_coloured;
  bool ok = false;
  std::string name, text;   // what was compiled
  ein::ExtraRequest extra;  // and which derivatives
  std::vector<ein::Derivation> derivations;
  int opt_level = 2;
  std::unique_ptr<ein::ImageCache> cache;  // for ein_run
  std::vector<std::pair<std::string, std::string>>
      files;  // modules: given by the caller, or read; path and text
  struct Earlier {
    std::string name, text;
    bool hidden;
  };
  std::vector<Earlier> earlier;  // texts it goes on from
  std::vector<ein_file> plain_files;
  std::vector<std::string> loaded_paths;
  ein::SourceMap sources;
  ein::core::Module module;
  std::vector<ein::core::FamilyId> wanted;
  std::vector<std::unique_ptr<ein::capi::Value>> inputs, outputs;
  ein::core::Inputs loaded;          // what `load` found
  std::vector<ein::Effect> asserts;  // values are families

  // `native` is null where only the reference evaluator can run it, which is done one call at a time.
  ein::capi::Way way;
  ein::capi::EvaluatorLock evaluator;
  // Under a memory budget for derivatives, recurrences are cut into segments for the extents of a call: these are the
  // programs for the extents that were seen.
  uint64_t grad_memory = 0;  // bytes; 0: no budget
  bool cuts = false;
  std::mutex cutting;
  std::map<std::vector<int64_t>, std::unique_ptr<ein::capi::Way>> cut;

  int threads = 0;
  ein::DType operands = ein::DType::F32;
  static constexpr uint32_t kLoaded = ~uint32_t{0};
};

struct ein_result {
  std::vector<ein::Tensor> values;  // those in memory of the caller are empty
  std::vector<ein_tensor> plain;
};

namespace ein::capi {

// The way that a program takes for these symbolic extents; compiles it where there is none yet.
Way& way_for(ein_program& p, const std::vector<int64_t>& params);
// A copy of the program's Core that shares nothing with it, for passes.
core::Module copy_of(ein_program& p);

std::optional<std::string> read_file(const std::string& path);
// The texts that a program goes on from, as files of `sources`.
std::vector<sema::EarlierText> add_earlier(const ein_program& p, SourceMap& sources);
std::vector<std::string> names(const char* const* list, size_t count);
void report(ein_error* to, const char* code, const std::string& message);
std::string error_text(const ein_program& program, const RuntimeError& error);

// No exception leaves the library: those of `body` become a status and a report.
template <class F>
ein_status guarded(const F& body, ein_error* error) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    report(error, "E0807", "out of memory");
    return EIN_FAILED;
  } catch (const std::exception& e) {
    report(error, "", std::string("a bug in the compiler: ") + e.what());
    return EIN_INTERNAL;
  }
}

}  // namespace ein::capi

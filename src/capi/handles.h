// Private to src/capi: the structs behind the handles of einlang.h.
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

// An ein_value and the memory behind its pointers.
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

  void finish();  // fills `plain`; the value must not move after that
};

// One way to compute a program: its machine code, and where the code finds the values.
struct Way {
  std::shared_ptr<Native> native;
  // One for each input of the image; the caller's are filled in at each call.
  std::vector<View> views;
  std::vector<uint32_t> from;  // for each input of the image: the program's input, or kLoaded
  std::vector<uint32_t> output_buffers;  // one for each output
  std::vector<Effect> asserts;           // their values are buffers
  bool has_steps = false;                // the run has steps between which the caller may stop it
  FramePool frames;
};

// An evaluation takes long, so fork does not wait for it: the child gets a new lock.
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
  std::string name, text;   // the program's name and text
  ein::ExtraRequest extra;  // the derivatives asked for by the caller
  std::vector<ein::Derivation> derivations;
  int opt_level = 2;
  std::unique_ptr<ein::ImageCache> cache;  // for ein_run
  std::vector<std::pair<std::string, std::string>>
      files;  // path and text of modules, given by the caller or read from files
  struct Earlier {
    std::string name, text;
    bool hidden;
  };
  std::vector<Earlier> earlier;  // texts that the program continues
  std::vector<ein_file> plain_files;
  std::vector<std::string> loaded_paths;
  ein::SourceMap sources;
  ein::core::Module module;
  std::vector<ein::core::FamilyId> wanted;
  std::vector<std::unique_ptr<ein::capi::Value>> inputs, outputs;
  ein::core::Inputs loaded;          // what `load` read
  std::vector<ein::Effect> asserts;  // their values are families

  // `native` is null if only the reference evaluator can run the program; then calls run one at a
  // time.
  ein::capi::Way way;
  ein::capi::EvaluatorLock evaluator;
  // With a memory budget for derivatives, recurrences are cut into segments that depend on the
  // extents of a call. These are the ways for the extents seen so far.
  uint64_t grad_memory = 0;  // bytes; 0: no budget
  bool cuts = false;
  std::mutex cutting;
  std::map<std::vector<int64_t>, std::unique_ptr<ein::capi::Way>> cut;

  int threads = 0;
  ein::DType operands = ein::DType::F32;
  static constexpr uint32_t kLoaded = ~uint32_t{0};
};

struct ein_result {
  std::vector<ein::Tensor> values;  // outputs in the caller's memory are empty here
  std::vector<ein_tensor> plain;
};

namespace ein::capi {

// The way that computes a program for these extents; compiles it if there is none yet.
Way& way_for(ein_program& p, const std::vector<int64_t>& params);
// A copy of the program's Core that shares no nodes with it, so that passes may change it.
core::Module copy_of(ein_program& p);

std::optional<std::string> read_file(const std::string& path);
// Adds the texts that a program continues to `sources`.
std::vector<sema::EarlierText> add_earlier(const ein_program& p, SourceMap& sources);
std::vector<std::string> names(const char* const* list, size_t count);
void report(ein_error* to, const char* code, const std::string& message);
std::string error_text(const ein_program& program, const RuntimeError& error);

// Calls `body` and turns exceptions into a status and a report, since none may leave the library.
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

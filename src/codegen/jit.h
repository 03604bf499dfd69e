// Loops → LLVM IR → machine code in this process. No LLVM type appears here, so that those who use
// it stay free of LLVM.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "codegen/machine.h"
#include "loops/loops.h"
#include "runtime/native_abi.h"

namespace ein::codegen {

// Machine code, kept as long as this lives.
struct Code {
  virtual ~Code() = default;
  NativeEntry entry = nullptr;
};

struct JitOptions {
  int opt_level = 2;  // 0: none; otherwise the short pipeline
  Processor processor = Processor::Native;
  bool check_bounds = false;   // of every address
  const Host* host = nullptr;  // what Native means; null: this machine
};

struct JitTimes {  // milliseconds
  double target = 0, emit = 0, optimise = 0, machine = 0, link = 0;
};

// An object file for this machine's processor, and loading the code in one. Loading needs no LLVM
// target; `load` returns null when the object cannot be read.
std::string object_code(const loops::Program& p, const JitOptions& options, JitTimes* times);
std::unique_ptr<Code> load(const std::string& object, JitTimes* times = nullptr);

// An object file that needs nothing but the run-time library (standalone.h): the code, a packed
// image beside it, and functions under these names. `free` empty: there is none, and `run` is the
// `main` of a C program.
std::string standalone_object(const loops::Program& p, const JitOptions& options,
                              const std::string& image, const std::string& run,
                              const std::string& free);

// The processor that code is made for, as LLVM knows it.
std::string processor_text(Processor p);

// The same program as text, for --emit.
std::string llvm_text(const loops::Program& p, const JitOptions& options);
std::string assembly_text(const loops::Program& p, const JitOptions& options);

uint64_t jit_count();  // how many programs this process has compiled

}  // namespace ein::codegen

// Memory for generated code and its constants: one block. The small code model reaches constants by
// 32-bit distances, and nothing checks that they fit, so the sections must not be scattered over
// the address space.
#pragma once

#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/Support/Memory.h>

namespace ein {

class CodeMemory final : public llvm::RuntimeDyld::MemoryManager {
 public:
  ~CodeMemory() override;
  bool needsToReserveAllocationSpace() override { return true; }
  void reserveAllocationSpace(uintptr_t code, llvm::Align code_align, uintptr_t constants,
                              llvm::Align constants_align, uintptr_t data,
                              llvm::Align data_align) override;
  uint8_t* allocateCodeSection(uintptr_t size, unsigned align, unsigned id,
                               llvm::StringRef name) override;
  uint8_t* allocateDataSection(uintptr_t size, unsigned align, unsigned id, llvm::StringRef name,
                               bool read_only) override;
  void registerEHFrames(uint8_t*, uint64_t, size_t) override {}
  void deregisterEHFrames() override {}
  bool finalizeMemory(std::string* error) override;  // true if it failed, as LLVM has it

 private:
  struct Part {  // whole pages, so that each has its own protection
    uint8_t *begin = nullptr, *end = nullptr, *next = nullptr;
    uint8_t* take(uintptr_t size, unsigned align);
  };
  bool protect(const Part& part, unsigned flags, std::string* error);

  llvm::sys::MemoryBlock block_;
  Part code_, constants_, data_;
};

}  // namespace ein

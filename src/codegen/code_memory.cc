#include "codegen/code_memory.h"

#include <llvm/Support/Process.h>

#include <new>
#include <tuple>

#include "base/check.h"

namespace ein {

using llvm::sys::Memory;

CodeMemory::~CodeMemory() {
  if (block_.base()) std::ignore = Memory::releaseMappedMemory(block_);
}

void CodeMemory::reserveAllocationSpace(uintptr_t code, llvm::Align, uintptr_t constants,
                                        llvm::Align, uintptr_t data, llvm::Align) {
  // A page is larger than any section's alignment, and LLVM's sizes include the padding between
  // sections.
  uintptr_t page = llvm::sys::Process::getPageSizeEstimate();
  auto pages = [&](uintptr_t size) { return (size + page - 1) / page * page; };
  // LLVM does not announce the space for calls of `memset` and `memcpy`: an aligned stub after the
  // code, and an address in the data.
  code += page;
  data += page;
  std::error_code failed;
  block_ = Memory::allocateMappedMemory(pages(code) + pages(constants) + pages(data), nullptr,
                                        Memory::MF_READ | Memory::MF_WRITE, failed);
  if (failed) throw std::bad_alloc();
  auto* at = static_cast<uint8_t*>(block_.base());
  auto part = [&](uintptr_t size) {
    Part p{at, at + pages(size), at};
    at = p.end;
    return p;
  };
  code_ = part(code);
  constants_ = part(constants);
  data_ = part(data);
}

uint8_t* CodeMemory::Part::take(uintptr_t size, unsigned align) {
  uintptr_t step = align ? align : 1;
  auto at = (reinterpret_cast<uintptr_t>(next) + step - 1) / step * step;
  next = reinterpret_cast<uint8_t*>(at) + size;
  EIN_CHECK(next <= end, "generated code is larger than announced");
  return reinterpret_cast<uint8_t*>(at);
}

uint8_t* CodeMemory::allocateCodeSection(uintptr_t size, unsigned align, unsigned,
                                         llvm::StringRef) {
  return code_.take(size, align);
}

uint8_t* CodeMemory::allocateDataSection(uintptr_t size, unsigned align, unsigned, llvm::StringRef,
                                         bool read_only) {
  return (read_only ? constants_ : data_).take(size, align);
}

bool CodeMemory::protect(const Part& part, unsigned flags, std::string* error) {
  if (part.begin == part.end) return false;
  llvm::sys::MemoryBlock pages(part.begin, static_cast<size_t>(part.end - part.begin));
  std::error_code failed = Memory::protectMappedMemory(pages, flags);
  if (failed && error) *error = failed.message();
  return static_cast<bool>(failed);
}

bool CodeMemory::finalizeMemory(std::string* error) {
  return protect(code_, Memory::MF_READ | Memory::MF_EXEC, error) ||
         protect(constants_, Memory::MF_READ, error);
}

}  // namespace ein

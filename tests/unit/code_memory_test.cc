#include "codegen/code_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace ein {
namespace {

// Generated code reaches its constants by 32-bit distances, wherever the system puts new pages.
TEST(CodeMemory, SectionsLieTogether) {
  CodeMemory memory;
  llvm::Align align(64);
  memory.reserveAllocationSpace(200000, align, 10000, align, 10, align);
  auto* code = memory.allocateCodeSection(200000, 16, 0, ".text");
  auto* first = memory.allocateDataSection(100, 8, 1, ".rodata.cst8", true);
  auto* second = memory.allocateDataSection(6400, 64, 2, ".rodata", true);
  auto* data = memory.allocateDataSection(10, 1, 3, ".data", false);
  for (auto* at : {first, second, data}) EXPECT_LT(std::llabs(at - code), int64_t{1} << 30);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(second) % 64, 0u);
  EXPECT_GE(second, first + 100);
  code[0] = second[0] = data[0] = 1;
  std::string error;
  EXPECT_FALSE(memory.finalizeMemory(&error)) << error;
  data[0] = 2;
  EXPECT_EQ(code[0] + second[0] + data[0], 4);
}

// The sizes that LLVM announces do not include call stubs and their addresses.
TEST(CodeMemory, SectionsMayBeALittleLarger) {
  CodeMemory memory;
  llvm::Align align(16);
  memory.reserveAllocationSpace(65536, align, 0, align, 0, align);
  EXPECT_NE(memory.allocateCodeSection(65536 + 15, 16, 0, ".text"), nullptr);
  EXPECT_NE(memory.allocateDataSection(8, 8, 1, ".got", false), nullptr);
}

}  // namespace
}  // namespace ein

#include "codegen/long_functions.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/CodeExtractor.h>

#include <vector>

namespace ein::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Function;
using llvm::Instruction;

// Instructions: the longest function that stays whole, and the longest loop that is cut out of one.
constexpr size_t kLongestFunction = 8192, kLongestLoop = 2048;

size_t length(llvm::ArrayRef<BasicBlock*> blocks) {
  size_t n = 0;
  for (const BasicBlock* block : blocks) n += block->size();
  return n;
}

// The outermost loops that are short enough.
void choose(llvm::ArrayRef<llvm::Loop*> among, std::vector<std::vector<BasicBlock*>>& out) {
  for (llvm::Loop* loop : among) {
    if (length(loop->getBlocks()) > kLongestLoop) {
      choose(loop->getSubLoops(), out);
    } else {
      out.emplace_back(loop->block_begin(), loop->block_end());
    }
  }
}

// A product is rounded together with a sum of its own block alone. The blocks before and after a
// loop become one where the loop becomes a call, so that products that are used in other blocks
// must say that they are rounded on their own.
void keep_roundings(Function& f) {
  for (BasicBlock& block : f) {
    for (Instruction& i : block) {
      if (i.getOpcode() != Instruction::FMul) continue;
      for (const llvm::User* user : i.users()) {
        if (llvm::cast<Instruction>(user)->getParent() != &block) i.setHasAllowContract(false);
      }
    }
  }
}

void split(Function& f) {
  llvm::DominatorTree dominators(f);
  llvm::LoopInfo loops(dominators);
  std::vector<std::vector<BasicBlock*>> chosen;
  choose(llvm::SmallVector<llvm::Loop*>(loops.begin(), loops.end()), chosen);
  if (chosen.empty()) return;
  keep_roundings(f);
  llvm::CodeExtractorAnalysisCache cache(f);
  for (const std::vector<BasicBlock*>& blocks : chosen) {
    llvm::CodeExtractor extractor(blocks, &dominators);
    if (!extractor.isEligible()) continue;
    if (Function* loop = extractor.extractCodeRegion(cache)) {
      loop->addFnAttr(llvm::Attribute::NoInline);
    }
  }
}

}  // namespace

bool split_long_functions(llvm::Module& mod) {
  std::vector<Function*> functions;
  for (Function& f : mod) {
    if (f.getInstructionCount() > kLongestFunction) functions.push_back(&f);
  }
  for (Function* f : functions) split(*f);
  return !functions.empty();
}

}  // namespace ein::codegen

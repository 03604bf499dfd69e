#include "codegen/long_functions.h"

#include <llvm/ADT/DepthFirstIterator.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/CodeExtractor.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace ein::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Function;
using llvm::Instruction;

using Part = std::vector<BasicBlock*>;  // entered at its first block alone

size_t length(llvm::ArrayRef<BasicBlock*> blocks) {
  size_t n = 0;
  for (const BasicBlock* block : blocks) n += block->size();
  return n;
}

// The outermost loops that are short enough.
void choose_loops(llvm::ArrayRef<llvm::Loop*> among, size_t longest, std::vector<Part>& out) {
  for (llvm::Loop* loop : among) {
    if (length(loop->getBlocks()) > longest) {
      choose_loops(loop->getSubLoops(), longest, out);
    } else {
      out.emplace_back(loop->block_begin(), loop->block_end());
    }
  }
}

// Parts along the branches. In the dominator tree each block stands below the one that every way to
// it comes through. A part is a stretch of the longest line downward, with the short sides that
// leave it and come back.
class Stretches {
 public:
  Stretches(Function& f, size_t part_size)
      : part_size_(part_size), dominators_(f), loops_(dominators_) {
    dominators_.updateDFSNumbers();
    for (const llvm::DomTreeNode* node : llvm::post_order(dominators_.getRootNode())) {
      size_t n = node->getBlock()->size();
      for (const llvm::DomTreeNode* below : *node) n += lengths_[below];
      lengths_[node] = n;
    }
    starts_ = {dominators_.getRootNode()};
  }

  std::vector<Part> run() && {
    while (!starts_.empty()) {
      const llvm::DomTreeNode* node = starts_.back();
      starts_.pop_back();
      while (node) node = add(node);
      close();
    }
    return std::move(parts_);
  }

 private:
  using Node = const llvm::DomTreeNode*;

  // Adds a block and its sides to the part; returns the next block of the line.
  Node add(Node node) {
    BasicBlock* block = node->getBlock();
    std::vector<Node> sides(node->begin(), node->end());
    Node next = nullptr;
    if (!sides.empty()) {
      auto shorter = [&](Node a, Node b) { return lengths_.at(a) < lengths_.at(b); };
      auto longest = std::max_element(sides.begin(), sides.end(), shorter);
      next = *longest;
      sides.erase(longest);
    }
    // A loop header has ways that come back from below.
    bool fits = node->getIDom() && !loops_.isLoopHeader(block);
    if (!fits) close();
    if (fits) part_.push_back(block);
    for (Node side : sides) {
      Part all = below(side);
      if (fits && belongs(side, all)) {
        part_.insert(part_.end(), all.begin(), all.end());
      } else {
        starts_.push_back(side);
        if (!leaves(side, all)) close();
      }
    }
    if (length(part_) > part_size_) close();
    return next;
  }

  Part below(Node node) const {
    Part out;
    for (Node n : llvm::depth_first(node)) out.push_back(n->getBlock());
    return out;
  }

  // Short, and reached from this part alone.
  bool belongs(Node side, const Part& all) const {
    if (lengths_.at(side) > part_size_) return false;
    auto here = [&](BasicBlock* from) {
      return from == side->getIDom()->getBlock() || stands_below(side, from);
    };
    return std::all_of(all.begin(), all.end(), [&](BasicBlock* b) {
      return std::all_of(llvm::pred_begin(b), llvm::pred_end(b), here);
    });
  }

  // No way leads from there to anything else: it ends the function.
  bool leaves(Node side, const Part& all) const {
    return std::all_of(all.begin(), all.end(), [&](BasicBlock* b) {
      return std::all_of(llvm::succ_begin(b), llvm::succ_end(b),
                         [&](BasicBlock* to) { return stands_below(side, to); });
    });
  }

  bool stands_below(Node node, BasicBlock* block) const {
    return dominators_.dominates(node, dominators_.getNode(block));
  }

  void close() {
    if (length(part_) > part_size_ / 4) parts_.push_back(part_);  // less is not worth a call
    part_.clear();
  }

  const size_t part_size_;  // instructions, about
  llvm::DominatorTree dominators_;
  llvm::LoopInfo loops_;
  std::unordered_map<Node, size_t> lengths_;  // of all that stands below a block, itself included
  std::vector<Node> starts_;
  Part part_;
  std::vector<Part> parts_;
};

// A product may be fused only with a sum in its own block. The blocks before and after a part
// become one where the part becomes a call, so products that are used in other blocks must be
// marked as rounded on their own.
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

void cut_out(Function& f, const std::vector<Part>& parts) {
  llvm::CodeExtractorAnalysisCache cache(f);
  for (const Part& part : parts) {
    llvm::CodeExtractor extractor(part);
    if (!extractor.isEligible()) continue;
    if (Function* own = extractor.extractCodeRegion(cache)) {
      own->addFnAttr(llvm::Attribute::NoInline);
    }
  }
}

void split(Function& f, const Tuning& tuning) {
  keep_roundings(f);
  std::vector<Part> loops;
  {
    llvm::DominatorTree dominators(f);
    llvm::LoopInfo found(dominators);
    choose_loops(llvm::SmallVector<llvm::Loop*>(found.begin(), found.end()),
                 static_cast<size_t>(tuning.longest_loop), loops);
  }
  cut_out(f, loops);
  if (f.getInstructionCount() > static_cast<size_t>(tuning.longest_function)) {
    cut_out(f, Stretches(f, static_cast<size_t>(tuning.function_part)).run());
  }
}

}  // namespace

bool split_long_functions(llvm::Module& mod, const Tuning& tuning) {
  std::vector<Function*> functions;
  for (Function& f : mod) {
    if (f.getInstructionCount() > static_cast<size_t>(tuning.longest_function))
      functions.push_back(&f);
  }
  for (Function* f : functions) split(*f, tuning);
  return !functions.empty();
}

}  // namespace ein::codegen

#include "codegen/long_blocks.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/MathExtras.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

namespace ein::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Function;
using llvm::Instruction;
using llvm::Value;

// A product that is added to something, and used nowhere else, is fused with the addition and
// rounded once: the two must not be separated.
bool belongs_to_user(const Instruction& i) {
  if (i.getOpcode() != Instruction::FMul || !i.hasOneUse()) return false;
  const auto* user = llvm::cast<Instruction>(*i.user_begin());
  return user->getParent() == i.getParent() &&
         (user->getOpcode() == Instruction::FAdd || user->getOpcode() == Instruction::FSub);
}

// What may move into pieces, in order: no phi, no variable of the function, not the terminator.
std::vector<Instruction*> movable(BasicBlock& block) {
  std::vector<Instruction*> all;
  for (Instruction& i : block) all.push_back(&i);
  std::vector<Instruction*> out;
  auto first = block.getFirstNonPHIIt();
  for (Instruction* i : all) {
    if (llvm::isa<llvm::AllocaInst>(i)) i->moveBefore(block, first);
    if (belongs_to_user(*i)) i->moveBefore(llvm::cast<Instruction>(*i->user_begin()));
  }
  for (Instruction& i : block) {
    if (llvm::isa<llvm::PHINode, llvm::AllocaInst>(i) || i.isTerminator()) continue;
    out.push_back(&i);
  }
  return out;
}

class Splitter {
 public:
  Splitter(BasicBlock& block, const Tuning& tuning)
      : piece_size_(static_cast<size_t>(tuning.block_piece)),
        window_(static_cast<size_t>(tuning.block_window)),
        block_(block),
        function_(*block.getParent()),
        context_(block.getContext()),
        body_(movable(block)) {
    for (size_t i = 0; i < body_.size(); ++i) at_[body_[i]] = i;
  }

  void run() {
    if (body_.size() <= piece_size_) return;  // the rest was variables and phis
    choose_pieces();
    find_shared();
    llvm::IRBuilder<> b(context_);
    auto* bytes = llvm::Type::getInt8Ty(context_);
    b.SetInsertPoint(&function_.getEntryBlock(), function_.getEntryBlock().begin());
    frame_ = b.CreateAlloca(llvm::ArrayType::get(bytes, 0), nullptr, "frame");
    b.SetInsertPoint(body_.front());
    for (Value* v : from_outside_) put(b, frame_, v);
    std::vector<Function*> pieces;
    for (size_t p = 0; p + 1 < ends_.size(); ++p) pieces.push_back(make(p));
    b.SetInsertPoint(block_.getTerminator());
    for (Function* piece : pieces) b.CreateCall(piece, {frame_})->setDoesNotThrow();
    hand_out(b);
    frame_->setAllocatedType(llvm::ArrayType::get(bytes, size_));
    frame_->setAlignment(llvm::Align(64));
  }

 private:
  struct Slot {
    uint64_t offset, size;
  };

  // Cut where the fewest values are needed on the other side.
  void choose_pieces() {
    std::vector<int> change(body_.size() + 2, 0);  // in the number of values that cross before i
    for (size_t i = 0; i < body_.size(); ++i) {
      size_t last = i;
      for (const llvm::User* user : body_[i]->users()) {
        auto it = at_.find(llvm::cast<Instruction>(user));
        last = std::max(last, it == at_.end() ? body_.size() : it->second);
      }
      ++change[i + 1];
      --change[last + 1];
    }
    std::vector<int> crossing(body_.size() + 1, 0);
    for (size_t i = 1; i <= body_.size(); ++i) crossing[i] = crossing[i - 1] + change[i];
    ends_ = {0};
    while (body_.size() - ends_.back() > piece_size_ + window_) {
      size_t best = ends_.back() + piece_size_;
      for (size_t i = best + 1; i < ends_.back() + piece_size_ + window_; ++i) {
        bool parts = belongs_to_user(*body_[best - 1]);
        if (!belongs_to_user(*body_[i - 1]) && (parts || crossing[i] < crossing[best])) best = i;
      }
      ends_.push_back(best);
    }
    ends_.push_back(body_.size());
    piece_.resize(body_.size());
    for (size_t p = 0; p + 1 < ends_.size(); ++p) {
      std::fill(piece_.begin() + static_cast<ptrdiff_t>(ends_[p]),
                piece_.begin() + static_cast<ptrdiff_t>(ends_[p + 1]), p);
    }
  }

  void find_shared() {
    needs_.resize(ends_.size() - 1);
    for (size_t i = 0; i < body_.size(); ++i) {
      for (Value* v : body_[i]->operands()) {
        if (!llvm::isa<Instruction, llvm::Argument>(v)) continue;
        auto from = at_.find(v);
        if (from != at_.end() && piece_[from->second] == piece_[i]) continue;
        if (from == at_.end()) from_outside_.insert(v);
        needs_[piece_[i]].insert(v);
        last_piece_[v] = piece_[i];
      }
    }
    for (Instruction* i : body_) {
      bool leaves = std::any_of(i->user_begin(), i->user_end(), [&](const llvm::User* user) {
        return !at_.contains(llvm::cast<Instruction>(user));
      });
      if (leaves) last_piece_[i] = ends_.size();
    }
  }

  Value* address(llvm::IRBuilder<>& b, Value* frame, const Slot& slot) {
    return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), frame, slot.offset);
  }
  static llvm::Align align(const Slot& slot) {
    return llvm::Align(std::min<uint64_t>(slot.size, 64));
  }

  void put(llvm::IRBuilder<>& b, Value* frame, Value* v) {
    uint64_t size = function_.getParent()->getDataLayout().getTypeAllocSize(v->getType());
    size = std::max<uint64_t>(8, llvm::PowerOf2Ceil(size));
    std::vector<uint64_t>& free = free_[size];
    Slot slot{0, size};
    if (free.empty()) {
      slot.offset = size_ = llvm::alignTo(size_, size);
      size_ += size;
    } else {
      slot.offset = free.back();
      free.pop_back();
    }
    slots_[v] = slot;
    b.CreateAlignedStore(v, address(b, frame, slot), align(slot));
  }

  Value* get(llvm::IRBuilder<>& b, Value* frame, Value* v) {
    const Slot& slot = slots_.at(v);
    return b.CreateAlignedLoad(v->getType(), address(b, frame, slot), align(slot));
  }

  Function* make(size_t p) {
    auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context_),
                                         {llvm::PointerType::getUnqual(context_)}, false);
    auto* piece = Function::Create(type, Function::InternalLinkage, function_.getName() + "_piece",
                                   function_.getParent());
    piece->addFnAttrs(llvm::AttrBuilder(context_, function_.getAttributes().getFnAttrs()));
    piece->addFnAttr(llvm::Attribute::NoInline);
    piece->addParamAttr(0, llvm::Attribute::NoAlias);
    llvm::IRBuilder<> b(BasicBlock::Create(context_, "entry", piece));
    Value* frame = piece->getArg(0);
    std::unordered_map<Value*, Value*> here;
    for (Value* v : needs_[p]) here[v] = get(b, frame, v);
    BasicBlock* code = b.GetInsertBlock();
    code->splice(code->end(), &block_, body_[ends_[p]]->getIterator(),
                 std::next(body_[ends_[p + 1] - 1]->getIterator()));
    b.SetInsertPoint(code);
    for (size_t i = ends_[p]; i < ends_[p + 1]; ++i) {
      for (llvm::Use& use : body_[i]->operands()) {
        if (auto it = here.find(use.get()); it != here.end()) use.set(it->second);
      }
    }
    for (size_t i = ends_[p]; i < ends_[p + 1]; ++i) {
      if (last_piece_.contains(body_[i])) put(b, frame, body_[i]);
    }
    b.CreateRetVoid();
    for (Value* v : needs_[p]) {  // what no later piece needs makes room
      if (last_piece_.at(v) == p) free_[slots_.at(v).size].push_back(slots_.at(v).offset);
    }
    return piece;
  }

  // Hands values to uses after the block, at its end, and in its own next iteration.
  void hand_out(llvm::IRBuilder<>& b) {
    for (Instruction* i : body_) {
      auto it = last_piece_.find(i);
      if (it == last_piece_.end() || it->second != ends_.size()) continue;
      Value* v = get(b, frame_, i);
      i->replaceUsesWithIf(v, [&](llvm::Use& use) {
        return llvm::cast<Instruction>(use.getUser())->getFunction() == &function_;
      });
    }
  }

  const size_t piece_size_, window_;  // instructions
  BasicBlock& block_;
  Function& function_;
  llvm::LLVMContext& context_;
  std::vector<Instruction*> body_;
  std::unordered_map<const Value*, size_t> at_;  // the position of an instruction in the body
  std::vector<size_t> ends_;                     // of the pieces, from 0 on
  std::vector<size_t> piece_;                    // by position
  std::vector<llvm::SetVector<Value*>> needs_;   // by piece: values from elsewhere
  llvm::SetVector<Value*> from_outside_;
  std::unordered_map<const Value*, size_t> last_piece_;  // of values that cross; one past: outside
  std::unordered_map<const Value*, Slot> slots_;
  std::map<uint64_t, std::vector<uint64_t>> free_;  // by size
  uint64_t size_ = 0;
  llvm::AllocaInst* frame_ = nullptr;
};

}  // namespace

// Code that is written by hand or unrolled stays below `longest_block`: a piece costs a call and
// storing the values that it shares with others.
bool split_long_blocks(llvm::Module& mod, const Tuning& tuning) {
  std::vector<BasicBlock*> blocks;
  for (Function& f : mod) {
    for (BasicBlock& block : f) {
      if (block.size() > static_cast<size_t>(tuning.longest_block)) blocks.push_back(&block);
    }
  }
  for (BasicBlock* block : blocks) Splitter(*block, tuning).run();
  return !blocks.empty();
}

}  // namespace ein::codegen

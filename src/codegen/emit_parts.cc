// Long loop bodies are cut like long kernels (loops/cut.h): a large group of recurrences is one
// loop with a statement for every member. Each part is a function, called at every step.
#include <set>

#include "codegen/emit.h"
#include "loops/cut.h"
#include "loops/walk.h"

namespace ein::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Value;

// Whether a part assigns a variable from outside.
bool changes_outside(const loops::Block& part) {
  bool out = false;
  std::set<loops::VarId> bound;
  auto sets = [&](loops::VarId v) { out |= !bound.contains(v); };
  loops::for_each_stmt(part, [&](const loops::Stmt& s) {
    if (const auto* n = std::get_if<loops::Declare>(&s.node)) bound.insert(n->var);
    if (const auto* n = std::get_if<loops::Assign>(&s.node)) sets(n->var);
    if (const auto* n = std::get_if<loops::Fold>(&s.node)) {
      sets(n->acc);
      if (n->arg) sets(n->arg);
    }
    if (const auto* n = std::get_if<loops::Loop>(&s.node)) {
      for (loops::VarId v : n->folds) sets(v);
    }
  });
  return out;
}

}  // namespace

void Emitter::block_in_parts(const loops::Block& body) {
  bool plain = width == 1 && !mask && path.empty() && waiting.empty() && !calls;
  if (!plain) return block(body);
  std::vector<loops::Block> parts = loops::independent_parts(p, body);
  if (parts.size() < 2) return block(body);
  for (const loops::Block& part : parts) {
    if (changes_outside(part)) {
      block(part);
    } else {
      call_part(part, loops::free_variables(p, part));
    }
  }
}

void Emitter::call_part(const loops::Block& part, const std::vector<loops::VarId>& reads) {
  auto& c = mod.getContext();
  std::vector<Value*> fields = values_now(reads);
  if (table) fields.push_back(table);
  llvm::AllocaInst* closure = closure_of(fields);
  llvm::Type* closure_type = closure->getAllocatedType();

  Emitter sub(p, mod, first_dim);
  sub.target = target;
  sub.functions = functions;
  sub.written = written;
  sub.aliases = aliases;
  sub.in_sequence = in_sequence;
  auto* type = llvm::FunctionType::get(b.getInt32Ty(), {b.getPtrTy(), b.getPtrTy()}, false);
  sub.fn =
      llvm::Function::Create(type, llvm::Function::InternalLinkage, fn->getName() + ".part", mod);
  sub.fn->addFnAttr(llvm::Attribute::NoUnwind);
  sub.fn->addFnAttr(llvm::Attribute::NoInline);
  sub.context = sub.fn->getArg(0);
  BasicBlock* first = BasicBlock::Create(c, "entry", sub.fn);
  BasicBlock* start = BasicBlock::Create(c, "start", sub.fn);
  sub.entry.SetInsertPoint(first);
  sub.b.SetInsertPoint(start);
  sub.b.setFastMathFlags(b.getFastMathFlags());
  auto field = [&](unsigned i) {
    Value* at = sub.entry.CreateStructGEP(closure_type, sub.fn->getArg(1), i);
    return sub.entry.CreateLoad(fields[i]->getType(), at);
  };
  for (unsigned i = 0; i < reads.size(); ++i) sub.values[reads[i]] = uniform(field(i));
  if (table) {
    sub.names = names;
    sub.table = field(static_cast<unsigned>(reads.size()));
  }
  sub.block(part);
  sub.b.CreateRet(sub.b.getInt32(0));
  sub.entry.CreateBr(start);

  Value* status = b.CreateCall(sub.fn, {context, closure});
  leave_unless_zero(status);
}

}  // namespace ein::codegen

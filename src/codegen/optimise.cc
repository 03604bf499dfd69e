// The short pipeline. Vectors, hoisting and reductions are already as they should be, so what is
// left for LLVM is: variables into registers, equal expressions once, simpler instructions and
// branches. Analyses are registered one by one: PassBuilder would bring in every pass LLVM has,
// which costs link size and start-up time.
#include "codegen/optimise.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/BasicAliasAnalysis.h>
#include <llvm/Analysis/BlockFrequencyInfo.h>
#include <llvm/Analysis/BranchProbabilityInfo.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/MemorySSA.h>
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ProfileSummaryInfo.h>
#include <llvm/Analysis/ScopedNoAliasAA.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassInstrumentation.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <vector>

#include "codegen/long_blocks.h"
#include "codegen/long_functions.h"

namespace ein::codegen {
namespace {

// Turns choices between halves into choices between their bits. From `if x > 0 { x } else { 0 }` in
// halves the code generator would make a call of the C library's `fmaxf`, which is not there and
// does not say which zero it gives.
void choose_halves_by_bits(llvm::Module& mod) {
  std::vector<llvm::SelectInst*> choices;
  for (llvm::Function& f : mod) {
    for (llvm::BasicBlock& block : f) {
      for (llvm::Instruction& i : block) {
        auto* choice = llvm::dyn_cast<llvm::SelectInst>(&i);
        if (choice && choice->getType()->getScalarType()->isHalfTy()) choices.push_back(choice);
      }
    }
  }
  for (llvm::SelectInst* choice : choices) {
    llvm::IRBuilder<> b(choice);
    llvm::Type* bits = choice->getType()->getWithNewType(b.getInt16Ty());
    llvm::Value* chosen =
        b.CreateSelect(choice->getCondition(), b.CreateBitCast(choice->getTrueValue(), bits),
                       b.CreateBitCast(choice->getFalseValue(), bits));
    choice->replaceAllUsesWith(b.CreateBitCast(chosen, choice->getType()));
    choice->eraseFromParent();
  }
}

}  // namespace

void optimise(llvm::Module& mod, llvm::TargetMachine& machine, const Tuning& tuning) {
  llvm::FunctionAnalysisManager functions;
  llvm::ModuleAnalysisManager modules;
  functions.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
  functions.registerPass([] { return llvm::AssumptionAnalysis(); });
  functions.registerPass([] { return llvm::DominatorTreeAnalysis(); });
  functions.registerPass([] { return llvm::PostDominatorTreeAnalysis(); });
  functions.registerPass([] { return llvm::LoopAnalysis(); });
  functions.registerPass([] { return llvm::BranchProbabilityAnalysis(); });
  functions.registerPass([] { return llvm::BlockFrequencyAnalysis(); });
  functions.registerPass([] { return llvm::OptimizationRemarkEmitterAnalysis(); });
  functions.registerPass([] { return llvm::MemorySSAAnalysis(); });
  functions.registerPass([] { return llvm::BasicAA(); });
  functions.registerPass([] { return llvm::ScopedNoAliasAA(); });
  functions.registerPass([&] { return machine.getTargetIRAnalysis(); });
  functions.registerPass([] {
    // No library function is known by name: generated code calls through a table.
    llvm::TargetLibraryInfoImpl info;
    info.disableAllFunctions();
    return llvm::TargetLibraryAnalysis(std::move(info));
  });
  functions.registerPass([] {
    llvm::AAManager aa;
    aa.registerFunctionAnalysis<llvm::BasicAA>();
    aa.registerFunctionAnalysis<llvm::ScopedNoAliasAA>();
    return aa;
  });
  modules.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
  modules.registerPass([] { return llvm::ProfileSummaryAnalysis(); });
  modules.registerPass([&] { return llvm::FunctionAnalysisManagerModuleProxy(functions); });
  functions.registerPass([&] { return llvm::ModuleAnalysisManagerFunctionProxy(modules); });

  llvm::FunctionPassManager first, passes;
  first.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  first.addPass(llvm::EarlyCSEPass(false));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::EarlyCSEPass(true));
  // What InstCombine asks for at module level must be there before it asks.
  modules.getResult<llvm::ProfileSummaryAnalysis>(mod);
  auto run = [&](llvm::FunctionPassManager& on) {
    for (llvm::Function& f : mod) {
      if (!f.isDeclaration()) functions.invalidate(f, on.run(f, functions));
    }
  };
  run(first);
  if (split_long_blocks(mod, tuning)) functions.clear();
  run(passes);
  choose_halves_by_bits(mod);
  if (split_long_functions(mod, tuning)) functions.clear();
}

}  // namespace ein::codegen

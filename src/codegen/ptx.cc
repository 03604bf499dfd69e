#include "codegen/ptx.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include "base/check.h"
#include "codegen/emit.h"
#include "codegen/launches.h"
#include "codegen/optimise.h"

namespace ein::codegen {
namespace {

constexpr const char* kTriple = "nvptx64-nvidia-cuda";
constexpr const char* kDevice = "sm_80";
constexpr const char* kVersion = "+ptx70";  // of PTX; CUDA 11.0 knows it

std::unique_ptr<llvm::TargetMachine> device_machine() {
  static const llvm::Target* target = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    std::string error;
    const llvm::Target* t = llvm::TargetRegistry::lookupTarget(kTriple, error);
    EIN_CHECK(t, "LLVM has no target for PTX: " + error);
    return t;
  }();
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // formulas say themselves what is fused
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(kTriple, kDevice, kVersion, options, llvm::Reloc::PIC_));
}

}  // namespace

std::string ptx_of(const loops::Program& p) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine = device_machine();
  llvm::Module mod("einlang", context);
  mod.setTargetTriple(kTriple);
  mod.setDataLayout(machine->createDataLayout());
  std::vector<uint32_t> first_dim(p.buffers.size());  // extents are arguments
  for (const loops::Launch* n : launches_of(p)) {
    Emitter e(p, mod, first_dim);
    e.target = {.fma = true, .rounds = true};
    e.kernel_of(*n);
  }
  std::string broken;
  llvm::raw_string_ostream message(broken);
  EIN_CHECK(!llvm::verifyModule(mod, &message), "ill-formed LLVM IR: " + broken);
  optimise(mod, *machine, p.tuning);
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  bool failed = machine->addPassesToEmitFile(passes, stream, nullptr,
                                             llvm::CodeGenFileType::AssemblyFile, true);
  EIN_CHECK(!failed, "LLVM cannot emit PTX");
  passes.run(mod);
  return std::string(text.data(), text.size());
}

}  // namespace ein::codegen

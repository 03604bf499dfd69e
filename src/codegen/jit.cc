#include "codegen/jit.h"

#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>

#include "base/check.h"
#include "codegen/code_memory.h"
#include "codegen/emit.h"
#include "codegen/optimise.h"

namespace ein::codegen {
namespace {

std::atomic<uint64_t> g_count{0};

double now_ms() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

// One machine per compilation: it is not safe to share between threads, and it is cheap once the
// target is registered and the host's features are known.
std::unique_ptr<llvm::TargetMachine> make_machine(const JitOptions& wish) {
  struct Host {
    const llvm::Target* target;
    std::string triple, cpu, features;
  };
  static const Host host = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    Host h;
    h.triple = llvm::sys::getProcessTriple();
    std::string error;
    h.target = llvm::TargetRegistry::lookupTarget(h.triple, error);
    EIN_CHECK(h.target, "no LLVM target for this machine: " + error);
    h.cpu = llvm::sys::getHostCPUName().str();
    // The processor's name implies its features; what this machine lacks of them (a virtual one
    // often does) is taken away. A processor without a name of its own is described in full:
    // parsing that takes a millisecond.
    bool named = h.cpu != "generic" && h.cpu != "x86-64";
    llvm::StringMap<bool> found = llvm::sys::getHostCPUFeatures();
    for (const auto& f : found) {
      if (named && f.second) continue;
      h.features +=
          (h.features.empty() ? "" : ",") + std::string(f.second ? "+" : "-") + f.first().str();
    }
    return h;
  }();
  auto level = wish.opt_level == 0 ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default;
  std::string cpu = host.cpu, features;
  switch (wish.processor) {
    case Processor::Native: features = host.features; break;
    case Processor::Avx512: cpu = "x86-64-v4"; break;
    case Processor::Avx2: cpu = "x86-64-v3"; break;
    case Processor::Sse2:
    case Processor::Portable: cpu = "x86-64"; break;
  }
  llvm::TargetOptions options;
  auto* machine = host.target->createTargetMachine(
      host.triple, cpu, features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small, level);
  EIN_CHECK(machine, "no LLVM target machine");
  return std::unique_ptr<llvm::TargetMachine>(machine);
}

struct Built {
  std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> mod;
};

Built build(const loops::Program& p, const JitOptions& options, JitTimes& times) {
  Built out;
  double t0 = now_ms();
  out.machine = make_machine(options);
  double t1 = now_ms();
  out.mod = std::make_unique<llvm::Module>("einlang", *out.context);
  out.mod->setTargetTriple(out.machine->getTargetTriple().str());
  out.mod->setDataLayout(out.machine->createDataLayout());
  const llvm::MCSubtargetInfo& has = *out.machine->getMCSubtargetInfo();
  emit_program(p, *out.mod,
               {.fma = has.checkFeatures("+fma"),
                .rounds = has.checkFeatures("+sse4.1"),
                .halves = has.checkFeatures("+f16c")});
  std::string broken;
  llvm::raw_string_ostream message(broken);
  EIN_CHECK(!llvm::verifyModule(*out.mod, &message), "ill-formed LLVM IR: " + broken);
  double t2 = now_ms();
  if (options.opt_level > 0) optimise(*out.mod, *out.machine);
  double t3 = now_ms();
  times.target += t1 - t0;
  times.emit += t2 - t1;
  times.optimise += t3 - t2;
  return out;
}

// Only what the code generator itself may fall back to on old processors; generated calls go
// through the context's table.
class Symbols : public llvm::JITSymbolResolver {
 public:
  void lookup(const LookupSet& names, OnResolvedFunction done) override {
    LookupResult found;
    for (llvm::StringRef name : names) {
      uint64_t at = address(name.str());
      if (at == 0) {
        return done(llvm::createStringError(llvm::inconvertibleErrorCode(),
                                            "generated code refers to " + name.str()));
      }
      found[name] = llvm::JITEvaluatedSymbol(at, llvm::JITSymbolFlags::Exported);
    }
    done(std::move(found));
  }
  llvm::Expected<LookupSet> getResponsibilitySet(const LookupSet&) override { return LookupSet(); }

 private:
  static uint64_t address(const std::string& name) {
    struct Entry {
      const char* name;
      const void* at;
    };
#define EIN_SYMBOL(f, type) \
  Entry { #f, reinterpret_cast < const void*>(static_cast <type>(f)) }
    static const Entry table[] = {
        EIN_SYMBOL(memset, void* (*)(void*, int, size_t)),
        EIN_SYMBOL(memcpy, void* (*)(void*, const void*, size_t)),
    };
#undef EIN_SYMBOL
    for (const Entry& e : table) {
      if (name == e.name) return reinterpret_cast<uint64_t>(e.at);
    }
    return 0;
  }
};

struct Loaded final : Code {
  CodeMemory memory;
  Symbols symbols;
};

void emit_file(Built& built, llvm::raw_pwrite_stream& out, llvm::CodeGenFileType kind) {
  llvm::legacy::PassManager passes;
  bool failed = built.machine->addPassesToEmitFile(passes, out, nullptr, kind, true);
  EIN_CHECK(!failed, "LLVM cannot emit this kind of file");
  passes.run(*built.mod);
}

}  // namespace

uint64_t jit_count() { return g_count; }

std::unique_ptr<Code> jit(const loops::Program& p, const JitOptions& options, JitTimes* times) {
  ++g_count;
  JitTimes local;
  Built built = build(p, options, local);
  double t0 = now_ms();
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  emit_file(built, stream, llvm::CodeGenFileType::ObjectFile);
  double t1 = now_ms();
  auto out = std::make_unique<Loaded>();
  llvm::RuntimeDyld linker(out->memory, out->symbols);
  auto buffer = llvm::MemoryBufferRef(llvm::StringRef(object.data(), object.size()), "einlang");
  auto file = llvm::object::ObjectFile::createObjectFile(buffer);
  EIN_CHECK(!!file, "LLVM emitted an object that cannot be read");
  auto info = linker.loadObject(**file);
  EIN_CHECK(!linker.hasError(), "loading generated code: " + linker.getErrorString().str());
  linker.resolveRelocations();
  EIN_CHECK(!linker.hasError(), "linking generated code: " + linker.getErrorString().str());
  std::string error;
  EIN_CHECK(!out->memory.finalizeMemory(&error), "protecting generated code: " + error);
  out->entry = reinterpret_cast<NativeEntry>(linker.getSymbol(kEntryName).getAddress());
  EIN_CHECK(out->entry, "generated code has no entry");
  local.machine = t1 - t0;
  local.link = now_ms() - t1;
  if (times) *times = local;
  return out;
}

std::string llvm_text(const loops::Program& p, const JitOptions& options) {
  JitTimes times;
  Built built = build(p, options, times);
  std::string out;
  llvm::raw_string_ostream stream(out);
  built.mod->print(stream, nullptr);
  return out;
}

std::string assembly_text(const loops::Program& p, const JitOptions& options) {
  JitTimes times;
  Built built = build(p, options, times);
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  emit_file(built, stream, llvm::CodeGenFileType::AssemblyFile);
  return std::string(text.data(), text.size());
}

}  // namespace ein::codegen

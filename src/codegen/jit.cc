#include "codegen/jit.h"

#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>
#include <new>

#include "base/check.h"
#include "base/clock.h"
#include "codegen/code_memory.h"
#include "codegen/emit.h"
#include "codegen/optimise.h"

namespace ein::codegen {
namespace {

std::atomic<uint64_t> g_count{0};

Machine wanted(const JitOptions& wish) {
  return machine_for(wish.processor, wish.host ? *wish.host : host());
}

// Otherwise LLVM would end the process. Its functions are not made for exceptions, but nothing that
// they leave behind is used again.
void throw_bad_alloc(void*, const char*, bool) { throw std::bad_alloc(); }
void throw_fatal(void*, const char* reason, bool) {
  throw InternalError(std::string("LLVM: ") + reason);
}

// The instruction scheduler compares every memory access of a block with those before it, up to a
// number that this option sets: a block of thousands (an array literal of values) would take
// seconds. What it can gain lies close by.
void bound_scheduling() {
  auto& options = llvm::cl::getRegisteredOptions();
  auto found = options.find("dag-maps-huge-region");
  if (found == options.end()) return;
  found->second->addOccurrence(0, "dag-maps-huge-region", "200");
}

// One machine per compilation: it is not safe to share between threads, and it is cheap once the
// target is registered and the host's features are known.
std::unique_ptr<llvm::TargetMachine> make_machine(const JitOptions& wish) {
  static const llvm::Target* target = [] {
    llvm::install_bad_alloc_error_handler(throw_bad_alloc);
    llvm::install_fatal_error_handler(throw_fatal);
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    bound_scheduling();
    std::string error;
    const llvm::Target* t = llvm::TargetRegistry::lookupTarget(host().triple, error);
    EIN_CHECK(t, "no LLVM target for this machine: " + error);
    return t;
  }();
  auto level = wish.opt_level == 0 ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default;
  llvm::TargetOptions options;
  // A multiplication and an addition are fused only if emit.cc marked them so.
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  auto* machine = target->createTargetMachine(host().triple, wanted(wish).cpu, "", options,
                                              llvm::Reloc::PIC_, llvm::CodeModel::Small, level);
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
               {.fma = p.exact || has.checkFeatures("+fma"),
                .rounds = has.checkFeatures("+sse4.1"),
                .halves = has.checkFeatures("+f16c"),
                .guards = options.check_bounds});
  if (std::string tune = wanted(options).tune; !tune.empty()) {
    for (llvm::Function& f : *out.mod) f.addFnAttr("tune-cpu", tune);
  }
  std::string broken;
  llvm::raw_string_ostream message(broken);
  EIN_CHECK(!llvm::verifyModule(*out.mod, &message), "ill-formed LLVM IR: " + broken);
  double t2 = now_ms();
  if (options.opt_level > 0) optimise(*out.mod, *out.machine, p.tuning);
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
        EIN_SYMBOL(fma, double (*)(double, double, double)),  // of exact programs
        EIN_SYMBOL(fmaf, float (*)(float, float, float)),
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

// `name(args…)` calls `callee(@program, args…)` of the run-time library.
void emit_forward(llvm::Module& mod, llvm::GlobalVariable* program, const std::string& name,
                  const char* callee, llvm::Type* result, const std::vector<llvm::Type*>& params) {
  auto& c = mod.getContext();
  if (llvm::GlobalValue* other = mod.getNamedValue(name)) other->setName("own_" + name);
  std::vector<llvm::Type*> with_program{llvm::PointerType::getUnqual(c)};
  with_program.insert(with_program.end(), params.begin(), params.end());
  auto* outer = llvm::Function::Create(llvm::FunctionType::get(result, params, false),
                                       llvm::Function::ExternalLinkage, name, mod);
  auto* inner = llvm::Function::Create(llvm::FunctionType::get(result, with_program, false),
                                       llvm::Function::ExternalLinkage, callee, mod);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(c, "entry", outer));
  std::vector<llvm::Value*> args{program};
  for (llvm::Argument& a : outer->args()) args.push_back(&a);
  llvm::Value* out = b.CreateCall(inner, args);
  if (result->isVoidTy()) {
    b.CreateRetVoid();
  } else {
    b.CreateRet(out);
  }
}

// A StandaloneProgram (runtime/standalone.h).
llvm::GlobalVariable* emit_standalone(llvm::Module& mod, const std::string& image) {
  auto& c = mod.getContext();
  auto* pointer = llvm::PointerType::getUnqual(c);
  auto* word = llvm::Type::getInt64Ty(c);
  llvm::Function* entry = mod.getFunction(kEntryName);
  entry->setLinkage(llvm::Function::InternalLinkage);
  auto* bytes = llvm::ConstantDataArray::getString(c, image, false);
  auto* data = new llvm::GlobalVariable(mod, bytes->getType(), true,
                                        llvm::GlobalValue::InternalLinkage, bytes, "image");
  data->setAlignment(llvm::Align(64));
  auto* type = llvm::StructType::get(c, {pointer, word, pointer, pointer});
  auto* init = llvm::ConstantStruct::get(type, {data, llvm::ConstantInt::get(word, image.size()),
                                                entry, llvm::ConstantPointerNull::get(pointer)});
  return new llvm::GlobalVariable(mod, type, false, llvm::GlobalValue::InternalLinkage, init,
                                  "program");
}

void emit_file(Built& built, llvm::raw_pwrite_stream& out, llvm::CodeGenFileType kind) {
  llvm::legacy::PassManager passes;
  bool failed = built.machine->addPassesToEmitFile(passes, out, nullptr, kind, true);
  EIN_CHECK(!failed, "LLVM cannot emit this kind of file");
  passes.run(*built.mod);
}

}  // namespace

uint64_t jit_count() { return g_count; }

std::string processor_text(Processor p) {
  Machine m = machine_for(p, host());
  return host().triple + " " + name_of(p) + " " + m.cpu + " " + m.tune;
}

std::string object_code(const loops::Program& p, const JitOptions& options, JitTimes* times) {
  ++g_count;
  JitTimes local;
  Built built = build(p, options, local);
  double t0 = now_ms();
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  emit_file(built, stream, llvm::CodeGenFileType::ObjectFile);
  local.machine = now_ms() - t0;
  if (times) *times = local;
  return std::string(object.data(), object.size());
}

std::string standalone_object(const loops::Program& p, const JitOptions& options,
                              const std::string& image, const std::string& run,
                              const std::string& free) {
  JitTimes times;
  Built built = build(p, options, times);
  llvm::GlobalVariable* program = emit_standalone(*built.mod, image);
  auto* pointer = llvm::PointerType::getUnqual(*built.context);
  auto* status = llvm::Type::getInt32Ty(*built.context);
  if (free.empty()) {
    emit_forward(*built.mod, program, run, "ein_standalone_main", status, {status, pointer});
  } else {
    emit_forward(*built.mod, program, run, "ein_standalone_run", status,
                 {pointer, pointer, pointer});
    emit_forward(*built.mod, program, free, "ein_standalone_free",
                 llvm::Type::getVoidTy(*built.context), {pointer});
  }
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  emit_file(built, stream, llvm::CodeGenFileType::ObjectFile);
  return std::string(object.data(), object.size());
}

std::unique_ptr<Code> load(const std::string& object, JitTimes* times) {
  double t0 = now_ms();
  auto out = std::make_unique<Loaded>();
  llvm::RuntimeDyld linker(out->memory, out->symbols);
  auto file = llvm::object::ObjectFile::createObjectFile({object, "einlang"});
  if (!file) {
    llvm::consumeError(file.takeError());
    return nullptr;
  }
  auto info = linker.loadObject(**file);
  if (!linker.hasError()) linker.resolveRelocations();
  std::string error;
  if (linker.hasError() || out->memory.finalizeMemory(&error)) return nullptr;
  out->entry = reinterpret_cast<NativeEntry>(linker.getSymbol(kEntryName).getAddress());
  if (times) times->link = now_ms() - t0;
  return out->entry ? std::move(out) : nullptr;
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

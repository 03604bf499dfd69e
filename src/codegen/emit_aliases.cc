// Tells LLVM which loads and stores never access the same memory: different buffers do not overlap,
// and a buffer that a kernel does not write does not change.
#include "codegen/emit.h"
#include "loops/effects.h"

namespace ein::codegen {

// Every access lists all other buffers of its kernel; with very many buffers that costs more than
// it gains.
void Emitter::note_aliases(const loops::Kernel& k) {
  written = loops::effects(p, k.body).stores;
  if (written.size() < 2 || written.size() > static_cast<size_t>(p.tuning.alias_buffers)) return;
  llvm::MDBuilder md(mod.getContext());
  llvm::MDNode* domain = md.createAnonymousAliasScopeDomain();
  std::unordered_map<loops::BufferId, llvm::Metadata*> scopes;
  for (loops::BufferId id : written) scopes[id] = md.createAnonymousAliasScope(domain);
  for (loops::BufferId id : written) {
    std::vector<llvm::Metadata*> others;
    for (const auto& [other, scope] : scopes) {
      if (other != id) others.push_back(scope);
    }
    aliases[id] = {llvm::MDNode::get(mod.getContext(), {scopes[id]}),
                   llvm::MDNode::get(mod.getContext(), others)};
  }
}

llvm::Value* Emitter::touch(llvm::Instruction* access, loops::BufferId id) {
  if (!written.contains(id) && llvm::isa<llvm::LoadInst>(access)) {
    auto* note = llvm::MDNode::get(mod.getContext(), {});
    access->setMetadata(llvm::LLVMContext::MD_invariant_load, note);
  }
  if (auto it = aliases.find(id); it != aliases.end()) {
    access->setMetadata(llvm::LLVMContext::MD_alias_scope, it->second.own);
    access->setMetadata(llvm::LLVMContext::MD_noalias, it->second.others);
  }
  return access;
}

}  // namespace ein::codegen

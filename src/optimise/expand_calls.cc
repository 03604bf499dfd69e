#include <unordered_map>

#include "core/rewrite.h"
#include "optimise/passes.h"

namespace ein::optimise {
namespace {

using namespace core;

class Expansion {
 public:
  Expansion(Module& m, const ExpandWish& wish) : m_(m), wish_(wish) {}

  ExprId operator()(ExprId e) {
    return rewrite(m_, e, [&](ExprId x) {
      const auto* call = get_if<Call>(m_, x);
      if (!call || !expands(call->function)) return x;
      std::vector<ExprId> args = call->args;
      return with_arguments(m_, body(call->function), args);
    });
  }

 private:
  bool expands(FunctionId f) {
    return !m_.functions[f].recursive && !(wish_ && !wish_(f).value_or(true));
  }

  ExprId body(FunctionId f) {
    if (auto it = bodies_.find(f); it != bodies_.end()) return it->second;
    ExprId out = (*this)(m_.functions[f].body);
    bodies_.emplace(f, out);
    return out;
  }

  Module& m_;
  const ExpandWish& wish_;
  std::unordered_map<FunctionId, ExprId> bodies_;  // the expanded bodies
};

}  // namespace

Program expand_calls(Program p, const ExpandWish& wish) {
  Expansion expand(p.module, wish);
  rewrite_all(p.module, [&](ExprId e) { return expand(e); });
  for (Function& f : p.module.functions) f.body = expand(f.body);
  return p;
}

}  // namespace ein::optimise

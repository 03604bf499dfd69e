// Scopes and placement: where a value is computed (the rules are in lower.h).
#include <algorithm>

#include "base/check.h"
#include "core/rewrite.h"
#include "core/total.h"
#include "lower/lowering.h"

namespace ein::lower {

std::vector<loops::ExprId> exprs_of(const std::vector<Value>& values) {
  std::vector<loops::ExprId> out;
  for (const Value& v : values) out.push_back(v.expr);
  return out;
}

Scope& Lowering::push(Scope::Kind kind) {
  auto s = std::make_unique<Scope>();
  s->kind = kind;
  if (!scopes.empty()) s->facts = scopes.back()->facts;
  scopes.push_back(std::move(s));
  return *scopes.back();
}

std::unique_ptr<Scope> Lowering::pop() {
  std::unique_ptr<Scope> s = std::move(scopes.back());
  scopes.pop_back();
  return s;
}

void Lowering::emit(uint32_t depth, loops::Stmt s) { scopes[depth]->block.push_back(std::move(s)); }

loops::ExprId Lowering::make(loops::Node node, DType type) {
  return p.exprs.add({std::move(node), type});
}

Value Lowering::integer(int64_t value, DType type) {
  return {make(loops::IntConst{value}, type), 0};
}

loops::VarId Lowering::variable(const std::string& name, DType type) {
  return p.vars.add({name, type});
}

Value Lowering::get(loops::VarId v, uint32_t depth) {
  return {make(loops::Get{v}, p.vars[v].type), depth};
}

bool Lowering::atomic(Value v) const {
  const loops::Node& n = p.exprs[v.expr].node;
  return !std::holds_alternative<loops::Apply>(n) && !std::holds_alternative<loops::Load>(n);
}

Value Lowering::bind(Value v, const std::string& name) {
  if (atomic(v)) return v;
  loops::VarId var = variable(name, p.exprs[v.expr].type);
  emit(v.depth, {loops::Let{var, v.expr}});
  return get(var, v.depth);
}

Value Lowering::op(core::Op o, std::vector<Value> args, DType type) {
  uint32_t depth = 0;
  for (const Value& a : args) depth = std::max(depth, a.depth);
  for (Value& a : args) {
    if (a.depth < depth) a = bind(a);
  }
  return {make(loops::Apply{o, exprs_of(args)}, type), depth};
}

Value Lowering::compare(core::Op o, Value a, Value b) { return op(o, {a, b}, DType::Bool); }

const Value* Lowering::known(core::ExprId e) const {
  for (auto s = scopes.rbegin(); s != scopes.rend(); ++s) {
    auto it = (*s)->known.find(e);
    if (it != (*s)->known.end()) return &it->second;
  }
  return nullptr;
}

uint32_t Lowering::home(core::ExprId e) {
  uint32_t least = 0;
  uint64_t free = m[e].free;
  for (uint32_t s = 0; s < slots.size(); ++s) {
    if ((free >> s) & 1) least = std::max(least, slots[s].depth);
  }
  core::for_each_node(m, e, [&](core::ExprId x) {
    const auto* a = core::get_if<core::Access>(m, x);
    if (a && running.contains(a->family)) least = std::max(least, clause_depth);
  });
  // Leaving a branch only pays off if a loop is left too: then the value is computed once instead
  // of many times. In the innermost scope the value need not be total, because it is evaluated at
  // its own place.
  for (uint32_t d = least; d < top(); ++d) {
    bool leaves_loop = scopes[d + 1]->kind != Scope::Kind::Branch;
    if (leaves_loop && core::total(m, e, scopes[d]->facts, plan.overflow)) return d;
  }
  return top();
}

uint32_t Lowering::check(Value ok, loops::Site site, const std::vector<Value>& values) {
  uint32_t least = ok.depth;
  for (const Value& v : values) least = std::max(least, v.depth);
  // A check may leave loops whose bounds are known outside. It then also tests whether every loop
  // that it left would have run.
  uint32_t depth = top();
  for (uint32_t d = least; d < top(); ++d) {
    bool free_to_go = true;
    for (uint32_t k = d + 1; k <= top(); ++k) {
      const Scope& s = *scopes[k];
      free_to_go &= s.kind == Scope::Kind::Loop && s.lo.depth <= d && s.hi.depth <= d;
    }
    if (free_to_go) {
      depth = d;
      break;
    }
  }
  for (uint32_t k = depth + 1; k <= top(); ++k) {
    Value empty = compare(core::Op::Ge, scopes[k]->lo, scopes[k]->hi);
    ok = op(core::Op::Or, {empty, ok}, DType::Bool);
  }
  site.statement = statement;
  emit(depth, {loops::Check{ok.expr, p.sites.add(std::move(site)), exprs_of(values)}});
  return depth;
}

}  // namespace ein::lower

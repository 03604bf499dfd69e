#include "autodiff/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/build.h"

namespace ein::autodiff {

using core::Apply;
using core::DType;
using core::FunctionId;
using core::Op;

namespace {

// Forward, over the body of one function. An invalid tangent is a structural zero.
class Tangent {
 public:
  Tangent(Module& m, uint32_t param, std::optional<NotDifferentiable>& problem)
      : m_(m), param_(param), problem_(problem) {}

  ExprId of(ExprId e) {
    if (auto it = memo_.find(e); it != memo_.end()) return it->second;
    const core::Expr x = m_[e];  // a copy: derivatives add nodes
    ExprId out;
    if (const auto* a = std::get_if<core::Arg>(&x.node)) {
      if (a->n == param_) out = core::number(m_, 1, x.type);
    } else if (const auto* c = std::get_if<core::Call>(&x.node)) {
      if (is_float(x.type)) out = call(*c, x);
    } else if (const auto* n = std::get_if<Apply>(&x.node)) {
      if (is_float(x.type)) out = apply(e, *n, x);
    }
    return memo_[e] = out;
  }

 private:
  // The parameter reaches the value of `e`, through integers and booleans too; the condition of an
  // `if` is control, and nothing passes `stop`.
  bool reaches(ExprId e) {
    if (auto it = reaches_.find(e); it != reaches_.end()) return it->second;
    bool out = false;
    const core::Node& n = m_[e].node;
    if (const auto* arg = std::get_if<core::Arg>(&n)) out = arg->n == param_;
    if (const auto* c = std::get_if<core::Call>(&n)) {
      for (ExprId a : c->args) out |= reaches(a);
    }
    if (const auto* f = std::get_if<core::Affine>(&n)) {
      for (const auto& t : f->terms) out |= reaches(t.atom);
    }
    if (const auto* a = std::get_if<Apply>(&n); a && a->op != Op::Stop) {
      for (size_t k = a->op == Op::Select ? 1 : 0; k < a->args.size(); ++k)
        out |= reaches(a->args[k]);
    }
    return reaches_[e] = out;
  }

  void fail(NotDifferentiable why) {
    if (!problem_) problem_ = std::move(why);
  }

  ExprId sum(ExprId a, ExprId b) { return !a ? b : !b ? a : core::add(m_, a, b); }

  ExprId call(const core::Call& c, const core::Expr& x) {
    ExprId out;
    for (size_t k = 0; k < c.args.size(); ++k) {
      if (!is_float(m_[c.args[k]].type)) {
        if (reaches(c.args[k])) fail(integer_argument(m_, c.function, k, x.span));
        continue;
      }
      ExprId inner = of(c.args[k]);
      if (!inner) continue;
      FunctionId slope = partial_function(m_, c.function, k, problem_);
      inner = core::cast(m_, inner, x.type);
      out = sum(out, core::mul(m_, core::call(m_, slope, c.args), inner));
    }
    return out;
  }

  ExprId apply(ExprId e, const Apply& n, const core::Expr& x) {
    if (n.op == Op::Select) {
      ExprId yes = of(n.args[1]), no = of(n.args[2]), zero = core::number(m_, 0, x.type);
      if (!yes && !no) return {};
      return core::apply(m_, Op::Select, {n.args[0], yes ? yes : zero, no ? no : zero});
    }
    if (n.op == Op::Cast) {
      if (!is_float(m_[n.args[0]].type)) {
        if (reaches(n.args[0])) {
          fail({fmt::format("an integer or boolean that becomes {}", name_of(x.type)), x.span});
        }
        return {};
      }
      ExprId inner = of(n.args[0]);
      return inner ? core::cast(m_, inner, x.type) : ExprId{};
    }
    ExprId out;
    for (size_t k = 0; k < n.args.size(); ++k) {
      ExprId inner = of(n.args[k]);
      if (!inner) continue;
      Partial p = partial(m_, n.op, n.args, e, k);
      if (p.coef.zero) continue;
      // One is structural: x' · 1 is written x'.
      bool one = p.coef.scale == 1 && !p.coef.num && !p.coef.den;
      ExprId term = one ? inner : core::mul(m_, value(m_, p.coef, x.type), inner);
      out = sum(out, core::gated(m_, p.when, term));
    }
    return out;
  }

  Module& m_;
  uint32_t param_;
  std::optional<NotDifferentiable>& problem_;
  std::unordered_map<ExprId, ExprId> memo_;
  std::unordered_map<ExprId, bool> reaches_;
};

Symbol fresh_function_name(const Module& m, const std::string& base) {
  for (int n = 0;; ++n) {
    Symbol name = intern(n == 0 ? base : base + "_" + std::to_string(n));
    bool taken = std::any_of(m.functions.begin(), m.functions.end(),
                             [&](const core::Function& f) { return f.name == name; });
    if (!taken) return name;
  }
}

}  // namespace

FunctionId partial_function(Module& m, FunctionId f, size_t k,
                            std::optional<NotDifferentiable>& problem) {
  m.functions[f].partials.resize(m.functions[f].params.size());
  if (FunctionId made = m.functions[f].partials[k]) return made;
  core::Function d = m.functions[f];
  d.partials.clear();
  d.name = fresh_function_name(
      m, fmt::format("d_{}_d_{}", text(d.name), text(d.params[k].name)));
  d.body = core::number(m, 0, d.result);  // until it is known: the function may call itself
  FunctionId id = m.functions.add(std::move(d));
  m.functions[f].partials[k] = id;
  Tangent tangent(m, static_cast<uint32_t>(k), problem);
  if (ExprId body = tangent.of(m.functions[f].body)) m.functions[id].body = body;
  return id;
}

NotDifferentiable integer_argument(const Module& m, FunctionId f, size_t k, Span span) {
  const core::Function& function = m.functions[f];
  return {fmt::format("the {} argument `{}` of `{}`", name_of(function.params[k].type),
                      text(function.params[k].name), text(function.name)),
          span};
}

}  // namespace ein::autodiff

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

// Forward, over the body of one function. Zeros and ones are structural, as in rules.h.
class Tangent {
 public:
  Tangent(Module& m, uint32_t param, std::optional<NotDifferentiable>& problem)
      : m_(m), param_(param), problem_(problem) {}

  Coef of(ExprId e) {
    if (auto it = memo_.find(e); it != memo_.end()) return it->second;
    const core::Expr x = m_[e];  // a copy: derivatives add nodes
    Coef out{.zero = true};
    if (const auto* a = std::get_if<core::Arg>(&x.node)) {
      out.zero = a->n != param_;
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

  Coef converted(const Coef& c, DType from, DType to) {
    if (c.zero || from == to || (!c.num && !c.den)) return c;
    return {.num = core::cast(m_, value(m_, c, from), to)};
  }

  Coef call(const core::Call& c, const core::Expr& x) {
    Coef out{.zero = true};
    for (size_t k = 0; k < c.args.size(); ++k) {
      DType type = m_[c.args[k]].type;
      if (!is_float(type)) {
        if (reaches(c.args[k])) fail(integer_argument(m_, c.function, k, x.span));
        continue;
      }
      Coef inner = of(c.args[k]);
      if (inner.zero) continue;
      FunctionId slope = partial_function(m_, c.function, k, problem_);
      Coef outer{.num = core::call(m_, slope, c.args)};
      out = plus(m_, out, times(m_, outer, converted(inner, type, x.type)), x.type);
    }
    return out;
  }

  Coef apply(ExprId e, const Apply& n, const core::Expr& x) {
    if (n.op == Op::Select) {
      Coef yes = of(n.args[1]), no = of(n.args[2]);
      if (yes.zero && no.zero) return yes;
      auto side = [&](const Coef& c) {
        return c.zero ? core::number(m_, 0, x.type) : value(m_, c, x.type);
      };
      return {.num = core::apply(m_, Op::Select, {n.args[0], side(yes), side(no)})};
    }
    if (n.op == Op::Cast) {
      DType from = m_[n.args[0]].type;
      if (is_float(from)) return converted(of(n.args[0]), from, x.type);
      if (reaches(n.args[0])) {
        fail({fmt::format("an integer or boolean that becomes {}", name_of(x.type)), x.span});
      }
      return {.zero = true};
    }
    Coef out{.zero = true};
    for (size_t k = 0; k < n.args.size(); ++k) {
      Coef inner = of(n.args[k]);
      if (inner.zero) continue;
      Partial p = partial(m_, n.op, n.args, e, k);
      if (p.coef.zero) continue;
      Coef term = times(m_, p.coef, inner);
      if (p.when) term = {.num = core::gated(m_, p.when, value(m_, term, x.type))};
      out = plus(m_, out, term, x.type);
    }
    return out;
  }

  Module& m_;
  uint32_t param_;
  std::optional<NotDifferentiable>& problem_;
  std::unordered_map<ExprId, Coef> memo_;
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
  d.name = fresh_function_name(m, fmt::format("d_{}_d_{}", text(d.name), text(d.params[k].name)));
  d.body = core::number(m, 0, d.result);  // until it is known: the function may call itself
  FunctionId id = m.functions.add(std::move(d));
  m.functions[f].partials[k] = id;
  Tangent tangent(m, static_cast<uint32_t>(k), problem);
  Coef body = tangent.of(m.functions[f].body);
  if (!body.zero) m.functions[id].body = value(m, body, m.functions[id].result);
  return id;
}

NotDifferentiable integer_argument(const Module& m, FunctionId f, size_t k, Span span) {
  const core::Function& function = m.functions[f];
  return {fmt::format("the {} argument `{}` of `{}`", name_of(function.params[k].type),
                      text(function.params[k].name), text(function.name)),
          span};
}

}  // namespace ein::autodiff

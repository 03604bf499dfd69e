#include "autodiff/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/build.h"
#include "core/rewrite.h"

namespace ein::autodiff {

using core::Apply;
using core::DType;
using core::FunctionId;
using core::Op;

namespace {

// Forward differentiation over the body of one function, given the tangents of its parameters;
// those without one are constant. Zeros and ones are structural, as in rules.h.
class Tangent {
 public:
  Tangent(Module& m, std::map<uint32_t, Coef> moving, std::optional<NotDifferentiable>& problem)
      : m_(m), moving_(std::move(moving)), problem_(problem) {}

  // In the tangent that a rule gives, `@x` alone moves.
  Coef of(ExprId e, bool rule = false) {
    if (auto it = memo_.find({e, rule}); it != memo_.end()) return it->second;
    const core::Expr x = m_[e];  // a copy: derivatives add nodes
    Coef out{.zero = true};
    if (const auto* a = std::get_if<core::Arg>(&x.node)) {
      if (auto it = moving_.find(a->n); it != moving_.end() && !rule) out = it->second;
    } else if (const auto* c = std::get_if<core::Call>(&x.node)) {
      if (is_float(x.type)) out = call(*c, x, rule);
    } else if (const auto* n = std::get_if<Apply>(&x.node)) {
      if (is_float(x.type)) out = apply(e, *n, x, rule);
    }
    return memo_[{e, rule}] = out;
  }

 private:
  // Whether a parameter that varies reaches the value of `e`, also through integers and booleans.
  // The condition of an `if` is control, and nothing passes `stop`.
  bool reaches(ExprId e) {
    if (auto it = reaches_.find(e); it != reaches_.end()) return it->second;
    bool out = false;
    const core::Node& n = m_[e].node;
    if (const auto* arg = std::get_if<core::Arg>(&n)) out = moving_.contains(arg->n);
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

  Coef call(const core::Call& c, const core::Expr& x, bool rule) {
    std::vector<size_t> moving;
    for (size_t k = 0; k < c.args.size(); ++k) {
      if (!is_float(m_[c.args[k]].type)) {
        if (!rule && reaches(c.args[k])) fail(integer_argument(m_, c.function, k, x.span));
      } else if (!of(c.args[k], rule).zero) {
        moving.push_back(k);
      }
    }
    if (moving.size() > 1 && m_.functions[c.function].recursive) return along(c, moving, rule);
    Coef out{.zero = true};
    for (size_t k : moving) {
      DType from = m_[c.args[k]].type;
      out = plus(
          m_, out,
          term(slope(m_, c, k, problem_), converted(of(c.args[k], rule), from, x.type), x.type),
          x.type);
    }
    return out;
  }

  Coef along(const core::Call& c, const std::vector<size_t>& moving, bool rule) {
    std::vector<ExprId> args = c.args;
    for (size_t k : moving) args.push_back(value(m_, of(c.args[k], rule), m_[c.args[k]].type));
    FunctionId along = directional_function(m_, c.function, moving, problem_);
    return {.num = core::call(m_, along, std::move(args))};
  }

  Coef term(const Partial& p, const Coef& inner, DType type) {
    if (p.coef.zero) return p.coef;
    Coef out = times(m_, p.coef, inner);
    return p.when ? Coef{.num = core::gated(m_, p.when, value(m_, out, type))} : out;
  }

  Coef apply(ExprId e, const Apply& n, const core::Expr& x, bool rule) {
    if (n.op == Op::Rule) return rule ? Coef{.zero = true} : of(n.args[1], true);
    if (n.op == Op::Tangent) return of(n.args[0]);
    if (n.op == Op::Select) {
      Coef yes = of(n.args[1], rule), no = of(n.args[2], rule);
      if (yes.zero && no.zero) return yes;
      auto side = [&](const Coef& c) {
        return c.zero ? core::number(m_, 0, x.type) : value(m_, c, x.type);
      };
      return {.num = core::apply(m_, Op::Select, {n.args[0], side(yes), side(no)})};
    }
    if (n.op == Op::Cast) {
      DType from = m_[n.args[0]].type;
      if (is_float(from)) return converted(of(n.args[0], rule), from, x.type);
      if (!rule && reaches(n.args[0])) {
        fail({fmt::format("a conversion from an integer or boolean to {}", name_of(x.type)),
              x.span});
      }
      return {.zero = true};
    }
    Coef out{.zero = true};
    for (size_t k = 0; k < n.args.size(); ++k) {
      Coef inner = of(n.args[k], rule);
      if (inner.zero) continue;
      out = plus(m_, out, term(partial(m_, n.op, n.args, e, k), inner, x.type), x.type);
    }
    return out;
  }

  Module& m_;
  std::map<uint32_t, Coef> moving_;
  std::optional<NotDifferentiable>& problem_;
  std::map<std::pair<ExprId, bool>, Coef> memo_;  // by whether a rule says it
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

namespace {

// `f` with another name, no derivatives and, until it is known, a body of zero: it may call itself.
core::Function derived(Module& m, FunctionId f, const std::string& name) {
  core::Function d = m.functions[f];
  d.partials.clear();
  d.along.clear();
  d.name = fresh_function_name(m, name);
  d.body = core::number(m, 0, d.result);
  return d;
}

// Where the function calls itself: forward, one call for each call.
void define(Module& m, FunctionId id, FunctionId of, std::map<uint32_t, Coef> moving,
            std::optional<NotDifferentiable>& problem) {
  Tangent tangent(m, std::move(moving), problem);
  Coef body = tangent.of(m.functions[of].body);
  if (!body.zero) m.functions[id].body = value(m, body, m.functions[id].result);
}

}  // namespace

FunctionId partial_function(Module& m, FunctionId f, size_t k,
                            std::optional<NotDifferentiable>& problem) {
  m.functions[f].partials.resize(m.functions[f].params.size());
  if (FunctionId made = m.functions[f].partials[k]) return made;
  const core::Function& of = m.functions[f];
  std::string name = fmt::format("d_{}_d_{}", text(of.name), text(of.params[k].name));
  FunctionId id = m.functions.add(derived(m, f, name));
  m.functions[f].partials[k] = id;
  auto parameter = static_cast<uint32_t>(k);
  if (m.functions[f].recursive) {
    define(m, id, f, {{parameter, Coef{}}}, problem);
    return id;
  }
  Slopes slopes = linearise_function(m, f, parameter);
  if (slopes.problem && !problem) problem = slopes.problem;
  DType type = m.functions[id].result;
  ExprId body;
  for (const auto& [gate, coef] : slopes.by_gate) {
    if (coef.zero) continue;
    ExprId term = value(m, coef, type);
    if (gate) term = core::gated(m, gate, term);
    body = body ? core::add(m, body, term) : term;
  }
  if (body) m.functions[id].body = body;
  return id;
}

FunctionId directional_function(Module& m, FunctionId f, const std::vector<size_t>& moving,
                                std::optional<NotDifferentiable>& problem) {
  if (auto made = m.functions[f].along.find(moving); made != m.functions[f].along.end())
    return made->second;
  std::string name = fmt::format("d_{}_along", text(m.functions[f].name));
  for (size_t k : moving) name += "_" + text(m.functions[f].params[k].name);
  core::Function d = derived(m, f, name);
  for (size_t k : moving) {
    std::string base = "d_" + text(d.params[k].name), unused = base;
    auto taken = [&](const auto& p) { return text(p.name) == unused; };
    for (int n = 1; std::any_of(d.params.begin(), d.params.end(), taken); ++n)
      unused = base + "_" + std::to_string(n);
    d.params.push_back({intern(unused), d.params[k].type});
  }
  auto first = static_cast<uint32_t>(m.functions[f].params.size());
  FunctionId id = m.functions.add(std::move(d));
  m.functions[f].along[moving] = id;
  std::map<uint32_t, Coef> tangents;
  for (uint32_t i = 0; i < moving.size(); ++i) {
    tangents[static_cast<uint32_t>(moving[i])] = {
        .num = core::argument(m, first + i, m.functions[id].params[first + i].type)};
  }
  define(m, id, f, std::move(tangents), problem);
  return id;
}

namespace {

// A few sums and products: no longer than the call that would stand for it, and as cheap.
bool is_short(const Module& m, ExprId e) {
  size_t operations = 0;
  bool simple = true;
  core::for_each_node(m, e, [&](ExprId x) {
    simple &= !core::get_if<core::Call>(m, x);
    const auto* a = core::get_if<Apply>(m, x);
    if (!a) return;
    simple &= core::info(a->op).cls != core::OpClass::Real;
    ++operations;
  });
  return simple && operations <= 3;
}

bool is_number(const Module& m, ExprId e, double value) {
  const auto* lit = core::get_if<core::FloatLit>(m, e);
  return lit && lit->value == value;
}

}  // namespace

Partial slope(Module& m, const core::Call& c, size_t k, std::optional<NotDifferentiable>& problem) {
  FunctionId f = partial_function(m, c.function, k, problem);
  if (m.functions[f].recursive) return {{.num = core::call(m, f, c.args)}, {}};
  Partial out;
  ExprId body = m.functions[f].body;
  // A side without a slope is a gate, so that nothing else on that side is multiplied by zero.
  if (const auto* a = core::get_if<Apply>(m, body); a && a->op == Op::Select) {
    ExprId cond = a->args[0], yes = a->args[1], no = a->args[2];
    if (is_number(m, no, 0)) {
      out.when = core::with_arguments(m, cond, c.args);
      body = yes;
    } else if (is_number(m, yes, 0)) {
      out.when = core::negate(m, core::with_arguments(m, cond, c.args));
      body = no;
    }
  }
  if (const auto* lit = core::get_if<core::FloatLit>(m, body)) {
    out.coef = {.zero = lit->value == 0, .scale = lit->value};
    return out;
  }
  if (!is_short(m, body)) {
    out.coef.num = core::call(m, f, c.args);
    return out;
  }
  out.coef.num = core::with_arguments(m, body, c.args);
  const auto* quotient = core::get_if<Apply>(m, out.coef.num);
  if (quotient && quotient->op == Op::Div) {
    std::vector<ExprId> parts = quotient->args;
    out.coef = {.num = is_number(m, parts[0], 1) ? ExprId{} : parts[0], .den = parts[1]};
  }
  return out;
}

NotDifferentiable integer_argument(const Module& m, FunctionId f, size_t k, Span span) {
  const core::Function& function = m.functions[f];
  return {fmt::format("the {} argument `{}` of `{}`", name_of(function.params[k].type),
                      text(function.params[k].name), text(function.name)),
          span};
}

}  // namespace ein::autodiff

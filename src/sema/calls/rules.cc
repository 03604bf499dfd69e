// `@fn`: the derivative of a function, given by its author (decisions.md, 27). A rule has the name,
// the parameters and the coordinates of its function; its body is linear in the tangents `@x`.
#include <fmt/format.h>

#include <algorithm>

#include "sema/calls/calls.h"
#include "sema/names/attributes.h"
#include "sema/names/trees.h"
#include "sema/ranges/ranges.h"
#include "sema/state/call_state.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

std::string list(const std::vector<std::string>& names) {
  return fmt::format("({})", fmt::join(names, ", "));
}

Diagnostic& mismatch(Sema& s, const ast::Fn& rule, std::string message) {
  return s.diags.error(Code::E0605, std::move(message)).primary(rule.name.span, "the rule");
}

bool same_signature(Sema& s, const ast::Fn& rule, const ast::Fn& fn) {
  for (const ast::Param& p : rule.params) {
    if (!p.value) continue;
    mismatch(s, rule,
             fmt::format("the rule of {} gives {} a default", quoted(fn.name.symbol),
                         quoted(p.name.symbol)))
        .label(s[p.value].span, "this has no use here")
        .label(fn.signature, "the function")
        .help("defaults belong to the function: its rule is always given all arguments");
    return false;
  }
  std::vector<std::string> of_rule, of_fn;
  for (const ast::Param& p : rule.params) of_rule.push_back(text(p.name.symbol));
  for (const ast::Param& p : fn.params) of_fn.push_back(text(p.name.symbol));
  if (of_rule != of_fn) {
    mismatch(s, rule,
             fmt::format("the rule of {} has different parameters: {} instead of {}",
                         quoted(fn.name.symbol), list(of_rule), list(of_fn)))
        .label(fn.name.span, "the function")
        .help("give the rule the function's parameters, in their order");
    return false;
  }
  auto coords = [](const ast::Fn& f) {
    std::vector<std::string> out;
    for (const ast::FnCoord& c : f.coords)
      out.push_back((c.pack ? ".." : "") + text(c.name.symbol));
    return out;
  };
  if (coords(rule) != coords(fn)) {
    mismatch(s, rule,
             fmt::format("the rule of {} has different coordinates: [{}] instead of [{}]",
                         quoted(fn.name.symbol), fmt::join(coords(rule), ", "),
                         fmt::join(coords(fn), ", ")))
        .label(fn.name.span, "the function")
        .help("give the rule the same coordinates in brackets as its function");
    return false;
  }
  return true;
}

bool is_surrogate(const Sema& s, const Function& rule) {
  return find_attribute(s.ast[rule.stmt], Attribute::Surrogate) != nullptr;
}

// A default that says that the parameter is no real number: an integer, a tuple, a string.
bool without_tangent(const Sema& s, TreeId value) {
  if (!value) return false;
  bool real = false;
  for_each_tree(s.ast, value, [&](TreeId e) {
    const ast::ExprNode& n = s[e].node;
    real |= std::holds_alternative<ast::FloatLit>(n) || std::holds_alternative<ast::Path>(n) ||
            std::holds_alternative<ast::Call>(n);
  });
  return !real;
}

// Warns about parameters whose tangent the body does not use: their derivative is zero.
void warn_unused(Sema& s, const ast::Fn& rule, const ast::Fn& fn) {
  std::set<Symbol> used;
  for_each_tree(s.ast, rule.body, [&](TreeId e) {
    const auto* request = std::get_if<ast::Request>(&s[e].node);
    if (!request || request->den) return;
    if (Symbol symbol = path_name(s.ast, named_base(s.ast, request->num))) used.insert(symbol);
  });
  for (size_t k = 0; k < rule.params.size(); ++k) {
    const ast::Param& p = rule.params[k];
    if (used.count(p.name.symbol) || without_tangent(s, fn.params[k].value)) continue;
    auto dtype = p.type ? written_type(s.ast, p.type) : std::nullopt;
    if (dtype && !is_float(*dtype)) continue;
    s.diags
        .warning(Code::W0602,
                 fmt::format("the rule does not use `@{0}`, so the derivative by `{0}` "
                             "is zero",
                             text(p.name.symbol)))
        .primary(p.name.span, "")
        .help("if that is intended, ignore this; otherwise add the term with `@" +
              text(p.name.symbol) + "`");
  }
}

// How a rule's body depends on the tangents.
enum class Degree : uint8_t { Zero, Constant, Linear, Other };

struct Linearity {
  Sema& s;
  Span culprit;
  std::map<CoreId, Degree> seen;
  std::map<FamilyId, Degree> families;

  Degree sum(Degree a, Degree b, CoreId at) {
    if (a == Degree::Zero) return b;
    if (b == Degree::Zero || a == b) return a;
    return other(at);
  }

  Degree other(CoreId at) {
    if (!culprit.valid()) culprit = s.m[at].span;
    return Degree::Other;
  }

  Degree of(CoreId e) {
    auto it = seen.find(e);
    if (it != seen.end()) return it->second;
    return seen[e] = find(e);
  }

  Degree of(FamilyId f) {
    auto [it, fresh] = families.try_emplace(f, Degree::Zero);  // a recurrence reads itself
    if (!fresh) return it->second;
    if (s.m[f].clauses.empty()) return families[f] = Degree::Constant;
    Degree out = Degree::Zero;
    for (const core::Clause& c : s.m[f].clauses) out = sum(out, of(c.body), c.body);
    return families[f] = out;
  }

  Degree find(CoreId e) {
    if (const auto* lit = core::get_if<core::FloatLit>(s.m, e)) {
      return lit->value == 0 ? Degree::Zero : Degree::Constant;
    }
    if (const auto* read = core::get_if<core::Access>(s.m, e)) {
      bool constant = !is_float(s.m[read->family].dtype) ||
                      s.m[read->family].kind != core::Family::Kind::Defined;
      return constant || !s.m[read->family].generated ? Degree::Constant : of(read->family);
    }
    if (const auto* r = core::get_if<core::Reduce>(s.m, e)) {
      Degree body = of(r->body);
      if (r->op == core::ReduceOp::Sum || body == Degree::Other) return body;
      return body == Degree::Linear ? other(e) : Degree::Constant;
    }
    if (const auto* call = core::get_if<core::Call>(s.m, e)) {
      for (CoreId x : std::vector<CoreId>(call->args)) {
        Degree d = of(x);
        if (d == Degree::Linear || d == Degree::Other) return other(e);
      }
      return Degree::Constant;
    }
    const auto* a = core::get_if<core::Apply>(s.m, e);
    if (!a || a->op == core::Op::Rule) return Degree::Constant;
    auto arg = [&](size_t k) { return of(core::get_if<core::Apply>(s.m, e)->args[k]); };
    switch (a->op) {
      case core::Op::Tangent: return Degree::Linear;
      case core::Op::Add:
      case core::Op::Sub: return sum(arg(0), arg(1), e);
      case core::Op::Neg:
      case core::Op::Cast: return arg(0);
      case core::Op::Select: return sum(arg(1), arg(2), e);
      case core::Op::Div:
      case core::Op::Mul: {
        Degree x = arg(0), y = arg(1);
        if (x == Degree::Other || y == Degree::Other) return Degree::Other;
        bool divides = core::get_if<core::Apply>(s.m, e)->op == core::Op::Div;
        if (y == Degree::Linear && (divides || x == Degree::Linear)) return other(e);
        if (x == Degree::Zero || (y == Degree::Zero && !divides)) return Degree::Zero;
        return x == Degree::Linear || y == Degree::Linear ? Degree::Linear : Degree::Constant;
      }
      default: break;
    }
    bool linear = false;
    for (size_t k = 0; k < core::get_if<core::Apply>(s.m, e)->args.size(); ++k) {
      Degree d = arg(k);
      if (d == Degree::Other) return d;
      linear |= d == Degree::Linear;
    }
    return linear ? other(e) : Degree::Constant;
  }
};

bool is_zero(Sema& s, const Value& tangent) {
  if (tangent.kind != Value::Kind::Data) return false;
  return Linearity{s, {}, {}, {}}.of(tangent.body) == Degree::Zero;
}

}  // namespace

void check_rules(Sema& s, Scope& scope) {
  for (auto it = scope.rules.begin(); it != scope.rules.end();) {
    const ast::Fn& rule = *it->second.fn;
    auto f = scope.functions.find(it->first);
    bool ok = false;
    if (f == scope.functions.end()) {
      mismatch(s, rule, fmt::format("there is no function {} for this rule", quoted(it->first)))
          .help("a rule has the name of its function and is in the same module");
    } else if (f->second.home != &scope) {
      mismatch(s, rule, fmt::format("{} belongs to another module", quoted(it->first)))
          .label(f->second.fn->name.span, "the function")
          .help("a rule must be in the same module as its function");
    } else {
      ok = same_signature(s, rule, *f->second.fn);
    }
    if (ok) warn_unused(s, rule, *f->second.fn);
    it = ok ? std::next(it) : scope.rules.erase(it);
  }
}

const Function* rule_of(const Sema& s, const ast::Fn& fn, ast::StmtId stmt, const Frame* home) {
  if (!s.program.derives || fn.rule || !stmt || !home || !home->scope) return nullptr;
  auto it = home->scope->rules.find(fn.name.symbol);
  if (it == home->scope->rules.end()) return nullptr;
  auto own = home->scope->functions.find(fn.name.symbol);
  if (own == home->scope->functions.end() || own->second.stmt != stmt) return nullptr;
  // Derivatives of the third order and below go by a rule that is marked as nested.
  constexpr ptrdiff_t kMostNested = 3;
  bool nested = find_attribute(s.ast[it->second.stmt], Attribute::Nested) != nullptr;
  auto around = std::count(s.calls.stack.begin(), s.calls.stack.end(), it->second.stmt);
  return around < (nested ? kMostNested : 1) ? &it->second : nullptr;
}

bool check_spread(Sema& s, const Function& rule, const ast::Fn& fn, const Value& tangent,
                  const std::vector<Symbol>& unspelled, Span span) {
  const auto* dims = fn.result ? dims_of(s.ast, fn.result) : nullptr;
  if (unspelled.empty() || !dims || is_zero(s, tangent)) return true;
  auto missing = [&](Symbol name) {
    return std::find(unspelled.begin(), unspelled.end(), name) != unspelled.end();
  };
  std::vector<std::string> of_rule, of_value;
  for (const ast::Dim& d : *dims) {
    bool pack = d.kind == ast::Dim::Kind::Pack;
    Symbol name = pack ? d.name.symbol : dim_name(s.ast, d);
    of_value.push_back(name ? text(name) : "?");
    if (pack || !missing(name)) of_rule.push_back(of_value.back());
  }
  if (of_rule.size() == of_value.size()) return true;  // what is missing is part of a pack
  auto shown = [](const std::vector<std::string>& names) {
    return names.empty() ? "no coordinates"
                         : fmt::format("coordinates `{}`", fmt::join(names, ", "));
  };
  mismatch(s, *rule.fn,
           fmt::format("the rule's result has {}, but the value of {} has {}", shown(of_rule),
                       quoted(fn.name.symbol), shown(of_value)))
      .label(s.ast[fn.result].span, "the value's coordinates")
      .label(span, "called here")
      .help(fmt::format(
          "index the rule's terms by the coordinates of the result: {} does not appear in them",
          quoted(unspelled[0])));
  return false;
}

Value with_rule(Sema& s, Env& env, const Function& rule, Value value, Value tangent, Span span) {
  if (tangent.poison()) return {};
  if (value.kind == Value::Kind::Tuple || tangent.kind == Value::Kind::Tuple) {
    if (auto aligned = in_order_of(value, tangent)) tangent = std::move(*aligned);
    bool fits = value.kind == tangent.kind && value.items.size() == tangent.items.size() &&
                value.fields == tangent.fields;
    if (!fits) {
      auto called = [&](const Value& v) { return show_value(s, v); };
      mismatch(s, *rule.fn,
               fmt::format("the rule of {} returns {}, but its function returns {}",
                           quoted(rule.fn->name.symbol), called(tangent), called(value)))
          .label(span, "called here")
          .help("a rule returns one tangent for each value of its function, `0.0` for an integer");
      return {};
    }
    for (size_t i = 0; i < value.items.size(); ++i) {
      Value& item = value.items[i];
      if (item.one() || item.kind == Value::Kind::Tuple) {
        item = with_rule(s, env, rule, std::move(item), std::move(tangent.items[i]), span);
      }
      if (item.poison()) return {};
    }
    return value;
  }
  // Made of literals alone: a constant, which still adapts to the type that it meets.
  if (value.kind == Value::Kind::Data && value.typing != Typing::Fixed) return value;
  value = settle(s, env, std::move(value));
  if (value.poison()) return {};
  tangent = as_data(s, env, std::move(tangent));
  if (tangent.poison()) return {};
  if (!is_float(value.type) && is_zero(s, tangent)) return value;
  DType type = is_float(value.type) ? value.type : default_type(tangent);
  if (!fits(tangent, type) || !is_float(type)) {
    mismatch(s, *rule.fn,
             fmt::format("the rule of {} returns {}, not `{}`", quoted(rule.fn->name.symbol),
                         show_value(s, tangent), name_of(type)))
        .label(span, "called here");
    return {};
  }
  tangent = adapt(s, env, std::move(tangent), type);
  if (tangent.poison()) return {};
  bool spread = tangent.scalar() && is_zero(s, tangent);  // no derivative, at every address
  bool layout = spread || tangent.coords.size() == value.coords.size();
  for (size_t i = 0; layout && i < tangent.coords.size(); ++i) {
    Symbol a = tangent.coords[i].name, b = value.coords[i].name;
    layout = !a || !b || a == b;
    layout = layout && equal(s, tangent.coords[i].extent, value.coords[i].extent) != Truth::No;
  }
  if (!layout) {
    mismatch(s, *rule.fn,
             fmt::format("the rule of {} has coordinates {}, but its function has {}",
                         quoted(rule.fn->name.symbol), show_coords(s, tangent.coords),
                         show_coords(s, value.coords)))
        .label(span, "called here")
        .help("the tangent of a result has the coordinates of the result");
    return {};
  }
  Linearity linearity{s, {}, {}, {}};
  Degree degree = linearity.of(tangent.body);
  if (degree == Degree::Constant || degree == Degree::Other) {
    auto& d = s.diags.error(Code::E0606, fmt::format("the rule of {} is not linear in the tangents",
                                                     quoted(rule.fn->name.symbol)));
    bool place = linearity.culprit.valid();
    d.primary(place ? linearity.culprit : rule.fn->name.span,
              degree == Degree::Constant ? "this term has no tangent" : "");
    if (place) d.label(rule.fn->name.span, "the rule");
    d.help("every term must have exactly one tangent as a factor, as in `2.0 * x * @x`");
    return {};
  }
  std::vector<CoreId> parts = aligned(s.m, env, {value, tangent}, value.coords.size());
  value.body = core::apply(s.m, core::Op::Rule, parts, span);
  if (is_surrogate(s, rule)) s.m.surrogates.push_back(s.m[value.body].span);
  value.depth = env.depth;
  return value;
}

Value elaborate_tangent(Sema& s, Env& env, const ast::Request& request, Span span) {
  Symbol symbol = path_name(s.ast, named_base(s.ast, request.num));
  bool parameter = false;
  for (const Frame* f = env.frame; f && symbol; f = f->up) {
    for (const auto& [bound, value] : f->values) {
      if (bound.symbol == symbol) parameter = f->rule;
    }
    if (parameter || f->function) break;
  }
  if (!parameter) {
    s.diags
        .error(
            Code::E0603,
            "an `@` without a denominator is only allowed on a parameter, in the body of an `@fn`")
        .primary(span, "")
        .help("a derivative has a numerator and a denominator: `@y / @x`");
    return {};
  }
  Value v = elaborate(s, env, request.num);
  if (v.kind == Value::Kind::Data && v.typing != Typing::Fixed && v.scalar()) {
    // A literal, an index or an extent is a constant and adapts to the type it meets.
    v.body = core::float_lit(s.m, 0, DType::F64);
    v.type = DType::F64;
    v.typing = Typing::Float;
    return v;
  }
  v = settle(s, env, std::move(v));
  if (v.poison()) return {};
  if (!is_float(v.type)) {
    s.diags.error(Code::E0602, fmt::format("`@{}`: only floats have tangents", text(symbol)))
        .primary(span, "this is " + show_value(s, v));
    return {};
  }
  v.body = core::apply(s.m, core::Op::Tangent, {v.body}, span);
  return v;
}

}  // namespace ein::sema

// Program entry: extents from the shapes of inputs, and the checks made once before a program runs.
#include <fmt/format.h>

#include <map>

#include "base/check.h"
#include "core/build.h"
#include "core/eval.h"
#include "core/rewrite.h"
#include "core/scalar.h"

namespace ein::core {
namespace {

std::string show(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// " (n is 2, m is 3)": the extents that a failed constraint mentions.
std::string values(const Module& m, ExprId cond, const std::vector<int64_t>& params) {
  std::map<std::string, int64_t> found;
  for_each_node(m, cond, [&](ExprId e) {
    const auto* p = get_if<ParamRef>(m, e);
    if (!p) return;
    const Param& param = m.params[p->param];
    std::string name =
        param.name ? text(param.name)
                   : fmt::format("extent({}, {})", text(m[param.source].name), param.position);
    found[name] = params[p->param.v];
  });
  std::string out;
  for (const auto& [name, value] : found) {
    out += fmt::format("{}{} is {}", out.empty() ? " (" : ", ", name, value);
  }
  return out.empty() ? out : out + ")";
}

int64_t integer_of(const Tensor& t) {
  switch (t.dtype()) {
    case DType::I8: return *t.as<int8_t>();
    case DType::I16: return *t.as<int16_t>();
    case DType::I32: return *t.as<int32_t>();
    case DType::I64: return *t.as<int64_t>();
    case DType::U8: return *t.as<uint8_t>();
    default: EIN_UNREACHABLE("an extent that is not an integer");
  }
}

// A closed expression over params.
Scalar closed(const Module& m, ExprId e, const std::vector<int64_t>& params) {
  const Expr& x = m[e];
  if (const auto* n = std::get_if<FloatLit>(&x.node)) return {.f = n->value};
  if (const auto* n = std::get_if<IntLit>(&x.node)) return {.i = n->value};
  if (const auto* n = std::get_if<BoolLit>(&x.node)) return {.i = n->value};
  if (const auto* n = std::get_if<ParamRef>(&x.node)) return {.i = params[n->param.v]};
  if (const auto* n = std::get_if<Affine>(&x.node)) {
    int64_t sum = n->constant;
    for (const auto& t : n->terms) {
      int64_t product = 0;
      if (__builtin_mul_overflow(t.coef, closed(m, t.atom, params).i, &product) ||
          __builtin_add_overflow(sum, product, &sum)) {
        throw RuntimeError{Code::E0807, "an extent does not fit in 64 bits"};
      }
    }
    return {.i = sum};
  }
  const auto* n = std::get_if<Apply>(&x.node);
  EIN_CHECK(n, "an extent reads a value");
  Scalar a = closed(m, n->args[0], params);
  if (n->op == Op::And) return a.i ? closed(m, n->args[1], params) : a;
  if (n->op == Op::Or) return a.i ? a : closed(m, n->args[1], params);
  if (n->op == Op::Select) return closed(m, n->args[a.i ? 1 : 2], params);
  Scalar b = n->args.size() > 1 ? closed(m, n->args[1], params) : Scalar{.i = 0};
  auto v = apply_scalar(n->op, m[n->args[0]].type, x.type, a, b);
  if (!v) {
    bool shifts = n->op == Op::Shl || n->op == Op::Shr;
    throw RuntimeError{Code::E0806, shifts ? "an extent shifts by more than its width"
                                           : "an extent divides by zero"};
  }
  return *v;
}

}  // namespace

int64_t eval_extent(const Module& m, ExprId e, const std::vector<int64_t>& params) {
  return closed(m, e, params).i;
}

std::variant<std::vector<int64_t>, RuntimeError> bind_params(const Module& m, const Inputs& inputs,
                                                             const std::vector<FamilyId>& needed) {
  std::vector<int64_t> params(m.params.size(), -1);
  for (FamilyId id : needed) {
    const Family& f = m[id];
    if (f.kind != Family::Kind::Input) continue;
    const std::string& name = text(f.name);
    auto it = inputs.find(name);
    if (it == inputs.end())
      return RuntimeError{Code::E0801, "input `" + name + "` was not given a value", f.span};
    const Tensor& t = it->second;
    if (t.rank() != f.coords.size()) {
      return RuntimeError{Code::E0802,
                          fmt::format("input `{}` needs {} coordinates, but its value has shape {}",
                                      name, f.coords.size(), show(t.shape())),
                          f.span};
    }
    if (t.dtype() != f.dtype) {
      return RuntimeError{Code::E0802,
                          fmt::format("input `{}` is declared as {}, but its value is {}", name,
                                      name_of(f.dtype), name_of(t.dtype())),
                          f.span};
    }
    for (uint32_t p = 0; p < m.params.size(); ++p) {
      const Param& param = m.params[ParamId(p)];
      if (param.source != id) continue;
      if (param.position != Param::kItself) {
        params[p] = t.shape()[param.position];
        continue;
      }
      params[p] = integer_of(t);
      if (params[p] < 0) {
        return RuntimeError{
            Code::E0802,
            fmt::format("input `{}` is {}, but it bounds a range and must not be negative", name,
                        params[p]),
            f.span};
      }
    }
  }
  try {
    for (FamilyId id : needed) {
      const Family& f = m[id];
      if (f.kind != Family::Kind::Input) continue;
      const Tensor& t = inputs.at(text(f.name));
      for (size_t k = 0; k < f.coords.size(); ++k) {
        int64_t want = eval_extent(m, f.coords[k].extent, params);
        if (want == t.shape()[k]) continue;
        return RuntimeError{
            Code::E0802,
            fmt::format("input `{}` has extent {} along {}, but {} is needed there (shape {})",
                        text(f.name), t.shape()[k],
                        f.coords[k].name ? "`" + text(f.coords[k].name) + "`"
                                         : "coordinate " + std::to_string(k),
                        want, show(t.shape())),
            f.span};
      }
    }
    for (const Constraint& c : m.constraints) {
      bool bound = true;  // constraints between inputs that nothing needs are not checked
      for_each_node(m, c.cond, [&](ExprId e) {
        if (const auto* p = get_if<ParamRef>(m, e)) bound &= params[p->param.v] >= 0;
      });
      if (bound && closed(m, c.cond, params).i == 0) {
        return RuntimeError{Code::E0805, c.message + values(m, c.cond, params), c.first};
      }
    }
  } catch (const RuntimeError& e) { return e; }
  return params;
}

}  // namespace ein::core

#include "driver/derivation.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/build.h"
#include "core/rewrite.h"
#include "driver/requests.h"

namespace ein {
namespace {

using core::Access;
using core::Apply;
using core::Clause;
using core::Coord;
using core::Expr;
using core::ExprId;
using core::Family;
using core::FamilyId;
using core::Module;
using core::Op;
using Form = Derivation::Form;

// `net.w` with the suffix `_bar` is `net_bar.w`.
std::string with_suffix(const std::string& spelled, const char* suffix) {
  size_t dot = std::min(spelled.find('.'), spelled.size());
  return spelled.substr(0, dot) + suffix + spelled.substr(dot);
}

// What callers know a new value by: `path`, or `x_bar_1`, `grads_1.x` where something is called so
// already, in a derivative of a derivative.
std::string free_path(const Module& m, const std::string& path) {
  auto taken = [&](const std::string& name) {
    return std::any_of(m.families.begin(), m.families.end(),
                       [&](const Family& f) { return f.spelled() == name; });
  };
  std::string out = path;
  for (int n = 1; taken(out); ++n) out = with_suffix(path, fmt::format("_{}", n).c_str());
  return out;
}

FamilyId add_input(Module& m, const std::string& wanted, FamilyId like) {
  std::string path = free_path(m, wanted);
  Family f;
  f.name = core::fresh_name(m, flat(path));
  f.path = path;
  f.kind = Family::Kind::Input;
  f.dtype = m[like].dtype;
  f.coords = m[like].coords;
  f.span = m[like].span;
  return m.families.add(std::move(f));
}

FamilyId add_family(Module& m, const std::string& name, DType dtype, std::vector<Coord> coords,
                    ExprId body, Span span) {
  Family f;
  f.name = core::fresh_name(m, name);
  f.dtype = dtype;
  f.coords = std::move(coords);
  f.span = span;
  Clause c;
  for (const Coord& k : f.coords) c.box.push_back({core::int_lit(m, 0), k.extent});
  c.body = body;
  c.span = span;
  f.clauses.push_back(std::move(c));
  return m.families.add(std::move(f));
}

// A derivative that callers know by `path`. In source it is called so, too, if that is one word;
// `grads.W` is `d_loss_d_W` there.
FamilyId named_request(Module& m, FamilyId num, FamilyId den, const std::string& wanted) {
  std::string path = free_path(m, wanted);
  Symbol name = core::fresh_name(m, flat(path));
  FamilyId id = add_request(m, num, den);
  bool parts =
      path.starts_with("grads.") || path.starts_with("jacobian.") || path.starts_with("hessian.");
  if (!parts) m.families[id].name = name;
  m.families[id].path = path;
  return id;
}

// Σ y_bar · y over all cells of all numerators.
FamilyId add_seeded_sum(Module& m, const std::vector<FamilyId>& nums) {
  ExprId total;
  for (FamilyId num : nums) {
    FamilyId bar = add_input(m, with_suffix(m[num].spelled(), "_bar"), num);
    uint32_t rank = m[num].rank();
    core::Reduce r{core::ReduceOp::Sum, 0, {}, {}, {}, {}, {}};
    r.body = core::mul(m, core::access(m, bar, core::slots_from(m, 0, rank)),
                       core::access(m, num, core::slots_from(m, 0, rank)));
    for (const Coord& c : m[num].coords) {
      r.over.push_back({core::int_lit(m, 0), c.extent});
      r.names.push_back(c.name);
    }
    ExprId sum = core::reduce(m, std::move(r));
    total = total ? core::add(m, total, sum) : sum;
  }
  return add_family(m, "seeded", m[nums[0]].dtype, {}, total, m[nums[0]].span);
}

// The family `t`, zero, by which every denominator is moved along its tangent, an input. An input
// is read through a family of its own then; a value that is computed gets the tangent added to
// every cell after that is computed, and everything computed from it follows (decisions.md, 23).
FamilyId add_shift(Module& m, const std::vector<FamilyId>& dens, Derived& out) {
  DType type = m[dens[0]].dtype;
  FamilyId t = add_family(m, "t", type, {}, core::float_lit(m, 0.0, type), m[dens[0]].span);
  std::unordered_map<FamilyId, FamilyId> instead;
  for (FamilyId den : dens) {
    FamilyId dot = add_input(m, with_suffix(m[den].spelled(), "_dot"), den);
    std::vector<ExprId> here = core::slots_from(m, 0, m[den].rank());
    ExprId step = core::mul(m, core::access(m, t, {}), core::access(m, dot, here));
    if (m[den].kind == Family::Kind::Defined) {
      std::vector<Clause> moved = m[den].clauses;
      for (Clause& c : moved) c.body = core::add(m, c.body, step);
      m.families[den].clauses = std::move(moved);
      continue;
    }
    ExprId body = core::add(m, core::access(m, den, here), step);
    instead[den] =
        add_family(m, flat(m[den].spelled()) + "_moved", type, m[den].coords, body, m[den].span);
    out.moved.emplace_back(m[instead[den]].name, m[den].name);
  }
  out.shifts.push_back(m[t].name);
  auto other = [&](FamilyId f) {
    auto it = instead.find(f);
    return it == instead.end() ? f : it->second;
  };
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    FamilyId id(i);
    if (std::any_of(instead.begin(), instead.end(), [&](auto& p) { return p.second == id; })) {
      continue;
    }
    core::rewrite_family(m, id, [&](ExprId e) {
      return core::rewrite(m, e, [&](ExprId x) {
        const Expr node = m[x];
        if (const auto* a = std::get_if<Access>(&node.node); a && other(a->family) != a->family) {
          return core::access(m, other(a->family), a->at, node.span);
        }
        if (const auto* r = std::get_if<core::Request>(&node.node)) {
          return core::request(m, {other(r->num), r->num_at, other(r->den), r->den_at}, node.span);
        }
        return x;
      });
    });
  }
  return t;
}

struct Builder {
  Module& m;
  Form form;
  std::vector<FamilyId> nums, dens;
  Derived out = {};

  void derivative(FamilyId id) { out.derivatives.push_back(m[id].name); }

  void gradients() {
    for (FamilyId den : dens)
      derivative(named_request(m, nums[0], den, "grads." + m[den].spelled()));
  }

  void vjp() {
    FamilyId sum = add_seeded_sum(m, nums);
    for (FamilyId den : dens) {
      derivative(named_request(m, sum, den, with_suffix(m[den].spelled(), "_bar")));
    }
  }

  void jvp(const std::vector<FamilyId>& of, const std::vector<std::string>& paths) {
    FamilyId t = add_shift(m, dens, out);
    for (size_t k = 0; k < of.size(); ++k) derivative(named_request(m, of[k], t, paths[k]));
  }

  void hvp() {
    std::vector<FamilyId> grads;
    std::vector<std::string> paths;
    for (FamilyId den : dens) {
      grads.push_back(add_request(m, nums[0], den));
      paths.push_back(with_suffix(m[den].spelled(), "_hv"));
    }
    jvp(grads, paths);
  }

  void jacobian() {
    for (FamilyId num : nums) {
      std::string row = nums.size() == 1 ? "jacobian." : "jacobian." + m[num].spelled() + ".";
      for (FamilyId den : dens) derivative(named_request(m, num, den, row + m[den].spelled()));
    }
  }

  void hessian() {
    for (FamilyId first : dens) {
      FamilyId gradient = add_request(m, nums[0], first);
      std::string row = "hessian." + m[first].spelled() + ".";
      for (FamilyId den : dens) derivative(named_request(m, gradient, den, row + m[den].spelled()));
    }
  }

  void build() {
    for (FamilyId num : nums) out.values.push_back(m[num].name);
    switch (form) {
      case Form::Gradient: gradients(); break;
      case Form::Vjp: vjp(); break;
      case Form::Jvp: {
        std::vector<std::string> paths;
        for (FamilyId num : nums) paths.push_back(with_suffix(m[num].spelled(), "_dot"));
        jvp(nums, paths);
        break;
      }
      case Form::Hvp: hvp(); break;
      case Form::Jacobian: jacobian(); break;
      case Form::Hessian: hessian(); break;
    }
  }
};

// Why there is no such derivative; empty when there is.
std::string refuse(const Module& m, Form form, const std::vector<FamilyId>& nums,
                   const std::vector<FamilyId>& dens) {
  bool scalar = form == Form::Gradient || form == Form::Hvp || form == Form::Hessian;
  const Family& first = m[nums[0]];
  if (scalar && nums.size() > 1) {
    return fmt::format(
        "a {} is taken of a single number, but {} values are named, among them `{}` and `{}`",
        form == Form::Gradient ? "gradient" : "second derivative", nums.size(), first.spelled(),
        m[nums[1]].spelled());
  }
  if (scalar && first.rank() > 0) {
    std::string names;
    for (const Coord& c : first.coords) {
      names += (names.empty() ? "" : ", ") + (c.name ? text(c.name) : std::string("?"));
    }
    return fmt::format(
        "`{}` is an array over [{}], and a {} is taken of a single number: name a scalar such as a "
        "loss, or use vjp, jvp or jacobian, which work for arrays",
        first.spelled(), names, form == Form::Gradient ? "gradient" : "second derivative");
  }
  for (const std::vector<FamilyId>* list : {&nums, &dens}) {
    for (FamilyId f : *list) {
      if (m[f].dtype == first.dtype) continue;
      return fmt::format(
          "`{}` is {} and `{}` is {}: the values of a derivative must have the same type",
          first.spelled(), name_of(first.dtype), m[f].spelled(), name_of(m[f].dtype));
    }
  }
  return "";
}

std::vector<FamilyId> values_of(const Module& m, const std::vector<std::string>& names,
                                Diagnostics& diags) {
  std::vector<FamilyId> out;
  for (const std::string& name : names) {
    for (FamilyId f : float_values(m, name, diags)) {
      if (std::find(out.begin(), out.end(), f) == out.end()) out.push_back(f);
    }
  }
  return out;
}

}  // namespace

Derived add_derivations(Module& m, const std::vector<Derivation>& all, Diagnostics& diags) {
  Derived out;
  for (const Derivation& what : all) {
    if (what.of.empty() || what.wrt.empty()) {
      out.wrong = "a derivative needs a value to differentiate and one to differentiate by";
      return out;
    }
    Builder builder{m, what.form, values_of(m, what.of, diags), values_of(m, what.wrt, diags)};
    if (diags.has_errors()) return out;
    out.wrong = refuse(m, what.form, builder.nums, builder.dens);
    if (!out.wrong.empty()) return out;
    builder.out.shifts = std::move(out.shifts);
    builder.out.moved = std::move(out.moved);
    builder.build();
    out = std::move(builder.out);
  }
  return out;
}

void settle_shift(Module& m, const Derived& derived) {
  if (derived.shifts.empty()) return;
  std::vector<FamilyId> shifts;
  for (Symbol t : derived.shifts) shifts.push_back(m.find(t));
  auto is_t = [&](ExprId e) {
    const auto* a = core::get_if<Access>(m, e);
    return a && std::find(shifts.begin(), shifts.end(), a->family) != shifts.end();
  };
  auto is_step = [&](ExprId e) {
    const auto* a = core::get_if<Apply>(m, e);
    return a && a->op == Op::Mul && (is_t(a->args[0]) || is_t(a->args[1]));
  };
  std::unordered_map<FamilyId, FamilyId> unmoved;
  for (const auto& [moved, from] : derived.moved) unmoved[m.find(moved)] = m.find(from);
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    core::rewrite_family(m, FamilyId(i), [&](ExprId e) {
      return core::rewrite(m, e, [&](ExprId x) {
        const Expr node = m[x];
        if (const auto* read = std::get_if<Access>(&node.node)) {
          auto it = unmoved.find(read->family);
          return it == unmoved.end() ? x : core::access(m, it->second, read->at, node.span);
        }
        const auto* a = std::get_if<Apply>(&node.node);
        if (!a || a->op != Op::Add) return x;
        if (is_step(a->args[1])) return a->args[0];
        return is_step(a->args[0]) ? a->args[1] : x;
      });
    });
  }
}

}  // namespace ein

#include "autodiff/differential.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "autodiff/custom.h"
#include "autodiff/linearise.h"
#include "autodiff/normal.h"
#include "core/build.h"
#include "core/print.h"
#include "core/rewrite.h"

namespace ein::autodiff {

using namespace core;

namespace {

// Works on a copy of the module: normal form makes families that only the differential needs.
class Differential {
 public:
  explicit Differential(Module m) : m_(std::move(m)), tangents_(tangent_families(m_)) {}

  std::optional<NotDifferentiable> problem;

  std::string text_of(FamilyId y) {
    const Family family = m_[y];
    std::vector<Symbol> names;
    for (const Coord& c : family.coords) names.push_back(c.name);
    std::vector<ExprId> here;
    for (uint32_t k = 0; k < family.rank(); ++k) here.push_back(slot(m_, k));
    auto line = [&](const Clause* c, ExprId value) {
      std::vector<std::string> at;
      for (uint32_t k = 0; k < family.rank(); ++k) {
        auto lo = c ? const_int(m_, c->box[k].lo) : std::nullopt;
        auto hi = c ? const_int(m_, c->box[k].hi) : std::nullopt;
        bool point = family.clauses.size() > 1 && lo && hi && *hi == *lo + 1;
        at.push_back(point ? std::to_string(*lo) : print(m_, names, here[k]));
      }
      std::string left = "@" + text(family.name);
      if (!at.empty()) left += fmt::format("[{}]", fmt::join(at, ", "));
      return value ? fmt::format("{} = {}", left, print(m_, names, value, true)) : left;
    };
    if (family.kind == Family::Kind::Input) return line(nullptr, {});
    to_normal_form(m_, y);
    std::vector<std::string> lines;
    for (size_t c = 0; c < m_[y].clauses.size() && !problem; ++c) {
      ExprId value = clause(y, c, here, family.rank());
      const Clause box = m_[y].clauses[c];
      if (!problem) lines.push_back(line(&box, value));
    }
    if (family.kind == Family::Kind::Table) lines = cell_lines(y);
    return fmt::format("{}", fmt::join(lines, "\n"));
  }

 private:
  struct Part {
    bool negative;
    ExprId value;
  };

  // One line for each cell of a table whose differential is not zero.
  std::vector<std::string> cell_lines(FamilyId y) {
    const Family family = m_[y];
    std::vector<std::string> lines;
    for (size_t c = 0; c < family.cells.size() && !problem; ++c) {
      std::vector<Part> all = parts(y, c, {}, 0);
      if (all.empty()) continue;
      std::vector<int64_t> at(family.rank());
      auto rest = static_cast<int64_t>(c);
      for (size_t k = at.size(); k-- > 0;) {
        int64_t extent = *const_int(m_, family.coords[k].extent);
        at[k] = rest % extent;
        rest /= extent;
      }
      lines.push_back(fmt::format("@{}[{}] = {}", text(family.name), fmt::join(at, ", "),
                                  print(m_, {}, sum(std::move(all), y), true)));
    }
    if (lines.empty()) lines.push_back(fmt::format("@{} = 0.0", text(family.name)));
    return lines;
  }

  // The tangent of one clause (of a table: one cell) at an address, as a sum in source order;
  // `depth` slots are in scope there.
  std::vector<Part> parts(FamilyId f, size_t index, const std::vector<ExprId>& at, uint32_t depth) {
    open_.insert(f);
    Active active = [&](ExprId node, Mode mode) {
      FamilyId read = get_if<Access>(m_, node)->family;
      if (mode != mode_of(read)) return false;
      return is_float(m_[read].dtype) || has_rule(m_, read);
    };
    Linear linear = m_[f].kind == Family::Kind::Table
                        ? linearise_cell(m_, f, index, mode_of(f), active)
                        : linearise(m_, f, index, mode_of(f), active, true);
    if (linear.problem && !problem) problem = linear.problem;
    std::vector<Part> out;
    for (auto t = linear.terms.rbegin(); t != linear.terms.rend() && !problem; ++t) {
      bool negative = std::signbit(t->coef.scale);
      bool plain = !t->coef.num && !t->coef.den && std::fabs(t->coef.scale) == 1 && !t->gate &&
                   t->over.empty() && tangent_type(m_, t->family) == tangent_type(m_, f);
      if (plain && is_part(t->family)) {  // its terms are terms of this sum
        to_normal_form(m_, t->family);
        std::vector<ExprId> where;
        for (ExprId e : t->at) where.push_back(substitute(m_, e, at, depth));
        for (Part p : parts(t->family, 0, where, depth)) {
          out.push_back({p.negative != negative, p.value});
        }
      } else {
        out.push_back({negative, term(*t, f, at, depth)});
      }
    }
    open_.erase(f);
    return out;
  }

  ExprId clause(FamilyId f, size_t index, const std::vector<ExprId>& at, uint32_t depth) {
    return sum(parts(f, index, at, depth), f);
  }

  ExprId sum(std::vector<Part> all, FamilyId f) {
    // A positive one first: `a - b` reads better than `-b + a`.
    auto first = std::find_if(all.begin(), all.end(), [](const Part& p) { return !p.negative; });
    if (first != all.end()) std::rotate(all.begin(), first, first + 1);
    ExprId total;
    for (const Part& p : all) {
      if (!total) {
        total = p.negative ? neg(m_, p.value) : p.value;
      } else {
        total = p.negative ? sub(m_, total, p.value) : add(m_, total, p.value);
      }
    }
    return total ? total : float_lit(m_, 0, tangent_type(m_, f));
  }

  // A piece of a definition that has no name in the source.
  bool is_part(FamilyId f) const {
    return m_[f].generated && m_[f].clauses.size() == 1 && !open_.contains(f);
  }

  // The term without its sign.
  ExprId term(const Term& t, FamilyId f, const std::vector<ExprId>& at, uint32_t depth) {
    auto inner = static_cast<uint32_t>(t.over.size());
    std::vector<ExprId> with = at;
    for (uint32_t k = 0; k < inner; ++k) with.push_back(slot(m_, depth + k));
    auto put = [&](ExprId e) {
      return e ? opened(substitute(m_, e, with, depth + inner), depth + inner) : e;
    };
    std::vector<ExprId> where;
    for (ExprId e : t.at) where.push_back(put(e));
    Coef coef = t.coef;
    coef.scale = std::fabs(coef.scale);
    coef.num = put(coef.num);
    ExprId den = put(coef.den);
    coef.den = {};
    DType type = tangent_type(m_, f);
    ExprId body = cast(m_, tangent(t.family, where, depth + inner), type);
    if (coef.num || coef.scale != 1) body = mul(m_, value(m_, coef, type), body);
    if (den) body = apply(m_, Op::Div, {body, den});
    if (inner == 0) return gated(m_, put(t.gate), body);
    Reduce r{ReduceOp::Sum, depth, {}, t.names, put(t.gate), {}, body};
    for (const Range& range : t.over) r.over.push_back({put(range.lo), put(range.hi)});
    return reduce(m_, std::move(r));
  }

  // Families that normal form made (`argmax` of a maximum) are written out: their names mean
  // nothing to a reader.
  ExprId opened(ExprId e, uint32_t depth) {
    bool reduces = false;  // below a reduction more slots would be in scope
    for_each_node(m_, e, [&](ExprId x) { reduces |= get_if<Reduce>(m_, x) != nullptr; });
    if (reduces) return e;
    return rewrite(m_, e, [&](ExprId x) {
      const auto* a = get_if<Access>(m_, x);
      if (!a || !m_[a->family].generated || m_[a->family].clauses.size() != 1) return x;
      const std::vector<ExprId> at = a->at;
      return substitute(m_, m_[a->family].clauses[0].body, at, depth);
    });
  }

  // For a value that the program names: `@x[k]`. For a part of a definition: its own differential.
  ExprId tangent(FamilyId f, const std::vector<ExprId>& at, uint32_t depth) {
    if (is_part(f)) {
      to_normal_form(m_, f);
      return clause(f, 0, at, depth);
    }
    ExprId read = access(m_, f, at);
    if (!is_float(m_[read].type)) read = cast(m_, read, tangent_type(m_, f));
    return apply(m_, Op::Tangent, {read});
  }

  Mode mode_of(FamilyId f) const { return tangents_.contains(f) ? Mode::Rule : Mode::Value; }

  Module m_;
  std::set<FamilyId> tangents_;
  std::set<FamilyId> open_;  // being differentiated: a recurrence reads itself
};

}  // namespace

void print_differentials(Module& m, Diagnostics& diags) {
  for (Effect& e : m.effects) {
    for (Piece& p : e.pieces) {
      if (!p.value || p.format != "@") continue;
      Differential d(m);
      std::string line = d.text_of(p.value);
      if (d.problem) {
        auto& error = diags.error(
            Code::E0601, fmt::format("`{}` has no differential: the derivative of {} is not {}",
                                     text(m[p.value].name), d.problem->what,
                                     d.problem->limitation ? "supported yet" : "defined"));
        error.primary(e.span, "requested here");
        if (d.problem->span.valid()) error.label(d.problem->span, "this has no derivative");
        line.clear();
      }
      p = {line, {}, {}};
    }
  }
}

}  // namespace ein::autodiff

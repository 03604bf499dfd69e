#include "core/verify.h"

#include <fmt/format.h>

#include <unordered_set>

#include "base/match.h"
#include "core/build.h"
#include "core/rewrite.h"

namespace ein::core {
namespace {

class Verifier {
 public:
  explicit Verifier(const Module& m) : m_(m), seen_(m.arena->size()) {}

  std::vector<std::string> run() {
    std::unordered_set<Symbol> names;
    for (uint32_t i = 0; i < m_.families.size(); ++i) {
      const Family& f = m_[FamilyId(i)];
      where_ = f.name;
      expect(f.name.valid(), "a family without a name");
      expect(names.insert(f.name).second, "two families of one name");
      family(f);
    }
    std::unordered_set<Symbol> functions;
    for (const Function& f : m_.functions) {
      where_ = f.name;
      expect(functions.insert(f.name).second, "two functions of one name");
      function(f);
    }
    where_ = {};
    for (const Constraint& c : m_.constraints) {
      expect(m_[c.cond].type == DType::Bool && m_[c.cond].free == 0,
             "constraint is not closed bool");
    }
    for (const Effect& e : m_.effects) {
      expect(!e.cond || e.cond.v < m_.families.size(), "effect on a missing family");
    }
    return std::move(out_);
  }

 private:
  void family(const Family& f) {
    for (const Coord& c : f.coords) closed(c.extent, "extent is not a closed i64");
    expect(f.kind == Family::Kind::Defined || f.clauses.empty(), "clauses on an input or table");
    expect(f.kind != Family::Kind::Defined || !f.clauses.empty(), "no clauses");
    for (const Clause& c : f.clauses) {
      expect(c.box.size() == f.coords.size(), "box of another rank");
      for (const Range& r : c.box) {
        closed(r.lo, "box is not a closed i64");
        closed(r.hi, "box is not a closed i64");
      }
      expect(m_[c.body].type == f.dtype, "clause of another type");
      expr(c.body, f.rank());
    }
    if (f.kind == Family::Kind::Table) {
      int64_t cells = 1;
      for (const Coord& c : f.coords) cells *= const_int(m_, c.extent).value_or(-1);
      expect(cells == static_cast<int64_t>(f.cells.size()), "table of another size");
    }
    for (ExprId c : f.cells) {
      expect(m_[c].type == f.dtype && m_[c].free == 0, "table cell");
      expr(c, 0);
    }
  }

  void function(const Function& f) {
    expect(f.body.valid() && m_[f.body].type == f.result, "function without a body of its type");
    if (!f.body) return;
    for_each_node(m_, f.body, [&](ExprId e) {
      const Node& n = m_[e].node;
      if (const auto* a = std::get_if<Arg>(&n)) {
        expect(a->n < f.params.size() && m_[e].type == f.params[a->n].type, "parameter");
        return;
      }
      bool scalar = std::holds_alternative<FloatLit>(n) || std::holds_alternative<IntLit>(n) ||
                    std::holds_alternative<BoolLit>(n) || std::holds_alternative<Affine>(n) ||
                    std::holds_alternative<Apply>(n) || std::holds_alternative<Call>(n);
      expect(scalar, "the body of a function reads more than its parameters");
    });
  }

  void closed(ExprId e, const char* what) {
    expect(e.valid() && m_[e].type == DType::I64 && m_[e].free == 0, what);
  }

  // `depth`: slots in scope.
  void expr(ExprId e, uint32_t depth) {
    if (seen(e, depth)) return;
    const Expr& x = m_[e];
    expect(x.level() < static_cast<int32_t>(depth), "slot out of scope");
    if (const auto* r = std::get_if<Reduce>(&x.node)) {
      expect(r->first == depth, "binders not numbered from the slots in scope");
      expect(r->names.size() == r->over.size() && !r->over.empty(), "binders");
      expect(r->routes.empty() || r->op == ReduceOp::Sum, "routes on a reduction other than sum");
      for (size_t k = 0; k < r->over.size(); ++k) {
        auto scope = depth + static_cast<uint32_t>(k);
        bool early = m_[r->over[k].lo].level() < static_cast<int32_t>(scope) &&
                     m_[r->over[k].hi].level() < static_cast<int32_t>(scope);
        expect(early, "range mentions a later binder");
        expr(r->over[k].lo, scope);
        expr(r->over[k].hi, scope);
      }
      uint32_t inside = depth + static_cast<uint32_t>(r->over.size());
      if (r->gate) expr(r->gate, inside);
      for (const Route& route : r->routes) expr(route.to, inside);
      expr(r->body, inside);
      return;
    }
    if (const auto* a = std::get_if<Affine>(&x.node)) {
      expect(!a->terms.empty(), "affine without terms");
      for (size_t k = 0; k < a->terms.size(); ++k) {
        expect(a->terms[k].coef != 0, "zero coefficient");
        expect(k == 0 || a->terms[k - 1].atom < a->terms[k].atom, "unsorted affine terms");
        expect(!get_if<Affine>(m_, a->terms[k].atom) && !get_if<IntLit>(m_, a->terms[k].atom),
               "affine atom is affine");
      }
    }
    if (const auto* a = std::get_if<Access>(&x.node)) {
      expect(a->family.v < m_.families.size(), "access to a missing family");
      expect(a->at.size() == m_[a->family].coords.size(), "access of another rank");
      expect(x.type == m_[a->family].dtype, "access of another type");
    }
    if (const auto* c = std::get_if<Call>(&x.node)) {
      expect(c->function.v < m_.functions.size(), "call of a missing function");
      expect(c->args.size() == m_.functions[c->function].params.size(), "argument count");
    }
    expect(!std::holds_alternative<Arg>(x.node), "parameter outside of a function");
    for_each_child(m_, e, [&](ExprId child) { expr(child, depth); });
  }

  void expect(bool ok, const char* what) {
    if (!ok) out_.push_back(fmt::format("`{}`: {}", where_ ? text(where_) : "module", what));
  }

  // A node that is right at one place is right at every other place of the same depth, in any
  // family. Most nodes occur at one depth.
  bool seen(ExprId e, uint32_t depth) {
    uint64_t bit = uint64_t{1} << (depth % 64);
    bool before = (seen_[e.v] & bit) != 0;
    seen_[e.v] |= bit;
    return before;
  }

  const Module& m_;
  Symbol where_;  // the family; invalid for the module itself
  std::vector<std::string> out_;
  std::vector<uint64_t> seen_;  // by node: the depths at which it was seen
};

}  // namespace

std::vector<std::string> verify(const Module& m) { return Verifier(m).run(); }

}  // namespace ein::core

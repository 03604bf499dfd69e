// What a statement contains, in one place: passes over Loops call these functions instead of
// listing the kinds of statements.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "base/match.h"
#include "loops/loops.h"

namespace ein::loops {

using Lets = std::unordered_map<VarId, ExprId>;  // the values of variables

// Calls `f` on every expression of the statement itself, but not of its blocks. A pass that changes
// a program takes the expressions by reference.
template <class S, class F>
void for_each_expr(S& s, F&& f) {
  auto some = [&](auto& e) {
    if (e.valid()) f(e);
  };
  auto all = [&](auto& es) {
    for (auto& e : es) some(e);
  };
  std::visit(
      [&](auto& n) {
        using N = std::remove_cvref_t<decltype(n)>;
        if constexpr (std::is_same_v<N, Let> || std::is_same_v<N, Assign>) some(n.value);
        if constexpr (std::is_same_v<N, Declare>) some(n.init);
        if constexpr (std::is_same_v<N, Store> || std::is_same_v<N, Update>) {
          all(n.at);
          some(n.value);
        }
        if constexpr (std::is_same_v<N, Fold>) {
          some(n.value);
          some(n.index);
        }
        if constexpr (std::is_same_v<N, If>) some(n.cond);
        if constexpr (std::is_same_v<N, Loop>) {
          some(n.lo);
          some(n.hi);
          some(n.grain);
          some(n.steps);
          some(n.leave);
          some(n.team);
        }
        if constexpr (std::is_same_v<N, Check>) {
          some(n.ok);
          all(n.values);
        }
        if constexpr (std::is_same_v<N, Contract>) {
          for (auto* set : {&n.batch, &n.m, &n.n, &n.k}) {
            for (auto& i : *set) some(i.extent), some(i.a), some(i.b), some(i.out);
          }
          all(n.a.at), all(n.b.at), all(n.out.at);
        }
        if constexpr (std::is_same_v<N, Invoke>) all(n.args);
        if constexpr (std::is_same_v<N, Fetch>) some(n.first);
        if constexpr (std::is_same_v<N, Launch>) some(n.blocks);
      },
      s.node);
}

// Calls `f` on every block directly inside.
template <class S, class F>
void for_each_block(S& s, F&& f) {
  if (auto* n = std::get_if<If>(&s.node)) {
    f(n->then);
    f(n->otherwise);
  }
  if (auto* n = std::get_if<Loop>(&s.node)) {
    f(n->body);
    if (!n->state.empty()) f(n->state);
  }
  if (auto* n = std::get_if<Launch>(&s.node)) f(n->body);
}

// Calls `f` on every statement, outer ones first.
template <class B, class F>
void for_each_stmt(B& block, F&& f) {
  for (auto& s : block) {
    f(s);
    for_each_block(s, [&](auto& inner) { for_each_stmt(inner, f); });
  }
}

// Calls `f` on every node of an expression.
template <class F>
void for_each_node(const Program& p, ExprId e, F&& f) {
  f(p.exprs[e].node);
  auto all = [&](const std::vector<ExprId>& es) {
    for (ExprId x : es) for_each_node(p, x, f);
  };
  if (const auto* n = std::get_if<Apply>(&p.exprs[e].node)) all(n->args);
  if (const auto* n = std::get_if<Overflows>(&p.exprs[e].node)) all(n->args);
  if (const auto* n = std::get_if<Load>(&p.exprs[e].node)) all(n->at);
}

// Calls `f` on every node of a block, including its inner blocks.
template <class F>
void for_each_node(const Program& p, const Block& block, F&& f) {
  for_each_stmt(
      block, [&](const Stmt& s) { for_each_expr(s, [&](ExprId e) { for_each_node(p, e, f); }); });
}

// The values of all variables that Lets in the block bind.
inline Lets lets_of(const Block& block) {
  Lets out;
  for_each_stmt(block, [&](const Stmt& s) {
    if (const auto* n = std::get_if<Let>(&s.node)) out[n->var] = n->value;
  });
  return out;
}

// The variables that a block reads but does not bind itself, in the order in which they are first
// read, without those in `bound`.
inline std::vector<VarId> free_variables(const Program& p, const Block& block,
                                         std::set<VarId> bound = {}) {
  std::vector<VarId> out;
  for_each_stmt(block, [&](const Stmt& s) {
    for_each_expr(s, [&](ExprId e) {
      for_each_node(p, e, [&](const Node& n) {
        const auto* get = std::get_if<Get>(&n);
        if (get && bound.insert(get->var).second) out.push_back(get->var);
      });
    });
    if (const auto* n = std::get_if<Let>(&s.node)) bound.insert(n->var);
    if (const auto* n = std::get_if<Declare>(&s.node)) bound.insert(n->var);
    if (const auto* n = std::get_if<Invoke>(&s.node)) bound.insert(n->var);
    if (const auto* n = std::get_if<Loop>(&s.node)) bound.insert(n->var);
    if (const auto* n = std::get_if<Launch>(&s.node)) bound.insert(n->index);
  });
  return out;
}

inline std::optional<int64_t> constant(const Program& p, ExprId e) {
  const auto* n = std::get_if<IntConst>(&p.exprs[e].node);
  return n ? std::optional(n->value) : std::nullopt;
}

// How many iterations a loop has, if its bounds are constants.
inline std::optional<int64_t> trips(const Program& p, const Loop& n) {
  auto lo = constant(p, n.lo), hi = constant(p, n.hi);
  return lo && hi ? std::optional(std::max<int64_t>(0, *hi - *lo)) : std::nullopt;
}

inline int64_t nodes_in(const Program& p, const Block& body) {
  int64_t nodes = 0;
  for_each_stmt(body, [&](const Stmt&) { ++nodes; });
  for_each_node(p, body, [&](const Node&) { ++nodes; });
  return nodes;
}

// Whether a step is small: every loop inside has a known length, and there are few nodes.
inline bool does_little(const Program& p, const Block& body, int64_t most_nodes) {
  bool ok = nodes_in(p, body) <= most_nodes;
  for_each_stmt(body, [&](const Stmt& s) {
    if (const auto* n = std::get_if<Loop>(&s.node)) ok &= trips(p, *n).has_value();
    ok &= !std::holds_alternative<Contract>(s.node) && !std::holds_alternative<Fetch>(s.node);
  });
  return ok;
}
inline bool does_little(const Program& p, const Block& body) {
  return does_little(p, body, p.tuning.joined_nodes);
}

}  // namespace ein::loops

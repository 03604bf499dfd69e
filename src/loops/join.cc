// Runs recurrences along the same steps in one loop, and adds up sums over steps while the steps
// are computed. A small step mostly waits for its own results: two of them in one loop take as long
// as one, and a sum in the loop finds its operands in registers.
//
// A later loop may join an earlier one if every cell that it reads of the earlier one has been
// stored by then. To decide that, addresses are compared by their distance from the step.
#include <tuple>

#include "loops/copy.h"
#include "loops/effects.h"
#include "loops/linear.h"

namespace ein::loops {
namespace {

struct Joining {
  Program& p;
  Lets lets = {};  // of the whole block

  Sums sums() const { return {p, lets}; }

  // ---- what is stored by when ------------------------------------------------------------------

  struct Range {
    int64_t least = INT64_MAX, most = INT64_MIN;
  };

  // How far from the step along `axis` the loop stores to the buffer, or loads from it. Nothing if
  // that is not always a known distance.
  std::optional<Range> reach(const Loop& n, BufferId buffer, size_t axis, bool stores) const {
    Range out;
    bool known = true;
    auto access = [&](const std::vector<ExprId>& at) {
      auto d = axis < at.size() ? sums().offset(at[axis], n.var) : std::nullopt;
      known &= d.has_value();
      if (d) out = {std::min(out.least, *d), std::max(out.most, *d)};
    };
    for_each_stmt(n.body, [&](const Stmt& s) {
      const auto* store = std::get_if<Store>(&s.node);
      if (stores && store && store->buffer == buffer) access(store->at);
      if (const auto* update = std::get_if<Update>(&s.node)) known &= update->buffer != buffer;
    });
    if (!stores) {
      for_each_node(p, n.body, [&](const Node& node) {
        const auto* load = std::get_if<Load>(&node);
        if (load && load->buffer == buffer) access(load->at);
      });
    }
    return known ? std::optional(out) : std::nullopt;
  }

  // Whether everything that the body of `other` reads at step + shift has been stored when `into`
  // has finished its step (or, with `before`, when it begins it).
  bool there(const Loop& into, const Loop& other, BufferId buffer, int64_t shift,
             bool before) const {
    for (size_t axis = 0; axis < p.buffers[buffer].dims.size(); ++axis) {
      auto stored = reach(into, buffer, axis, true), read = reach(other, buffer, axis, false);
      if (!stored || !read) continue;
      if (into.downward ? read->least + shift >= stored->most + before
                        : read->most + shift <= stored->least - before) {
        return true;
      }
    }
    return false;
  }

  bool all_there(const Loop& into, const Loop& other, const std::set<BufferId>& stored,
                 const std::set<BufferId>& loaded, int64_t shift, bool before) const {
    return std::all_of(loaded.begin(), loaded.end(), [&](BufferId b) {
      return !stored.contains(b) || there(into, other, b, shift, before);
    });
  }

  // ---- joining ---------------------------------------------------------------------------------

  static const Loop* recurrence(const Program& p, const Stmt& s) {
    const auto* n = std::get_if<Loop>(&s.node);
    bool polls = n && n->axis.kind == Axis::Kind::Seq && n->poll.valid() && !n->leave;
    return polls && p.sites[n->poll].kind == Site::Kind::Step ? n : nullptr;
  }
  const Loop* recurrence(const Stmt& s) const { return recurrence(p, s); }

  // The body of `other` for the step of `into` plus `shift`.
  Block body_at(const Loop& into, const Loop& other, int64_t shift) {
    return Copier{p}.block(other.body, {{other.var, step_of(into, shift)}});
  }

  ExprId step_of(const Loop& into, int64_t shift) {
    ExprId step = p.exprs.add({Get{into.var}, DType::I64});
    if (shift == 0) return step;
    ExprId by = p.exprs.add({IntConst{shift}, DType::I64});
    return p.exprs.add({Apply{core::Op::Add, {step, by}}, DType::I64});
  }

  void put(Loop& into, Block body, bool before) {
    lets.merge(lets_of(body));
    into.body.insert(before ? into.body.begin() : into.body.end(),
                     std::make_move_iterator(body.begin()), std::make_move_iterator(body.end()));
  }

  bool join_recurrence(Block& block, size_t i, size_t j) {
    const Loop *first = recurrence(block[i]), *other = recurrence(block[j]);
    if (!first || !other || first->downward != other->downward) return false;
    if (!sums().equal(first->lo, other->lo) || !sums().equal(first->hi, other->hi)) return false;
    if (!does_little(p, first->body) || !does_little(p, other->body)) return false;
    Effects a = effects(p, block[i]), b = effects(p, block[j]);
    if (a.checks || b.checks || meet(b.stores, a.stores) || meet(b.stores, a.loads)) return false;
    if (!all_there(*first, *other, a.stores, b.loads, 0, false)) return false;
    auto along = moves_along(p, block, j, i);
    if (!along) return false;
    Site other_site = p.sites[other->poll];
    auto& also = p.sites[first->poll].also;
    also.push_back(other_site.step);
    also.insert(also.end(), other_site.also.begin(), other_site.also.end());
    put(std::get<Loop>(block[i].node), body_at(*first, *other, 0), false);
    move_up(block, j, i, *along);
    return true;
  }

  // Whether the loop only has accumulators that it does not read and whose order does not matter.
  // Sums of floats shorter than f64 stay separate and are added up in chunks: added one after the
  // other, a million of them would lose digits.
  bool plain_sums(const Loop& n) const {
    bool ok = n.axis.kind == Axis::Kind::Reduce && n.axis.width == 1;
    std::set<VarId> sums(n.folds.begin(), n.folds.end());
    for (VarId v : sums) ok &= !is_float(p.vars[v].type) || p.vars[v].type == DType::F64;
    for_each_stmt(n.body, [&](const Stmt& s) {
      const auto* f = std::get_if<Fold>(&s.node);
      ok &= !f || !sums.contains(f->acc) || f->op == core::ReduceOp::Sum;
    });
    for_each_node(p, n.body, [&](const Node& node) {
      const auto* get = std::get_if<Get>(&node);
      ok &= !get || !sums.contains(get->var);
    });
    return ok;
  }

  // ---- where a sum is taken --------------------------------------------------------------------

  struct Place {
    int64_t shift = 0;           // it adds the term of the step plus this
    bool before = false;         // it adds before the rest of the step runs
    std::vector<ExprId> within;  // conditions for that term to exist
    size_t found = 0;            // how many of its loads the step makes as well
  };

  // The cells that the loop reads, by their distance from the step.
  using Cells = std::set<std::tuple<BufferId, size_t, int64_t>>;
  Cells cells_read(const Loop& n, int64_t shift) const {
    Cells out;
    for_each_node(p, n.body, [&](const Node& node) {
      const auto* load = std::get_if<Load>(&node);
      for (size_t k = 0; load && k < load->at.size(); ++k) {
        auto d = sums().offset(load->at[k], n.var);
        if (d) out.emplace(load->buffer, k, *d + shift);
      }
    });
    return out;
  }

  // Nothing if some of the sum's steps are not steps of the loop, or if something is not stored in
  // time.
  std::optional<Place> place(const Loop& into, const Loop& other, int64_t shift,
                             const Effects& stores, const Effects& reads) {
    Place out{shift};
    auto later = sums().distance(into.lo, other.lo);
    auto earlier = sums().distance(sums().bare(other.hi), sums().bare(into.hi));
    if (!later || !earlier || *later - shift < 0 || *earlier + shift < 0) return {};
    out.before = all_there(into, other, stores.stores, reads.loads, shift, true);
    if (!out.before && !all_there(into, other, stores.stores, reads.loads, shift, false)) return {};
    auto compare = [&](core::Op op, ExprId with) {
      out.within.push_back(p.exprs.add({Apply{op, {step_of(into, shift), with}}, DType::Bool}));
    };
    if (*later > shift) compare(core::Op::Ge, other.lo);
    if (*earlier + shift > 0) compare(core::Op::Lt, other.hi);
    Cells here = cells_read(into, 0), there = cells_read(other, shift);
    out.found = static_cast<size_t>(
        std::count_if(there.begin(), there.end(), [&](const auto& c) { return here.contains(c); }));
    return out;
  }

  bool not_negative(ExprId e) const {
    auto x = sums().of(e);
    return x && x->terms.empty() && x->constant >= 0;
  }

  bool join_sum(Block& block, size_t i, size_t j) {
    const Loop* first = recurrence(block[i]);
    const auto* other = std::get_if<Loop>(&block[j].node);
    if (!first || !other || !plain_sums(*other)) return false;
    if (!not_negative(first->lo) || !not_negative(other->lo)) return false;
    int64_t room = p.tuning.joined_nodes - nodes_in(p, first->body);
    if (!does_little(p, first->body) || !does_little(p, other->body, room)) return false;
    Effects a = effects(p, block[i]), b = effects(p, block[j]);
    if (a.checks || b.checks || !b.stores.empty() || !meet(b.loads, a.stores)) return false;
    auto at = place(*first, *other, 0, a, b);
    auto back = place(*first, *other, first->downward ? 1 : -1, a, b);
    if (!at || (back && back->found > at->found)) at = back;
    auto along = at ? moves_along(p, block, j, i) : std::nullopt;
    if (!along) return false;
    Block body = body_at(*first, *other, at->shift);
    while (!at->within.empty()) {
      body = {Stmt{If{at->within.back(), std::move(body), {}}}};
      at->within.pop_back();
    }
    put(std::get<Loop>(block[i].node), std::move(body), at->before);
    move_up(block, j, i, *along);
    return true;
  }

  // Returns whether anything was joined.
  bool run(Block& block) {
    bool any = false;
    for (size_t i = 0; i < block.size(); ++i) {
      if (!recurrence(block[i])) continue;
      for (size_t j = i + 1; j < block.size(); ++j) {
        if (!join_recurrence(block, i, j) && !join_sum(block, i, j)) continue;
        any = true;
        // It is further down now, behind the statements that were moved.
        while (!recurrence(block[i])) ++i;
        j = i;
      }
    }
    return any;
  }

  static bool has_recurrence(const Program& p, const Block& block) {
    return std::any_of(block.begin(), block.end(),
                       [&](const Stmt& s) { return recurrence(p, s) != nullptr; });
  }
};

// Whether the kernel may run before `other`, which comes earlier.
bool passes(const Program& p, const Kernel& kernel, const Kernel& other) {
  Effects a = effects(p, kernel.body), b = effects(p, other.body);
  return !a.checks && !b.checks && !meet(a.stores, b.stores) && !meet(a.loads, b.stores) &&
         !meet(a.stores, b.loads);
}

}  // namespace

// Moves a kernel into an earlier one if something can then be joined.
Program join_steps(Program p) {
  std::vector<Kernel> out;
  auto join = [&](const Kernel& k) {
    for (size_t i = out.size();
         i-- > 0 && out.size() - i <= static_cast<size_t>(p.tuning.joined_distance);) {
      if (Joining::has_recurrence(p, out[i].body)) {
        Block both = out[i].body;
        both.insert(both.end(), k.body.begin(), k.body.end());
        if (Joining{p, lets_of(both)}.run(both)) {
          out[i].body = std::move(both);
          return true;
        }
      }
      if (!passes(p, k, out[i])) return false;
    }
    return false;
  };
  for (Kernel& k : p.kernels) {
    if (!join(k)) out.push_back(std::move(k));
  }
  p.kernels = std::move(out);
  return p;
}

}  // namespace ein::loops

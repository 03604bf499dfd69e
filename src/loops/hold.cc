// Keeps the state of small recurrences in variables. A recurrence over a few numbers mostly waits
// for its own results: through memory each takes a store, a load and the computation of an address,
// and in a variable nothing. So the loops of a step over few cells are written out. Every buffer
// whose cells then have constant addresses, apart from the step, gets variables: one for each cell
// and each step that is read back.
//
// If nothing else in the loop reads the buffer, the loop stores to it only when it ends and when
// the caller looks at it (Loop::state). If nothing else in the program does, the buffer keeps only
// as many steps as are read back.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "loops/address.h"
#include "loops/copy.h"
#include "loops/linear.h"
#include "loops/short_loops.h"
#include "loops/walk.h"

namespace ein::loops {
namespace {

using core::Op;

constexpr int64_t kMostBack = 3;  // the most steps back that are read through variables

struct Held {
  std::optional<size_t> axis;
  int64_t ring = 0;
  // The ring was made by this pass, so addresses in the loop do not have it yet.
  bool made_ring = false;
  int64_t most = kMostBack;                   // how many steps back variables can be read
  int64_t back = 0;                           // how many steps back they are read
  bool wholly = true;                         // variables replace all loads
  size_t accesses = 0;                        // how many accesses variables replace
  std::set<std::pair<Cell, int64_t>> always;  // cells read at every step, and how many steps back
  std::set<Cell> stored_always;
  std::map<Cell, std::vector<VarId>> cells;  // the variables of each cell, by steps back

  // Whether this cell might be the same as one of those known.
  bool may_be(const Cell& cell) const {
    const Cell& known = cells.begin()->first;
    for (size_t k = 0; k < cell.size(); ++k) {
      if (cell[k].terms != known[k].terms) return true;
    }
    return false;
  }
};

struct Step {
  Loop* loop;
  std::set<VarId> moving;  // variables that the loop binds, and `changing`
  std::map<BufferId, Held> held;
};

struct Holder {
  Program& p;
  Lets lets = {};
  std::set<VarId> changing = {};  // all variables that may be assigned

  ExprId integer(int64_t v) { return p.exprs.add({IntConst{v}, DType::I64}); }
  ExprId op(Op o, ExprId a, ExprId b, DType type = DType::I64) {
    return p.exprs.add({Apply{o, {a, b}}, type});
  }
  ExprId get(VarId v) { return p.exprs.add({Get{v}, p.vars[v].type}); }
  std::optional<Address> address(const Step& s, const std::vector<ExprId>& at) const {
    return address_in(p, lets, s.loop->var, s.moving, at);
  }

  // ---- which buffers ---------------------------------------------------------------------------

  static int64_t back_of(const Loop& n, const Address& a) {
    return n.downward ? a.offset : -a.offset;
  }

  bool is_cell(BufferId b, const Address& a) const {
    size_t k = 0;
    return std::all_of(a.cell.begin(), a.cell.end(), [&](const Index& i) {
      if (a.axis == k) ++k;
      auto extent = p.buffers[b].known[k++];
      return i.terms.empty() && extent && i.constant >= 0 && i.constant < *extent;
    });
  }

  // Finds the buffers for which all stores in the loop go to the current step, at cells that do not
  // depend on the step. A store that is made at every step is known to be in bounds; for other
  // stores that must be known from the extents.
  std::map<BufferId, Held> find_stores(const Step& s) const {
    std::map<BufferId, Held> out;
    std::set<BufferId> others;
    auto look = [&](const auto& self, const Block& block, bool in_loop, bool always) -> void {
      for (const Stmt& x : block) {
        if (const auto* u = std::get_if<Update>(&x.node)) others.insert(u->buffer);
        if (const auto* f = std::get_if<Fetch>(&x.node)) {
          others.insert(f->buffer);
          if (f->from.valid()) others.insert(f->from);
        }
        if (const auto* c = std::get_if<Contract>(&x.node)) {
          others.insert({c->a.buffer, c->b.buffer, c->out.buffer});
        }
        if (const auto* store = std::get_if<Store>(&x.node)) {
          auto a = in_loop ? std::nullopt : address(s, store->at);
          bool fits = a && a->offset == 0 && (always || is_cell(store->buffer, *a));
          auto found = out.find(store->buffer);
          if (fits && found != out.end()) {
            const Held& held = found->second;
            fits = held.axis == a->axis && held.ring == a->ring && !held.may_be(a->cell);
          }
          if (!fits) {
            others.insert(store->buffer);
          } else {
            Held& held = out[store->buffer];
            held.axis = a->axis;
            held.ring = a->ring;
            if (held.ring > 0) held.most = std::min(kMostBack, held.ring - 1);
            held.wholly = held.ring <= kMostBack + 1;
            held.cells[a->cell];
            if (always) held.stored_always.insert(a->cell);
            ++held.accesses;
          }
        }
        bool is_loop = std::holds_alternative<Loop>(x.node);
        for_each_block(x, [&](const Block& b) { self(self, b, in_loop || is_loop, false); });
      }
    };
    look(look, s.loop->body, false, true);
    std::erase_if(out, [&](const auto& h) {
      auto space = p.buffers[h.first].space;
      return others.contains(h.first) ||
             (space != Buffer::Space::Temp && space != Buffer::Space::Output);
    });
    return out;
  }

  // How many steps back a load reads; nothing if no variable holds that.
  std::optional<int64_t> reads(const Loop& n, const Held& held, const Address& a) const {
    int64_t ring = held.made_ring ? 0 : held.ring;
    if (a.axis != held.axis || a.ring != ring || !held.cells.contains(a.cell)) return {};
    int64_t back = back_of(n, a);
    return back >= 0 && back <= held.most ? std::optional(back) : std::nullopt;
  }

  void find_loads(Step& s) const {
    auto look = [&](const Node& node, const auto& note) {
      const auto* load = std::get_if<Load>(&node);
      auto held = load ? s.held.find(load->buffer) : s.held.end();
      if (held == s.held.end()) return;
      auto a = address(s, load->at);
      note(held->second, a, a ? reads(*s.loop, held->second, *a) : std::nullopt);
    };
    for_each_node(p, s.loop->body, [&](const Node& node) {
      look(node, [](Held& held, const auto&, std::optional<int64_t> back) {
        if (!back) {
          held.wholly = false;
        } else {
          held.back = std::max(held.back, *back);
          ++held.accesses;
        }
      });
    });
    for (const Stmt& x : s.loop->body) {
      for_each_expr(x, [&](ExprId e) {
        for_each_node(p, e, [&](const Node& node) {
          look(node, [](Held& held, const auto& a, std::optional<int64_t> back) {
            if (back) held.always.insert({a->cell, *back});
          });
        });
      });
    }
  }

  // First the recurrences that the caller may watch are treated, then those inside rows and steps.
  bool watched = true;

  bool suits(const Loop& n) const {
    bool asks = n.poll && p.sites[n.poll].kind == Site::Kind::Step;
    return n.axis.kind == Axis::Kind::Seq && (watched ? asks : !n.poll) && n.state.empty() &&
           does_little(p, n.body);
  }

  void find(Block& block, std::vector<Step>& out) {
    for (Stmt& s : block) {
      auto* n = std::get_if<Loop>(&s.node);
      if (!n || !suits(*n)) {
        for_each_block(s, [&](Block& b) { find(b, out); });
        continue;
      }
      int64_t room = p.tuning.held_nodes;
      auto made = written_out(p, n->body, room);
      if (!made) continue;
      Block was = std::exchange(n->body, std::move(*made));
      for (const auto& [var, value] : lets_of(n->body)) lets[var] = value;
      Step step{n, changing, {}};
      step.moving.merge(bound_in(*n));
      step.held = find_stores(step);
      find_loads(step);
      int64_t cells = 0;
      for (const auto& [buffer, held] : step.held) {
        cells += static_cast<int64_t>(held.cells.size());
      }
      if (cells == 0 || cells > p.tuning.held_cells) {
        n->body = std::move(was);
      } else {
        out.push_back(std::move(step));
      }
    }
  }

  // ---- variables for buffers -------------------------------------------------------------------

  size_t accesses(BufferId b) const {
    size_t out = 0;
    for (const Kernel& k : p.kernels) {
      for_each_stmt(k.body, [&](const Stmt& s) {
        const auto* store = std::get_if<Store>(&s.node);
        const auto* update = std::get_if<Update>(&s.node);
        const auto* c = std::get_if<Contract>(&s.node);
        out += (store && store->buffer == b) || (update && update->buffer == b);
        for (const auto* o :
             c ? std::vector{&c->a, &c->b, &c->out} : std::vector<const Contract::Operand*>{}) {
          out += o->buffer == b;
        }
      });
      for_each_node(p, k.body, [&](const Node& n) {
        const auto* load = std::get_if<Load>(&n);
        out += load && load->buffer == b;
      });
    }
    return out;
  }

  // Makes rings of buffers that keep all steps although only these loops access them, and only a
  // few steps back.
  void make_rings(std::vector<Step>& steps) {
    std::map<BufferId, std::vector<Held*>> by_buffer;
    for (Step& s : steps) {
      for (auto& [buffer, held] : s.held) by_buffer[buffer].push_back(&held);
    }
    for (auto& [buffer, all] : by_buffer) {
      Buffer& b = p.buffers[buffer];
      size_t own = 0;
      int64_t back = 0;
      bool fits = b.space == Buffer::Space::Temp;
      for (const Held* h : all) {
        fits = fits && h->wholly && h->axis && h->axis == all[0]->axis && h->ring == 0;
        own += h->accesses;
        back = std::max(back, h->back);
      }
      if (!fits || own != accesses(buffer)) continue;
      for (Held* h : all) h->ring = back + 1, h->made_ring = true;
      b.known[*all[0]->axis] = back + 1;
    }
  }

  // In a loop that runs downward, the step before the first one may be beyond the end of a buffer
  // that is not a ring, unless the first step reads it anyway. Such buffers are left alone.
  static void leave_what_ends(std::vector<Step>& steps) {
    for (Step& s : steps) {
      for (auto& [buffer, held] : s.held) {
        if (!s.loop->downward || !held.axis || held.ring > 0) continue;
        bool there = true;
        for (const auto& [cell, vars] : held.cells) {
          for (int64_t back = 1; back <= held.back; ++back) {
            there = there && held.always.contains({cell, back});
          }
        }
        if (there) continue;
        held.most = held.back = 0;
        held.wholly = false;
      }
    }
  }

  ExprId sum_of(const Index& index) {
    ExprId out = index.constant != 0 || index.terms.empty() ? integer(index.constant) : ExprId{};
    for (const auto& [is_var, id, factor] : index.terms) {
      ExprId e = is_var ? get(VarId(id)) : p.exprs.add({Param{id}, DType::I64});
      if (factor != 1) e = op(Op::Mul, e, integer(factor));
      out = out ? op(Op::Add, out, e) : e;
    }
    return out;
  }

  std::vector<ExprId> place(const Held& held, const Cell& cell, ExprId step) {
    std::vector<ExprId> at;
    for (const Index& i : cell) at.push_back(sum_of(i));
    if (!held.axis) return at;
    if (held.ring > 1) step = op(Op::Mod, step, integer(held.ring));
    if (held.ring == 1) step = integer(0);
    at.insert(at.begin() + static_cast<ptrdiff_t>(*held.axis), step);
    return at;
  }

  // The step that is `by` steps before `step`, in the order of the loop.
  ExprId before(const Loop& n, ExprId step, int64_t by) {
    return by == 0 ? step : op(n.downward ? Op::Add : Op::Sub, step, integer(by));
  }

  ExprId in_loop(const Loop& n, ExprId step) {
    return n.downward ? op(Op::Lt, step, n.hi, DType::Bool) : op(Op::Ge, step, n.lo, DType::Bool);
  }

  // Declares the variables, with the values that were stored before the loop begins.
  void declare(const Loop& n, BufferId buffer, Held& held, Block& out) {
    DType type = p.buffers[buffer].dtype;
    int64_t steps = std::max(held.back + 1, held.wholly ? held.ring : 0);
    ExprId none =
        is_float(type) ? p.exprs.add({FloatConst{0}, type}) : p.exprs.add({IntConst{0}, type});
    ExprId first = n.downward ? op(Op::Sub, n.hi, integer(1)) : n.lo;
    Block loads;
    for (auto& [cell, vars] : held.cells) {
      for (int64_t back = 0; back < steps; ++back) {
        vars.push_back(p.vars.add({p.buffers[buffer].name, type}));
        out.push_back({Declare{vars.back(), none}});
      }
    }
    // The steps before the first one, if they exist.
    for (int64_t back = 0; back < (held.axis ? held.back : 1); ++back) {
      ExprId step = held.axis ? before(n, first, back + 1) : ExprId{};
      Block known;
      for (auto& [cell, vars] : held.cells) {
        ExprId load = p.exprs.add({Load{buffer, place(held, cell, step)}, type});
        known.push_back({Assign{vars[static_cast<size_t>(back)], load}});
      }
      if (held.axis && !n.downward) {
        loads.push_back({If{op(Op::Ge, step, integer(0), DType::Bool), std::move(known), {}}});
      } else {
        std::move(known.begin(), known.end(), std::back_inserter(loads));
      }
    }
    if (!loads.empty()) {
      out.push_back({If{op(Op::Lt, n.lo, n.hi, DType::Bool), std::move(loads), {}}});
    }
  }

  void rewrite(Step& step, Block& block) {
    Copier reading{p, [&](ExprId e) {
                     const auto* load = std::get_if<Load>(&p.exprs[e].node);
                     auto h = load ? step.held.find(load->buffer) : step.held.end();
                     if (h == step.held.end()) return e;
                     auto a = address(step, load->at);
                     auto back = a ? reads(*step.loop, h->second, *a) : std::nullopt;
                     return back ? get(h->second.cells.at(a->cell)[static_cast<size_t>(*back)]) : e;
                   }};
    Block out;
    for (Stmt& s : block) {
      for_each_expr(s, [&](ExprId& e) { e = reading.expr(e, {}); });
      for_each_block(s, [&](Block& b) { rewrite(step, b); });
      auto* store = std::get_if<Store>(&s.node);
      auto h = store ? step.held.find(store->buffer) : step.held.end();
      if (h != step.held.end()) {
        VarId now = h->second.cells.at(address(step, store->at)->cell)[0];
        out.push_back({Assign{now, store->value}});
        store->value = get(now);
        if (sinks(h->second)) continue;
      }
      out.push_back(std::move(s));
    }
    block = std::move(out);
  }

  // Whether the stores are left to Loop::state. A step that does not store a cell leaves its old
  // contents in memory, but a variable would carry over the value of the previous step; so nothing
  // may read such a cell.
  static bool sinks(const Held& held) {
    if (!held.wholly || !held.axis || held.made_ring)
      return held.wholly && (held.ring > 0 || !held.axis);
    return held.ring > 0 && held.stored_always.size() == held.cells.size();
  }

  void hold(Step& s, Block& before_loop) {
    Loop& n = *s.loop;
    for (auto& [buffer, held] : s.held) declare(n, buffer, held, before_loop);
    rewrite(s, n.body);
    // At the start of a step, the variables move on by one step.
    Block body;
    for (auto& [buffer, held] : s.held) {
      for (auto& [cell, vars] : held.cells) {
        for (size_t k = vars.size(); k-- > 1;) body.push_back({Assign{vars[k], get(vars[k - 1])}});
      }
    }
    std::move(n.body.begin(), n.body.end(), std::back_inserter(body));
    n.body = std::move(body);
    for (int64_t back = 0; back <= kMostBack; ++back) {
      Block stores;
      ExprId step = before(n, get(n.var), back + 1);
      for (auto& [buffer, held] : s.held) {
        if (!sinks(held)) continue;
        for (auto& [cell, vars] : held.cells) {
          if (static_cast<size_t>(back) >= vars.size()) continue;
          stores.push_back(
              {Store{buffer, place(held, cell, step), get(vars[static_cast<size_t>(back)])}});
        }
      }
      if (!stores.empty()) n.state.push_back({If{in_loop(n, step), std::move(stores), {}}});
    }
  }

  void put(Block& block, std::vector<Step>& steps) {
    Block out;
    for (Stmt& s : block) {
      auto* n = std::get_if<Loop>(&s.node);
      auto step =
          std::find_if(steps.begin(), steps.end(), [&](const Step& x) { return x.loop == n; });
      if (n && step != steps.end()) {
        hold(*step, out);
      } else {
        for_each_block(s, [&](Block& b) { put(b, steps); });
      }
      out.push_back(std::move(s));
    }
    block = std::move(out);
  }
};

}  // namespace

Program hold_state(Program p) {
  if (p.tuning.held_cells == 0 || p.tuning.held_nodes == 0) return p;
  Holder h{p};
  for (Kernel& k : p.kernels) {
    h.lets.merge(lets_of(k.body));
    for_each_stmt(k.body, [&](const Stmt& s) {
      if (const auto* n = std::get_if<Declare>(&s.node)) h.changing.insert(n->var);
    });
  }
  for (bool watched : {true, false}) {
    h.watched = watched;
    std::vector<Step> steps;
    for (Kernel& k : p.kernels) h.find(k.body, steps);
    if (watched) h.make_rings(steps);  // others have steps that the caller wants completely
    Holder::leave_what_ends(steps);
    for (Kernel& k : p.kernels) h.put(k.body, steps);
  }
  return p;
}

}  // namespace ein::loops

// Checks the rules of loops.h: variables are visible where they are used, types agree, and
// accumulators and Updates only occur where their axis allows it.
#include <fmt/format.h>

#include <bit>
#include <optional>
#include <set>

#include "base/match.h"
#include "loops/loops.h"
#include "loops/team.h"

namespace ein::loops {
namespace {

struct Verifier {
  const Program& p;
  std::vector<std::string> errors;
  std::string where;
  std::vector<VarId> visible;    // in the order of binding; popped with the block
  std::set<VarId> bound;         // as a set, for lookup
  std::set<VarId> mutable_vars;  // bound by Declare
  // Variables declared outside of the innermost vector loop, which may not be assigned inside it.
  std::set<VarId> frozen;
  bool vector = false, ordered = true, shared = false, team = false;
  const Launch* launch = nullptr;          // the one around, if any
  bool in_block = false, in_lane = false;  // inside a loop that hands its iterations to threads
  bool threads() const { return in_lane || (in_block && !launch->warps); }

  void error(const std::string& what) { errors.push_back(where + ": " + what); }

  void bind(VarId v) {
    if (!bound.insert(v).second) error(fmt::format("variable {} is bound twice", v.v));
    visible.push_back(v);
  }

  void use(ExprId id, std::optional<DType> type = {}) {
    if (!id) return error("missing expression");
    const Expr& e = p.exprs[id];
    if (type && e.type != *type) {
      error(fmt::format("expected {}, got {}", name_of(*type), name_of(e.type)));
    }
    match(
        e.node, [](const FloatConst&) {}, [](const IntConst&) {}, [](const Param&) {},
        [&](const Get& n) {
          if (!bound.contains(n.var)) error(fmt::format("variable {} is not visible", n.var.v));
          if (p.vars[n.var].type != e.type) error("a Get of another type than its variable");
        },
        [&](const Apply& n) { apply(n, e.type); },
        [&](const Overflows& n) {
          if (n.args.size() != core::info(n.op).arity) error("arity of an overflow");
          for (ExprId a : n.args) use(a, p.exprs[n.args[0]].type);
          if (!is_int(p.exprs[n.args[0]].type) || e.type != DType::Bool)
            error("types of an overflow");
        },
        [&](const Load& n) {
          if (p.buffers[n.buffer].dtype != e.type) error("a Load of another type than its buffer");
          address(n.buffer, n.at);
        });
  }

  void apply(const Apply& n, DType type) {
    const core::OpInfo& o = core::info(n.op);
    if (n.args.size() != o.arity) error(std::string("arity of ") + o.name);
    for (ExprId a : n.args) use(a);
    auto arg = [&](size_t i) { return p.exprs[n.args[i]].type; };
    bool ok = true;
    switch (o.cls) {
      case core::OpClass::Arith:
      case core::OpClass::Real:
      case core::OpClass::Whole:
      case core::OpClass::Logic:
        for (size_t i = 0; i < n.args.size(); ++i) ok &= arg(i) == type;
        break;
      case core::OpClass::Compare: ok = type == DType::Bool && arg(0) == arg(1); break;
      case core::OpClass::Select:
        ok = arg(0) == DType::Bool && arg(1) == type && arg(2) == type;
        break;
      case core::OpClass::Bits:
      case core::OpClass::Draw:
        for (size_t i = 0; i < n.args.size(); ++i) ok &= arg(i) == DType::I64;
        ok &= type == (o.cls == core::OpClass::Bits ? DType::I64 : DType::F32);
        break;
      case core::OpClass::Rule:
      case core::OpClass::Mark:
      case core::OpClass::Move:
      case core::OpClass::Matrix: ok = false; break;
      case core::OpClass::Cast: break;
    }
    if (!ok) error(std::string("operand types of ") + o.name);
  }

  void address(BufferId b, const std::vector<ExprId>& at) {
    own(b);
    if (at.size() != p.buffers[b].dims.size()) error("rank of an access to " + p.buffers[b].name);
    for (ExprId a : at) use(a, DType::I64);
  }

  // Checks a buffer of which every block or thread has its own.
  void own(BufferId b) {
    auto space = p.buffers[b].space;
    if (space == Buffer::Space::Row && launch) error("a row in a launch");
    if (space == Buffer::Space::Shared && !launch) error("shared memory outside of a launch");
    if (space == Buffer::Space::Local && (!launch || !threads()))
      error("a thread's memory outside of a thread");
  }

  void writable(BufferId b) {
    if (launch && !threads()) error("a store to " + p.buffers[b].name + " by no thread");
    auto space = p.buffers[b].space;
    if (space == Buffer::Space::Input || space == Buffer::Space::Constant) {
      error("a store to " + p.buffers[b].name + ", which is read only");
    }
  }

  void changes(VarId v) {
    if (!mutable_vars.contains(v)) error(fmt::format("variable {} does not change", v.v));
    if (frozen.contains(v)) {
      error(fmt::format("variable {} belongs outside the vector loop", v.v));
    }
  }

  void stmt(const Stmt& s) {
    match(
        s.node,
        [&](const Let& n) {
          use(n.value, p.vars[n.var].type);
          bind(n.var);
        },
        [&](const Declare& n) {
          use(n.init, p.vars[n.var].type);
          bind(n.var);
          mutable_vars.insert(n.var);
        },
        [&](const Assign& n) {
          use(n.value, p.vars[n.var].type);
          changes(n.var);
        },
        [&](const Store& n) {
          address(n.buffer, n.at);
          use(n.value, p.buffers[n.buffer].dtype);
          writable(n.buffer);
        },
        [&](const Update& n) {
          address(n.buffer, n.at);
          use(n.value, p.buffers[n.buffer].dtype);
          writable(n.buffer);
          if (!ordered) error("an update in a loop that is not sequential");
        },
        [&](const Fold& n) {
          use(n.value, p.vars[n.acc].type);
          changes(n.acc);
          bool arg = n.op == core::ReduceOp::ArgMax || n.op == core::ReduceOp::ArgMin;
          if (arg != n.arg.valid()) error("a fold with the wrong accumulators");
          if (n.arg) {
            changes(n.arg);
            use(n.index, p.vars[n.arg].type);
          }
        },
        [&](const If& n) {
          use(n.cond, DType::Bool);
          block(n.then);
          block(n.otherwise);
        },
        [&](const Loop& n) { loop(n); },
        [&](const Check& n) {
          use(n.ok, DType::Bool);
          for (ExprId v : n.values) use(v, DType::I64);
        },
        [&](const Contract& n) { contract(n); },
        [&](const Invoke& n) {
          if (launch) error("a call in a launch");
          const Function& f = p.functions.at(n.function);
          if (n.args.size() != f.params.size()) error("arguments of " + f.name);
          for (size_t k = 0; k < n.args.size() && k < f.params.size(); ++k) {
            use(n.args[k], p.vars[f.params[k]].type);
          }
          if (p.vars[n.var].type != p.exprs[f.result].type) error("result of " + f.name);
          bind(n.var);
        },
        [&](const Launch& n) { launches(n); },
        [&](const Barrier& n) {
          // All threads of the scope must meet here: nothing around may differ between them, except
          // the loops that hand iterations to them.
          bool meets = launch && !in_lane && (n.scope == Scope::Lane) == in_block;
          if (!meets || (in_block && !launch->warps))
            error("a barrier that some threads never meet");
        },
        [&](const Combine& n) {
          changes(n.acc);
          const Buffer& parts = p.buffers[n.parts];
          if (parts.space != Buffer::Space::Local || !parts.dims.empty())
            error("parts that threads do not have");
          if (parts.dtype != p.vars[n.acc].type) error("parts of another type");
          bool arg = n.op == core::ReduceOp::ArgMax || n.op == core::ReduceOp::ArgMin;
          if (arg || n.op == core::ReduceOp::Collect) error("a combination without an order");
          bool meets = launch && !in_lane && (n.scope == Scope::Lane) == in_block;
          if (!meets || (in_block && !launch->warps))
            error("a combination that some threads never meet");
        },
        [&](const Touch& n) {
          if (launch) error("the host in a launch");
          for (const auto* set : {&n.loads, &n.stores}) {
            for (BufferId b : *set) {
              if (b.v >= p.buffers.size()) error("a buffer that is not there");
            }
          }
        },
        [&](const Fetch& n) {
          if (launch) error("rows are fetched in a launch");
          use(n.first, DType::I64);
          bool moves = n.from.valid(), input = p.buffers[n.buffer].space == Buffer::Space::Input;
          if (moves == input) error("what is fetched is no input, or what is moved is one");
          if (!ordered || vector || shared) error("rows are fetched in a loop that is not seq");
        });
  }

  void loop(const Loop& n) {
    use(n.lo, DType::I64);
    use(n.hi, DType::I64);
    if (n.leave) {
      use(n.leave, DType::Bool);
      if (n.axis.kind != Axis::Kind::Seq) error("a loop is left that is not seq");
      if (vector) error("a loop inside lanes is left");
    }
    if (n.downward && n.axis.kind != Axis::Kind::Seq) error("a downward loop that is not seq");
    if (!n.folds.empty() && n.axis.kind != Axis::Kind::Reduce) error("folds on a plain loop");
    for (VarId v : n.folds) changes(v);
    if (n.grain) {
      use(n.grain, DType::I64);
      if (n.axis.kind == Axis::Kind::Seq) error("a sequential loop is shared");
      if (shared || vector) error("a shared loop inside a shared one");
    }
    if (n.team) {
      use(n.team, DType::I64);
      if (team || shared || vector) error("a team inside a shared loop or another team");
      if (!fits_a_team(p, n)) error("a loop that no team can run");
    }
    bool by_block = n.axis.kind == Axis::Kind::Thread, by_lane = n.axis.kind == Axis::Kind::Lane;
    if (by_block || by_lane) {
      if (!launch) error("a loop over threads outside of a launch");
      if (launch && by_block && (in_block || in_lane))
        error("loops over a block inside each other");
      if (launch && by_lane && (in_lane || !in_block || !launch->warps))
        error("a loop over lanes that are not those of a warp");
      auto lo = std::get_if<IntConst>(&p.exprs[n.lo].node);
      auto hi = std::get_if<IntConst>(&p.exprs[n.hi].node);
      int64_t most = !launch         ? 0
                     : by_lane       ? kLanes
                     : launch->warps ? launch->threads / kLanes
                                     : launch->threads;
      if (!lo || lo->value != 0 || !hi || hi->value > most)
        error("a loop over threads that are not there");
    }
    if (launch && (n.poll || n.grain || n.team || n.axis.width > 1))
      error("a loop of the host in a launch");
    const bool was_block = in_block, was_lane = in_lane;
    in_block |= by_block;
    in_lane |= by_lane;
    bool was_vector = vector, was_ordered = ordered, was_shared = shared, was_team = team;
    shared |= n.grain.valid();
    team |= n.team.valid();
    auto was_frozen = frozen;
    if (!std::has_single_bit(n.axis.width)) error("a number of lanes that is not a power of two");
    bool lanes = n.axis.width > 1 && !vector;
    if (lanes) vector = true;
    if (lanes || by_block || by_lane) {
      frozen = mutable_vars;
      for (VarId v : n.folds) frozen.erase(v);
    }
    // Updates in parallel loops and in lanes must not collide across iterations. Lowering
    // guarantees that by the addresses it computes.
    if (n.axis.width > 1 && n.axis.kind == Axis::Kind::Reduce) ordered = false;
    bind(n.var);
    block(n.body);
    if (!n.state.empty() && n.axis.kind != Axis::Kind::Seq)
      error("state of a loop that is not seq");
    block(n.state);
    bound.erase(n.var);
    visible.pop_back();
    in_block = was_block;
    in_lane = was_lane;
    vector = was_vector;
    ordered = was_ordered;
    shared = was_shared;
    team = was_team;
    frozen = std::move(was_frozen);
  }

  void launches(const Launch& n) {
    if (launch || vector || shared || team) error("a launch inside another loop that is shared");
    use(n.blocks, DType::I64);
    if (n.threads == 0 || n.threads > 1024 || n.threads < kLanes || !std::has_single_bit(n.threads))
      error("a number of threads that no block has");
    launch = &n;
    auto was_frozen = frozen;
    frozen = mutable_vars;
    bind(n.index);
    block(n.body);
    bound.erase(n.index);
    visible.pop_back();
    frozen = std::move(was_frozen);
    launch = nullptr;
  }

  void contract(const Contract& n) {
    if (launch) error("a contraction in a launch");
    writable(n.out.buffer);
    for (const auto* o : {&n.a, &n.b, &n.out}) address(o->buffer, o->at);
    for (const auto* set : {&n.batch, &n.m, &n.n, &n.k}) {
      for (const Contract::Index& i : *set) {
        use(i.extent, DType::I64);
        for (ExprId step : {i.a, i.b, i.out}) {
          if (step) use(step, DType::I64);
        }
      }
    }
    if (vector) error("a contraction inside a vector loop");
    auto holds = [&](const Contract::Operand& o, DType type) {
      if (p.buffers[o.buffer].dtype != type) error("a contraction of cells of another type");
    };
    if (n.factor < 0) {
      holds(n.a, n.operands);
      holds(n.b, n.operands);
      holds(n.out, n.type);
    }
  }

  // `result` is used after the last statement.
  void block(const Block& b, ExprId result = {}) {
    size_t mark = visible.size();
    for (const Stmt& s : b) stmt(s);
    if (result) use(result);
    while (visible.size() > mark) {
      bound.erase(visible.back());
      mutable_vars.erase(visible.back());
      visible.pop_back();
    }
  }
};

}  // namespace

std::vector<std::string> verify(const Program& p) {
  Verifier v{p, {}, {}, {}, {}, {}, {}};
  for (const Function& f : p.functions) {
    v.where = "function " + f.name;
    for (VarId param : f.params) v.bind(param);
    v.block(f.body, f.result);
    for (VarId param : f.params) v.bound.erase(param);
    v.visible.clear();
  }
  for (const Kernel& k : p.kernels) {
    v.where = "kernel " + k.name;
    v.block(k.body);
  }
  return v.errors;
}

}  // namespace ein::loops

// Loops over steps that a team runs (runtime/team.h): the loop becomes a function that every member
// calls. Members meet where one needs memory that another writes, or writes memory that another may
// still be reading; where something can stop the program; and before the caller is asked at a step.
#include "codegen/emit_team.h"

#include <cstddef>
#include <utility>

#include "base/check.h"
#include "loops/effects.h"
#include "loops/team.h"
#include "loops/walk.h"

namespace ein::codegen {

using llvm::BasicBlock;
using llvm::Value;

namespace {

std::set<loops::BufferId> loads_of(const loops::Program& p,
                                   std::initializer_list<loops::ExprId> es) {
  std::set<loops::BufferId> out;
  for (loops::ExprId e : es) {
    loops::for_each_node(p, e, [&](const loops::Node& n) {
      if (const auto* load = std::get_if<loops::Load>(&n)) out.insert(load->buffer);
    });
  }
  return out;
}

}  // namespace

void Emitter::team_loop(const loops::Loop& s) {
  EIN_CHECK(width == 1 && !mask && !team, "a team in lanes or in another");
  flush_stores();
  auto& c = mod.getContext();
  std::vector<loops::VarId> captured = loops::free_variables(p, {loops::Stmt{s}});
  std::vector<Value*> fields = values_now(captured);
  std::vector<std::pair<const loops::Loop*, loops::VarId>> folded;
  loops::for_each_stmt(s.body, [&](const loops::Stmt& inner) {
    const auto* n = std::get_if<loops::Loop>(&inner.node);
    for (size_t k = 0; n && n->grain && k < n->folds.size(); ++k) {
      folded.push_back({n, n->folds[k]});
      fields.push_back(partial_results(n->folds[k]));
    }
  });
  if (table) fields.push_back(table);
  llvm::AllocaInst* closure = closure_of(fields);

  Emitter sub(p, mod, first_dim);
  sub.target = target;
  sub.functions = functions;
  sub.written = written;
  sub.aliases = aliases;
  auto* type = llvm::FunctionType::get(b.getInt32Ty(), {b.getPtrTy(), b.getPtrTy()}, false);
  sub.fn =
      llvm::Function::Create(type, llvm::Function::InternalLinkage, fn->getName() + ".team", mod);
  sub.fn->addFnAttr(llvm::Attribute::NoUnwind);
  sub.fn->addFnAttr(llvm::Attribute::NoInline);
  sub.context = sub.fn->getArg(0);
  BasicBlock* begin = BasicBlock::Create(c, "entry", sub.fn);
  BasicBlock* start = BasicBlock::Create(c, "start", sub.fn);
  sub.entry.SetInsertPoint(begin);
  sub.b.SetInsertPoint(start);
  sub.b.setFastMathFlags(b.getFastMathFlags());
  Team members;
  sub.team = &members;
  auto number = [&](size_t offset) {
    return sub.entry.CreateLoad(b.getInt64Ty(),
                                sub.entry.CreateConstInBoundsGEP1_64(b.getInt64Ty(), sub.context,
                                                                     offset / sizeof(int64_t)));
  };
  members.first = sub.entry.CreateICmpEQ(number(offsetof(NativeContext, rank)), i64(0));
  members.many = sub.entry.CreateICmpSGT(number(offsetof(NativeContext, members)), i64(1));
  unsigned field = 0;
  auto load_field = [&] {
    Value* at = sub.entry.CreateStructGEP(closure->getAllocatedType(), sub.fn->getArg(1), field);
    return sub.entry.CreateLoad(fields[field++]->getType(), at);
  };
  for (loops::VarId v : captured) sub.values[v] = uniform(load_field());
  for (const auto& key : folded) members.parts[key] = load_field();
  if (table) {
    sub.names = names;
    sub.table = load_field();
  }
  sub.team_steps(s);
  sub.b.CreateRet(sub.b.getInt32(0));
  sub.entry.CreateBr(start);

  leave_unless_zero(
      call(NativeFn::Team, {context, sub.fn, closure, scalar(s.team)}, b.getInt32Ty()));
}

// Code that only rank 0 runs, or that runs only if there are other members.
void Emitter::first_alone(const std::function<void()>& code) {
  BasicBlock* in = BasicBlock::Create(mod.getContext(), "first", fn);
  BasicBlock* after = BasicBlock::Create(mod.getContext(), "all", fn);
  b.CreateCondBr(team->first, in, after);
  b.SetInsertPoint(in);
  Team* outside = std::exchange(team, nullptr);
  code();
  flush_stores();
  team = outside;
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

void Emitter::in_company(const std::function<void()>& code) {
  BasicBlock* in = BasicBlock::Create(mod.getContext(), "many", fn);
  BasicBlock* after = BasicBlock::Create(mod.getContext(), "met", fn);
  b.CreateCondBr(team->many, in, after);
  b.SetInsertPoint(in);
  code();
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

void Emitter::meet() {
  flush_stores();
  in_company([&] {
    leave_unless_zero(call(NativeFn::Gather, {context}, b.getInt32Ty()));
    call(NativeFn::Release, {context}, b.getVoidTy());
  });
  team->reads.clear();
  team->writes.clear();
  team->parts_read = false;
}

void Emitter::meet_unless_apart(const std::set<loops::BufferId>& loads,
                                const std::set<loops::BufferId>& stores) {
  if (loops::meet(loads, team->writes) || loops::meet(stores, team->writes) ||
      loops::meet(stores, team->reads)) {
    meet();
  }
}

void Emitter::team_block(const loops::Block& body) {
  for (const loops::Stmt& s : body) team_stmt(s);
}

// What each member executes on its own, as code outside of any team.
void Emitter::by_itself(const loops::Stmt& s) {
  Team* outside = std::exchange(team, nullptr);
  stmt(s);
  flush_stores();
  team = outside;
}

void Emitter::team_stmt(const loops::Stmt& s) {
  loops::Effects e = loops::effects(p, s);
  auto note = [&] {
    team->reads.insert(e.loads.begin(), e.loads.end());
    team->writes.insert(e.stores.begin(), e.stores.end());
  };
  switch (loops::role_of(p, s)) {
    case loops::Role::All:
      meet_unless_apart(e.loads, {});
      by_itself(s);
      return note();
    case loops::Role::First:
      meet_unless_apart(e.loads, e.stores);
      first_alone([&] { stmt(s); });
      note();
      if (e.checks) meet();
      return;
    case loops::Role::Together:
      meet_unless_apart(e.loads, e.stores);
      if (const auto* n = std::get_if<loops::Loop>(&s.node)) {
        team_share(*n);
      } else {
        contract(std::get<loops::Contract>(s.node));
      }
      note();
      if (e.checks) meet();
      return;
    case loops::Role::Inside: break;
  }
  if (!team->apart()) meet();
  if (const auto* n = std::get_if<loops::Loop>(&s.node)) return team_steps(*n);
  // Every member takes the same branch.
  const auto& n = std::get<loops::If>(s.node);
  Value* cond = scalar(n.cond);
  BasicBlock* after = BasicBlock::Create(mod.getContext(), "join", fn);
  BasicBlock* then = BasicBlock::Create(mod.getContext(), "then", fn);
  BasicBlock* otherwise = BasicBlock::Create(mod.getContext(), "else", fn);
  b.CreateCondBr(cond, then, otherwise);
  for (auto [at, body] : {std::pair{then, &n.then}, std::pair{otherwise, &n.otherwise}}) {
    b.SetInsertPoint(at);
    team->reads = loads_of(p, {n.cond});
    team_block(*body);
    if (!team->apart()) meet();
    b.CreateBr(after);
  }
  b.SetInsertPoint(after);
}

void Emitter::team_steps(const loops::Loop& s) {
  Value *lo = scalar(s.lo), *hi = scalar(s.hi);
  Value* last = s.downward ? b.CreateSub(b.CreateAdd(lo, hi), i64(1)) : nullptr;
  auto step = [&](Value* i) { return s.downward ? b.CreateSub(last, i) : i; };
  Value* steps = !s.poll ? nullptr : s.steps ? scalar(s.steps) : b.CreateSub(hi, lo);
  Value* from = s.poll && p.resumable ? resumed(s.poll, lo, last) : lo;
  llvm::AllocaInst* reached = s.poll ? entry.CreateAlloca(b.getInt64Ty()) : nullptr;
  if (reached) b.CreateStore(from, reached);
  bool around = std::exchange(in_sequence, true);
  team->reads = loads_of(p, {s.lo, s.hi});
  // All have finished the previous step, and none has begun the next.
  auto ask = [&](Value* next) {
    in_company([&] { leave_unless_zero(call(NativeFn::Gather, {context}, b.getInt32Ty())); });
    first_alone([&] { poll(s.poll, next, steps); });
    in_company([&] { call(NativeFn::Release, {context}, b.getVoidTy()); });
    team->reads.clear();
    team->writes.clear();
    team->parts_read = false;
  };
  counted(from, hi, 1, "steps", [&](Value* i) {
    values[s.var] = uniform(step(i));
    if (s.poll) ask(values[s.var].v);
    team_block(s.body);
    if (!s.poll && !team->apart()) meet();
    if (reached) b.CreateStore(b.CreateAdd(i, i64(1)), reached);
  });
  team->reads = loads_of(p, {s.lo, s.hi});
  if (reached) ask(step(b.CreateLoad(b.getInt64Ty(), reached)));
  in_sequence = around;
}

// A single chunk is run by rank 0; a reduction with a single chunk by every member.
void Emitter::team_share(const loops::Loop& s) {
  flush_stores();
  Value *lo = scalar(s.lo), *hi = scalar(s.hi), *grain = scalar(s.grain);
  Team before = *team;
  alone_or_shared(s, lo, hi, grain, [&] {
    if (s.folds.empty()) {
      first_alone([&] { whole_loop(s, lo, hi); });
    } else {
      Team* outside = std::exchange(team, nullptr);
      whole_loop(s, lo, hi);
      flush_stores();
      team = outside;
    }
    before = *team;
  });
  // If there was only one chunk, members have not met.
  team->reads.merge(before.reads);
  team->writes.merge(before.writes);
  team->parts_read = !s.folds.empty();
}

}  // namespace ein::codegen

// The element type of an expression from its tree alone. Only asked for recurrences that start from
// bare literals (`let h[0] = 0; let h[t in 1..T] = h[t-1] + x[t];`), where elaboration needs the
// answer before it can begin. A wrong or missing guess costs an error message, never a wrong
// result.
#include "base/match.h"
#include "sema/builtins.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/state/on_demand.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

std::optional<Guess> join(std::optional<Guess> a, std::optional<Guess> b) {
  if (!a) return b;
  if (!b) return a;
  if (a->typing == Typing::Fixed) return a;
  if (b->typing == Typing::Fixed) return b;
  return a->typing == Typing::Float ? a : b;
}

// A name of a block or a parameter: its clauses, or what is known of it already.
struct Local {
  std::vector<ast::StmtId> clauses;
  std::optional<Guess> known = {};
};
using Locals = std::map<Symbol, Local>;

// Which part of a tuple or record is asked for: its number or name, then what is within it.
using Part = std::vector<std::string>;

// A function, what its arguments are (`-1` stands for one that is not known), and the part of its
// value.
using Instance = std::tuple<const ast::Fn*, std::vector<std::pair<int, int>>, Part>;

struct Guesser {
  Sema& s;
  Env& env;
  const Definition* self;
  // Answers so far; an entry without a value is being worked out, which ends cycles. Without this,
  // names that read each other twice would be visited exponentially often.
  std::map<const Definition*, std::optional<Guess>> members = {};
  // Of locals, by their first clause, which may define several names.
  std::map<std::pair<ast::StmtId, Symbol>, std::optional<Guess>> values = {};
  std::map<Instance, std::optional<Guess>> results = {};

  std::optional<Guess> name(Symbol symbol, const Locals& locals, int depth) {
    if (auto it = locals.find(symbol); it != locals.end()) {
      const Local& local = it->second;
      if (local.known || local.clauses.empty()) return local.known;
      std::pair key(local.clauses[0], symbol);
      auto [known, fresh] = values.try_emplace(key);
      if (!fresh) return known->second;
      return values[key] = clauses(local.clauses, symbol, locals, depth);
    }
    Definition* d = find_definition(env, symbol);
    if (!d || d == self) return std::nullopt;
    if (d->group == self->group && d->scope == self->scope) {
      // Another member of the group: its family if it has one, otherwise its clauses.
      if (d->family) return Guess{Typing::Fixed, s.m[d->family].dtype};
      auto [known, fresh] = members.try_emplace(d);
      if (!fresh) return known->second;
      return members[d] = clauses(d->clauses, symbol, {}, depth);
    }
    define(s, *d);
    if (d->inlined) return Guess{d->inlined->typing, d->inlined->type};
    if (!d->family) return std::nullopt;
    return Guess{Typing::Fixed, s.m[d->family].dtype};
  }

  std::optional<Guess> clauses(const std::vector<ast::StmtId>& list, Symbol symbol,
                               const Locals& locals, int depth) {
    std::optional<Guess> out;
    for (ast::StmtId id : list) {
      const auto* l = std::get_if<ast::Let>(&s.ast[id].node);
      if (l && l->value) out = join(out, defined(*l, symbol, locals, depth));
    }
    return out;
  }

  // What a statement makes of one of its names, or of a part of it.
  std::optional<Guess> defined(const ast::Let& l, Symbol symbol, const Locals& locals, int depth,
                               Part part = {}) {
    if (!l.tuple) return expr(l.value, locals, depth, part);
    for (size_t k = 0; k < l.names.size(); ++k) {
      if (l.names[k].symbol != symbol) continue;
      part.insert(part.begin(), l.record ? text(symbol) : std::to_string(k));
      return expr(l.value, locals, depth, part);
    }
    return std::nullopt;
  }

  // The element type as written; mistakes in it are reported where the type is used.
  std::optional<Guess> written(ast::TypeId type, const Part& part = {}) {
    for (const std::string& name : part) {
      const ast::TupleType* tuple = type ? tuple_type(s.ast, type) : nullptr;
      if (!tuple) return std::nullopt;
      ast::TypeId item;
      for (size_t k = 0; k < tuple->items.size(); ++k) {
        bool here =
            tuple->names.empty() ? std::to_string(k) == name : text(tuple->names[k].symbol) == name;
        if (here) item = tuple->items[k];
      }
      type = item;
    }
    if (!type || is_type_parameter(s.ast, type)) return std::nullopt;
    auto element = written_type(s.ast, type);
    return element ? std::optional(Guess{Typing::Fixed, *element}) : std::nullopt;
  }

  // Without a result type the body decides. The arguments would be wrong: one may be a subscript,
  // as in `fn row(table: [f32; n, d], at: i32)`.
  // `given` are the arguments as they are written.
  std::optional<Guess> body(const Function& f, const ast::Call& call,
                            const std::vector<std::optional<Guess>>& given, int depth,
                            const Part& part) {
    if (given.size() > f.fn->params.size()) return std::nullopt;
    std::vector<std::optional<Guess>> args;
    for (auto place : argument_places(*f.fn, call)) {
      TreeId value = f.fn->params[args.size()].value;
      args.push_back(place ? given[*place] : expr(value, {}, depth));
    }
    Instance instance{f.fn, {}, part};
    for (const auto& a : args) {
      std::get<1>(instance).push_back(
          a ? std::pair(static_cast<int>(a->typing), static_cast<int>(a->type)) : std::pair(-1, 0));
    }
    auto [known, fresh] = results.try_emplace(instance);
    if (!fresh) return known->second;
    Locals params;
    for (size_t i = 0; i < args.size(); ++i) {
      const ast::Param& p = f.fn->params[i];
      auto type = written(p.type);
      params[p.name.symbol] = {{}, type ? type : args[i]};
    }
    Env home = env;
    home.frame = &f.home->frame;
    Guesser inside{s, home, self, std::move(members), {}, std::move(results)};
    std::optional<Guess> out = inside.expr(f.fn->body, params, depth, part);
    members = std::move(inside.members);
    results = std::move(inside.results);
    return results[instance] = out;
  }

  std::optional<Guess> call(const ast::Call& c, const Locals& locals, int depth, const Part& part) {
    Symbol callee = path_name(s.ast, c.callee);
    const Function* f = locals.count(callee) ? nullptr : find_callee(s, env, c.callee);
    if (f && f->fn->result && !is_type_parameter(s.ast, f->fn->result)) {
      if (auto out = written(f->fn->result, part); out || part.empty()) return out;
    }
    if (!f && !part.empty()) return std::nullopt;
    if (const Builtin* b = f ? nullptr : builtin_named(callee)) {
      switch (b->guess) {
        case Builtin::TypeGuess::Arguments: break;
        case Builtin::TypeGuess::Extent: return Guess{};
        case Builtin::TypeGuess::I32: return Guess{Typing::Fixed, DType::I32};
        case Builtin::TypeGuess::Bool: return Guess{Typing::Fixed, DType::Bool};
        case Builtin::TypeGuess::F32: return Guess{Typing::Fixed, DType::F32};
      }
    }
    std::vector<std::optional<Guess>> args;
    for (size_t i = 0; i < c.args.size(); ++i) {
      bool option = !f && i < c.names.size() && c.names[i].symbol;  // as in `dbg(x, every = 10)`
      if (!option) args.push_back(expr(c.args[i], locals, depth));
    }
    if (f) {
      auto out = body(*f, c, args, depth, part);
      if (out || !part.empty()) return out;
    }
    std::optional<Guess> out;
    for (const auto& a : args) {
      // Labels that are `i32` and switches say nothing about the type of a loss.
      if (!f || !a || is_float(a->type)) out = join(out, a);
    }
    return out;
  }

  // With `part`: of that part of a tuple or record, where it is written out.
  std::optional<Guess> expr(TreeId id, const Locals& locals, int depth, const Part& part = {}) {
    if (!id || depth > 40) return std::nullopt;
    auto go = [&](TreeId e) { return expr(e, locals, depth + 1, part); };
    const ast::ExprNode& node = s[id].node;
    if (!part.empty()) {
      const Part rest(part.begin() + 1, part.end());
      if (const auto* n = std::get_if<ast::Tuple>(&node)) {
        for (size_t k = 0; k < n->items.size(); ++k) {
          if (std::to_string(k) == part[0]) return expr(n->items[k], locals, depth + 1, rest);
        }
        return std::nullopt;
      }
      if (const auto* n = std::get_if<ast::Record>(&node)) {
        for (const ast::RecordField& field : n->fields) {
          if (text(field.name.symbol) == part[0]) return expr(field.value, locals, depth + 1, rest);
        }
        return std::nullopt;
      }
      bool passes_on =
          std::holds_alternative<ast::If>(node) || std::holds_alternative<ast::Match>(node) ||
          std::holds_alternative<ast::Block>(node) || std::holds_alternative<ast::Where>(node) ||
          std::holds_alternative<ast::Call>(node);
      if (!passes_on) return std::nullopt;
    }
    if (std::holds_alternative<ast::IntLit>(node)) return Guess{};
    if (std::holds_alternative<ast::FloatLit>(node)) return Guess{Typing::Float, DType::F32};
    if (std::holds_alternative<ast::BoolLit>(node)) return Guess{Typing::Fixed, DType::Bool};
    if (const auto* n = std::get_if<ast::Path>(&node)) {
      return n->parts.size() == 1 ? name(n->parts[0].symbol, locals, depth + 1) : std::nullopt;
    }
    if (const auto* n = std::get_if<ast::Index>(&node)) return go(n->base);
    if (const auto* n = std::get_if<ast::Call>(&node)) return call(*n, locals, depth + 1, part);
    if (const auto* n = std::get_if<ast::Unary>(&node)) return go(n->arg);
    if (const auto* n = std::get_if<ast::Binary>(&node)) {
      switch (n->op) {
        case ast::BinaryOp::Add:
        case ast::BinaryOp::Sub:
        case ast::BinaryOp::Mul:
        case ast::BinaryOp::Div:
        case ast::BinaryOp::BitAnd:
        case ast::BinaryOp::BitOr:
        case ast::BinaryOp::BitXor:
        case ast::BinaryOp::Shl:
        case ast::BinaryOp::Shr:
        case ast::BinaryOp::Mod: return join(go(n->lhs), go(n->rhs));
        case ast::BinaryOp::Pow: return go(n->lhs);
        case ast::BinaryOp::Lt:
        case ast::BinaryOp::Le:
        case ast::BinaryOp::Gt:
        case ast::BinaryOp::Ge:
        case ast::BinaryOp::Eq:
        case ast::BinaryOp::Ne:
        case ast::BinaryOp::In:
        case ast::BinaryOp::And:
        case ast::BinaryOp::Or: return Guess{Typing::Fixed, DType::Bool};
      }
    }
    if (const auto* n = std::get_if<ast::Cast>(&node)) { return written(n->type); }
    if (const auto* n = std::get_if<ast::If>(&node))
      return join(go(n->then_block), go(n->else_block));
    if (const auto* n = std::get_if<ast::Match>(&node)) {
      std::optional<Guess> out, subject = expr(n->subject, locals, depth + 1);
      for (const ast::MatchArm& arm : n->arms) {
        Locals inside = locals;
        for (Symbol bound : free_names(s.ast, arm.pattern)) {  // a bound name is the subject
          bool whole = as_path(s.ast, arm.pattern) ||
                       std::holds_alternative<ast::NamedPattern>(s[arm.pattern].node);
          inside[bound] = {{}, whole ? subject : std::nullopt};
        }
        out = join(out, expr(arm.body, inside, depth + 1, part));
      }
      return out;
    }
    if (const auto* n = std::get_if<ast::Block>(&node)) {
      Locals own;
      for (ast::StmtId stmt : n->stmts) {
        const auto* l = std::get_if<ast::Let>(&s.ast[stmt].node);
        for (size_t i = 0; l && i < l->names.size(); ++i) {
          Local& local = own[l->names[i].symbol];
          if (auto type = l->tuple ? std::nullopt : written(l->type)) local.known = type;
          local.clauses.push_back(stmt);
        }
      }
      Locals inside = locals;
      for (auto& [symbol, local] : own) inside[symbol] = std::move(local);
      return expr(n->value, inside, depth + 1, part);
    }
    if (const auto* n = std::get_if<ast::Array>(&node)) {
      return n->items.empty() ? std::nullopt : go(n->items[0]);
    }
    if (const auto* n = std::get_if<ast::Comprehension>(&node)) {
      return n->block ? go(n->block) : std::nullopt;
    }
    if (const auto* n = std::get_if<ast::Where>(&node)) return go(n->body);
    if (const auto* n = std::get_if<ast::Request>(&node)) return go(n->num);
    return std::nullopt;
  }
};

}  // namespace

std::optional<Guess> guess_type(Sema& s, Env& env, const ast::Let& clause, const Definition* self) {
  if (!self->whole) return Guesser{s, env, self}.defined(clause, self->name.symbol, {}, 0);
  // A leaf of an array of records is called `whole.part.part`.
  Symbol whole = self->whole->name.symbol;
  Part part;
  std::string path = text(self->name.symbol).substr(text(whole).size());
  for (size_t at = 0; at < path.size();) {
    size_t end = std::min(path.find('.', at + 1), path.size());
    part.push_back(path.substr(at + 1, end - at - 1));
    at = end;
  }
  return Guesser{s, env, self}.defined(clause, whole, {}, 0, std::move(part));
}

}  // namespace ein::sema

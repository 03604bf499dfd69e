// Symbolic extents while they are being found: placeholders, comparisons, entry constraints.
#include <fmt/format.h>

#include "sema/sema.h"

namespace ein::sema {
namespace {

// Placeholders are params that the module does not know; none is left when elaboration ends.
constexpr uint32_t kFirstPlaceholder = 1u << 30;

void show_into(const Sema& s, CoreId e, std::string& out, bool nested);

void show_affine(const Sema& s, const core::Affine& a, std::string& out) {
  bool first = true;
  auto sign = [&](int64_t value) {
    if (!first) out += value < 0 ? " - " : " + ";
    if (first && value < 0) out += "-";
    first = false;
  };
  // Positive terms first, so that `n - 1` does not read `-1 + n`.
  for (bool positive : {true, false}) {
    for (const auto& t : a.terms) {
      if ((t.coef > 0) != positive) continue;
      sign(t.coef);
      if (std::abs(t.coef) != 1) out += fmt::format("{} * ", std::abs(t.coef));
      show_into(s, t.atom, out, true);
    }
  }
  if (a.constant != 0) {
    sign(a.constant);
    out += std::to_string(std::abs(a.constant));
  }
}

void show_into(const Sema& s, CoreId e, std::string& out, bool nested) {
  if (!e) {
    out += "?";
    return;
  }
  const core::Expr& x = s.m[e];
  if (const auto* i = std::get_if<core::IntLit>(&x.node)) {
    out += std::to_string(i->value);
  } else if (const auto* p = std::get_if<core::ParamRef>(&x.node)) {
    if (is_placeholder(p->param)) {
      out += "?";
    } else if (const core::Param& param = s.m.params[p->param]; param.name) {
      out += text(param.name);
    } else {
      out += fmt::format("extent({}, {})", text(s.m[param.source].name), param.axis);
    }
  } else if (const auto* a = std::get_if<core::Affine>(&x.node)) {
    if (nested) out += "(";
    show_affine(s, *a, out);
    if (nested) out += ")";
  } else if (const auto* f = std::get_if<core::Apply>(&x.node); f && f->args.size() == 2) {
    const core::OpInfo& op = core::info(f->op);
    bool named = f->op == core::Op::Min || f->op == core::Op::Max;
    if (named) out += std::string(op.spelling) + "(";
    show_into(s, f->args[0], out, !named);
    out += named ? ", " : fmt::format(" {} ", op.spelling);
    show_into(s, f->args[1], out, !named);
    if (named) out += ")";
  } else {
    out += "…";
  }
}

}  // namespace

CoreId placeholder(Sema& s) {
  return core::param(s.m, ParamId(kFirstPlaceholder + s.placeholders++));
}

bool is_placeholder(ParamId p) { return p.v >= kFirstPlaceholder; }

core::Range unknown_range(Sema& s, ast::Name name, bool left) {
  CoreId lo = placeholder(s), hi = placeholder(s);
  auto id = [&](CoreId e) { return core::get_if<core::ParamRef>(s.m, e)->param; };
  s.unknowns.push_back({id(lo), id(hi), name.symbol, name.span, left});
  return {lo, hi};
}

bool has_unsolved(const Sema& s, CoreId e) {
  if (!e) return false;
  if (s.unsolved.size() <= e.v) s.unsolved.resize(s.m.arena->size(), Sema::Unsolved::NotLooked);
  Sema::Unsolved& known = s.unsolved[e.v];
  if (known != Sema::Unsolved::NotLooked) return known == Sema::Unsolved::Yes;
  bool found = false;
  if (const auto* p = core::get_if<core::ParamRef>(s.m, e)) found = is_placeholder(p->param);
  core::for_each_child(s.m, e, [&](CoreId child) { found = found || has_unsolved(s, child); });
  s.unsolved[e.v] = found ? Sema::Unsolved::Yes : Sema::Unsolved::No;
  return found;
}

CoreId resolve(Sema& s, CoreId e) {
  if (!has_unsolved(s, e)) return e;
  // The end of a range is most often one placeholder.
  while (const auto* p = core::get_if<core::ParamRef>(s.m, e)) {
    auto it = s.solved.find(p->param);
    if (it == s.solved.end() || it->second == e) return e;
    e = it->second;
    if (!has_unsolved(s, e)) return e;
  }
  std::unordered_map<CoreId, CoreId> memo;
  std::function<CoreId(CoreId)> visit = [&](CoreId x) {
    if (!has_unsolved(s, x)) return x;
    if (auto it = memo.find(x); it != memo.end()) return it->second;
    CoreId out;
    if (const auto* p = core::get_if<core::ParamRef>(s.m, x)) {
      auto it = s.solved.find(p->param);
      out = it == s.solved.end() || it->second == x ? x : visit(it->second);
    } else {
      out = core::map_children(s.m, x, visit);
    }
    memo.emplace(x, out);
    return out;
  };
  return visit(e);
}

core::Range resolve(Sema& s, core::Range r) { return {resolve(s, r.lo), resolve(s, r.hi)}; }

core::Facts entry_facts(const Sema& s) {
  core::Facts facts;
  facts.entry = core::entry_facts(s.m);
  return facts;
}

Truth equal(Sema& s, CoreId a, CoreId b) {
  a = resolve(s, a);
  b = resolve(s, b);
  if (a == b) return Truth::Yes;
  if (has_unsolved(s, a) || has_unsolved(s, b)) return Truth::Open;
  core::Facts facts = entry_facts(s);
  bool le = core::proves_le(s.m, a, b, facts), ge = core::proves_le(s.m, b, a, facts);
  if (le && ge) return Truth::Yes;
  if (le && core::proves_lt(s.m, a, b, facts)) return Truth::No;
  if (ge && core::proves_lt(s.m, b, a, facts)) return Truth::No;
  return Truth::Open;
}

void constrain(Sema& s, CoreId cond, std::string message, Span first, Span second) {
  cond = resolve(s, cond);
  if (const auto* b = core::get_if<core::BoolLit>(s.m, cond); b && b->value) return;
  if (auto known = core::entry_facts(s.m); known && known->holds.contains(cond)) return;
  s.m.constraints.push_back({cond, std::move(message), first, second});
}

CoreId as_extent(Sema& s, CoreId e) {
  const core::Expr x = s.m[e];
  if (x.type != DType::I64) return e;
  // What is i64 itself needs no cast to be an index.
  const auto* applied = std::get_if<core::Apply>(&x.node);
  bool casts = applied && applied->op == core::Op::Cast;
  if (casts || std::holds_alternative<core::Access>(x.node)) {
    const core::Expr arg = casts ? s.m[applied->args[0]] : x;
    const auto* a = std::get_if<core::Access>(&arg.node);
    auto owner = a && a->at.empty() ? s.owner.find(a->family) : s.owner.end();
    if (owner == s.owner.end() || !is_int(arg.type)) return e;
    Definition& d = *owner->second;
    if (d.input && s.m[a->family].kind == core::Family::Kind::Input) {
      for (uint32_t p = 0; p < s.m.params.size(); ++p) {
        const core::Param& known = s.m.params[ParamId(p)];
        bool same = known.source == a->family && known.axis == core::Param::kItself;
        if (same) return core::param(s.m, ParamId(p));
      }
      return core::param(s.m, s.m.params.add({d.name.symbol, a->family, core::Param::kItself}));
    }
    // `let m = n + 1;` stands for what it is made of; a reduction is computed once, where it stands.
    if (d.recurrent || d.outs.size() != 1 || !d.outs[0] || d.outs[0]->gate) return e;
    const Value& v = d.outs[0]->body;
    if (v.kind != Value::Kind::Data || !d.outs[0]->box.empty()) return e;
    CoreId index = as_index(s, d.scope->env, v, {});
    return index && !core::has_reduce(s.m, index) ? as_extent(s, index) : e;
  }
  bool arithmetic = std::holds_alternative<core::Affine>(x.node);
  if (applied) arithmetic = core::info(applied->op).cls == core::OpClass::Arith;
  if (!arithmetic) return e;
  return core::map_children(s.m, e, [&](CoreId child) { return as_extent(s, child); });
}

CoreId least(Sema& s, CoreId a, CoreId b) {
  if (!a || a == b) return b;
  if (!b) return a;
  core::Facts facts = entry_facts(s);
  if (core::proves_le(s.m, a, b, facts)) return a;
  if (core::proves_le(s.m, b, a, facts)) return b;
  return core::apply(s.m, core::Op::Min, {a, b});
}

CoreId greatest(Sema& s, CoreId a, CoreId b) {
  if (!a || a == b) return b;
  if (!b) return a;
  core::Facts facts = entry_facts(s);
  if (core::proves_le(s.m, b, a, facts)) return a;
  if (core::proves_le(s.m, a, b, facts)) return b;
  return core::apply(s.m, core::Op::Max, {a, b});
}

std::string show(const Sema& s, CoreId extent) {
  std::string out;
  show_into(s, extent, out, false);
  return out;
}

}  // namespace ein::sema

#include "driver/observe_module.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "core/build.h"
#include "core/rewrite.h"

namespace ein {

using core::ExprId;
using core::Family;
using core::FamilyId;
using core::Op;

namespace {

// If a value needs more families than this for one step, it goes back through the steps.
constexpr size_t kMostMade = 2000;

// The clauses of a family whose boxes only differ in the coordinates that are fixed, with the
// condition under which each applies.
struct Alike {
  std::vector<core::Range> box;
  std::vector<std::pair<ExprId, ExprId>> cases;  // condition, body
};

bool same_box(const std::vector<core::Range>& a, const std::vector<core::Range>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.lo == y.lo && x.hi == y.hi; });
}

}  // namespace

StepProgram::StepProgram(const core::Module& asked, std::map<std::string, uint32_t> members,
                         bool downward)
    : module(asked), members_(std::move(members)), downward_(downward) {
  // Its own nodes, because the running program must not notice that it is watched.
  module.arena = std::make_shared<core::Arena>(*asked.arena);
  module.effects.clear();
  module.locksteps.clear();
  Family input;
  input.name = core::fresh_name(module, "step");
  input.kind = Family::Kind::Input;
  input.dtype = DType::I64;
  step = text(input.name);
  Symbol name = input.name;
  FamilyId source = module.families.add(std::move(input));
  now_ = core::param(module, module.params.add({name, source, core::Param::kItself}));
}

bool StepProgram::mentions_step(ExprId e) const {
  bool found = false;
  core::for_each_node(module, e, [&](ExprId x) { found |= x == now_; });
  return found;
}

std::optional<int64_t> StepProgram::offset_of(ExprId e) const {
  core::AffineForm form = core::affine_form(module, e);
  bool shifted = form.terms.size() == 1 && form.terms[0].atom == now_ && form.terms[0].coef == 1;
  return shifted ? std::optional(form.constant) : std::nullopt;
}

// Whether a family depends on steps of the recurrence.
bool StepProgram::reads_members(FamilyId id) {
  if (members_.contains(text(module[id].name))) return true;
  auto [it, fresh] = reads_.try_emplace(id, false);
  if (!fresh) return it->second;
  std::set<FamilyId> read;
  core::for_each_body(module, id, [&](ExprId body) {
    core::for_each_node(module, body, [&](ExprId e) {
      if (const auto* a = core::get_if<core::Access>(module, e)) read.insert(a->family);
      if (const auto* r = core::get_if<core::Request>(module, e)) read.insert({r->num, r->den});
    });
  });
  bool some = std::any_of(read.begin(), read.end(), [&](FamilyId f) { return reads_members(f); });
  return reads_[id] = some;
}

FamilyId StepProgram::step_input(FamilyId id, uint32_t position, int64_t offset) {
  auto [it, fresh] = sliced_.try_emplace({id, offset});
  if (!fresh) return it->second;
  Family f = module[id];
  inputs.push_back({"", text(f.name), offset});
  f.name = core::fresh_name(module, text(f.name) + "_kept");
  f.path.clear();
  inputs.back().name = text(f.name);
  f.kind = Family::Kind::Input;
  f.file = nullptr;
  f.clauses.clear();
  f.cells.clear();
  f.with.clear();
  f.coords.erase(f.coords.begin() + position);
  return it->second = module.families.add(std::move(f));
}

// The family to read instead of `id`, and the address there.
FamilyId StepProgram::moved(FamilyId id, std::vector<ExprId>& at) {
  const Family f = module[id];
  auto member = members_.find(text(f.name));
  if (member != members_.end()) {
    ExprId when = at[member->second];
    auto offset = offset_of(when);
    bool done = offset && (downward_ ? *offset >= 0 : *offset <= 0);
    if (done) {
      at.erase(at.begin() + member->second);
      return step_input(id, member->second, *offset);
    }
    if (module[when].free != 0 || mentions_step(when)) {
      throw CannotWatch{fmt::format("it reads several steps of `{}`", f.spelled())};
    }
  }
  Fixed fixed(at.size());
  std::vector<ExprId> rest;
  for (size_t k = 0; k < at.size(); ++k) {
    bool first = member != members_.end() && k == member->second;
    bool fixes = f.kind == Family::Kind::Defined && module[at[k]].free == 0 &&
                 (first || mentions_step(at[k]));
    if (fixes) {
      fixed[k] = at[k];
    } else {
      rest.push_back(at[k]);
    }
  }
  if (rest.size() == at.size()) {
    if (reads_members(id)) {
      throw CannotWatch{fmt::format("it reads `{}` at several steps", f.spelled())};
    }
    return id;
  }
  at = std::move(rest);
  return fixed_at(id, fixed);
}

ExprId StepProgram::body_of(ExprId body, const std::vector<ExprId>& with, uint32_t rank) {
  ExprId placed = core::substitute(module, body, with, rank);
  return core::rewrite(module, placed, [&](ExprId e) {
    const core::Expr x = module[e];
    if (const auto* a = std::get_if<core::Access>(&x.node)) {
      std::vector<ExprId> at = a->at;
      FamilyId f = moved(a->family, at);
      return f == a->family ? e : core::access(module, f, std::move(at), x.span);
    }
    if (const auto* r = std::get_if<core::Request>(&x.node)) {
      core::Request to = *r;
      to.num = moved(r->num, to.num_at);
      to.den = moved(r->den, to.den_at);
      return core::request(module, std::move(to), x.span);
    }
    return e;
  });
}

// The family with some coordinates fixed at given addresses.
FamilyId StepProgram::fixed_at(FamilyId id, const Fixed& at) {
  auto [it, fresh] = made_.try_emplace({id, at});
  if (!fresh) return it->second;
  if (made_.size() > kMostMade) throw CannotWatch{"it reads back through the steps"};
  const Family f = module[id];
  Family out = f;
  out.name = core::fresh_name(module, text(f.name) + "_now");
  out.path.clear();
  out.generated = true;
  out.checkpoint = 0;
  out.clauses.clear();
  out.coords.clear();
  out.with.clear();
  std::vector<ExprId> with = at;
  for (uint32_t k = 0; k < f.rank(); ++k) {
    if (at[k]) continue;
    with[k] = core::slot(module, out.rank());
    out.coords.push_back(f.coords[k]);
  }
  uint32_t rank = out.rank();
  FamilyId to = it->second = module.families.add(std::move(out));
  std::vector<Alike> parts;
  for (const core::Clause& c : f.clauses) {
    ExprId cond = core::bool_lit(module, true);
    std::vector<core::Range> box;
    for (uint32_t k = 0; k < f.rank(); ++k) {
      if (!at[k]) {
        box.push_back(c.box[k]);
        continue;
      }
      ExprId from = core::apply(module, Op::Le, {c.box[k].lo, at[k]});
      ExprId end = core::apply(module, Op::Lt, {at[k], c.box[k].hi});
      cond = core::apply(module, Op::And, {cond, core::apply(module, Op::And, {from, end})});
    }
    const auto* known = core::get_if<core::BoolLit>(module, cond);
    if (known && !known->value) continue;
    ExprId body = body_of(c.body, with, rank);
    auto same = std::find_if(parts.begin(), parts.end(),
                             [&](const Alike& p) { return same_box(p.box, box); });
    if (same == parts.end()) same = parts.insert(parts.end(), {std::move(box), {}});
    same->cases.push_back({cond, body});
  }
  for (const Alike& p : parts) {
    ExprId body = p.cases.back().second;
    for (size_t i = p.cases.size() - 1; i-- > 0;) {
      body = core::apply(module, Op::Select, {p.cases[i].first, p.cases[i].second, body});
    }
    bool always = core::get_if<core::BoolLit>(module, p.cases[0].first) != nullptr;
    if (parts.size() > 1 && !always) {
      throw CannotWatch{
          fmt::format("the equations of `{}` hold for different parts of it", f.spelled())};
    }
    module.families[to].clauses.push_back({p.box, body, f.span});
  }
  return to;
}

std::string StepProgram::add(FamilyId id) {
  FamilyId at = fixed_at(id, {now_});
  Family out = module[at];  // under another name, which is not dropped
  out.name = core::fresh_name(module, "watched_" + text(module[id].name));
  out.generated = false;
  out.clauses = {{{}, core::access(module, at, {}), out.span}};
  std::string name = text(out.name);
  module.families.add(std::move(out));
  return name;
}

}  // namespace ein

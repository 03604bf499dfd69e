#include "shard/joint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "core/build.h"
#include "core/groups.h"
#include "core/rewrite.h"
#include "core/scalar.h"

namespace ein::shard {
namespace {

using namespace core;

class Joiner {
 public:
  explicit Joiner(const Sharded& s)
      : s_(s), out_{{}, static_cast<uint32_t>(s.module.families.size())} {
    m_.arena = s.module.arena;
    m_.functions = s.module.functions;
  }

  Joint run() {
    for (int64_t q = 0; q < s_.mesh.ranks(); ++q) {
      for (Family f : s_.module.families) {
        f.name = intern(fmt::format("{}@{}", text(f.name), q));
        for (FamilyId& with : f.with) with = out_.of_rank(with, q);
        m_.families.add(std::move(f));
      }
      for (Param p : s_.module.params) {
        if (p.name) p.name = intern(fmt::format("{}@{}", text(p.name), q));
        p.source = out_.of_rank(p.source, q);
        m_.params.add(p);
      }
    }
    for (int64_t q = 0; q < s_.mesh.ranks(); ++q) {
      rank_ = q;
      memo_.clear();
      for (uint32_t i = 0; i < out_.families; ++i) family(FamilyId(i));
      for (const Constraint& c : s_.module.constraints) {
        m_.constraints.push_back({here(c.cond), c.message, c.first, c.second});
      }
    }
    return std::move(out_);
  }

 private:
  ParamId param_of(ParamId p, int64_t rank) const {
    return ParamId(static_cast<uint32_t>(rank) * static_cast<uint32_t>(s_.module.params.size()) +
                   p.v);
  }

  ExprId here(ExprId e) {
    if (auto it = memo_.find(e); it != memo_.end()) return it->second;
    ExprId out = map_children(m_, e, [&](ExprId x) { return here(x); });
    const Node node = m_[out].node;
    if (const auto* a = std::get_if<Access>(&node)) {
      out = access(m_, out_.of_rank(a->family, rank_), a->at, m_[e].span);
    } else if (const auto* p = std::get_if<ParamRef>(&node)) {
      out = param(m_, param_of(p->param, rank_));
    }
    memo_.emplace(e, out);
    return out;
  }

  void family(FamilyId id) {
    Family& f = m_.families[out_.of_rank(id, rank_)];
    for (Coord& c : f.coords) c.extent = here(c.extent);
    for (ExprId& e : f.cells) e = here(e);
    for (Clause& c : f.clauses) {
      for (Range& r : c.box) r = {here(r.lo), here(r.hi)};
      const auto* a = get_if<Apply>(m_, c.body);
      bool moved = a && a->op == Op::Moved;
      c.body = moved ? move(Apply(*a)) : here(c.body);
    }
  }

  ExprId lo(Axes along, ExprId extent, int64_t rank) { return end(along, extent, rank, false); }
  ExprId hi(Axes along, ExprId extent, int64_t rank) { return end(along, extent, rank, true); }
  ExprId end(Axes along, ExprId extent, int64_t rank, bool upper) {
    if (!along) return upper ? here(extent) : int_lit(m_, 0);
    for (const Part& p : s_.parts) {
      if (p.along != along || p.extent != extent) continue;
      ExprId first = param(m_, param_of(p.lo, rank));
      return upper ? add(m_, first, param(m_, param_of(p.count, rank))) : first;
    }
    EIN_UNREACHABLE("a part that is no part");
  }

  // Whether rank `r` may supply cells for this rank, with the partial results of rank number `o`
  // along `over`.
  bool gives(const Move& move, int64_t r, int64_t o) const {
    Axes have = 0;
    for (const Move::Coord& c : move.coords) have |= c.have;
    EIN_CHECK((have & move.over) == 0, "partial results split along their own axis");
    Axes same = ~(have | move.over);
    for (uint32_t a = 0; a < s_.mesh.axes.size(); ++a) {
      if ((same >> a & 1) && s_.mesh.at(a, r) != s_.mesh.at(a, rank_)) return false;
    }
    return s_.mesh.part(move.over, r) == o;
  }

  ExprId move(const Apply& moved) {
    const Move& move = s_.moves[static_cast<size_t>(get_if<IntLit>(m_, moved.args[0])->value)];
    const auto* cells = get_if<Reduce>(m_, moved.args[2]);
    const uint32_t binders = cells ? cells->first : kMaxSlots;
    const Access read = *get_if<Access>(m_, cells ? cells->body : moved.args[2]);
    // The address in the whole value; coordinates of steps do not change.
    std::vector<ExprId> at;
    std::vector<const Move::Coord*> coords;
    uint32_t own = 0;
    size_t next = 0;
    for (ExprId e : read.at) {
      uint32_t n = slot_of(m_, e);
      if (n != ~0u && n >= binders) {
        const Move::Coord& c = move.coords[next++];
        ExprId first = sub(m_, lo(c.want, c.extent, rank_), int_lit(m_, c.below));
        at.push_back(add(m_, slot(m_, own++), first));
        coords.push_back(&c);
        continue;
      }
      at.push_back(here(e));
      coords.push_back(nullptr);
      own += n != ~0u ? 1 : 0;
    }
    DType type = m_[moved.args[2]].type;
    ExprId none = type == DType::Bool ? bool_lit(m_, false) : number(m_, 0, type), all;
    for (int64_t o = 0; o < s_.mesh.parts(move.over); ++o) {
      ExprId value = none;
      for (int64_t r = s_.mesh.ranks(); r-- > 0;) {
        if (!gives(move, r, o)) continue;
        std::vector<ExprId> there, has;
        for (size_t k = 0; k < at.size(); ++k) {
          const Move::Coord* c = coords[k];
          there.push_back(c ? sub(m_, at[k], lo(c->have, c->extent, r)) : at[k]);
          if (!c || !c->have) continue;
          has.push_back(apply(m_, Op::Ge, {at[k], lo(c->have, c->extent, r)}));
          has.push_back(apply(m_, Op::Lt, {at[k], hi(c->have, c->extent, r)}));
        }
        ExprId cell = access(m_, out_.of_rank(move.from, r), there);
        value = has.empty() ? cell : apply(m_, Op::Select, {all_of(m_, has), cell, value});
      }
      auto both = combination(move.op);
      EIN_CHECK(both, "not combined by moves");
      all = all ? apply(m_, *both, {all, value}) : value;
    }
    return all;
  }

  const Sharded& s_;
  Joint out_;
  Module& m_ = out_.module;
  int64_t rank_ = 0;
  std::map<ExprId, ExprId> memo_;
};

// Messages name `x`, not `x@3`.
void drop_ranks(std::string& message) {
  for (size_t at = message.find('@'); at != std::string::npos; at = message.find('@', at + 1)) {
    size_t end = at + 1;
    while (end < message.size() && message[end] >= '0' && message[end] <= '9') ++end;
    if (end > at + 1 && end < message.size() && message[end] == '`') message.erase(at, end - at);
  }
}

}  // namespace

Joint joint(const Sharded& s) { return Joiner(s).run(); }

std::variant<std::map<FamilyId, Tensor>, RuntimeError> evaluate_ranks(
    Module& original, const Sharded& s, const Inputs& inputs, const std::vector<FamilyId>& wanted) {
  std::vector<FamilyId> needed = families_of(schedule(original, wanted).steps);
  auto bound = bind_params(original, inputs, needed);
  if (auto* e = std::get_if<RuntimeError>(&bound)) return *e;
  const auto& params = std::get<std::vector<int64_t>>(bound);
  Joint all = joint(s);
  Inputs parts;
  std::vector<FamilyId> asked;
  for (int64_t r = 0; r < s.mesh.ranks(); ++r) {
    auto name_at = [&](const std::string& name) { return fmt::format("{}@{}", name, r); };
    for (auto& [name, value] : numbers_of_rank(s, params, r)) parts[name_at(name)] = value;
    for (FamilyId id : needed) {
      const Family& f = original[id];
      if (f.kind != Family::Kind::Input) continue;
      parts[name_at(text(f.name))] = part_of(s.mesh, s.axes[id.v], inputs.at(text(f.name)), r);
    }
    for (FamilyId id : wanted) asked.push_back(all.of_rank(id, r));
  }
  EvalResult result = evaluate(all.module, parts, asked);
  if (result.error) {
    drop_ranks(result.error->message);
    return *result.error;
  }
  std::map<FamilyId, Tensor> out;
  for (FamilyId id : wanted) {
    std::vector<Tensor> own;
    for (int64_t r = 0; r < s.mesh.ranks(); ++r)
      own.push_back(result.values.at(all.of_rank(id, r)));
    std::vector<int64_t> shape;
    for (const Coord& c : original[id].coords)
      shape.push_back(std::max<int64_t>(0, eval_extent(original, c.extent, params)));
    out[id] = joined(s.mesh, s.axes[id.v], shape, own);
  }
  return out;
}

}  // namespace ein::shard

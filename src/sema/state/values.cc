#include "sema/state/values.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "core/build.h"
#include "core/rewrite.h"

namespace ein::sema {
Value data(const Env& env, DType type, CoreId body, Span span) {
  Value v;
  v.kind = Value::Kind::Data;
  v.type = type;
  v.body = body;
  v.depth = env.depth;
  v.span = span;
  return v;
}

Value untyped_int(const Env& env, CoreId body, Span span) {
  Value v = data(env, DType::I64, body, span);
  v.typing = Typing::Int;
  return v;
}

CoreId cell(core::Module& m, const Value& v, const std::vector<CoreId>& at, uint32_t depth) {
  EIN_CHECK(v.kind == Value::Kind::Data && at.size() == v.coords.size(), "cell of a value");
  if (at.empty() && v.depth == depth) return v.body;
  std::vector<CoreId> with(v.depth + at.size());
  for (size_t i = 0; i < at.size(); ++i) with[v.depth + i] = at[i];
  return core::substitute(m, v.body, with, depth);
}

Value moved(core::Module& m, const Value& v, uint32_t depth) {
  if (!v.items.empty()) {
    Value out = v;
    for (Value& item : out.items) item = moved(m, item, depth);
    return out;
  }
  if (v.kind != Value::Kind::Data || v.depth == depth) return v;
  Value out = v;
  size_t n = v.coords.size();
  out.body = cell(m, v, core::slots_from(m, depth, n), depth + static_cast<uint32_t>(n));
  out.depth = depth;
  return out;
}

Value map_leaves(const Value& v,
                 const std::function<Value(const Value& leaf, const std::string& path)>& f,
                 const std::string& path) {
  if (v.kind != Value::Kind::Tuple) return f(v, path);
  Value out = v;
  for (size_t i = 0; i < v.items.size(); ++i) {
    std::string part = v.record() ? text(v.fields[i]) : std::to_string(i);
    out.items[i] = map_leaves(v.items[i], f, path + "." + part);
    if (out.items[i].poison()) return {};
  }
  return out;
}

std::string as_suffix(std::string path) {
  std::replace(path.begin(), path.end(), '.', '_');
  return path;
}

std::vector<Value> leaves_of(const Value& v) {
  std::vector<Value> out;
  map_leaves(v, [&](const Value& leaf, const std::string&) {
    out.push_back(leaf);
    return leaf;
  });
  return out;
}

std::optional<size_t> field_at(const Value& record, Symbol name) {
  auto it = std::find(record.fields.begin(), record.fields.end(), name);
  if (it == record.fields.end()) return std::nullopt;
  return static_cast<size_t>(it - record.fields.begin());
}

std::optional<Value> in_order_of(const Value& like, const Value& v) {
  if (!like.record()) return v.record() ? std::nullopt : std::optional(v);
  if (!v.record() || v.items.size() != like.items.size()) return std::nullopt;
  Value out = v;
  out.fields = like.fields;
  for (size_t i = 0; i < like.fields.size(); ++i) {
    auto at = field_at(v, like.fields[i]);
    if (!at) return std::nullopt;
    auto item = in_order_of(like.items[i], v.items[*at]);
    if (!item) return std::nullopt;
    out.items[i] = std::move(*item);
  }
  return out;
}

bool fit_fields(const ast::TupleType& type, Value& v) {
  if (v.kind != Value::Kind::Tuple || v.items.size() != type.items.size()) return false;
  if (v.record() == type.names.empty()) return false;
  for (size_t i = 0; i < type.names.size(); ++i) {
    auto at = field_at(v, type.names[i].symbol);
    if (!at || *at < i) return false;
    std::swap(v.fields[i], v.fields[*at]);
    std::swap(v.items[i], v.items[*at]);
  }
  return true;
}

std::vector<CoreId> aligned(core::Module& m, const Env& env, const std::vector<Value>& values,
                            size_t rank) {
  std::vector<CoreId> out;
  uint32_t inside = env.depth + static_cast<uint32_t>(rank);
  for (const Value& v : values) {
    out.push_back(cell(m, v, core::slots_from(m, env.depth, v.coords.size()), inside));
  }
  return out;
}

FamilyId whole_family(const core::Module& m, const Value& v) {
  if (v.kind != Value::Kind::Data || v.typing != Typing::Fixed) return {};
  const auto* a = core::get_if<core::Access>(m, v.body);
  if (!a || a->at.size() < v.coords.size()) return {};
  size_t prefix = a->at.size() - v.coords.size();
  for (size_t i = 0; i < a->at.size(); ++i) {  // a local's enclosing slots, then the holes
    uint32_t slot = core::slot_of(m, a->at[i]);
    if (i < prefix ? slot >= v.depth : slot != v.depth + (i - prefix)) return {};
  }
  return a->family;
}

CoreId conditions(core::Module& m, const Env& env) {
  std::vector<CoreId> all;
  for (CoreId cond : env.conds) {
    uint32_t made = env.depth;
    core::for_each_node(m, cond, [&](CoreId e) {
      const auto* r = core::get_if<core::Reduce>(m, e);
      if (r) made = std::min(made, r->first);
    });
    if (made < env.depth) cond = core::substitute(m, cond, std::vector<CoreId>(made), env.depth);
    all.push_back(cond);
  }
  return core::all_of(m, all);
}

std::vector<uint32_t> enclosing_slots(const Env& env) {
  std::vector<uint32_t> out(env.depth);
  std::iota(out.begin(), out.end(), 0u);
  return out;
}

Value read_family(core::Module& m, const Env& env, FamilyId family,
                  const std::vector<uint32_t>& carries, Span span) {
  const core::Family& f = m[family];
  Value v = data(env, f.dtype, {}, span);
  v.coords.assign(f.coords.begin() + static_cast<ptrdiff_t>(carries.size()), f.coords.end());
  std::vector<CoreId> at;
  for (uint32_t slot : carries) at.push_back(core::slot(m, slot));
  for (CoreId hole : core::slots_from(m, env.depth, v.coords.size())) at.push_back(hole);
  v.body = core::access(m, family, std::move(at), span);
  return v;
}

CoreId zero(core::Module& m, DType type) {
  return type == DType::Bool ? core::bool_lit(m, false) : core::number(m, 0, type);
}

bool closed(const core::Module& m, CoreId e) {
  if (m[e].free != 0) return false;
  bool data = false;
  core::for_each_node(m, e, [&](CoreId x) {
    data |= core::get_if<core::Access>(m, x) || core::get_if<core::Reduce>(m, x) ||
            core::get_if<core::Call>(m, x);
  });
  return !data;
}

Env outside_reductions(const core::Module& m, const Env& env) {
  Env out = env;
  if (!under_binder(env)) return out;
  out.depth = env.site ? static_cast<uint32_t>(env.site->slots.size()) : 0;
  out.binders.clear();
  out.gates.clear();
  std::erase_if(out.conds, [&](CoreId c) { return m[c].level() >= static_cast<int>(out.depth); });
  return out;
}

std::vector<SiteSlot> slots_around(const Env& env) {
  std::vector<SiteSlot> out = env.site ? env.site->slots : std::vector<SiteSlot>{};
  out.insert(out.end(), env.binders.begin(), env.binders.end());
  return out;
}

}  // namespace ein::sema

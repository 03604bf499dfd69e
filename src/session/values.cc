#include "session/values.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/components.h"
#include "core/rewrite.h"
#include "driver/files.h"

namespace ein::session {
namespace {

using core::FamilyId;
using core::FunctionId;

uint64_t join(uint64_t a, uint64_t b) {
  a ^= b + 0x9E3779B97F4A7C15ull + (a << 6) + (a >> 2);
  return a * 0xD6E8FEB86659FD93ull;
}

// The families that one family reads, each once, in the order in which its definition mentions
// them.
struct Reads {
  std::vector<uint32_t> families;
  std::vector<FunctionId> functions;
};

Reads reads_of(const core::Module& m, FamilyId id) {
  Reads out;
  std::set<uint32_t> seen;
  std::set<FunctionId> called;
  auto read = [&](FamilyId f) {
    if (seen.insert(f.v).second) out.families.push_back(f.v);
  };
  for (FamilyId f : m[id].with) read(f);
  core::for_each_body(m, id, [&](core::ExprId body) {
    core::for_each_node_called(m, body, [&](core::ExprId e) {
      if (const auto* a = core::get_if<core::Access>(m, e)) read(a->family);
      if (const auto* r = core::get_if<core::Request>(m, e)) {
        read(r->num);
        read(r->den);
      }
      const auto* call = core::get_if<core::Call>(m, e);
      if (call && called.insert(call->function).second) out.functions.push_back(call->function);
    });
  });
  return out;
}

// The hash of a family's own definition, in which the families that it reads appear by name only.
uint64_t own_key(const core::Module& m, FamilyId id, const Reads& reads) {
  uint64_t out = core::hash(m, id);
  for (FunctionId f : reads.functions) out = join(out, core::hash(m, f));
  if (const auto& file = m[id].file) {  // the version of the file's contents
    out = join(out, std::hash<std::string>()(file->path));
    out = join(join(out, file->header.size), static_cast<uint64_t>(file->header.modified));
  }
  return out;
}

bool is_missing(const core::Family& f) { return f.kind == core::Family::Kind::Input && !f.file; }

bool has_known_extents(const core::Module& m, FamilyId id, const Tensor& value) {
  const core::Family& f = m[id];
  if (value.dtype() != f.dtype || value.rank() != f.rank()) return false;
  for (uint32_t k = 0; k < f.rank(); ++k) {
    const auto* literal = core::get_if<core::IntLit>(m, f.coords[k].extent);
    if (!literal || literal->value != value.shape()[k]) return false;
  }
  return true;
}

}  // namespace

std::unordered_map<FamilyId, uint64_t> value_keys(const core::Module& asked) {
  std::vector<Reads> reads;
  std::vector<std::vector<uint32_t>> edges;
  for (uint32_t i = 0; i < asked.families.size(); ++i) {
    reads.push_back(reads_of(asked, FamilyId(i)));
    edges.push_back(reads.back().families);
  }
  std::unordered_map<FamilyId, uint64_t> out;
  for (const std::vector<uint32_t>& group : components(edges)) {
    // The members of a recurrence share a hash of all of them; each adds its own.
    std::set<uint32_t> within(group.begin(), group.end());
    uint64_t all = 0;
    std::vector<uint64_t> own;
    for (uint32_t id : group) {
      uint64_t key = own_key(asked, FamilyId(id), reads[id]);
      for (uint32_t other : edges[id]) {
        if (!within.contains(other)) key = join(key, out.at(FamilyId(other)));
      }
      own.push_back(key);
      all += key;
    }
    for (size_t k = 0; k < group.size(); ++k) out[FamilyId(group[k])] = join(own[k], all);
  }
  return out;
}

std::vector<FamilyId> families_of(const core::Module& m, const std::string& name) {
  if (FamilyId id = m.find(intern(name))) return {id};
  std::vector<FamilyId> out;
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    if (m[FamilyId(i)].path.starts_with(name + ".")) out.push_back(FamilyId(i));
  }
  return out;
}

core::Module with_known(const core::Module& m, const KeptValues& known,
                        std::map<std::string, Tensor>& given) {
  core::Module out = m;
  out.arena = std::make_shared<core::Arena>(*m.arena);  // a run adds nodes
  for (uint32_t i = 0; i < out.families.size(); ++i) {
    core::Family& f = out.families[FamilyId(i)];
    auto it = known.find(text(f.name));
    if (it == known.end() || !has_known_extents(m, FamilyId(i), it->second.value)) continue;
    given[it->first] = it->second.value;
    f.kind = core::Family::Kind::Input;
    f.clauses.clear();
    f.cells.clear();
    f.with.clear();
    f.file.reset();
    f.checkpoint = 0;
  }
  return out;
}

bool has_missing_inputs(const core::Module& m) {
  return std::any_of(m.families.begin(), m.families.end(), is_missing);
}

std::vector<std::string> missing_inputs(const core::Module& m, FamilyId family) {
  std::vector<std::string> out;
  for (FamilyId id : reached(m, {family})) {
    if (is_missing(m[id])) out.push_back(m[id].spelled());
  }
  return out;
}

}  // namespace ein::session

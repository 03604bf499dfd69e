#include "driver/synthetic.h"

#include <algorithm>

#include "runtime/random.h"

namespace ein {
namespace {

using core::Family;
using core::FamilyId;
using core::Param;
using core::ParamId;

// Extents to try: different ones first, so that a transposed gradient has another shape; then equal
// ones, for programs that need that, and large ones, for those that read an input at a fixed
// address; then random ones.
int64_t chosen_extent(uint32_t param, int trial, int64_t key) {
  constexpr int64_t kDifferent[] = {3, 4, 2, 5};
  if (trial == 0) return kDifferent[param % std::size(kDifferent)];
  if (trial <= 3) return 5 - trial;
  if (trial <= 5) return trial == 4 ? 16 : 40;
  auto bits = static_cast<uint64_t>(philox(philox(key, trial), param));
  return 2 + static_cast<int64_t>(bits % 8);
}

bool is_scalar_integer(const Family& f) { return f.coords.empty() && is_int(f.dtype); }

}  // namespace

std::variant<core::Inputs, RuntimeError> synthetic_inputs(const core::Module& m,
                                                          const std::vector<FamilyId>& needed,
                                                          const core::Inputs& given, int attempt) {
  RuntimeError problem{Code::E0805, "found no extents that satisfy the program's constraints"};
  for (int trial = attempt / 2; trial < attempt / 2 + 40; ++trial) {
    int64_t key = 20 + attempt;
    std::vector<int64_t> params(m.params.size());
    for (uint32_t p = 0; p < m.params.size(); ++p) {
      const Param& param = m.params[ParamId(p)];
      auto supplied = given.find(text(m[param.source].name));
      if (supplied == given.end()) {
        params[p] = chosen_extent(p, trial, key);
      } else if (param.position == Param::kItself) {
        params[p] = supplied->second.get_int(0);
      } else if (param.position < supplied->second.rank()) {
        params[p] = supplied->second.shape()[param.position];
      }
    }
    core::Inputs out = given;
    int64_t least = 3;  // an integer below every extent is an address of anything
    std::vector<FamilyId> missing;
    for (FamilyId id : needed) {
      const Family& f = m[id];
      if (f.kind != Family::Kind::Input) continue;
      std::vector<int64_t> shape;
      for (const core::Coord& c : f.coords) {
        shape.push_back(std::max<int64_t>(0, core::eval_extent(m, c.extent, params)));
        least = std::min(least, std::max<int64_t>(1, shape.back()));
      }
      if (given.contains(text(f.name))) continue;
      out[text(f.name)] = Tensor(f.dtype, shape);
      missing.push_back(id);
    }
    for (FamilyId id : missing) {
      const Family& f = m[id];
      Tensor& t = out[text(f.name)];
      for (int64_t i = 0; i < t.size(); ++i) {
        int64_t bits = philox(philox(key, id.v), i);
        if (is_float(f.dtype)) {
          t.set_float(i, attempt % 2 == 0 ? normal_of(bits) : 0.1 + 0.9 * uniform_of(bits));
        } else if (f.dtype == DType::Bool) {
          t.set_int(i, (bits >> 7) & 1);
        } else {
          t.set_int(i, static_cast<int64_t>(static_cast<uint64_t>(bits) >> 7) % least);
        }
      }
      for (uint32_t p = 0; p < m.params.size(); ++p) {
        const Param& param = m.params[ParamId(p)];
        if (param.source == id && param.position == Param::kItself && is_scalar_integer(f)) {
          t.set_int(0, params[p]);
        }
      }
    }
    auto bound = core::bind_params(m, out, needed);
    if (std::holds_alternative<std::vector<int64_t>>(bound)) return out;
    problem = std::get<RuntimeError>(bound);
    if (missing.empty()) break;
  }
  return problem;
}

}  // namespace ein

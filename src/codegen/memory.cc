#include "codegen/memory.h"

#include <algorithm>

#include "loops/effects.h"

namespace ein::codegen {

std::vector<Lifetime> lifetimes(const loops::Program& p) {
  std::vector<Lifetime> out(p.buffers.size());
  for (uint32_t k = 0; k < p.kernels.size(); ++k) {
    loops::Effects touched = loops::effects(p, p.kernels[k].body);
    for (const auto* set : {&touched.loads, &touched.stores}) {
      for (loops::BufferId b : *set) {
        out[b.v].first = std::min(out[b.v].first, k);
        out[b.v].last = std::max(out[b.v].last, k);
      }
    }
  }
  return out;
}

}  // namespace ein::codegen

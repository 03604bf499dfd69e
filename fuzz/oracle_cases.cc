// Random programs with inputs and answers, for tests that reach the compiler by another language:
//   oracle_cases [--count N] [--seed S]
// One JSON object a line. Numbers are strings, because JSON has no infinities. Like the oracle, it
// sees nothing of the compiler.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "oracle/expected.h"
#include "oracle/generate.h"

namespace {

using nlohmann::json;

constexpr int kAttempts = 6;  // how many programs are drawn for a seed until one has no tie

const char* kind_name(oracle::Type type) {
  return type == oracle::Type::Float ? "float" : type == oracle::Type::Int ? "int" : "bool";
}

template <class Numbers>
json texts(const Numbers& numbers) {
  json out = json::array();
  for (const auto& x : numbers) out.push_back(fmt::format("{}", static_cast<double>(x)));
  return out;
}

json inputs_of(const oracle::Program& p) {
  json out = json::array();
  for (size_t k = 0; k < p.defs.size(); ++k) {
    const oracle::Definition& d = p.defs[k];
    if (!d.input || d.dropped) continue;
    out.push_back({{"name", d.name},
                   {"kind", kind_name(d.type)},
                   {"shape", oracle::shape_of(p, static_cast<int>(k))},
                   {"cells", texts(d.data)}});
  }
  return out;
}

// Leaves out derivatives that depend on numbers that are not finite, because they mean nothing.
json answers_of(const oracle::Prepared& expected) {
  json out = json::array();
  for (const oracle::Expected& e : expected.values) {
    if (e.derivative && e.nonfinite) continue;
    out.push_back({{"name", e.name},
                   {"kind", kind_name(e.type)},
                   {"derivative", e.derivative},
                   {"shape", e.shape},
                   {"cells", texts(e.cells)},
                   {"tolerance", texts(e.tolerance)}});
  }
  return out;
}

void show(uint64_t seed) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    oracle::Program p = oracle::draw(seed, attempt, {});
    oracle::Prepared expected = oracle::prepare(p);
    if (expected.state != oracle::Prepared::State::Ready) continue;
    json line = {{"seed", seed},
                 {"dtype", p.dtype},
                 {"source", oracle::print(p)},
                 {"inputs", inputs_of(p)},
                 {"answers", answers_of(expected)}};
    fmt::print("{}\n", line.dump());
    return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t count = 100, seed = 1;
  for (int i = 1; i < argc; ++i) {
    bool is_count = std::strcmp(argv[i], "--count") == 0;
    if (i + 1 == argc || (!is_count && std::strcmp(argv[i], "--seed") != 0)) {
      fmt::print(stderr, "usage: oracle_cases [--count N] [--seed S]\n");
      return 2;
    }
    (is_count ? count : seed) = std::strtoull(argv[++i], nullptr, 10);
  }
  for (uint64_t k = 0; k < count; ++k) show(seed + k);
  return 0;
}

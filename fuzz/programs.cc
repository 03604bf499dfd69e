// Random programs against every property: `fuzz_programs [--count N] [--seed S] [--native N]
// [--show]`. Native code is checked on the first N programs (all by default): every eighth fully
// optimised, the others at -O0, which compiles several times faster; every other one by a plan
// drawn at random. Prints the seed of a failure; the same seed gives the same program again.
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <exception>

#include "generate.h"
#include "properties.h"

namespace {

using namespace ein::fuzz;

std::string without_requests(const std::string& source) {
  std::string out;
  size_t begin = 0;
  while (begin < source.size()) {
    size_t end = source.find('\n', begin) + 1;
    if (source.compare(begin, 6, "let d_") != 0) out += source.substr(begin, end - begin);
    begin = end;
  }
  return out;
}

// Some value with coordinates that the program defines; which one depends on the seed.
std::string some_tensor(const Generated& g, const ein::core::Module& m, uint64_t seed) {
  std::vector<std::string> found;
  for (const std::string& name : g.values) {
    const ein::core::Family& f = m[m.find(ein::intern(name))];
    if (f.rank() > 0 && name.compare(0, 2, "d_") != 0 && f.dtype == ein::DType::F64)
      found.push_back(name);
  }
  return found.empty() ? "" : found[seed % found.size()];
}

struct Counts {
  int skipped = 0;  // directions that cross a kink
  int cut = 0;      // recurrences whose steps were computed again
};

struct Plan {
  uint64_t seed;
  bool native;
  int opt_level;
};

std::string check(const Generated& g, const Plan& plan, Counts& counts) {
  ein::fuzz::Subject subject;
  if (std::string wrong = compile_source(g.source, subject); !wrong.empty()) return wrong;
  ein::core::Module& m = subject.compiled.module;
  if (std::string wrong = ein::printed_agrees(m); !wrong.empty()) return wrong;
  std::string plain_source = without_requests(g.source);
  ein::fuzz::Subject plain;
  if (std::string wrong = compile_source(plain_source, plain); !wrong.empty()) return wrong;
  if (std::string wrong = check_size(plain.compiled.module, m); !wrong.empty()) return wrong;
  std::vector<Derivative> derivatives;
  std::vector<std::string> gradients, tensors;
  for (const std::string& x : g.differentiable) {
    derivatives.push_back({x, "d_" + x});
    gradients.push_back("d_" + x);
    if (!g.inputs.at(x).shape().empty()) tensors.push_back(x);
  }
  std::string wrong = check_gradient(m, g.inputs, "loss", derivatives, 2, counts.skipped);
  if (!wrong.empty()) return wrong;
  ein::fuzz::Subject forward;
  wrong = compile_source(g.source, forward, ein::autodiff::Direction::Forward);
  if (!wrong.empty()) return "forward: " + wrong;
  wrong = check_same_values(m, forward.compiled.module, g.inputs, gradients);
  if (!wrong.empty()) return "forward and reverse differ: " + wrong;
  std::string of = some_tensor(g, m, plan.seed);
  if (plan.seed % 4 == 0 && !of.empty() && !tensors.empty()) {
    const std::string& wrt = tensors[plan.seed / 4 % tensors.size()];
    wrong = check_pairing(plain_source, m, g.inputs, of, wrt);
    if (!wrong.empty()) return wrong;
    if (wrong = ein::printed_agrees(forward.compiled.module); !wrong.empty()) return wrong;
  }
  wrong = check_checkpoints(m, g.inputs, g.values, counts.cut);
  if (!wrong.empty()) return wrong;
  ein::NativeOptions options;
  options.opt_level = plan.opt_level;
  if (plan.seed % 2 == 1) options.choices = random_choices(plan.seed);
  if (plan.seed % 3 == 1) options.processor = ein::Processor::Sse2;
  if (plan.seed % 5 == 2) options.choices.overflow = ein::core::Overflow::Stops;
  return plan.native ? ein::native_agrees(m, g.inputs, g.values, options) : "";
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t count = 200, seed = 1, native = ~uint64_t{0};
  bool show = false;
  for (int i = 1; i < argc; ++i) {
    auto number = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (std::strcmp(argv[i], "--count") == 0) {
      count = number();
    } else if (std::strcmp(argv[i], "--seed") == 0) {
      seed = number();
    } else if (std::strcmp(argv[i], "--native") == 0) {
      native = number();
    } else if (std::strcmp(argv[i], "--show") == 0) {
      show = true;
    } else {
      fmt::print(stderr, "usage: fuzz_programs [--count N] [--seed S] [--native N] [--show]\n");
      return 2;
    }
  }
  auto begin = std::chrono::steady_clock::now();
  uint64_t failed = 0;
  Counts counts;
  for (uint64_t k = 0; k < count; ++k) {
    Generated g = ein::fuzz::generate(seed + k);
    if (show) fmt::print("// seed {}\n{}\n", seed + k, g.source);
    std::string wrong;
    try {
      wrong = check(g, {seed + k, k < native, k % 8 == 0 ? 2 : 0}, counts);
    } catch (const std::exception& e) { wrong = std::string("fault: ") + e.what(); }
    if (wrong.empty()) continue;
    ++failed;
    fmt::print("--- seed {}\n{}{}\n", seed + k, g.source, wrong);
    if (failed >= 10) break;
  }
  std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  fmt::print(
      "{} directions across a kink skipped, {} recurrences checkpointed, {:.1f} s\n{} passed, {} "
      "failed\n",
      counts.skipped, counts.cut, spent.count(), count - failed, failed);
  return failed == 0 ? 0 : 1;
}

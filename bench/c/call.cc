// Seconds of one call of a function of one element through einlang.hpp, the least of several
// rounds: what a call costs besides its work. Prints them for call, then for call_into.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <einlang/einlang.hpp>
#include <limits>
#include <vector>

namespace {

constexpr int kRounds = 20, kCalls = 20000;

template <class F>
double seconds_of(const F& call) {
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    auto begin = std::chrono::steady_clock::now();
    for (int k = 0; k < kCalls; ++k) call();
    std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    best = std::min(best, spent.count() / kCalls);
  }
  return best;
}

}  // namespace

int main(int, char** argv) {
  einlang::Program p = einlang::Program::compile(argv[1]);
  std::vector<float> x{3}, y{0};
  double plain = seconds_of([&] { y[0] = p.call({einlang::input(x, {1})}).at<float>("y")[0]; });
  if (y[0] != 7) return 1;
  y[0] = 0;
  einlang::Tensor from = einlang::input(x, {1}), to = einlang::output(y, {1});
  ein_tensor in = from.get(), out = to.get();
  double into = seconds_of([&] { p.call_into(std::span(&in, 1), std::span(&out, 1)); });
  if (y[0] != 7) return 1;
  std::printf("%.9e %.9e\n", plain, into);
  return 0;
}

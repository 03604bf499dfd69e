// What einlang.hpp promises, threads, and how long a call of a tiny function takes (printed).
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <einlang/einlang.hpp>
#include <thread>

#define CHECK(cond)                                                   \
  do {                                                                \
    if (!(cond)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
      std::exit(1);                                                   \
    }                                                                 \
  } while (0)

using einlang::input;
using einlang::Program;

void mistakes() {
  try {
    Program::compile("let x = y;");
    CHECK(false);
  } catch (const einlang::Error& e) {
    CHECK(e.status == EIN_PROGRAM_WRONG && e.code == "E0201");
    CHECK(e.diagnostics.find("error[E0201]") != std::string::npos);
  }
  Program p = Program::compile("let x: [f32; i]; let y[i] = x[i] * 2.0;");
  try {
    p.call();
    CHECK(false);
  } catch (const einlang::Error& e) { CHECK(e.status == EIN_USAGE); }
  std::vector<float> x{1, 2};
  try {
    input(x, {3});
    CHECK(false);
  } catch (const std::invalid_argument&) {}
  einlang::Result r = p.call({input(x, {2})});
  CHECK(r.at<float>("y")[1] == 4);
  try {
    r.at<double>("y");
    CHECK(false);
  } catch (const std::invalid_argument&) {}
  try {
    r["none"];
    CHECK(false);
  } catch (const std::out_of_range&) {}
}

// Several threads compile and call, the same program and programs of their own.
void threads() {
  Program shared = Program::compile(
      "let x: [f64; i]; let h[i] = sin(x[i]); let s = sum[i](h[i] * h[i]); let g = @s / @x;",
      {.outputs = {"s", "g"}});
  std::atomic<int> wrong{0};
  auto work = [&](int number) {
    for (int round = 0; round < 3; ++round) {
      Program own = Program::compile(
          "let x: [f64; i]; let s = sum[i](x[i]) * " + std::to_string(number + 1) + ".0;",
          {.cache = false});
      for (int i = 0; i < 300; ++i) {
        std::vector<double> x(static_cast<size_t>(1 + (i + number) % 7), 0.5);
        auto n = static_cast<int64_t>(x.size());
        double s = own.call({input(x, {n})}).at<double>("s")[0];
        if (s != static_cast<double>(n) * 0.5 * (number + 1)) ++wrong;
        einlang::Result r = shared.call({input(x, {n})});
        double expected = static_cast<double>(n) * 0.229848847065930;  // sin(0.5)²
        if (std::abs(r.at<double>("s")[0] - expected) > 1e-12) ++wrong;
        if (r.at<double>("g").size() != x.size()) ++wrong;
      }
    }
  };
  std::vector<std::thread> all;
  for (int i = 0; i < 4; ++i) all.emplace_back(work, i);
  for (std::thread& t : all) t.join();
  CHECK(wrong == 0);
}

void overhead() {
  Program p = Program::compile("let x: [f32; i]; let y[i] = x[i] + 1.0;");
  float x = 1, y = 0;
  int64_t one = 1;
  ein_tensor in{EIN_F32, 1, &one, &x}, out{EIN_F32, 1, &one, &y};
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    constexpr int kCalls = 2000;
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) p.call_into(std::span(&in, 1), std::span(&out, 1));
    std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    best = std::min(best, spent.count() / kCalls);
  }
  CHECK(y == 2);
  std::printf("a call of a function of one element: %.0f ns\n", best);
}

int main() {
  mistakes();
  threads();
  overhead();
}

// Fits a line by gradient descent, from C++: the loss is written in Einlang, and the compiler derives its gradient.
#include <cstdio>
#include <einlang/einlang.hpp>

int main() {
  try {
    auto program = einlang::Program::compile(
        R"(
      let x: [f64; n];
      let y: [f64; n];
      let p: [f64; 2];
      let loss = sum[n]((p[0] + p[1] * x[n] - y[n]) ** 2.0);
    )",
        {.outputs = {"loss", "d_loss_d_p"}, .grad_of = "loss", .grad_wrt = {"p"}});
    std::vector<double> x{0, 1, 2, 3}, y{1, 3, 5, 7}, p{0, 0}, slope(2);
    double loss = 0;
    int64_t four[] = {4}, two[] = {2};
    ein_tensor inputs[] = {
        {EIN_F64, 1, four, x.data()}, {EIN_F64, 1, four, y.data()}, {EIN_F64, 1, two, p.data()}};
    ein_tensor outputs[] = {{EIN_F64, 0, nullptr, &loss}, {EIN_F64, 1, two, slope.data()}};
    for (int step = 0; step < 500; ++step) {
      program.call_into(inputs, outputs);
      for (size_t k = 0; k < p.size(); ++k) p[k] -= 0.05 * slope[k];
    }
    einlang::Result last =
        program.call({einlang::input(x, {4}), einlang::input(y, {4}), einlang::input(p, {2})});
    std::printf("y = %.3f + %.3f x, loss %.6f\n", p[0], p[1], last.at<double>("loss")[0]);
  } catch (const einlang::Error& e) {
    std::fprintf(stderr, "%s\n%s", e.what(), e.diagnostics.c_str());
    return 1;
  }
}

// Private to gradcheck: one derivative against differences of its numerator.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "driver/differences.h"
#include "driver/gradcheck.h"
#include "driver/gradcheck_evaluate.h"
#include "driver/gradcheck_program.h"

namespace ein {

// Everything that is known about one derivative at one point.
struct Numbers {
  const core::Family* family;  // the holder
  const Tensor *own, *wide;    // in the program's type, and in f64
  const Tensor *num, *den;     // in f64
  std::vector<int64_t> num_cell, den_cell;
};

// Which cell of a family each value of a derivative belongs to; −1: none.
std::vector<int64_t> linear_cells(const std::vector<std::string>& at, const Tensor& of,
                                  const Evaluator::Values& values, int64_t count);

// Compares in f64 by moving the denominator, cell by cell and along random directions, then the
// program's own type with f64.
class Comparer {
 public:
  // `names`: the family that has the shifted value of another one (Shifted::moved).
  Comparer(Evaluator& moved, const std::map<std::string, std::string>& names,
           const core::Inputs& point, const GradcheckOptions& options,
           std::chrono::steady_clock::time_point deadline)
      : moved_(moved), names_(names), point_(point), options_(options), deadline_(deadline) {}

  void run(const Derivative& d, const Numbers& n, Comparison& out);

 private:
  struct Seen {
    double derived;
    Slope slope;
    std::string where;
    bool direction = false;
    double scale = 1;
  };

  std::optional<double> step(const Numbers& n) const;
  std::vector<int64_t> sample(const std::map<int64_t, std::vector<int64_t>>& cells) const;
  Along along(const Derivative& d, const Numbers& n, const std::map<int64_t, double>& direction);
  void note(const Numbers& n, int64_t cell, const Slope& slope, const std::string& where,
            Comparison& out);
  void direction(const Derivative& d, const Numbers& n, int k, Comparison& out);
  void judge(const Numbers& n, Comparison& out);

  Evaluator& moved_;
  const std::map<std::string, std::string>& names_;
  const core::Inputs& point_;
  const GradcheckOptions& options_;
  std::chrono::steady_clock::time_point deadline_;
  std::vector<Seen> seen_;
  double scale_ = 0;
};

}  // namespace ein

// Functions of whole matrices: factorisations, inverses and triangular solutions. This file defines
// what each of them returns. Compiled programs call `factor_f32` and `factor_f64`, which use LAPACK
// for large matrices if it is installed (lapack.h) and the loops of factor_plain.h otherwise. The
// reference evaluator only uses those loops.
#pragma once

#include <cstdint>
#include <string>

namespace ein {

// A is the operand, of `rows` × `cols` cells. Every result is one matrix.
enum class Factor : int64_t {
  Cholesky,           // n × n: L, from the lower triangle; NaN from the first pivot below 0 on
  Lu,                 // n × (n + 1): L below the diagonal, U from it on; the last column: pivots
  Qr,                 // (rows + cols) × cols: Q, then R with a diagonal that is not negative
  Eigen,              // (n + 1) × n: eigenvectors of the symmetric part, then eigenvalues, rising
  Svd,                // (cols + 1) × cols: right singular vectors, then singular values, falling
  InverseLower,       // n × n: the inverse of the lower triangle
  InverseUpper,       // n × n: of the upper triangle
  InverseLu,          // n × n, from the result of Lu: the inverse of its matrix
  SolveLower,         // n × 1, from A and a column b: the solution for the lower triangle
  SolveUpper,         // for the upper triangle
  SolveLu,            // from the result of Lu: the solution for its matrix
  SolveLuTransposed,  // for the transpose of that matrix
  Cofactors,          // n × n: the derivatives of the determinant; works for any rank of A
};
constexpr int64_t kFactors = 13;
const char* name_of(Factor f);

// If A is wide, the columns of Q and the rows of R from `rows` on are 0, and so are the singular
// values. Signs: the first cell of a singular vector or eigenvector that is nearly as large as the
// largest one is positive.
constexpr double kNearlyLargest = 1 - 1e-3;

inline bool is_solve(Factor f) { return f >= Factor::SolveLower && f <= Factor::SolveLuTransposed; }

// The extents of the result for an operand of these extents.
struct FactorShape {
  int64_t rows, cols;
};
FactorShape factor_shape(Factor f, int64_t rows, int64_t cols);

// `a`: rows × cols cells, row by row. `out`: the result, row by row; for a solution, `columns`
// right-hand sides, which are replaced.
template <class T>
void factor_plain(Factor f, int64_t rows, int64_t cols, const T* a, int64_t columns, T* out);

// The parts that LAPACK leaves to us. These two: whether the last column of a result of Lu is a
// list of pivots; and reordering the rows of `x` by the pivots, or back.
template <class T>
bool has_pivots(int64_t n, const T* lu);
template <class T>
void exchange_rows(int64_t n, const T* lu, bool back, int64_t columns, T* x);
// The result of Eigen and Svd, from n vectors of n cells, one after the other, and their values.
template <class T>
void order_vectors(int64_t n, const T* vectors, const T* value, bool falling, T* out);
// Flips the signs of columns of Q and rows of R so that the diagonal of R is not negative.
template <class T>
void positive_diagonal(int64_t m, int64_t n, T* q, T* r);

// Called by compiled programs. `shape` is that of a contraction (contract.h), in which m and n are
// the rows and columns of the result (n is empty for a solution) and k the rows and columns of `a`;
// the rows of `b`, the right-hand sides of a solution, move along the first index of k.
void factor_f32(const int64_t* shape, const float* a, const float* b, float* out, int64_t factor);
void factor_f64(const int64_t* shape, const double* a, const double* b, double* out,
                int64_t factor);

}  // namespace ein

// Contractions against a sum that is written out: any number of indices, in any order in memory.
#include "runtime/contract.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "runtime/batches.h"
#include "runtime/dots.h"
#include "runtime/pool.h"
#include "runtime/tensor.h"

namespace ein {
namespace {

struct DrawnIndex {
  int set;  // batch, m, n or k
  int64_t extent;
  bool in[3];  // moves in a, b, out
  int64_t step[3] = {};
};

struct DrawnProduct {
  std::vector<DrawnIndex> indices;
  int64_t cells[3] = {1, 1, 1};

  std::vector<int64_t> shape() const {
    std::vector<int64_t> out(4);
    for (int set = 0; set < 4; ++set) {
      for (const DrawnIndex& x : indices) {
        if (x.set != set) continue;
        ++out[static_cast<size_t>(set)];
        out.insert(out.end(), {x.extent, x.step[0], x.step[1], x.step[2]});
      }
    }
    return out;
  }
};

// Operands without gaps, or of which every second cell is left out; their indices in an order that
// is drawn.
void lay_out(DrawnProduct& d, std::mt19937& random) {
  for (int operand = 0; operand < 3; ++operand) {
    std::vector<DrawnIndex*> order;
    for (DrawnIndex& x : d.indices) {
      if (x.in[operand]) order.push_back(&x);
    }
    std::shuffle(order.begin(), order.end(), random);
    if (operand < 2 && random() % 4 == 0) d.cells[operand] = 2;
    for (DrawnIndex* x : order) {
      x->step[operand] = d.cells[operand];
      d.cells[operand] *= x->extent;
    }
  }
}

DrawnProduct draw_product(std::mt19937& random) {
  auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  constexpr int64_t kExtents[] = {1, 2, 3, 4, 5, 7, 8, 16, 19, 33};
  DrawnProduct d;
  for (int set = 0; set < 4; ++set) {
    for (int count = below(3) + (set == 0 ? 0 : below(2)); count > 0; --count) {
      DrawnIndex x{set, kExtents[below(10)], {set != 2, set != 1, set != 3}};
      if (set == 0 && below(4) == 0) x.in[below(2)] = false;  // shared by all products
      d.indices.push_back(x);
    }
  }
  while (true) {  // small enough to be written out
    int64_t work = 1;
    for (const DrawnIndex& x : d.indices) work *= x.extent;
    if (work <= 60000) break;
    d.indices.erase(d.indices.begin() + below(static_cast<int>(d.indices.size())));
  }
  lay_out(d, random);
  return d;
}

// Adds the products of all values of the indices from `i` on.
void add_all(const DrawnProduct& d, size_t i, const double* a, const double* b, double* out,
             double* size) {
  if (i == d.indices.size()) {
    double product = *a * *b;
    *out += product;
    *size += std::fabs(product);
    return;
  }
  const DrawnIndex& x = d.indices[i];
  for (int64_t e = 0; e < x.extent; ++e) {
    add_all(d, i + 1, a + e * x.step[0], b + e * x.step[1], out + e * x.step[2],
            size + e * x.step[2]);
  }
}

// Operands as the kernel reads them, and the numbers that they stand for.
template <class Cell>
struct DrawnOperand {
  std::vector<Cell> cells;
  std::vector<double> values;
};

template <class T>
DrawnOperand<T> draw_cells(int64_t count, std::mt19937& random) {
  std::normal_distribution<T> normal;
  DrawnOperand<T> out;
  for (int64_t i = 0; i < count; ++i) {
    out.cells.push_back(normal(random));
    out.values.push_back(static_cast<double>(out.cells.back()));
  }
  return out;
}

DrawnOperand<uint16_t> draw_short_cells(DType type, int64_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  Tensor t(type, {count});
  DrawnOperand<uint16_t> out;
  for (int64_t i = 0; i < count; ++i) {
    t.set_float(i, static_cast<double>(normal(random)));
    out.cells.push_back(t.as<uint16_t>()[i]);
    out.values.push_back(t.get_float(i));
  }
  return out;
}

// What a product has to give, and the sums of the sizes of the terms.
struct WantedCells {
  std::vector<double> value, size;

  template <class Cell>
  WantedCells(const DrawnProduct& d, const DrawnOperand<Cell>& a, const DrawnOperand<Cell>& b)
      : value(static_cast<size_t>(d.cells[2])), size(value) {
    add_all(d, 0, a.values.data(), b.values.data(), value.data(), size.data());
  }
};

template <class Cell, class T>
void check_product(const DrawnProduct& d, void (*run)(const int64_t*, const Cell*, const Cell*, T*),
                   const DrawnOperand<Cell>& a, const DrawnOperand<Cell>& b,
                   const WantedCells& want) {
  const size_t cells = want.value.size();
  const std::vector<int64_t> shape = d.shape();
  std::vector<T> first;
  const int before = threads();
  for (int count : {1, 2, 3}) {
    set_threads(count);
    std::vector<T> out(cells, T(7));  // what was there before does not count
    run(shape.data(), a.cells.data(), b.cells.data(), out.data());
    if (count == 1) {
      first = out;
      for (size_t i = 0; i < cells; ++i) {
        EXPECT_NEAR(static_cast<double>(out[i]), want.value[i],
                    64 * std::numeric_limits<T>::epsilon() * want.size[i]);
      }
    }
    EXPECT_EQ(out, first) << count << " threads";
  }
  set_threads(before);
}

template <class T>
void check_product(const DrawnProduct& d, Contraction<T> (*kernel)(Level), std::mt19937& random) {
  auto a = draw_cells<T>(d.cells[0], random), b = draw_cells<T>(d.cells[1], random);
  check_product(d, kernel(level_of(best_here())), a, b, WantedCells(d, a, b));
}

// Every kernel for 16 bits that this machine can run.
void check_short_products(const DrawnProduct& d, std::mt19937& random) {
  for (DType type : {DType::F16, DType::BF16}) {
    SCOPED_TRACE(name_of(type));
    auto a = draw_short_cells(type, d.cells[0], random);
    auto b = draw_short_cells(type, d.cells[1], random);
    const WantedCells want(d, a, b);
    for (Processor p :
         {Processor::Avx512Bf16, Processor::Avx512, Processor::Avx2, Processor::Sse2}) {
      if (!runs_here(p)) continue;
      SCOPED_TRACE(name_of(p));
      check_product(d, (type == DType::F16 ? contract_f16 : contract_bf16)(level_of(p)), a, b,
                    want);
      if (type == DType::BF16) check_product(d, dot_bf16(level_of(p)), a, b, want);
    }
  }
}

TEST(Contract, AnyIndicesInAnyOrder) {
  std::mt19937 random(5);
  int copied = 0;
  for (int i = 0; i < 400; ++i) {
    SCOPED_TRACE(i);
    DrawnProduct d = draw_product(random);
    copied += batches_to_copy<float>(d.shape().data()).has_value();
    check_product<float>(d, contract_f32, random);
    check_product<double>(d, contract_f64, random);
    if (i % 4 == 0) check_short_products(d, random);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(copied, 5);  // batches that are copied first are among them
}

// Sums of more than one block, and of more than one span; an odd number of terms; whole tiles of
// columns, and others.
TEST(Contract, LongSumsInEveryLayout) {
  std::mt19937 random(8);
  for (auto [m, n, k] : {std::array<int64_t, 3>{33, 70, 1023},
                         {50, 64, 1023},
                         {45, 128, 700},
                         {7, 130, 2051},
                         {3, 65, 20001}}) {
    for (int layout = 0; layout < 4; ++layout) {
      SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << ", layout " << layout);
      int64_t a_row = layout & 1 ? 1 : k, a_k = layout & 1 ? m : 1;
      int64_t b_column = layout & 2 ? k : 1, b_k = layout & 2 ? 1 : n;
      DrawnProduct d;
      d.indices = {{1, m, {true, false, true}, {a_row, 0, n}},
                   {2, n, {false, true, true}, {0, b_column, 1}},
                   {3, k, {true, true, false}, {a_k, b_k, 0}}};
      d.cells[0] = m * k;
      d.cells[1] = k * n;
      d.cells[2] = m * n;
      check_product<float>(d, contract_f32, random);
      check_product<double>(d, contract_f64, random);
      check_short_products(d, random);
    }
  }
}

// Rows whose cells are neighbours, and columns that look like a packed panel but for a gap.
TEST(Contract, RowsThatAreReadWhereTheyAre) {
  std::mt19937 random(9);
  for (int64_t n : {10, 16, 24, 32, 36, 64, 100}) {
    for (int64_t gap : {0, 3}) {
      SCOPED_TRACE(testing::Message() << n << " columns, gap " << gap);
      int64_t m = 47, k1 = 5, k2 = 7, rows = k2 + gap;
      DrawnProduct d;
      d.indices = {{1, m, {true, false, true}, {k1 * k2, 0, n}},
                   {2, n, {false, true, true}, {0, 1, 1}},
                   {3, k1, {true, true, false}, {k2, rows * n, 0}},
                   {3, k2, {true, true, false}, {1, n, 0}}};
      d.cells[0] = m * k1 * k2;
      d.cells[1] = k1 * rows * n;
      d.cells[2] = m * n;
      check_product<float>(d, contract_f32, random);
      check_product<double>(d, contract_f64, random);
    }
  }
}

// Every number in 16 bits, times one: exactly itself, but that pairs take subnormal ones for zero.
// An array times itself: half of the cells are copies of the others.
TEST(Contract, ProductsOfAnArrayWithItself) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  const int before = threads();
  for (auto [cells, terms, gap] :
       {std::array<int64_t, 3>{200, 70, 0}, {321, 33, 5}, {130, 20000, 0}, {64, 40, 0}}) {
    const int64_t row = cells + gap;
    std::vector<double> x(static_cast<size_t>(row * terms));
    for (double& v : x) v = normal(random);
    const std::vector<double> same = x;
    // out[i, j] = sum over k of x[k, i] * x[k, j]
    const std::array<int64_t, 16> shape{0,     1, 1, 1, cells, 1,   0,   cells,
                                        cells, 0, 1, 1, terms, row, row, 0};
    std::vector<double> whole(static_cast<size_t>(cells * cells)), first;
    contract_f64(Level::Avx2)(shape.data(), x.data(), same.data(), whole.data());
    for (int count : {1, 3}) {
      set_threads(count);
      std::vector<double> half(whole.size());
      contract_f64(Level::Avx2)(shape.data(), x.data(), x.data(), half.data());
      for (size_t i = 0; i < whole.size(); ++i) {
        ASSERT_NEAR(half[i], whole[i], 1e-13 * static_cast<double>(terms)) << i;
      }
      if (first.empty()) first = half;
      EXPECT_EQ(half, first);
    }
    set_threads(before);
  }
}

TEST(Contract, EveryShortNumber) {
  constexpr int64_t count = 1 << 16;
  for (DType type : {DType::F16, DType::BF16}) {
    Tensor all(type, {count}), one(type, {80});
    for (int64_t i = 0; i < count; ++i) all.as<uint16_t>()[i] = static_cast<uint16_t>(i);
    for (int64_t i = 0; i < 80; ++i) one.set_float(i, 1);
    for (Processor p :
         {Processor::Avx512Bf16, Processor::Avx512, Processor::Avx2, Processor::Sse2}) {
      if (!runs_here(p)) continue;
      for (bool by_pairs : {false, true}) {
        if (by_pairs && type == DType::F16) continue;
        for (bool rows : {false, true}) {  // the numbers are rows or columns
          SCOPED_TRACE(testing::Message()
                       << name_of(type) << " " << name_of(p) << by_pairs << rows);
          const std::vector<int64_t> by_rows = {0,  1, 1, 1, count, 1, 0, 80,
                                                80, 0, 1, 1, 1,     0, 0, 0};
          const std::vector<int64_t> by_columns = {0,     1, 1, 1, 80, 1, 0, count,
                                                   count, 0, 1, 1, 1,  0, 0, 0};
          ShortContraction run = by_pairs             ? dot_bf16(level_of(p))
                                 : type == DType::F16 ? contract_f16(level_of(p))
                                                      : contract_bf16(level_of(p));
          std::vector<float> out(static_cast<size_t>(count) * 80);
          const uint16_t *a = all.as<uint16_t>(), *b = one.as<uint16_t>();
          if (rows) {
            run(by_rows.data(), a, b, out.data());
          } else {
            run(by_columns.data(), b, a, out.data());
          }
          for (int64_t i = 0; i < count; ++i) {
            double want = all.get_float(i);
            float got = out[static_cast<size_t>(rows ? i * 80 + 7 : i + 7 * count)];
            bool zero = by_pairs && got == 0 && std::fabs(want) < 0x1p-126;
            ASSERT_TRUE(got == want || zero || (std::isnan(got) && std::isnan(want)))
                << i << ": " << got << ", not " << want;
          }
        }
      }
    }
  }
}

// Neighbours in memory belong to other products, in both operands: cut into blocks and copied.
TEST(Contract, BatchesThatLieAcross) {
  std::mt19937 random(6);
  for (int64_t n : {4, 9, 17, 24, 33}) {
    SCOPED_TRACE(n);
    DrawnProduct d;
    int64_t i = 5, k = 6;
    // a[i, n, k, h], b[h, k, j, n], out[n, i, h, j]
    d.indices = {{0, n, {true, true, true}, {k * n, 1, i * n * i}},
                 {0, n, {true, true, true}, {1, k * i * n, i}},
                 {1, i, {true, false, true}, {n * k * n, 0, n * i}},
                 {2, i, {false, true, true}, {0, n, 1}},
                 {3, k, {true, true, false}, {n, i * n, 0}}};
    d.cells[0] = i * n * k * n;
    d.cells[1] = n * k * i * n;
    d.cells[2] = n * i * n * i;
    EXPECT_EQ(batches_to_copy<float>(d.shape().data()).has_value(), true);
    check_product<float>(d, contract_f32, random);
    check_product<double>(d, contract_f64, random);
    check_short_products(d, random);
  }
}

// Few cells, each a long sum over neighbours: lines that end within a vector, and several lines.
TEST(Contract, FewCellsOverLongLines) {
  std::mt19937 random(7);
  for (int64_t m : {1, 3, 5, 8}) {
    for (int64_t n : {1, 2, 7}) {
      for (int64_t length : {128, 131, 2100}) {
        SCOPED_TRACE(testing::Message() << m << " x " << n << ", lines of " << length);
        // a[q, m, k], b[n, q, k], out[n, m]: a sum over q and k, in 3 lines
        DrawnProduct d;
        int64_t q = 3;
        d.indices = {{1, m, {true, false, true}, {length, 0, 1}},
                     {2, n, {false, true, true}, {0, q * length, m}},
                     {3, q, {true, true, false}, {m * length, length, 0}},
                     {3, length, {true, true, false}, {1, 1, 0}}};
        d.cells[0] = q * m * length;
        d.cells[1] = n * q * length;
        d.cells[2] = n * m;
        EXPECT_TRUE(dots_of(d.shape().data()).has_value());
        check_product<float>(d, contract_f32, random);
        check_product<double>(d, contract_f64, random);
        check_short_products(d, random);
      }
    }
  }
}

// Sums that are not finite are what adding one by one gives.
TEST(Contract, LongLinesThatAreNotFinite) {
  constexpr int64_t length = 5000;
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<int64_t> shape = {0, 1, 1,      1, 1,      length, 0, 1,
                                      1, 0, length, 1, length, 1,      1, 0};
  ASSERT_TRUE(dots_of(shape.data()).has_value());
  Contraction<float> run = contract_f32(level_of(best_here()));
  auto sum_with = [&](float first, float last) {
    std::vector<float> a(length, 1.0f), b(length, 1.0f);
    a[17] = first;
    a[length - 3] = last;
    float out = 7;
    run(shape.data(), a.data(), b.data(), &out);
    return out;
  };
  EXPECT_EQ(sum_with(1, 1), static_cast<float>(length));
  EXPECT_EQ(sum_with(inf, 1), inf);
  EXPECT_EQ(sum_with(1, -inf), -inf);
  EXPECT_TRUE(std::isnan(sum_with(inf, -inf)));
  EXPECT_TRUE(std::isnan(sum_with(std::numeric_limits<float>::quiet_NaN(), 1)));
}

}  // namespace
}  // namespace ein

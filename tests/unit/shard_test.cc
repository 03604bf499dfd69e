// Meshes and rules as they are written, and moves between ranks that are threads, held against what each cell should be by
// looking it up in the whole value.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "runtime/moves.h"
#include "runtime/transport.h"
#include "shard/mesh.h"

namespace ein {
namespace {

Mesh mesh_of(const std::string& text) { return std::get<Mesh>(shard::parse_mesh(text)); }

TEST(Shard, Meshes) {
  Mesh m = mesh_of(" data = 4, model=2 ");
  EXPECT_EQ(m.ranks(), 8);
  EXPECT_EQ(m.at(0, 5), 2);
  EXPECT_EQ(m.at(1, 5), 1);
  EXPECT_EQ(m.part(3, 5), 5);
  EXPECT_EQ(m.parts(2), 2);
  EXPECT_EQ(m.names(3), "data+model");
  for (const char* wrong : {"", "a", "a=", "a=0", "a=-1", "a=2x", "1=2", "a=2,a=2", "a=2000000"}) {
    EXPECT_TRUE(std::holds_alternative<RuntimeError>(shard::parse_mesh(wrong))) << wrong;
  }
}

TEST(Shard, Rules) {
  Mesh m = mesh_of("x=2,y=3");
  auto rules =
      std::get<std::vector<shard::Rule>>(shard::parse_rules(m, "a: x, net.w.k : y+x, b: none,"));
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules[1].family, "net.w");
  EXPECT_EQ(rules[1].coordinate, "k");
  EXPECT_EQ(rules[1].along, 3u);
  EXPECT_EQ(rules[2].along, 0u);
  for (const char* wrong : {"a", "a: z", "a: x+none", "a:"}) {
    EXPECT_TRUE(std::holds_alternative<RuntimeError>(shard::parse_rules(m, wrong))) << wrong;
  }
}

TEST(Shard, PartsCoverEveryAddressOnce) {
  for (int64_t n : {0, 1, 5, 7, 64, 1000}) {
    for (int64_t p : {1, 2, 3, 7, 64}) {
      EXPECT_EQ(first_of(n, 0, p), 0);
      EXPECT_EQ(first_of(n, p, p), n);
      for (int64_t r = 0; r < p; ++r) {
        int64_t count = first_of(n, r + 1, p) - first_of(n, r, p);
        EXPECT_TRUE(count == n / p || count == n / p + 1);
      }
    }
  }
  EXPECT_EQ(first_of(int64_t{1} << 60, 5, 8), (int64_t{1} << 60) / 8 * 5);
}

// The part of a value that a rank holds, cell by cell: `f` gives the cell at an address of the whole.
using Cell = std::function<double(const std::vector<int64_t>&)>;
Tensor held(const Mesh& mesh, const std::vector<int64_t>& extents, const std::vector<Axes>& axes,
            const std::vector<int64_t>& below, const std::vector<int64_t>& above, int64_t rank,
            const Cell& f) {
  std::vector<int64_t> lo, shape;
  for (size_t k = 0; k < extents.size(); ++k) {
    int64_t parts = mesh.parts(axes[k]), part = mesh.part(axes[k], rank);
    lo.push_back(first_of(extents[k], part, parts) - below[k]);
    shape.push_back(first_of(extents[k], part + 1, parts) + above[k] - lo[k]);
  }
  Tensor out(DType::F64, shape);
  for (int64_t i = 0; i < out.size(); ++i) {
    std::vector<int64_t> at(shape.size());
    int64_t rest = i;
    bool inside = true;
    for (size_t k = shape.size(); k-- > 0; rest /= shape[k]) {
      at[k] = lo[k] + rest % shape[k];
      inside &= at[k] >= 0 && at[k] < extents[k];
    }
    out.set_float(i, inside ? f(at) : 0);
  }
  return out;
}

TEST(Shard, MovesBringEveryCell) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const Mesh mesh = mesh_of(
        std::vector<std::string>{"x=1", "x=3", "x=2,y=2", "x=2,y=3", "x=2,y=2,z=2"}[random() % 5]);
    const Axes all = (Axes{1} << mesh.axes.size()) - 1;
    MoveOfCells move;
    if (random() % 2) {
      move.op = Combine::Sum;
      move.over = Axes{1} << random() % mesh.axes.size();
    }
    std::vector<int64_t> extents, below, above;
    std::vector<Axes> have, want;
    Axes free_have = all & ~move.over, free_want = all;
    for (size_t k = 0; k < 1 + random() % 3; ++k) {
      MoveOfCells::Coord c;
      c.extent = static_cast<int64_t>(round % 10 == 0 ? random() % 40 : random() % 7);
      c.have = random() & free_have;
      bool combines = move.op != Combine::Nothing;
      c.want = combines && c.have ? c.have
               : combines         ? random() & free_want
               : random() % 2     ? c.have
                                  : 0;
      c.want &= free_want;
      if (combines && c.have && c.want != c.have) c.have = c.want = 0;
      free_have &= ~(c.have | c.want);
      free_want &= ~(c.have | c.want);
      if (!combines && c.have && c.have == c.want) {
        c.below = static_cast<int64_t>(random() % 4);
        c.above = static_cast<int64_t>(random() % 4);
      }
      move.coords.push_back(c);
      extents.push_back(c.extent);
      below.push_back(c.below);
      above.push_back(c.above);
      have.push_back(c.have);
      want.push_back(c.want);
    }
    const std::vector<MoveOfCells> moves = {move};
    const std::vector<int64_t> none(extents.size());
    auto value = [](const std::vector<int64_t>& at, int64_t partial) {
      double out = 1.0 / (1.0 + static_cast<double>(partial));
      for (int64_t i : at) out = out * 10 + static_cast<double>(i + 1);
      return out;
    };
    RankThreads ranks(mesh.ranks());
    std::vector<std::thread> threads;
    std::vector<int> wrong(static_cast<size_t>(mesh.ranks()));
    for (int64_t r = 0; r < mesh.ranks(); ++r) {
      threads.emplace_back([&, r] {
        auto transport = ranks.of_rank(r);
        RankExchange exchange(mesh, moves, *transport);
        const int64_t own = mesh.part(move.over, r);
        Tensor from = held(mesh, extents, have, none, none, r,
                           [&](const auto& at) { return value(at, own); });
        Tensor expected = held(mesh, extents, want, below, above, r, [&](const auto& at) {
          double sum = value(at, 0);  // in the order of the ranks
          for (int64_t o = 1; o < mesh.parts(move.over); ++o) sum += value(at, o);
          return sum;
        });
        Tensor to = Tensor::uncleared(DType::F64, expected.shape());
        auto error = exchange.move(0, {DType::F64, from.shape(), from.data()},
                                   {DType::F64, to.shape(), to.data()});
        bool same =
            !error && (to.size() == 0 || std::memcmp(to.data(), expected.data(),
                                                     static_cast<size_t>(to.size()) * 8) == 0);
        bool counted =
            transport->sent == static_cast<uint64_t>(bytes_sent(mesh, move, DType::F64, r));
        wrong[static_cast<size_t>(r)] = !same || !counted;
        ranks.end(r);
      });
    }
    for (std::thread& t : threads) t.join();
    for (int w : wrong) EXPECT_EQ(w, 0) << "round " << round;
  }
}

TEST(Shard, ARankThatEndsIsMissed) {
  const Mesh mesh = mesh_of("x=2");
  MoveOfCells move;
  move.coords = {{4, 1, 0, 0, 0}};
  const std::vector<MoveOfCells> moves = {move};
  RankThreads ranks(2);
  auto transport = ranks.of_rank(0);
  RankExchange exchange(mesh, moves, *transport);
  ranks.end(1);
  Tensor from(DType::F32, {2}), to(DType::F32, {4});
  auto error = exchange.move(0, {DType::F32, from.shape(), from.data()},
                             {DType::F32, to.shape(), to.data()});
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Code::E0907);
  EXPECT_EQ(exchange.lost(), 1);
}

}  // namespace
}  // namespace ein

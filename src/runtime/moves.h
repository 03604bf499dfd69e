// Moves of cells between ranks, over any transport (exchange.h says when). The description is the same on every rank, and
// so is everything that follows from it: who sends what to whom is worked out by both sides, and messages
// carry nothing but cells.
//
// fetch: a rank wants an interval of each coordinate. Each rank whose place differs only along axes that
// split the source sends what it has of that.
//
// combine: ranks along `over` hold partial results. Where each wants a part of its own, the others send
// it that part. Where all want the same, few cells (kFewBytes) go from everyone to everyone; otherwise
// every rank combines one slice and sends the result to the others: as many bytes as a ring takes. In every case
// partial results are combined in the order of the ranks, so that values depend on the mesh alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/exchange.h"
#include "runtime/mesh.h"
#include "runtime/transport.h"

namespace ein {

enum class Combine : uint8_t { Nothing, Sum, Prod, Max, Min, All, Any };

struct MoveOfCells {
  Combine op = Combine::Nothing;  // Nothing: a fetch
  Axes over = 0;
  struct Coord {
    int64_t extent = 0;
    Axes have = 0, want = 0;
    int64_t below = 0, above = 0;
  };
  std::vector<Coord> coords;
};

// Results of up to this many bytes are combined by every rank for itself.
constexpr int64_t kFewBytes = 4096;

// The bytes that a rank sends for it, from its description alone.
int64_t bytes_sent(const Mesh& mesh, const MoveOfCells& move, DType dtype, int64_t rank);

class RankExchange : public Exchange {
 public:
  // Both outlive the exchange. `moves`: by number.
  RankExchange(const Mesh& mesh, const std::vector<MoveOfCells>& moves, Transport& transport)
      : mesh_(mesh), moves_(moves), transport_(transport) {}
  std::optional<RuntimeError> move(int64_t number, const RankCells& from,
                                   const RankCells& to) override;
  // The rank that ended while this one waited for it.
  std::optional<int64_t> lost() const { return lost_; }

 private:
  bool fetch(const MoveOfCells& move, const RankCells& from, const RankCells& to);
  bool combine(const MoveOfCells& move, const RankCells& from, const RankCells& to);
  bool receive(int64_t from, void* bytes, size_t count);

  const Mesh& mesh_;
  const std::vector<MoveOfCells>& moves_;
  Transport& transport_;
  std::optional<int64_t> lost_;
};

}  // namespace ein

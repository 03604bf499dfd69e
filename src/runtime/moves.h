// Moves of cells between ranks, over any transport (exchange.h says when). The description of a
// move is the same on every rank. Both sides derive from it who sends what to whom, so messages
// contain nothing but cells.
//
// fetch: a rank wants an interval of each coordinate. Every rank whose place differs only along the
// axes that split the source sends its cells of that interval.
//
// combine: the ranks along `over` hold partial results. If each of them wants its own part, the
// others send it that part. If all want the same cells and these are few (kFewBytes), everyone
// sends them to everyone; otherwise every rank combines one slice and sends the result to the
// others, which takes as many bytes as a ring. Partial results are always combined in the order of
// the ranks, so values depend on the mesh alone.
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
  Combine op = Combine::Nothing;  // Nothing: it is a fetch
  Axes over = 0;
  struct Coord {
    int64_t extent = 0;
    Axes have = 0, want = 0;
    int64_t below = 0, above = 0;
  };
  std::vector<Coord> coords;
};

// Results of at most this many bytes are combined by every rank for itself.
constexpr int64_t kFewBytes = 4096;

// How many bytes a rank sends for the move, computed from the description alone.
int64_t bytes_sent(const Mesh& mesh, const MoveOfCells& move, DType dtype, int64_t rank);

class RankExchange : public Exchange {
 public:
  // All arguments must outlive the exchange. `moves`: by number.
  RankExchange(const Mesh& mesh, const std::vector<MoveOfCells>& moves, Transport& transport)
      : mesh_(mesh), moves_(moves), transport_(transport) {}
  std::optional<RuntimeError> move(int64_t number, const RankCells& from,
                                   const RankCells& to) override;
  // The rank that ended while this one was waiting for it, if any.
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

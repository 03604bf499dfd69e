// Makes a program for several ranks out of a program for one. Core → Core, after autodiff, so that
// derivatives are split by the same rules as the program.
//
// The result is one module for all ranks. Along a split coordinate, a family has only the addresses
// of its rank: its extent there is the param `count`, and local address i is global address i + `lo`,
// another param. Both are scalar inputs, so that one compilation serves every rank and mesh, and
// `lo + count <= n` is an entry constraint, so that bounds are proven as before. Where the program
// uses an index as a number, it becomes i + lo.
//
// Cells of other ranks are fetched by moves. A move is a family whose only clause is
//
//   M[t, j] = moved(which, number of the cell j, matrix_cells[j'](from[t, j']))
//
// The Collect lists all cells of `from` that the rank gives away, so every analysis sees what is
// read. `t` is a step of the recurrence that `from` belongs to; it does not change.
// `Sharded::moves[which]` says what comes back:
//
//   fetch    for each coordinate, the interval of addresses that the rank wants, whichever ranks own
//            them: its own part and some cells on either side (halo), or all of them (all-gather;
//            all-to-all if another coordinate becomes split at the same time).
//   combine  `from` holds partial results. Those of the ranks along `over` are combined cell by cell,
//            in the order of the ranks. The result is whole, or the rank's part (reduce-scatter).
//
// One rule decides which cells a read needs. Suppose a coordinate of `f` is split and the address is
// i + d, where i is split in the same way (same axes, same extent) and d lies between two known
// constants. Then the rank needs its own part and as many cells below and above it as d reaches.
// Any other address (data, a constant, an index that is whole or split differently) needs the whole
// coordinate. That is always correct, but costly for tables that are looked up by data.
//
// A reduction over an index that addresses split coordinates is cut: each rank reduces its part, and
// a move combines the results. It first gets a family of its own if it is part of an expression. If
// its result is split along the same axis as the index, one of the two must stay whole: either the
// operands are fetched, or every rank computes partial sums of the whole result and gets its slice
// of the total, whichever moves fewer values. argmax becomes two reductions: the greatest value, then
// the smallest index that has it. `all` and `any` are cut only if their operands cannot fail, because
// uncut they stop at the first cell that decides. Other reductions are not cut and read whole values.
// Sums of partial sums are rounded differently from one sum; all other results have the same bits.
//
// A move inside a recurrence waits until all of a step is computed, and the order of steps must
// allow that. `core/groups` is asked about the result; families for which it finds no such order are
// computed whole on every rank.
#pragma once

#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/core.h"
#include "core/eval.h"
#include "shard/mesh.h"

namespace ein::shard {

// The part of an extent that a rank owns. The inputs of these names hold its first address and how
// many addresses it has.
struct Part {
  Axes along;
  core::ExprId extent;
  core::ParamId lo, count;
};

struct Move {
  enum class Kind : uint8_t { Fetch, Combine } kind = Kind::Fetch;
  core::ReduceOp op = core::ReduceOp::Sum;  // of Combine
  Axes over = 0;  // of Combine: the axes along which the partial results are distributed
  core::FamilyId from, to;
  core::ExprId steps;  // how often the move happens; invalid: once
  struct Coord {       // the coordinates of the cells, without steps
    core::ExprId extent;
    Axes have = 0, want = 0;       // how it is split before and after the move
    int64_t below = 0, above = 0;  // how many cells beyond its own part a rank wants
  };
  std::vector<Coord> coords;
};

struct Sharded {
  core::Module module;  // families of the program keep their numbers
  Mesh mesh;
  std::vector<Move> moves;  // by number
  std::vector<Part> parts;
  // Extents of split inputs: params that have become inputs.
  std::vector<core::ParamId> globals;
  std::vector<std::vector<Axes>> axes;  // for the program's families, by family and coordinate
};

// Shards `wanted` and what they read; other families stay as they are. E0902, E0903: see layout.h.
std::variant<Sharded, RuntimeError> shard(const core::Module& m,
                                          const std::vector<core::FamilyId>& wanted,
                                          const Spec& spec);

// "halo", "all-gather", "halo and all-gather", "all-reduce" or "reduce-scatter".
std::string name_of(const Move& move);

// ---- binding: the values of one rank, and the whole value from all ranks

// The sharding numbers of one rank, as inputs. `params`: the extents of the whole program, by
// ParamId of the original.
core::Inputs numbers_of_rank(const Sharded& s, const std::vector<int64_t>& params, int64_t rank);
// A rank's part of an input, and the whole value from the parts of all ranks.
Tensor part_of(const Mesh& mesh, const std::vector<Axes>& axes, const Tensor& whole, int64_t rank);
std::vector<int64_t> part_shape(const Mesh& mesh, const std::vector<Axes>& axes,
                                const std::vector<int64_t>& shape, int64_t rank);
Tensor joined(const Mesh& mesh, const std::vector<Axes>& axes, const std::vector<int64_t>& shape,
              const std::vector<Tensor>& parts);

}  // namespace ein::shard

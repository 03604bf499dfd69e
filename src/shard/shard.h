// A program for several ranks, from a program for one. Core → Core, after autodiff: derivatives are split by
// the same rules as the program.
//
// The result is one module for all ranks. In it a family that is split has, along the split
// coordinate, only the addresses of the rank: its extent there is the param `count`, and the global
// address of slot i is i + `lo`, another param. Both are scalar inputs, so that one compilation serves every
// rank and mesh, and `lo + count <= n` is an entry constraint, so that bounds are proven as before. A
// slot used as a number becomes i + lo.
//
// Cells of other ranks come by moves. A move is a family whose only clause is
//
//   M[t, j] = moved(which, number of the cell j, matrix_cells[j'](from[t, j']))
//
// The Collect names all cells of `from` that the rank gives, so every analysis sees what is read; `t`
// is a step of the recurrence that `from` belongs to, and stays as it is. What comes back is said by `Sharded::moves[which]`:
//
//   fetch    for each coordinate the interval that the rank wants, whoever has it: its own part and some
//            cells on either side (halo), or all of it (all-gather; with another coordinate
//            split on the way, all-to-all).
//   combine  `from` holds partial results; cell by cell those of the ranks along `over` are combined in
//            the order of the ranks. The result is whole, or the rank's part of it (reduce-scatter).
//
// Which reads need which cells follows from one rule. Where a coordinate of `f` is split and the
// address is i + d, with i split in the same way (same axes, same extent) and lowest and highest d known constants,
// the rank needs its part, −d below and d above. Everything else, an address that is data, a constant,
// an index that is whole here or split otherwise, needs all of the coordinate. That is always right; it is
// what a table that is looked up by data costs today.
//
// A reduction over an index at which split values are read is cut: each rank combines its part, and a move combines
// the results. It gets a family of its own first if it is not one. Where the result is split along
// the same axis as the index, one of them has to give way: either the operands are fetched, or all
// of the result is summed in part and every rank gets its own slice, whichever moves fewer values.
// argmax becomes the greatest value, then the least index that has it. `all` and `any` are cut where
// their operands cannot fail: uncut they stop at the first cell that decides. The rest is not cut and reads
// whole values. Sums of partial sums are rounded differently from one sum; everything else has the same bits.
//
// A move inside a recurrence waits for all of a step, so the order of steps must allow that. It is asked of
// `core/groups` for the result; families for which it does not are computed whole on every rank.
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

// A part of an extent: what a rank has of it. The inputs of these names are its first address and how
// many it has.
struct Part {
  Axes along;
  core::ExprId extent;
  core::ParamId lo, count;
};

struct Move {
  enum class Kind : uint8_t { Fetch, Combine } kind = Kind::Fetch;
  core::ReduceOp op = core::ReduceOp::Sum;  // Combine
  Axes over = 0;                            // Combine: the axes along which partial results lie
  core::FamilyId from, to;
  core::ExprId steps;  // how often it happens; invalid: once
  struct Coord {       // of the cells, steps left out
    core::ExprId extent;
    Axes have = 0, want = 0;       // how they are split before and after
    int64_t below = 0, above = 0;  // how many cells beyond its part a rank wants
  };
  std::vector<Coord> coords;
};

struct Sharded {
  core::Module module;  // families of the program keep their numbers
  Mesh mesh;
  std::vector<Move> moves;  // by number
  std::vector<Part> parts;
  // Extents of inputs that are split: params that have become inputs themselves.
  std::vector<core::ParamId> globals;
  std::vector<std::vector<Axes>> axes;  // by family and coordinate; those of the program
};

// `wanted` and what they read; other families stay as they are. E0902, E0903: see layout.h.
std::variant<Sharded, RuntimeError> shard(const core::Module& m,
                                          const std::vector<core::FamilyId>& wanted,
                                          const Spec& spec);

// "halo", "all-gather", "halo and all-gather", "all-reduce" or "reduce-scatter".
std::string name_of(const Move& move);

// ---- binding: what one rank is given, and what all of them give

// `params`: the extents of the whole program, by ParamId of the original.
core::Inputs numbers_of_rank(const Sharded& s, const std::vector<int64_t>& params, int64_t rank);
// A rank's part of an input, and the whole value from the parts of all ranks.
Tensor part_of(const Mesh& mesh, const std::vector<Axes>& axes, const Tensor& whole, int64_t rank);
std::vector<int64_t> part_shape(const Mesh& mesh, const std::vector<Axes>& axes,
                                const std::vector<int64_t>& shape, int64_t rank);
Tensor joined(const Mesh& mesh, const std::vector<Axes>& axes, const std::vector<int64_t>& shape,
              const std::vector<Tensor>& parts);

}  // namespace ein::shard

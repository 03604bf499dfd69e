#include "driver/rank_plan.h"

#include <algorithm>
#include <cmath>

#include "core/groups.h"
#include "driver/compile.h"
#include "driver/ranks.h"
#include "driver/work.h"
#include "runtime/layout.h"
#include "runtime/moves.h"

namespace ein {
namespace {

using core::FamilyId;

// How much a rank computes, and how much it has in memory.
struct Load {
  double seconds = 0, bytes = 0;
};

std::variant<Load, RuntimeError> load_of(const core::Module& m, const std::vector<FamilyId>& wanted,
                                         const std::vector<int64_t>& params,
                                         const RunOptions& options, const Peaks& peaks) {
  auto made = lower_native(m, wanted, native_options(options));
  if (auto* why = std::get_if<std::string>(&made)) return RuntimeError{Code::E0701, *why};
  Lowered& lowered = std::get<Lowered>(made);
  Load out;
  for (const Work& work : work_of(lowered.plan, lowered.program, params)) {
    out.seconds += std::max(work.operations / peaks.fma(work.type), work.bytes / peaks.stream);
  }
  std::vector<size_t> items;
  std::vector<Lifetime> lives;
  for (const Image::Buffer& b : lowered.image.buffers) {
    double bytes = static_cast<double>(size_of(b.dtype));
    for (const Formula& dim : b.dims)
      bytes *= static_cast<double>(std::max<int64_t>(0, evaluate(dim, params.data())));
    if (b.space == Image::Buffer::Space::Temp) {
      items.push_back(static_cast<size_t>(bytes));
      lives.push_back(b.lives);
    } else {
      out.bytes += bytes;
    }
  }
  out.bytes += static_cast<double>(lay_out(items, lives).bytes);
  return out;
}

// The params of one rank, by number.
std::vector<int64_t> params_of(const shard::Sharded& s, const std::vector<int64_t>& params,
                               int64_t rank) {
  std::vector<int64_t> out = params;
  out.resize(s.module.params.size());
  core::Inputs numbers = shard::numbers_of_rank(s, params, rank);
  for (const shard::Part& p : s.parts) {
    for (core::ParamId id : {p.lo, p.count}) {
      out[id.v] = numbers.at(text(s.module[s.module.params[id].source].name)).get_int(0);
    }
  }
  return out;
}

double seconds_of(const Mesh& mesh, const MoveOfCells& move, DType dtype, double bytes,
                  const Network& network) {
  const double wire = bytes / network.bandwidth;
  if (move.op == Combine::Nothing) {
    Axes have = 0;
    bool halo = true;
    for (const auto& c : move.coords) {
      have |= c.have;
      halo &= c.have == c.want;
    }
    const auto p = static_cast<double>(mesh.parts(have));
    return network.latency * (halo ? std::min(2.0, p - 1) : p - 1) + wire;
  }
  const auto p = static_cast<double>(mesh.parts(move.over));
  bool alike = std::none_of(move.coords.begin(), move.coords.end(),
                            [&](const auto& c) { return (c.want & move.over) != 0; });
  double result = static_cast<double>(size_of(dtype));
  for (const auto& c : move.coords)
    result *= std::ceil(static_cast<double>(c.extent) / static_cast<double>(mesh.parts(c.want)));
  // First the slices, then the results.
  bool twice = alike && result > static_cast<double>(kFewBytes);
  return network.latency * (p - 1) * (twice ? 2 : 1) + wire;
}

std::string split_text(const shard::Sharded& s, const core::Family& f,
                       const std::vector<Axes>& axes) {
  std::string out;
  for (size_t k = 0; k < axes.size(); ++k) {
    if (!axes[k]) continue;
    std::string name = f.coords[k].name ? text(f.coords[k].name) : std::to_string(k);
    out += (out.empty() ? "" : ", ") + name + ": " + s.mesh.names(axes[k]);
  }
  return out;
}

RankPlan::Row row_of(const shard::Sharded& s, const shard::Move& move, const MoveOfCells& numbers,
                     const std::vector<int64_t>& params, const Network& network) {
  const bool combines = move.kind == shard::Move::Kind::Combine;
  const core::Family& f = s.module[combines ? move.to : move.from];
  RankPlan::Row row{f.spelled(), {}, shard::name_of(move), {}};
  const FamilyId shown = combines ? move.to : move.from;
  if (shown.v < s.axes.size()) row.split = split_text(s, f, s.axes[shown.v]);
  Axes over = move.over;
  for (const auto& c : move.coords) {
    if (!combines && (c.have != c.want || c.below + c.above > 0)) over |= c.have;
  }
  row.over = s.mesh.names(over);
  if (move.steps) row.times = std::max<int64_t>(0, core::eval_extent(s.module, move.steps, params));
  DType dtype = s.module[move.from].dtype;
  for (int64_t r = 0; r < s.mesh.ranks(); ++r) {
    row.bytes = std::max(row.bytes, static_cast<double>(bytes_sent(s.mesh, numbers, dtype, r)));
    // All ranks do much the same; if there are very many, the first, the last and some in between
    // represent them.
    if (s.mesh.ranks() > 64 && r > 2)
      r = std::max(r, std::min(r + s.mesh.ranks() / 16, s.mesh.ranks() - 2));
  }
  row.seconds = seconds_of(s.mesh, numbers, dtype, row.bytes, network);
  return row;
}

}  // namespace

std::variant<RankPlan, RuntimeError> plan_ranks(core::Module& m, const std::vector<int64_t>& params,
                                                const RunOptions& options, const shard::Spec& spec,
                                                const Network& network, const Peaks& peaks) {
  const std::vector<FamilyId> wanted = wanted_families(m, options, Else::Unread);
  auto alone = load_of(m, wanted, params, options, peaks);
  if (auto* e = std::get_if<RuntimeError>(&alone)) return *e;
  auto made = for_ranks(m, wanted, spec, nullptr);
  if (auto* e = std::get_if<RuntimeError>(&made)) return *e;
  auto& s = std::get<shard::Sharded>(made);
  // The last part is never smaller than another.
  auto one = load_of(s.module, wanted, params_of(s, params, s.mesh.ranks() - 1), options, peaks);
  if (auto* e = std::get_if<RuntimeError>(&one)) return *e;
  RankPlan out;
  out.ranks = s.mesh.ranks();
  out.alone = std::get<Load>(alone).seconds;
  out.computing = std::get<Load>(one).seconds;
  out.memory = std::get<Load>(one).bytes;
  std::vector<MoveOfCells> moves = moves_in_numbers(s, params);
  for (size_t k = 0; k < moves.size(); ++k) {
    out.rows.push_back(row_of(s, s.moves[k], moves[k], params, network));
    const RankPlan::Row& row = out.rows.back();
    out.bytes += row.bytes * static_cast<double>(row.times);
    out.moving += row.seconds * static_cast<double>(row.times);
  }
  return out;
}

}  // namespace ein

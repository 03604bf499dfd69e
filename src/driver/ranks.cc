#include "driver/ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <sstream>
#include <thread>

#include "base/check.h"
#include "core/groups.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "runtime/moves.h"
#include "runtime/mpi.h"
#include "runtime/pool.h"
#include "runtime/transport.h"
#include "shard/joint.h"

namespace ein {
namespace {

using core::FamilyId;

Combine combine_of(core::ReduceOp op) {
  switch (op) {
    case core::ReduceOp::Sum: return Combine::Sum;
    case core::ReduceOp::Prod: return Combine::Prod;
    case core::ReduceOp::Max: return Combine::Max;
    case core::ReduceOp::Min: return Combine::Min;
    case core::ReduceOp::All: return Combine::All;
    case core::ReduceOp::Any: return Combine::Any;
    case core::ReduceOp::ArgMax:
    case core::ReduceOp::ArgMin:
    case core::ReduceOp::Collect: break;
  }
  EIN_UNREACHABLE("not combined by moves");
}

// Replaces names that the compiler made for moved cells by those of the values they come from.
void put_names_back(const shard::Sharded& s, RuntimeError& error) {
  for (const shard::Move& move : s.moves) {
    std::string made = "`" + text(s.module[move.to].name) + "`";
    size_t at = error.message.find(made);
    if (at == std::string::npos || move.kind != shard::Move::Kind::Fetch) continue;
    error.message.replace(at, made.size(), "`" + s.module[move.from].spelled() + "`");
  }
}

core::Inputs inputs_of_rank(const shard::Sharded& s, const std::vector<FamilyId>& needed,
                            const core::Inputs& inputs, const std::vector<int64_t>& params,
                            int64_t rank) {
  core::Inputs out = shard::numbers_of_rank(s, params, rank);
  for (FamilyId id : needed) {
    if (s.module[id].kind != core::Family::Kind::Input) continue;
    const std::string& name = text(s.module[id].name);
    out[name] = shard::part_of(s.mesh, s.axes[id.v], inputs.at(name), rank);
  }
  return out;
}

// Compiles once; every rank runs in a thread of its own.
void run_natively(core::Module& m, shard::Sharded& s, const std::vector<FamilyId>& wanted,
                  const std::vector<FamilyId>& needed, const core::Inputs& inputs,
                  const std::vector<int64_t>& params, Native& code, RankRun& out) {
  const int64_t ranks = s.mesh.ranks();
  std::vector<MoveOfCells> moves = moves_in_numbers(s, params);
  RankThreads side_by_side(ranks);
  std::vector<NativeResult> results(static_cast<size_t>(ranks));
  std::vector<char> lost(static_cast<size_t>(ranks));
  out.sent.resize(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int64_t r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const auto k = static_cast<size_t>(r);
      auto transport = side_by_side.of_rank(r);
      RankExchange exchange(s.mesh, moves, *transport);
      core::Watch watch;
      watch.exchange = &exchange;
      results[k] = run(code, inputs_of_rank(s, needed, inputs, params, r), watch);
      lost[k] = exchange.lost().has_value();
      out.sent[k] = transport->sent;
      side_by_side.end(r);
    });
  }
  for (std::thread& t : threads) t.join();
  // Reports the first of the ranks that failed by themselves: it has the smallest addresses.
  for (size_t k = 0; k < results.size() && !out.error; ++k) {
    if (results[k].error && !lost[k]) out.error = results[k].error;
  }
  if (out.error) return put_names_back(s, *out.error);
  for (FamilyId id : wanted) {
    std::vector<Tensor> parts;
    for (NativeResult& result : results) parts.push_back(std::move(result.values.at(id)));
    std::vector<int64_t> shape;
    for (const core::Coord& c : m[id].coords)
      shape.push_back(std::max<int64_t>(0, core::eval_extent(m, c.extent, params)));
    out.values[id] = shard::joined(s.mesh, s.axes[id.v], shape, parts);
  }
}

// ---- processes

std::string packed(const RuntimeError& e) {
  auto span = [](Span s) { return fmt::format("{} {} {}", s.file.v, s.begin, s.end); };
  return fmt::format("{} {} {} {}", static_cast<int>(e.code), span(e.at), span(e.statement),
                     e.message);
}
RuntimeError unpacked(const std::string& words) {
  std::istringstream in(words);
  int code = 0;
  RuntimeError out{};
  auto span = [&](Span& s) { in >> s.file.v >> s.begin >> s.end; };
  in >> code;
  span(out.at);
  span(out.statement);
  in.get();
  out.code = static_cast<Code>(code);
  out.message.assign(std::istreambuf_iterator<char>(in), {});
  return out;
}

RuntimeError gone(int64_t rank) {
  return {Code::E0907,
          fmt::format("rank {} ended before it was done; its last messages are above", rank)};
}

// What all ranks must agree on, one thing per line.
std::string about_run(const core::Module& m, const std::vector<FamilyId>& wanted,
                      const std::vector<FamilyId>& needed, const core::Inputs& inputs,
                      const RunOptions& options) {
  std::string asked, mesh;
  for (FamilyId id : wanted) asked += " " + m[id].spelled();
  for (const Mesh::Axis& a : options.ranks->mesh.axes)
    mesh += fmt::format(" {}={}", a.name, a.size);
  for (const shard::Rule& r : options.ranks->rules) {
    mesh += fmt::format(" {}.{}:{}", r.family, r.coordinate, options.ranks->mesh.names(r.along));
  }
  std::string out = fmt::format("the program\t{:x}\nwhat is asked for\t{}\n", core::hash(m), asked);
  out += fmt::format("what is split\t{}\nthe options\t{} {} {} {}\n", mesh, options.opt_level,
                     options.check_overflow, static_cast<int>(options.operands),
                     static_cast<int>(options.processor));
  for (FamilyId id : needed) {
    if (m[id].kind != core::Family::Kind::Input) continue;
    auto it = inputs.find(text(m[id].name));
    if (it == inputs.end()) continue;
    const Tensor& t = it->second;
    bool whole = t.rank() == 0 && is_int(t.dtype());
    out += fmt::format("input `{}`\t{} [{}] {}\n", m[id].spelled(), name_of(t.dtype()),
                       fmt::join(t.shape(), ", "), whole ? std::to_string(t.get_int(0)) : "");
  }
  return out;
}

// What the first line in which two ranks differ is about.
std::string difference_of(const std::string& a, const std::string& b) {
  std::istringstream in_a(a), in_b(b);
  for (std::string x, y; std::getline(in_a, x) && std::getline(in_b, y);) {
    if (x != y) return x.substr(0, x.find('\t'));
  }
  return "the inputs";
}

// Rank 0's conclusion from the reports of the other ranks: an error, or nothing. All ranks are
// told.
std::optional<RuntimeError> verdict(
    MpiTransport& mpi, const std::string& own,
    const std::function<std::optional<RuntimeError>(const std::vector<std::string>&)>& judge) {
  if (mpi.rank() != 0) {
    mpi.tell(0, own);
    auto answer = mpi.hear(0);
    if (!answer) return gone(0);
    return answer->empty() ? std::nullopt : std::optional(unpacked(*answer));
  }
  std::vector<std::string> all = {own};
  std::optional<RuntimeError> out;
  for (int64_t r = 1; r < mpi.ranks(); ++r) {
    auto words = mpi.hear(r);
    if (!words && !out) out = gone(r);
    all.push_back(words.value_or(""));
  }
  if (!out) out = judge(all);
  for (int64_t r = 1; r < mpi.ranks(); ++r) mpi.tell(r, out ? packed(*out) : "");
  return out;
}

std::optional<RuntimeError> agree(MpiTransport& mpi, const std::string& own) {
  return verdict(mpi, own, [&](const auto& all) -> std::optional<RuntimeError> {
    for (size_t r = 1; r < all.size(); ++r) {
      if (all[r] == own) continue;
      return RuntimeError{Code::E0908,
                          fmt::format("rank {} was not started in the same way as rank 0: they "
                                      "differ in {}",
                                      r, difference_of(own, all[r]))};
    }
    return std::nullopt;
  });
}

void run_over_mpi(core::Module& m, shard::Sharded& s, const std::vector<FamilyId>& wanted,
                  const std::vector<FamilyId>& needed, const core::Inputs& inputs,
                  const std::vector<int64_t>& params, Native& code, MpiTransport& mpi,
                  RankRun& out) {
  const int64_t rank = mpi.rank();
  std::vector<MoveOfCells> moves = moves_in_numbers(s, params);
  RankExchange exchange(s.mesh, moves, mpi);
  core::Watch watch;
  watch.exchange = &exchange;
  NativeResult result = run(code, inputs_of_rank(s, needed, inputs, params, rank), watch);
  out.sent = {mpi.sent};
  std::string own;
  if (exchange.lost()) {
    own = fmt::format("lost {}", *exchange.lost());
  } else if (result.error) {
    put_names_back(s, *result.error);
    own = packed(*result.error);
  }
  if (!own.empty()) mpi.end();
  out.error = verdict(mpi, own, [&](const auto& all) -> std::optional<RuntimeError> {
    std::optional<RuntimeError> waited;
    for (const std::string& words : all) {
      if (words.starts_with("lost ")) {
        if (!waited) waited = gone(std::stoll(words.substr(5)));
      } else if (!words.empty()) {
        return unpacked(words);
      }
    }
    return waited;
  });
  out.elsewhere = rank != 0;
  if (out.error) return;
  for (FamilyId id : wanted) {
    Tensor& part = result.values.at(id);
    Axes used = 0;
    for (Axes a : s.axes[id.v]) used |= a;
    auto bytes = [&](const Tensor& t) {
      return static_cast<size_t>(t.size()) * size_of(t.dtype());
    };
    if (used && rank != 0 && bytes(part) > 0) mpi.send(0, part.data(), bytes(part));
    if (rank != 0) continue;
    std::vector<int64_t> shape;
    for (const core::Coord& c : m[id].coords)
      shape.push_back(std::max<int64_t>(0, core::eval_extent(m, c.extent, params)));
    std::vector<Tensor> parts = {std::move(part)};
    for (int64_t r = 1; r < mpi.ranks() && used; ++r) {
      Tensor other =
          Tensor::uncleared(m[id].dtype, shard::part_shape(s.mesh, s.axes[id.v], shape, r));
      if (bytes(other) > 0 && !mpi.receive(r, other.data(), bytes(other))) {
        out.error = gone(r);
        return;
      }
      parts.push_back(std::move(other));
    }
    out.values[id] = shard::joined(s.mesh, s.axes[id.v], shape, parts);
  }
}

}  // namespace

std::variant<shard::Sharded, RuntimeError> for_ranks(core::Module& m,
                                                     const std::vector<FamilyId>& wanted,
                                                     const shard::Spec& spec, Trace* trace) {
  Trace own;
  Pipeline pipeline(trace ? *trace : own);
  std::optional<RuntimeError> refused;
  shard::Sharded out;
  pipeline.pass("shard", &m, [&](core::Module* in) {
    auto made = shard::shard(*in, wanted, spec);
    if (auto* e = std::get_if<RuntimeError>(&made)) {
      refused = *e;
      return in;
    }
    out = std::get<shard::Sharded>(std::move(made));
    return &out.module;
  });
  if (refused) return *refused;
  return out;
}

std::vector<MoveOfCells> moves_in_numbers(const shard::Sharded& s,
                                          const std::vector<int64_t>& params) {
  std::vector<MoveOfCells> out;
  for (const shard::Move& move : s.moves) {
    MoveOfCells to;
    if (move.kind == shard::Move::Kind::Combine) to.op = combine_of(move.op);
    to.over = move.over;
    for (const shard::Move::Coord& c : move.coords) {
      int64_t n = std::max<int64_t>(0, core::eval_extent(s.module, c.extent, params));
      to.coords.push_back({n, c.have, c.want, c.below, c.above});
    }
    out.push_back(std::move(to));
  }
  return out;
}

std::optional<RuntimeError> refuse_on_ranks(const core::Module& m, const RunOptions& options) {
  auto refused = [](const std::string& what, const std::string& instead) {
    return RuntimeError{Code::E0904, fmt::format("{} on several ranks; {}", what, instead)};
  };
  if (options.trap)
    return refused("`--trap nan` does not work", "run without `--mesh` to find the cell");
  if (options.keeps_state || options.resume)
    return refused("the state of a run cannot be saved", "leave out `--mesh`");
  for (const Watched& w : options.watch) {
    if (w.asked)
      return refused(fmt::format("`{}` cannot be watched", w.name), "leave out `--mesh`");
  }
  if (optimise::wants_segments(m, options.grad_memory)) {
    return refused(
        "steps of a recurrence cannot be computed again (`#[checkpoint]`, `--grad-memory`)",
        "split the values further, or leave out `--mesh`");
  }
  for (const core::Effect& e : m.effects) {
    if (!e.users.empty()) return refused("`dbg` does not report", "print the value instead");
  }
  return std::nullopt;
}

RankRun run_on_ranks(core::Module& m, const std::vector<FamilyId>& wanted,
                     const core::Inputs& inputs, const RunOptions& options) {
  RankRun out;
  std::vector<FamilyId> needed = core::families_of(core::schedule(m, wanted).steps);
  auto bound = core::bind_params(m, inputs, needed);
  if (auto* e = std::get_if<RuntimeError>(&bound)) {
    out.error = *e;
    return out;
  }
  if (options.mpi) {
    out.error = agree(*options.mpi, about_run(m, wanted, needed, inputs, options));
    out.elsewhere = options.mpi->rank() != 0;
    if (out.error) return out;
  }
  auto made = for_ranks(m, wanted, *options.ranks, options.trace);
  if (auto* e = std::get_if<RuntimeError>(&made)) {
    out.error = *e;
    return out;
  }
  auto& s = std::get<shard::Sharded>(made);
  if (options.backend == Backend::Native) {
    set_threads(options.threads);
    NativeOptions how = native_options(options);
    how.cache = nullptr;
    auto compiled = compile_native(s.module, wanted, how);
    if (auto* code = std::get_if<std::shared_ptr<Native>>(&compiled)) {
      const auto& params = std::get<std::vector<int64_t>>(bound);
      if (options.mpi) {
        run_over_mpi(m, s, wanted, needed, inputs, params, **code, *options.mpi, out);
      } else {
        run_natively(m, s, wanted, needed, inputs, params, **code, out);
      }
      return out;
    }
    out.fallback = std::get<std::string>(compiled);
  }
  if (options.mpi) {
    out.error = RuntimeError{Code::E0904,
                             out.fallback.empty()
                                 ? "the reference evaluator does not run over MPI; it computes "
                                   "all ranks of a mesh in one process"
                                 : "this cannot run over MPI: " + out.fallback};
    return out;
  }
  auto values = shard::evaluate_ranks(m, s, inputs, wanted);
  if (auto* e = std::get_if<RuntimeError>(&values)) {
    out.error = *e;
    put_names_back(s, *out.error);
    return out;
  }
  for (auto& [id, value] : std::get<std::map<FamilyId, Tensor>>(values)) out.values[id] = value;
  return out;
}

}  // namespace ein

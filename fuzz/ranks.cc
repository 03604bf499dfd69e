// Random programs on several ranks: `fuzz_ranks [--count N] [--seed S] [--native N] [--show]
// [--keep FOLDER]`. Each program is split at random, along random meshes of 1 to 8 ranks whose
// parts are mostly uneven and often empty. The joined parts of all ranks must equal the values of
// the unsplit program, derivatives included. For the first N programs, native code runs with ranks
// as threads and must move as many bytes as predicted.
#include "driver/ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstring>
#include <exception>
#include <fstream>
#include <random>
#include <set>

#include "core/verify.h"
#include "generate.h"
#include "properties.h"
#include "runtime/files.h"
#include "runtime/moves.h"
#include "shard/joint.h"
#include "shard/shard.h"

namespace {

using namespace ein;

constexpr const char* kMeshes[] = {"x=1",     "x=2",     "x=3",     "x=4",
                                   "x=2,y=2", "x=6",     "x=3,y=2", "x=2,y=3",
                                   "x=8",     "x=4,y=2", "x=2,y=4", "x=2,y=2,z=2"};

// Neighbours, windows, boundaries and argmax along one coordinate, which `generate` rarely draws.
constexpr const char* kStencils = R"(
let sa[hx in 0..{n}]: f64 = sin(hx as f64 * 0.9 + 0.3);
let sb[hx in 0..{n}] = sa[hx] + (0.5 * sa[hx - {a}] where hx >= {a}) - (0.3 * sa[hx + {b}] where hx + {b} < {n});
let sc[hx in 0..{n}] = sum[hk in 0..{w}](sb[hx + hk] * cos(hk as f64) where hx + hk < {n});
let sh[0, hx in 0..{n}] = sb[hx];
let sh[ht in 1..4, hx in 0..{n}] = 0.9 * sh[ht - 1, hx] + 0.1 * (sh[ht - 1, hx - {a}] where hx >= {a})
  + 0.05 * (sh[ht - 1, hx + {b}] where hx + {b} < {n});
let se[0, hx in 0..{n}] = sb[hx];
let se[ht in 1..4, 0] = 1.0;
let se[ht in 1..4, hx in 1..{n}] = 0.5 * se[ht - 1, hx] + 0.2 * se[ht - 1, hx - 1] * sum[hy in 0..{n}](sb[hy] * sb[hy]);
let sm = argmax[hx](sh[3, hx]);
let sg = argmin[hx](sin(3.0 * sb[hx]));
let sl = min[hx](sb[hx] * sb[hx]);
let sw = any[hx](sb[hx] > 1.2);
let sr[hb in 0..3] = sum[hx](sb[hx] where (hx * 2) % 3 == hb);
let sq[hx in 0..{n}] = sb[(hx * 3) % {n}] * sh[2, (hx + 1) % {n}];
let sloss: f64 = sum[hx](sh[3, hx] * sc[hx]) + sum[ht, hx](se[ht, hx] * sb[hx]) + sum[hx](sq[hx]) + sr[1];
let d_sa = @sloss / @sa;
)";
void add_stencils(fuzz::Generated& g, std::mt19937_64& random) {
  auto below = [&](uint64_t n) { return 1 + random() % n; };
  g.source +=
      fmt::format(fmt::runtime(kStencils), fmt::arg("n", 1 + below(12)), fmt::arg("a", below(3)),
                  fmt::arg("b", below(3)), fmt::arg("w", below(4)));
  for (const char* name :
       {"sa", "sb", "sc", "sh", "se", "sm", "sg", "sl", "sw", "sr", "sq", "sloss", "d_sa"})
    g.values.push_back(name);
}

struct Counts {
  uint64_t split = 0, moves = 0, combined = 0, halos = 0, steps_refused = 0, rules = 0;
};

// Rules for about half of the coordinates. A coordinate that is refused because it is a step is
// left out.
shard::Spec random_spec(const core::Module& m, const std::vector<core::FamilyId>& wanted,
                        std::mt19937_64& random, Counts& counts) {
  shard::Spec spec;
  spec.mesh =
      std::get<Mesh>(shard::parse_mesh(kMeshes[random() % (sizeof kMeshes / sizeof *kMeshes)]));
  std::set<std::string> names;
  for (const core::Family& f : m.families) {
    for (const core::Coord& c : f.coords) {
      if (c.name && !f.generated) names.insert(text(c.name));
    }
  }
  for (const std::string& name : names) {
    if (random() % 3 == 0) continue;
    shard::Rule rule{"", name, 0};
    rule.along = Axes{1} << random() % spec.mesh.axes.size();
    if (random() % 6 == 0) rule.along |= Axes{1} << random() % spec.mesh.axes.size();
    shard::Spec alone{spec.mesh, {rule}};
    auto made = shard::shard(m, wanted, alone);
    if (auto* e = std::get_if<RuntimeError>(&made)) {
      if (e->code != Code::E0902 && e->code != Code::E0903) throw std::runtime_error(e->message);
      counts.steps_refused += e->code == Code::E0902;
      continue;
    }
    ++counts.rules;
    spec.rules.push_back(rule);
  }
  return spec;
}

// What ranks that are threads compute, and how much they send.
std::string check_native(core::Module& m, const shard::Sharded& s, const shard::Spec& spec,
                         const fuzz::Generated& g, const std::vector<core::FamilyId>& wanted,
                         const core::EvalResult& expected, bool optimised) {
  RunOptions options;
  options.opt_level = optimised ? 2 : 0;
  options.threads = 2;
  options.ranks = &spec;
  RankRun run = run_on_ranks(m, wanted, g.inputs, options);
  if (run.error) return run.error->message;
  if (!run.fallback.empty()) return run.fallback;
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::string where;
    if (!close(expected.values.at(wanted[i]), run.values.at(wanted[i]), 1e-8, where))
      return fmt::format("`{}`, {}", g.values[i], where);
  }
  std::vector<MoveOfCells> moves = moves_in_numbers(s, expected.params);
  for (int64_t r = 0; r < s.mesh.ranks(); ++r) {
    uint64_t predicted = 0;
    for (size_t k = 0; k < moves.size(); ++k) {
      const shard::Move& move = s.moves[k];
      int64_t times = move.steps ? core::eval_extent(s.module, move.steps, expected.params) : 1;
      DType dtype = s.module[move.from].dtype;
      predicted += static_cast<uint64_t>(times * bytes_sent(s.mesh, moves[k], dtype, r));
    }
    uint64_t counted = run.sent[static_cast<size_t>(r)];
    if (predicted != counted)
      return fmt::format("rank {} sent {} bytes, predicted were {}", r, counted, predicted);
  }
  return "";
}

std::string check(const fuzz::Generated& g, uint64_t seed, bool native, bool show, Counts& counts) {
  fuzz::Subject subject;
  if (std::string wrong = fuzz::compile_source(g.source, subject); !wrong.empty()) return wrong;
  core::Module& m = subject.compiled.module;
  std::vector<core::FamilyId> wanted;
  for (const std::string& name : g.values) wanted.push_back(m.find(intern(name)));
  core::EvalResult expected = core::evaluate(m, g.inputs, wanted);
  if (expected.error) return "";  // it fails on one rank as well
  std::mt19937_64 random(seed);
  for (int k = 0; k < 2; ++k) {
    shard::Spec spec = random_spec(m, wanted, random, counts);
    std::vector<std::string> words;
    for (const shard::Rule& r : spec.rules)
      words.push_back(fmt::format("{}: {}", r.coordinate, spec.mesh.names(r.along)));
    std::string mesh;
    for (const auto& a : spec.mesh.axes)
      mesh += fmt::format("{}{}={}", mesh.empty() ? "" : ",", a.name, a.size);
    std::string how = fmt::format("--mesh {} --shard \"{}\"", mesh, fmt::join(words, ", "));
    if (show) fmt::print("{}\n", how);
    auto made = shard::shard(m, wanted, spec);
    if (auto* e = std::get_if<RuntimeError>(&made)) return how + ": " + e->message;
    auto& s = std::get<shard::Sharded>(made);
    if (auto broken = core::verify(s.module); !broken.empty())
      return fmt::format("{}: {}", how, fmt::join(broken, "; "));
    counts.split += !s.parts.empty();
    counts.moves += s.moves.size();
    for (const shard::Move& move : s.moves) {
      counts.combined += move.kind == shard::Move::Kind::Combine;
      counts.halos += shard::name_of(move) == "halo";
    }
    auto ranks = shard::evaluate_ranks(m, s, g.inputs, wanted);
    if (auto* e = std::get_if<RuntimeError>(&ranks)) return how + ": " + e->message;
    auto& values = std::get<std::map<core::FamilyId, Tensor>>(ranks);
    for (size_t i = 0; i < wanted.size(); ++i) {
      std::string where;
      if (!close(expected.values.at(wanted[i]), values.at(wanted[i]), 1e-8, where))
        return fmt::format("{}: `{}`, {}", how, g.values[i], where);
    }
    if (!native) continue;
    std::string wrong = check_native(m, s, spec, g, wanted, expected, seed % 4 == 0);
    if (!wrong.empty()) return how + ", native: " + wrong;
  }
  return "";
}

// The program and its inputs as files, for `ein run`.
void keep_case(const fuzz::Generated& g, const std::string& folder) {
  std::ofstream(folder + "/program.ein") << g.source;
  for (const auto& [name, value] : g.inputs)
    write_tensors(fmt::format("{}/{}.npy", folder, name), {{"", &value}});
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t count = 200, seed = 1, native = ~uint64_t{0};
  bool show = false;
  std::string keep;
  for (int i = 1; i < argc; ++i) {
    auto number = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (std::strcmp(argv[i], "--count") == 0) {
      count = number();
    } else if (std::strcmp(argv[i], "--seed") == 0) {
      seed = number();
    } else if (std::strcmp(argv[i], "--native") == 0) {
      native = number();
    } else if (std::strcmp(argv[i], "--keep") == 0 && i + 1 < argc) {
      keep = argv[++i];
    } else if (std::strcmp(argv[i], "--show") == 0) {
      show = true;
    } else {
      fmt::print(
          stderr,
          "usage: fuzz_ranks [--count N] [--seed S] [--native N] [--show] [--keep FOLDER]\n");
      return 2;
    }
  }
  auto begin = std::chrono::steady_clock::now();
  uint64_t failed = 0;
  Counts counts;
  for (uint64_t k = 0; k < count; ++k) {
    fuzz::Generated g = fuzz::generate(seed + k);
    std::mt19937_64 random(seed + k);
    add_stencils(g, random);
    if (show) fmt::print("// seed {}\n{}\n", seed + k, g.source);
    std::string wrong;
    try {
      wrong = check(g, seed + k, k < native, show, counts);
    } catch (const std::exception& e) { wrong = std::string("fault: ") + e.what(); }
    if (wrong.empty()) continue;
    ++failed;
    fmt::print("--- seed {}\n{}{}\n", seed + k, g.source, wrong);
    if (!keep.empty()) keep_case(g, keep);
    if (failed >= 10) break;
  }
  std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  fmt::print(
      "{} of {} split, {} rules, {} moves ({} combine, {} halos), {} refused as steps, {:.1f} s\n"
      "{} passed, {} failed\n",
      counts.split, 2 * count, counts.rules, counts.moves, counts.combined, counts.halos,
      counts.steps_refused, spent.count(), count - failed, failed);
  return failed == 0 ? 0 : 1;
}

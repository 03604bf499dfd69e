#include "driver/compile.h"

#include <fmt/format.h>

#include <algorithm>

#include "autodiff/differentiate.h"
#include "base/check.h"
#include "codegen/image.h"
#include "codegen/ptx.h"
#include "core/diagonal.h"
#include "core/groups.h"
#include "core/solve_gates.h"
#include "device/device.h"
#include "driver/findings.h"
#include "driver/pipeline.h"
#include "driver/requests.h"
#include "lower/lower.h"
#include "optimise/precision.h"
#include "sema/elaborate.h"

namespace ein {
namespace {

using optimise::Program;

// Every pass, in order. Each gives what stands beside it and may assume all that stands above it.
struct Pass {
  const char *name, *gives;
  bool native = true;  // on the way to running; those before are all that `ein check` needs
};
constexpr Pass kPasses[] = {
    {"parse", "the syntax tree of the program and its modules; names are not resolved yet", false},
    {"sema",
     "Core: arrays (families) with clauses over boxes; every name, type, coordinate and extent is "
     "known",
     false},
    {"drop-diagonals", "local arrays that are read only on a diagonal have lost a coordinate",
     false},
    {"add-requests", "derivatives that the command line asks for are requests of the program",
     false},
    {"solve-gates", "equalities in `where` conditions have become indices or routes where possible",
     false},
    {"autodiff", "every requested derivative has become arrays of its own", false},
    {"shard", "one rank's part of every value, and the moves of cells between ranks"},
    {"checkpoint",
     "recurrences that must save memory run in segments, whose steps are computed twice"},
    {"expand-calls", "calls of functions that do not call themselves are replaced by their bodies"},
    {"isolate-routes", "every routed sum is a clause of its own"},
    {"read-extents", "inputs that are extents are read as extents"},
    {"drop-unused", "local arrays have only the coordinates that their cells depend on"},
    {"round-factors", "factors of sums of products have the requested precision"},
    {"make-scans", "running reductions have become recurrences"},
    {"widen-sums", "sums that are accumulated one term at a time use f64"},
    {"sum-along-steps",
     "sums over the steps of small recurrences are added up while the steps run"},
    {"isolate-factors", "functions of whole matrices are clauses of their own"},
    {"split-residues", "sums of products that divide a coordinate are one for each remainder"},
    {"form-contractions", "sums of products of two operands are clauses of their own"},
    {"solve-for-products", "products with an inverse are solutions of linear systems"},
    {"isolate-invariants",
     "expressions that loops would compute repeatedly are arrays of their own"},
    {"inline", "values that are cheap or read once are inlined"},
    {"plan", "the plan: an order, and how every array is computed and stored"},
    {"lower", "Loops: one kernel for every step of the schedule"},
    {"fuse-sums", "reductions over the same steps share one pass"},
    {"join-steps", "recurrences along the same steps run in one loop"},
    {"split-steps",
     "first and last steps, and cells at the edges of arrays, have loops of their own"},
    {"write-out-cells", "loops over a few cells with different formulas are unrolled"},
    {"hold-state", "small recurrences keep their state in variables"},
    {"map-device", "everything that the device computes is in launches"},
    {"note-touches", "the host says which buffers it needs between launches"},
    {"emulate", "launches have become loops of the processor"},
    {"share-loops", "loops that threads share are marked"},
    {"cut-kernels", "long kernels are cut into several"},
    {"image", "what a caller needs to know about the program"},
    {"ptx", "the code that the device runs"},
    {"machine-code", "object code"},
};

void check_order(core::Module& m) {
  auto cycle = core::schedule(m, {}).cycle;
  if (!cycle) return;
  std::vector<std::string> names;
  for (core::FamilyId f : cycle->families) names.push_back(text(m[f].name));
  EIN_UNREACHABLE(
      fmt::format("autodiff produced families without a legal order: {}", fmt::join(names, ", ")));
}

core::Module drop_diagonals(Pipeline& run, core::Module m) {
  return run.pass("drop-diagonals", std::move(m), [](core::Module in) {
    core::drop_diagonals(in);
    return in;
  });
}

// The passes after sema that files and `test` blocks have in common; gradcheck has the last.
core::Module solve(Pipeline& run, core::Module m) {
  return run.pass("solve-gates", std::move(m), [](core::Module in) {
    core::solve_gates(in);
    return in;
  });
}

core::Module differentiate(Pipeline& run, core::Module m, const CompileOptions& options,
                           Diagnostics& diags) {
  bool asked = !autodiff::requests_left(m).empty();
  m = run.pass("autodiff", std::move(m), [&](core::Module in) {
    return autodiff::differentiate(std::move(in), diags, options.direction, options.record);
  });
  if (!asked || diags.has_errors()) return m;
  EIN_CHECK(autodiff::requests_left(m).empty(), "a request is left after autodiff");
  check_order(m);
  return m;
}

void compile_tests(Compiled& out, const CompileOptions& options, Diagnostics& diags) {
  const ast::Ast& ast = out.program.ast;
  const std::vector<ast::StmtId> shared = sema::test_definitions(out.program);
  CompileOptions own = options;
  own.record = nullptr;
  for (ast::StmtId id : ast.items) {
    const auto* test = std::get_if<ast::Test>(&ast[id].node);
    if (!test) continue;
    Diagnostics found;
    Trace trace;
    Pipeline run(trace, &found);
    core::Module m = run.pass("sema", test, [&](const ast::Test* block) {
      return sema::elaborate_test(out.program, *block, found, options.files, options.inputs,
                                  &shared, options.meanings);
    });
    if (!found.has_errors()) {
      m = differentiate(run, solve(run, drop_diagonals(run, std::move(m))), own, found);
    }
    keep_findings(found, ast[id].span, diags);
    if (!found.has_errors()) out.tests.push_back({test->name, ast[id].span, std::move(m)});
  }
}

bool adds_requests(const CompileOptions& options) {
  return !options.extra.of.empty() || !options.derivations.empty();
}

Compiled front_half(FileId file, SourceMap& sources, const CompileOptions& options,
                    Diagnostics& diags) {
  Compiled out;
  out.trace.dump_after = options.dump_after;
  Pipeline run(out.trace, &diags);
  out.program = run.pass("parse", file, [&](FileId root) {
    sema::ReadModule read = module_reader(options.read_file, sources.name(root));
    sema::Program program =
        sema::read_program(root, sources, read, diags, options.earlier, options.printed);
    program.derives |= adds_requests(options);
    program.exporters = library_exporters;
    return program;
  });
  auto stop = [&] { return out.cancelled = options.cancelled && options.cancelled(); };
  if (stop()) return out;
  core::Module m = run.pass("sema", &out.program, [&](sema::Program* program) {
    return sema::elaborate(*program, diags, options.files, options.inputs, options.meanings);
  });
  if (options.names_only || stop()) return out;
  if (!diags.has_errors()) {
    m = drop_diagonals(run, std::move(m));
    m = run.pass_if(adds_requests(options), "add-requests", std::move(m), [&](core::Module in) {
      if (!options.extra.of.empty()) add_requests(in, options.extra, diags);
      out.derived = add_derivations(in, options.derivations, diags);
      return in;
    });
    if (!out.derived.wrong.empty()) return out;
  }
  if (options.strict && !diags.has_errors()) reject_unproven(m, diags);
  if (diags.has_errors()) return out;
  m = solve(run, std::move(m));
  if (stop()) return out;
  if (options.keep_asked) out.asked = m;
  out.module = differentiate(run, std::move(m), options, diags);
  if (diags.has_errors()) return out;
  settle_shift(out.module, out.derived);
  if (stop()) return out;
  if (options.tests) compile_tests(out, options, diags);
  out.ok = !diags.has_errors();
  return out;
}

}  // namespace

const std::vector<std::string>& pass_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Pass& p : kPasses) out.push_back(p.name);
    return out;
  }();
  return names;
}

bool is_native_pass(const std::string& name) {
  for (const Pass& p : kPasses) {
    if (name == p.name) return p.native;
  }
  return false;
}

Compiled compile(FileId file, SourceMap& sources, const CompileOptions& options,
                 Diagnostics& diags) {
  Diagnostics found;
  Compiled out = front_half(file, sources, options, found);
  for (const Diagnostic& d : found.all()) {
    if (is_library_warning(d, sources, file) || found.allowed(d)) continue;
    if (is_earlier_warning(d, options.earlier)) continue;
    diags.error(d.code, d.message) = d;
  }
  return out;
}

core::Module derive(core::Module m, autodiff::Direction direction, Diagnostics& diags) {
  Trace trace;
  Pipeline run(trace, &diags);
  CompileOptions options;
  options.direction = direction;
  return differentiate(run, std::move(m), options, diags);
}

core::Module rounded_for_reference(core::Module m, DType operands) {
  Trace trace;
  return Pipeline(trace).pass("round-factors", std::move(m), [&](core::Module in) {
    optimise::round_operands(in, operands);
    return in;
  });
}

optimise::Checkpointed checkpoint_of(core::Module& m, const std::vector<core::FamilyId>& wanted,
                                     const std::vector<int64_t>& params,
                                     std::optional<uint64_t> memory, Trace* trace) {
  Trace own;
  Pipeline run(trace ? *trace : own);
  optimise::Checkpointed out;
  run.pass_if(optimise::wants_segments(m, memory), "checkpoint", &m, [&](core::Module* in) {
    out = optimise::checkpoint(*in, wanted, params, memory);
    return out.plans.empty() ? in : &out.module;
  });
  return out;
}

plan::Plan plan_of(const core::Module& m, const std::vector<core::FamilyId>& wanted,
                   const plan::Choices& choices, Trace* trace) {
  Trace own;
  Pipeline run(trace ? *trace : own);
  // Checked integers are computed family by family and sum by sum, as in the reference.
  bool free_order = choices.overflow == core::Overflow::Wraps;
  Program p{m, wanted};
  p.tuning = choices.tuning;
  p.first_made = static_cast<uint32_t>(m.families.size());
  p = run.pass("expand-calls", std::move(p),
               [&](Program in) { return optimise::expand_calls(std::move(in), choices.expands); });
  p = run.pass("isolate-routes", std::move(p), optimise::isolate_routes);
  p = run.pass("read-extents", std::move(p), optimise::read_extents);
  p = run.pass_if(free_order && choices.unused, "drop-unused", std::move(p), optimise::drop_unused);
  p = run.pass("round-factors", std::move(p), [&](Program in) {
    return optimise::round_factors(std::move(in), choices.operands);
  });
  p = run.pass_if(free_order && choices.scans, "make-scans", std::move(p),
                  [](Program in) { return optimise::make_scans(std::move(in)); });
  p = run.pass("widen-sums", std::move(p), optimise::widen_sums);
  p = run.pass_if(
      free_order && choices.ensembles && !choices.trap, "sum-along-steps", std::move(p),
      [&](Program in) { return optimise::sum_along_steps(std::move(in), choices.overflow); });
  p = run.pass("isolate-factors", std::move(p),
               [](Program in) { return optimise::isolate_factors(std::move(in)); });
  p = run.pass_if(free_order && choices.contractions, "split-residues", std::move(p),
                  [](Program in) { return optimise::split_residues(std::move(in)); });
  p = run.pass_if(free_order && choices.contractions, "form-contractions", std::move(p),
                  optimise::form_contractions);
  p = run.pass_if(free_order, "solve-for-products", std::move(p),
                  [](Program in) { return optimise::solve_for_products(std::move(in)); });
  p = run.pass_if(free_order && choices.invariants, "isolate-invariants", std::move(p),
                  [](Program in) { return optimise::isolate_invariants(std::move(in)); });
  p = run.pass("inline", std::move(p), [&](Program in) {
    return optimise::inline_families(std::move(in), choices.inlines, choices.overflow);
  });
  return run.pass("plan", std::move(p),
                  [&](Program in) { return plan::make_plan(std::move(in), choices); });
}

loops::Program loops_of(plan::Plan& plan, Trace* trace) {
  Trace own;
  Pipeline run(trace ? *trace : own);
  bool free_order = plan.overflow == core::Overflow::Wraps;
  loops::Program p = run.pass("lower", &plan, [](plan::Plan* in) { return lower::lower(*in); });
  p = run.pass_if(free_order, "fuse-sums", std::move(p), loops::fuse_sums);
  // If a run may resume at any step, everything that one step leaves to the next must be in
  // buffers.
  bool whole_steps = free_order && !plan.resumable;
  p = run.pass_if(whole_steps, "join-steps", std::move(p), loops::join_steps);
  p = run.pass_if(whole_steps, "split-steps", std::move(p), loops::split_steps);
  p = run.pass_if(free_order, "write-out-cells", std::move(p), loops::write_out_cells);
  // To explain a cell that is not finite, the cells it was computed from are read from buffers.
  p = run.pass_if(whole_steps && !plan.trap, "hold-state", std::move(p), loops::hold_state);
  p = run.pass_if(plan.device != Device::Cpu, "map-device", std::move(p),
                  [&](loops::Program in) { return device::map_device(plan, std::move(in)); });
  p = run.pass_if(plan.device == Device::Gpu, "note-touches", std::move(p), device::note_touches);
  p = run.pass_if(plan.device == Device::Emulated, "emulate", std::move(p), [&](loops::Program in) {
    return device::emulate(plan, std::move(in), {plan.mapping % 2 != 0});
  });
  p = run.pass("share-loops", std::move(p), loops::share_loops);
  return run.pass("cut-kernels", std::move(p), loops::cut_kernels);
}

std::variant<Lowered, std::string> lower_native(const core::Module& m,
                                                const std::vector<core::FamilyId>& wanted,
                                                const NativeOptions& options) {
  Trace own;
  Trace* trace = options.trace ? options.trace : &own;
  Lowered out{plan_of(m, wanted, options.choices, trace), {}, {}};
  if (std::string why = limitation(out.plan); !why.empty()) return why;
  out.program = loops_of(out.plan, trace);
  std::string why;
  out.image = Pipeline(*trace).pass("image", &out.program, [&](const loops::Program* in) {
    auto made = codegen::make_image(out.plan, *in, options.processor);
    if (auto* reason = std::get_if<std::string>(&made)) why = *reason;
    return why.empty() ? std::move(std::get<Image>(made)) : Image{};
  });
  if (!why.empty()) return why;
  if (out.plan.device == Device::Gpu && !out.image.launches.empty()) {
    out.image.ptx = Pipeline(*trace).pass(
        "ptx", &out.program, [](const loops::Program* in) { return codegen::ptx_of(*in); });
  }
  return out;
}

std::variant<std::shared_ptr<Native>, std::string> compile_native(
    const core::Module& m, const std::vector<core::FamilyId>& wanted, const NativeOptions& given) {
  std::optional<std::string> key = native_key(m, wanted, given);
  if (key) {
    if (auto kept = kept_native(*given.cache, *key)) return kept;
  }
  Trace own;
  NativeOptions options = given;
  if (!options.trace) options.trace = &own;
  auto made = lower_native(m, wanted, options);
  if (auto* why = std::get_if<std::string>(&made)) return *why;
  Lowered& lowered = std::get<Lowered>(made);
  codegen::JitTimes inside;
  lowered.image.object = Pipeline(*options.trace)
                             .pass("machine-code", &lowered.program, [&](const loops::Program* in) {
                               return codegen::object_code(*in, jit_options(options), &inside);
                             });
  std::string packed = key ? pack(lowered.image) : "";
  auto native = make_native(std::move(lowered), options.trace->times, inside);
  if (key) options.cache->store(*key, packed);  // code that cannot be loaded is not stored
  return native;
}

std::string dump_native_pass(const core::Module& m, const std::vector<core::FamilyId>& wanted,
                             const NativeOptions& given, const std::string& pass,
                             std::string& why) {
  const std::vector<std::string>& order = pass_names();
  auto has_run = [&](const char* last) {  // whether the pass `last` is already done
    auto from = std::find(order.begin(), order.end(), pass);
    return std::find(from, order.end(), last) != order.end();
  };
  Trace trace{pass};
  NativeOptions options = given;
  options.trace = &trace;
  options.cache = nullptr;  // a cached program skips the passes, so there would be nothing to print
  if (has_run("cut-kernels")) {
    plan::Plan plan = plan_of(m, wanted, options.choices, &trace);
    why = limitation(plan);
    if (!has_run("plan") && why.empty()) loops_of(plan, &trace);
  } else {
    auto compiled = compile_native(m, wanted, options);
    if (auto* reason = std::get_if<std::string>(&compiled)) why = *reason;
  }
  return why.empty() ? trace.dump : "";
}

}  // namespace ein

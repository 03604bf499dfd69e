#include "driver/bench.h"

#include <algorithm>

#include "codegen/native.h"
#include "core/groups.h"
#include "driver/synthetic.h"
#include "runtime/device_run.h"
#include "runtime/native_abi.h"
#include "runtime/pool.h"
#include "runtime/resident.h"

namespace ein {
namespace {

constexpr double kWarmUp = 0.2, kMeasure = 1.0;  // seconds
constexpr int kFewest = 5, kMost = 10'000;

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  size_t half = v.size() / 2;
  return v.size() % 2 ? v[half] : (v[half - 1] + v[half]) / 2;
}

// Makes up the inputs that `given` lacks. Extents that satisfy the constraints may still fail when
// the program runs, so each attempt is run.
std::variant<core::Inputs, RuntimeError> complete(core::Module& m, const core::Inputs& given,
                                                  const std::vector<core::FamilyId>& needed,
                                                  Native& code) {
  RuntimeError last;
  for (int attempt = 0; attempt < kSyntheticAttempts; ++attempt) {
    auto made = synthetic_inputs(m, needed, given, attempt);
    if (auto* e = std::get_if<RuntimeError>(&made)) return *e;
    NativeResult result = run(code, std::get<core::Inputs>(made));
    if (!result.error) return made;
    last = *result.error;
    if (std::get<core::Inputs>(made).size() == given.size()) break;  // nothing to vary
  }
  return last;
}

}  // namespace

std::variant<BenchReport, RuntimeError> bench(core::Module& original, const core::Inputs& supplied,
                                              const BenchOptions& options) {
  BenchReport out;
  std::vector<core::FamilyId> wanted = wanted_families(original, options.run, Else::Unread);
  if (wanted.empty()) return out;
  if (options.run.device == Device::Gpu) {
    if (std::string why = gpu_missing(); !why.empty()) {
      return RuntimeError{Code::E0813, "no GPU can be used: " + why};
    }
  }
  Trace trace;
  RunOptions how = options.run;
  if (!how.trace) how.trace = &trace;
  auto ready = prepare(original, wanted, supplied, how);
  if (auto* e = std::get_if<RuntimeError>(&ready)) return *e;
  Prepared& prepared = std::get<Prepared>(ready);
  core::Module& m = prepared.cut ? *prepared.cut : original;
  set_threads(options.run.threads);
  auto compiled = compile_native(m, prepared.wanted, native_options(how));
  if (auto* why = std::get_if<std::string>(&compiled)) return RuntimeError{Code::E0701, *why};
  Native& code = *std::get<std::shared_ptr<Native>>(compiled);

  std::vector<core::FamilyId> needed = core::families_of(core::schedule(m, wanted).steps);
  for (core::FamilyId id : wanted) out.computed.push_back(text(m[id].name));
  for (core::FamilyId id : needed) {
    std::string name = text(m[id].name);
    if (m[id].kind == core::Family::Kind::Input && !prepared.inputs.contains(name)) {
      out.made_up.push_back(name);
    }
  }
  ResidentMark before;
  auto completed = complete(m, prepared.inputs, needed, code);  // and the first warm-up run
  if (auto* e = std::get_if<RuntimeError>(&completed)) return *e;
  const core::Inputs& inputs = std::get<core::Inputs>(completed);
  out.memory = before.peak_growth();
  for (const auto& [name, value] : prepared.inputs) {
    if (out.memory) *out.memory += value.size() * static_cast<int64_t>(size_of(value.dtype()));
  }

  std::vector<std::vector<double>> kernels;
  NativeResult result;
  auto once = [&](bool counts) {
    std::vector<int64_t> times;
    int64_t begin = clock_nanoseconds();
    NativeResult fresh = run(code, inputs, {}, &times);
    double seconds = static_cast<double>(clock_nanoseconds() - begin) * 1e-9;
    result = std::move(fresh);  // the values of the run before are released only now
    if (counts) {
      out.runs.push_back(seconds);
      kernels.resize(times.size());
      for (size_t k = 0; k < times.size(); ++k) {
        kernels[k].push_back(static_cast<double>(times[k]) * 1e-9);
      }
    }
    return seconds;
  };
  bool automatic = options.repeat == 0;
  for (double spent = 0; spent < kWarmUp && !result.error;) spent += once(false);
  double spent = 0;
  auto enough = [&] {
    auto n = static_cast<int>(out.runs.size());
    if (!automatic) return n >= options.repeat;
    return n >= kMost || (n >= kFewest && spent >= kMeasure);
  };
  while (!result.error && !enough()) spent += once(true);
  if (result.error) return *result.error;

  out.median.compile = compile_times(code);
  out.median.seconds = median(out.runs);
  out.median.kernels = kernel_times(code, result.params, std::vector<int64_t>(kernels.size()));
  for (size_t k = 0; k < kernels.size(); ++k) out.median.kernels[k].seconds = median(kernels[k]);
  for (const std::string& name : options.run.show) {
    out.values[name] = result.values.at(m.find(intern(name)));
  }
  return out;
}

}  // namespace ein

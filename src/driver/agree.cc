#include "driver/agree.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "base/render.h"
#include "core/print.h"
#include "runtime/pool.h"

namespace ein {

std::string printed_agrees(core::Module& m, const CompileOptions& options,
                           const std::string& name) {
  std::string printed = core::print(m);
  SourceMap sources;
  Diagnostics diags;
  CompileOptions plain = options;
  plain.extra = {};
  Compiled again = compile(sources.add(name, printed), sources, plain, diags);
  if (!again.ok) {
    return "printed source is rejected:\n" + render(diags, sources, {}) + "\n" + printed;
  }
  core::Module& n = again.module;
  if (core::hash(m) == core::hash(n)) return "";
  std::string out = "printed source parses to another Core\n--- printed\n" + printed +
                    "--- reprinted\n" + core::print(n);
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    core::FamilyId other = n.find(m[core::FamilyId(i)].name);
    if (!other || core::hash(m, core::FamilyId(i)) != core::hash(n, other)) {
      out += fmt::format("differs: {}\n", text(m[core::FamilyId(i)].name));
    }
  }
  for (const core::Module* x : {&m, &n}) {
    for (const core::Constraint& c : x->constraints)
      out += fmt::format("constraint: {}\n", c.message);
  }
  return out;
}

bool close(const Tensor& a, const Tensor& b, double tolerance, std::string& where) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) {
    where = "shape or type differs";
    return false;
  }
  for (int64_t i = 0; i < a.size(); ++i) {
    if (!is_float(a.dtype())) {
      if (a.get_int(i) == b.get_int(i)) continue;
      where = fmt::format("cell {}: {} and {}", i, a.get_int(i), b.get_int(i));
      return false;
    }
    double x = a.get_float(i), y = b.get_float(i);
    if ((std::isnan(x) && std::isnan(y)) || x == y) continue;
    if (std::fabs(x - y) <= tolerance * std::max(1.0, std::max(std::fabs(x), std::fabs(y))))
      continue;
    where = fmt::format("cell {}: {} and {}", i, x, y);
    return false;
  }
  return true;
}

namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::memcmp(a.data(), b.data(), static_cast<size_t>(a.size()) * size_of(a.dtype())) == 0;
}

// The same bits, or the same failure, for any number of threads.
std::string threads_agree(Native& code, const core::Inputs& inputs, const NativeResult& expected) {
  int before = threads();
  std::string wrong;
  for (int count = 1; count <= 3 && wrong.empty(); ++count) {
    set_threads(count);
    NativeResult now = run(code, inputs);
    if (now.error.has_value() != expected.error.has_value() ||
        (now.error && now.error->message != expected.error->message)) {
      wrong = fmt::format("with {} threads: {}", count, now.error ? now.error->message : "fine");
    }
    for (const auto& [id, value] : expected.values) {
      if (!expected.error && !same_bits(value, now.values.at(id))) {
        wrong = fmt::format("other bits with {} threads", count);
      }
    }
  }
  set_threads(before);
  return wrong;
}

}  // namespace

std::string native_agrees(core::Module& m, const core::Inputs& inputs,
                          const std::vector<std::string>& values, const NativeOptions& options) {
  std::vector<core::FamilyId> wanted;
  for (const std::string& v : values) wanted.push_back(m.find(intern(v)));
  core::EvalOptions how{options.choices.overflow == core::Overflow::Stops};
  core::EvalResult reference = core::evaluate(m, inputs, wanted, {}, how);
  auto compiled = compile_native(m, wanted, options);
  if (auto* why = std::get_if<std::string>(&compiled)) return "no native code: " + *why;
  Native& code = *std::get<std::shared_ptr<Native>>(compiled);
  NativeResult native = run(code, inputs);
  if (std::string wrong = threads_agree(code, inputs, native); !wrong.empty()) return wrong;
  if (reference.error.has_value() != native.error.has_value()) {
    return fmt::format("reference: {}; native: {}",
                       reference.error ? reference.error->message : "fine",
                       native.error ? native.error->message : "fine");
  }
  if (reference.error) return "";
  for (size_t k = 0; k < wanted.size(); ++k) {
    std::string where;
    double tolerance = m[wanted[k]].dtype == DType::F64 ? 1e-9 : 2e-4;
    if (!close(reference.values.at(wanted[k]), native.values.at(wanted[k]), tolerance, where)) {
      return fmt::format("reference and native differ in `{}`, {}", values[k], where);
    }
  }
  return "";
}

}  // namespace ein

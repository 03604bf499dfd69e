// The verb `run`: what a program prints and writes, and its values.
#include "driver/run.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "driver/files.h"
#include "driver/synthetic.h"
#include "runtime/show.h"
#include "runtime/sink.h"
#include "web/program.h"

namespace ein::web {
namespace {

// A page draws at most this many cells; larger values are shown as text.
constexpr int64_t kMostCells = 20'000;

Json cell_json(const Tensor& t, int64_t i) {
  if (t.dtype() == DType::Bool) return t.get_int(i) != 0;
  if (is_float(t.dtype())) {
    double v = t.get_float(i);
    if (std::isnan(v)) return "nan";
    return std::isinf(v) ? Json(v > 0 ? "inf" : "-inf") : Json(v);
  }
  int64_t v = t.get_int(i);
  constexpr int64_t kExact = int64_t{1} << 53;  // larger integers are not exact in JavaScript
  return v > kExact || v < -kExact ? Json(std::to_string(v)) : Json(v);
}

Json value_json(const Program& p, const core::Family& f, const Tensor& t) {
  std::vector<std::string> coords = coordinate_texts(f);
  Json out{{"name", f.spelled()},
           {"dtype", name_of(t.dtype())},
           {"coords", coords},
           {"shape", t.shape()},
           {"input", f.kind == core::Family::Kind::Input},
           {"at", place_json(p, f.span)},
           {"text", show(t, coords)}};
  if (t.size() > kMostCells) return out;
  Json cells = Json::array();
  for (int64_t i = 0; i < t.size(); ++i) cells.push_back(cell_json(t, i));
  out["cells"] = std::move(cells);
  return out;
}

// Which values are shown besides what the program prints: those that the user named. A program
// computes only what it prints and saves (decisions.md, 30), but somebody who writes `let dW =
// @loss / @W;` in a page wants to see it. If the others cannot be computed, only the values that
// the program needs are shown.
enum class Shown : uint8_t { All, Needed };
std::vector<core::FamilyId> shown_values(const core::Module& m, Shown which) {
  std::set<core::FamilyId> needed = reached(m, wanted_families(m, {}, Else::Unread));
  std::vector<core::FamilyId> out;
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    const core::Family& f = m[core::FamilyId(i)];
    bool named = !f.generated && f.dtype != DType::Str;
    if (named && (which == Shown::All || needed.contains(core::FamilyId(i))))
      out.push_back(core::FamilyId(i));
  }
  return out;
}

// The first `save` of a format that is not text, which cannot be written without a disk.
const core::Effect* saving(const core::Module& m) {
  for (const core::Effect& e : m.effects) {
    if (e.kind == core::Effect::Kind::Save) return &e;
  }
  return nullptr;
}

// Makes up values for the inputs, so that a program that only declares them can be tried at once.
void make_up_inputs(const core::Module& m, core::Inputs& inputs, Json& answer) {
  std::vector<core::FamilyId> all = shown_values(m, Shown::All);
  for (core::FamilyId id : wanted_families(m, {})) all.push_back(id);
  auto needed = reached(m, all);
  Json names = Json::array();
  for (core::FamilyId id : needed) {
    if (m[id].kind == core::Family::Kind::Input && !m[id].file) names.push_back(m[id].spelled());
  }
  if (names.empty()) return;
  auto made = synthetic_inputs(m, {needed.begin(), needed.end()}, inputs, 0);
  if (auto* values = std::get_if<core::Inputs>(&made)) {
    inputs = std::move(*values);
    answer["made_up"] = std::move(names);
  }
}

// Runs the program once. False if it failed.
bool execute(const Surroundings& around, Program& p, const core::Inputs& inputs,
             const std::vector<core::FamilyId>& shown, Json& answer) {
  core::Module& m = p.compiled.module;
  RunOptions options;
  options.backend = around.backend;
  for (core::FamilyId id : shown) options.show.push_back(text(m[id].name));
  std::string out, err;
  Json files = Json::array();
  Sink sink{[&](std::string_view text, bool error) { (error ? err : out) += text; },
            [&](const std::string& path, const std::string& text) {
              files.push_back({{"name", path}, {"text", text}});
              return true;
            }};
  RunResult result;
  {
    SinkScope scope(sink);
    result = run(m, inputs, options, [&](const std::string& line) { out += line; });
  }
  answer["stdout"] = out;
  answer["stderr"] = answer["stderr"].get<std::string>() + err;
  answer["files"] = std::move(files);
  answer["operations"] = result.operations;
  if (!result.fallback.empty()) answer["fallback"] = result.fallback;
  if (result.error) {
    add_runtime_error(p, *result.error, answer);
    return false;
  }
  if (shown.empty()) return true;
  answer["values"] = Json::array();
  for (core::FamilyId id : shown) {
    auto it = result.values.find(text(m[id].name));
    if (it != result.values.end()) answer["values"].push_back(value_json(p, m[id], it->second));
  }
  return true;
}

}  // namespace

void run_program(const Surroundings& around, const Json& request, Json& answer) {
  Program p;
  if (!compile_program(around, request, {}, p, answer)) return;
  core::Module& m = p.compiled.module;
  if (const core::Effect* e = saving(m)) {
    RuntimeError error{Code::E0811,
                       fmt::format("`{}` cannot be saved here: save the program and run it with "
                                   "`ein run`",
                                   e->path)};
    error.at = e->span;
    add_runtime_error(p, error, answer);
    return;
  }
  core::Inputs inputs;
  if (request.value("make_up_inputs", false)) make_up_inputs(m, inputs, answer);

  if (!request.value("values", false)) {
    execute(around, p, inputs, {}, answer);
    return;
  }
  const Json before = answer;
  if (execute(around, p, inputs, shown_values(m, Shown::All), answer)) return;
  answer = before;
  execute(around, p, inputs, shown_values(m, Shown::Needed), answer);
}

}  // namespace ein::web

// The verbs `grad` and `explain`: derivatives as source and as steps, each part with its place in
// the program.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "driver/explain.h"
#include "driver/requests.h"
#include "driver/texts.h"
#include "web/program.h"

namespace ein::web {
namespace {

using autodiff::Flow;

// The name that a line of printed source defines, or empty.
std::string defined_by(const std::string& line) {
  size_t at = line.find("let ");
  if (at == std::string::npos || line.find_first_not_of(' ') != at) return "";
  size_t end = line.find_first_of("[:= ", at + 4);
  return line.substr(at + 4, end - at - 4);
}

// For each line that defines something, the places in the program that it comes from.
Json lines_json(const Program& p, const std::string& source) {
  const core::Module& m = p.compiled.module;
  Json out = Json::array();
  size_t number = 0;
  for (size_t at = 0; at < source.size(); ++number) {
    size_t end = std::min(source.find('\n', at), source.size());
    std::string name = defined_by(source.substr(at, end - at));
    at = end + 1;
    if (name.empty()) continue;
    Json places = Json::array();
    auto add = [&](Span span) {
      Json place = place_json(p, span);
      if (!place.is_null() && std::find(places.begin(), places.end(), place) == places.end())
        places.push_back(std::move(place));
    };
    for (const Flow& f : p.record.flows) {
      if (text(f.adjoint) == name) add(f.span);
    }
    core::FamilyId id = m.find(intern(name));
    if (id && (places.empty() || !m[id].generated)) add(m[id].span);
    out.push_back({{"line", number}, {"name", name}, {"from", std::move(places)}});
  }
  return out;
}

// The names of the float values behind names that the user wrote, which may be records.
std::vector<std::string> float_names(const core::Module& m, const std::vector<std::string>& names) {
  std::vector<std::string> out;
  Diagnostics known;  // compiling has already reported what is wrong with them
  for (const std::string& name : names) {
    for (core::FamilyId id : float_values(m, name, known)) out.push_back(text(m[id].name));
  }
  return out;
}

Json explanation_of(const Program& p, const Explanation& e) {
  Json out = Json::parse(explanation_json(e));
  for (size_t k = 0; k < e.steps.size(); ++k) {
    Json& step = out["steps"][k];
    step["at"] = place_json(p, e.steps[k].span);
    step["walk"] = steps_of(e.steps[k]);
    for (const auto& [what, here] : steps_of(e.steps[k])) {
      if (what.starts_with("5")) step["why"] = here;
    }
  }
  for (Json& v : out["values"]) {
    core::FamilyId id = p.compiled.asked.find(intern(v["name"].get<std::string>()));
    v["at"] = id ? place_json(p, p.compiled.asked[id].span) : Json();
  }
  return out;
}

}  // namespace

void grad_program(const Surroundings& around, const Json& request, Json& answer) {
  Program p;
  if (!compile_program(around, request, {.extra = true}, p, answer)) return;
  core::Module& m = p.compiled.module;
  answer["values"] = values_json(p, p.compiled.asked);
  std::vector<core::FamilyId> roots = derivatives(p.compiled.asked, m);
  answer["asked"] = !roots.empty();
  if (roots.empty()) return;
  // A plot of the derivative would say nothing about it.
  if (!request.value("effects", true)) m.effects.clear();
  std::string source = derived_source(m, p.record, roots);
  answer["lines"] = lines_json(p, source);
  answer["stdout"] = std::move(source);
}

void explain_program(const Surroundings& around, const Json& request, Json& answer) {
  Program p;
  if (!compile_program(around, request, {.reverse = true, .extra = true}, p, answer)) return;
  const core::Module& asked = p.compiled.asked;
  std::string of = text_in(request, "of");
  std::vector<std::string> tops;
  if (!of.empty()) tops = float_names(asked, {of});
  auto all = explanations(p.record, asked, tops, float_names(asked, names_in(request, "wrt")));
  answer["explanations"] = Json::array();
  std::string text;
  for (const Explanation& e : all) {
    answer["explanations"].push_back(explanation_of(p, e));
    text += (text.empty() ? "" : "\n") + explanation_text(e);
  }
  answer["stdout"] = std::move(text);
}

}  // namespace ein::web

#include "driver/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace ein {
namespace {

using autodiff::Flow;

std::string reading(const Flow& f) {
  std::string out = f.read == f.cell ? f.by : fmt::format("{}, as {}", f.by, f.read);
  std::vector<std::string> every;
  for (const Flow::Summed& s : f.summed) {
    if (s.of_reader) every.push_back(text(s.name));
  }
  if (!every.empty()) out += fmt::format(", for every {}", fmt::join(every, ", "));
  if (!f.gate.empty()) out += " where " + f.gate;
  return out;
}

std::string incoming(const Flow& f) {
  if (!f.incoming) return fmt::format("1: {} is the numerator", text(f.reader));
  std::string at = f.by.substr(text(f.reader).size());
  return text(f.incoming) + at;
}

std::string summing(const Flow& f) {
  if (f.summed.empty()) return "nothing: only one cell reads it";
  std::string out = summed_text(f);
  if (!f.routes.empty()) return fmt::format("{} where {}", out, fmt::join(f.routes, ", "));
  bool one = f.summed.size() == 1;
  bool has = std::all_of(f.summed.begin(), f.summed.end(),
                         [](const Flow::Summed& s) { return s.of_reader; });
  std::string pronoun = one ? "it" : "them";
  if (f.of == f.reader) return out;
  return has ? fmt::format("{}: {} has {}, {} does not", out, text(f.reader), pronoun, text(f.of))
             : fmt::format("{}: {} runs over {}, {} does not have {}", out, text(f.reader), pronoun,
                           text(f.of), pronoun);
}

// The names in a text.
void add_words(const std::string& code, std::vector<std::string>& to) {
  std::string word;
  for (char c : code + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
      continue;
    }
    if (!word.empty()) to.push_back(std::exchange(word, {}));
  }
}

// Finds what the steps name, and what is named where that is defined.
void define_names(const autodiff::Record& record, const core::Module& m, Explanation& e) {
  std::vector<std::string> words;
  for (const Flow& f : e.steps) {
    for (const auto& [what, here] : steps_of(f)) add_words(here, words);
    for (Symbol s : {f.of, f.reader}) words.push_back(text(s));
    add_words(f.added, words);
  }
  std::set<std::string> seen;
  for (size_t k = 0; k < words.size(); ++k) {
    std::string word = words[k];
    if (!seen.insert(word).second) continue;
    Symbol name = intern(word);
    core::FamilyId id = m.find(name);
    auto part = record.parts.find(name);
    if (id && !m[id].generated) {
      e.defined.emplace(word, Explanation::Place{m[id].span, m[id].path});
    } else if (id || part != record.parts.end()) {
      std::string text =
          part != record.parts.end() ? part->second : autodiff::definition_text(m, id);
      e.parts.emplace(word, text);
      add_words(text, words);
    }
  }
}

}  // namespace

Explanation explain(const autodiff::Record& record, const core::Module& m, const std::string& of,
                    const std::string& wrt) {
  Explanation out{of, wrt, {}, {}};
  Symbol num = intern(of);
  std::set<Symbol> reached{intern(wrt)};
  for (size_t before = 0; before != reached.size();) {
    before = reached.size();
    for (const Flow& f : record.flows) {
      if (f.num == num && reached.contains(f.of)) reached.insert(f.reader);
    }
  }
  for (const Flow& f : record.flows) {
    if (f.num == num && reached.contains(f.of)) out.steps.push_back(f);
  }
  // The values in the order in which the program computes them: what reads a value comes after it,
  // unless a recurrence closes there.
  std::vector<Symbol> order;
  std::set<Symbol> seen;
  std::function<void(Symbol)> visit = [&](Symbol s) {
    if (!seen.insert(s).second) return;
    for (const Flow& f : out.steps) {
      if (f.of == s) visit(f.reader);
    }
    order.insert(order.begin(), s);
  };
  visit(intern(wrt));
  for (Symbol s : order) {
    Explanation::Value v{text(s), {}};
    if (core::FamilyId id = m.find(s)) {
      for (const core::Coord& c : m[id].coords) v.coords.push_back(c.name ? text(c.name) : "·");
    } else {
      for (const Flow& f : out.steps) {  // a part of an expression: its cell says its coordinates
        const std::string& cell = f.of == s ? f.cell : f.reader == s ? f.by : "";
        size_t begin = cell.find('[');
        if (begin == std::string::npos) continue;
        v.coords.clear();
        for (size_t at = begin + 1; at < cell.size();) {
          size_t end = cell.find_first_of(",]", at);
          v.coords.push_back(cell.substr(at, end - at));
          at = end + 2;
        }
        break;
      }
    }
    out.values.push_back(std::move(v));
  }
  define_names(record, m, out);
  return out;
}

std::vector<std::pair<std::string, std::string>> steps_of(const Flow& f) {
  std::vector<std::pair<std::string, std::string>> out{{"1 hold", f.cell},
                                                       {"2 it is read by", reading(f)},
                                                       {"3 incoming", incoming(f)},
                                                       {"4 local derivative", f.local},
                                                       {"5 sum", summing(f)}};
  for (const Flow::Solved& s : f.solved) {
    out.emplace_back("  solved",
                     fmt::format("{} = {}, from the read at {}", text(s.name), s.value, s.read));
  }
  return out;
}

std::string explanation_text(const Explanation& e) {
  std::string out = fmt::format("@{} / @{}\n", e.of, e.wrt);
  if (e.steps.empty()) {
    return out + fmt::format("\n{} does not depend on {}: the derivative is zero\n", e.of, e.wrt);
  }
  for (const Flow& f : e.steps) {
    out += fmt::format("\n{}, read by {}\n", text(f.of), text(f.reader));
    for (const auto& [what, here] : steps_of(f)) out += fmt::format("  {:<18}  {}\n", what, here);
    out += fmt::format("  so {} gets {}\n", text(f.adjoint), f.added);
  }
  return out;
}

std::string explanation_json(const Explanation& e) {
  nlohmann::json steps = nlohmann::json::array(), values = nlohmann::json::array();
  for (const Flow& f : e.steps) {
    nlohmann::json summed = nlohmann::json::array(), solved = nlohmann::json::array();
    for (const Flow::Summed& s : f.summed) summed.push_back(text(s.name));
    for (const Flow::Solved& s : f.solved) {
      solved.push_back({{"coordinate", text(s.name)}, {"is", s.value}, {"read_at", s.read}});
    }
    steps.push_back({{"value", text(f.of)},
                     {"reader", text(f.reader)},
                     {"held", f.cell},
                     {"read_by", f.by},
                     {"read_as", f.read},
                     {"where", f.gate},
                     {"incoming", f.incoming ? text(f.incoming) : "1"},
                     {"local", f.local},
                     {"summed", summed},
                     {"solved", solved},
                     {"routes", f.routes},
                     {"adjoint", text(f.adjoint)},
                     {"adds", f.added}});
  }
  for (const Explanation::Value& v : e.values) {
    values.push_back({{"name", v.name}, {"coords", v.coords}});
  }
  return nlohmann::json{{"of", e.of}, {"wrt", e.wrt}, {"values", values}, {"steps", steps}}.dump();
}

}  // namespace ein

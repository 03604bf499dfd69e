#include "autodiff/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>

#include "core/normal.h"
#include "core/print.h"

namespace ein::autodiff {
namespace {

// A module whose families are found by name: every flow asks several times.
struct Named {
  explicit Named(const core::Module& m) : module(m) {
    for (uint32_t i = 0; i < m.families.size(); ++i)
      ids.emplace(m[core::FamilyId(i)].name, core::FamilyId(i));
  }
  core::FamilyId find(Symbol name) const {
    auto it = ids.find(name);
    return it == ids.end() ? core::FamilyId{} : it->second;
  }

  const core::Module& module;
  std::unordered_map<Symbol, core::FamilyId> ids;
};

// Where an adjoint's definition ended up: in its own family, or in those it was inlined into.
std::vector<Symbol> places(const Record& record, const Named& m, Symbol adjoint) {
  std::vector<Symbol> out;
  std::set<Symbol> seen;
  std::function<void(Symbol)> visit = [&](Symbol s) {
    if (!seen.insert(s).second) return;
    if (m.find(s)) {
      out.push_back(s);
      return;
    }
    auto it = record.readers.find(s);
    if (it == record.readers.end()) return;
    for (Symbol reader : it->second) visit(reader);
  };
  visit(adjoint);
  return out;
}

// The value that a reader of the output knows: the family itself, or the one whose definition it is
// a part of (`h_1` of `h`), if that has the coordinates in question. Invalid: none.
Symbol known_as(const Named& m, Symbol name, const std::vector<Flow::Summed>& coords) {
  std::string s = text(name);
  for (;;) {
    if (core::FamilyId id = m.find(intern(s))) {
      bool has =
          s == text(name) || std::all_of(coords.begin(), coords.end(), [&](const Flow::Summed& c) {
            return std::any_of(m.module[id].coords.begin(), m.module[id].coords.end(),
                               [&](const core::Coord& k) { return k.name == c.name; });
          });
      return has ? intern(s) : Symbol{};
    }
    size_t cut = s.rfind('_');
    if (cut == std::string::npos || cut == 0) return {};
    s.resize(cut);
  }
}

std::vector<std::string> lines_of(const Flow& f, const Named& m) {
  std::vector<std::string> out;
  Symbol shown = known_as(m, f.reader, f.summed);
  bool named = shown.valid();
  // A value of several clauses is named by the cells of the one that reads.
  bool several = named && shown == f.reader && m.module[m.find(shown)].clauses.size() > 1;
  std::string of = text(f.of), reader = several ? f.by : named ? text(shown) : "";
  bool own = f.of == f.reader || f.of == shown;
  if (!f.summed.empty()) {
    bool one = f.summed.size() == 1;
    bool has = std::all_of(f.summed.begin(), f.summed.end(),
                           [](const Flow::Summed& s) { return s.of_reader; });
    has |= shown != f.reader;  // a part of a value: known_as has checked that the value has them
    std::string why;
    if (f.routes.empty() && named && !own && m.find(f.of)) {
      why = has ? fmt::format(": {} has {}, {} does not", reader, one ? "it" : "them", of)
                : fmt::format(": {} runs over {}, {} does not have {}", reader, one ? "it" : "them",
                              of, one ? "it" : "them");
    }
    if (own && f.routes.empty()) why = fmt::format(": {} reads itself", of);
    if (!f.routes.empty()) {
      why = fmt::format(" where {}: cells that are read more than once get the sum",
                        fmt::join(f.routes, ", "));
    }
    out.push_back(fmt::format("sums {}{}", summed_text(f), why));
  }
  for (const Flow::Solved& s : f.solved) {
    if (!named || !m.find(f.of)) break;
    bool same_name = s.value.find(text(s.name)) != std::string::npos;
    out.push_back(same_name ? fmt::format("comes back from {}: {} reads {} at {}", s.value, reader,
                                          of, s.read)
                            : fmt::format("{} is {}: {} reads {} at {}", text(s.name), s.value,
                                          reader, of, s.read));
  }
  return out;
}

}  // namespace

std::string definition_text(const core::Module& m, core::FamilyId id) {
  const core::Family& f = m[id];
  std::vector<Symbol> names = core::coordinate_names(f);
  std::vector<std::string> cell;
  for (Symbol s : names) cell.push_back(s ? text(s) : "i");
  std::string left = text(f.name);
  if (!cell.empty()) left += fmt::format("[{}]", fmt::join(cell, ", "));
  if (f.kind == core::Family::Kind::Table) return left + ", an array of numbers";
  std::string out;
  for (const core::Clause& c : f.clauses) {
    out += fmt::format("{}{} = {}", out.empty() ? "" : "; ", left,
                       core::print(m, names, c.body, true));
  }
  return out.empty() ? left : out;
}

std::string summed_text(const Flow& flow) {
  std::vector<std::string> names;
  for (const Flow::Summed& s : flow.summed) names.push_back(text(s.name));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::map<Symbol, std::vector<std::string>> comments(const Record& record, const core::Module& m) {
  std::map<Symbol, std::vector<std::string>> out;
  const Named named(m);
  for (const Flow& f : record.flows) {
    for (Symbol place : places(record, named, f.adjoint)) {
      std::vector<std::string>& lines = out[place];
      for (const std::string& line : lines_of(f, named)) {
        if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
      }
    }
  }
  return out;
}

}  // namespace ein::autodiff

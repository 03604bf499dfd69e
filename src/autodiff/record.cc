#include "autodiff/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

namespace ein::autodiff {
namespace {

// Where an adjoint's definition ended up: in its own family, or in those it was inlined into.
std::vector<Symbol> places(const Record& record, const core::Module& m, Symbol adjoint) {
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

std::vector<std::string> lines_of(const Flow& f, const core::Module& m) {
  std::vector<std::string> out;
  bool named = static_cast<bool>(m.find(f.reader));  // the reader of the source may have no line
  std::string of = text(f.of), reader = text(f.reader);
  bool own = f.of == f.reader;
  if (!f.summed.empty()) {
    bool one = f.summed.size() == 1;
    bool has = std::all_of(f.summed.begin(), f.summed.end(),
                           [](const Flow::Summed& s) { return s.of_reader; });
    std::string why;
    if (f.routes.empty() && named && !own && m.find(f.of)) {
      why = has ? fmt::format(": {} has {}, {} does not", reader, one ? "it" : "them", of)
                : fmt::format(": {} runs over {}, {} does not have {}", reader,
                              one ? "it" : "them", of, one ? "it" : "them");
    }
    if (!f.routes.empty()) {
      why = fmt::format(" where {}: cells that are read twice get both",
                        fmt::join(f.routes, ", "));
    }
    out.push_back(fmt::format("sums {}{}", summed_text(f), why));
  }
  for (const Flow::Solved& s : f.solved) {
    if (!named || !m.find(f.of)) break;
    bool same_name = s.value.find(text(s.name)) != std::string::npos;
    out.push_back(same_name
                      ? fmt::format("comes back from {}: {} reads {} at {}", s.value, reader, of,
                                    s.read)
                      : fmt::format("{} is {}: {} reads {} at {}", text(s.name), s.value, reader,
                                    of, s.read));
  }
  return out;
}

}  // namespace

std::string summed_text(const Flow& flow) {
  std::vector<std::string> names;
  for (const Flow::Summed& s : flow.summed) names.push_back(text(s.name));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::map<Symbol, std::vector<std::string>> comments(const Record& record, const core::Module& m) {
  std::map<Symbol, std::vector<std::string>> out;
  for (const Flow& f : record.flows) {
    for (Symbol place : places(record, m, f.adjoint)) {
      std::vector<std::string>& lines = out[place];
      for (const std::string& line : lines_of(f, m)) {
        if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
      }
    }
  }
  return out;
}

}  // namespace ein::autodiff

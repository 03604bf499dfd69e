// Family reports as text for people and as JSON for tools.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "core/print.h"
#include "driver/facts.h"

namespace ein {
namespace {

using core::Clause;
using core::Constraint;
using core::Coord;
using core::ExprId;
using core::Family;
using core::FamilyId;
using core::LoadedFile;
using core::Module;
using core::ParamRef;
using core::Range;
using core::SequenceReport;
using core::SequentialCoordinate;

using Json = nlohmann::ordered_json;

std::string coordinate(const Family& f, uint32_t position) {
  Symbol name = f.coords[position].name;
  return name ? text(name) : std::to_string(position);
}

// A symbolic extent is written by its name, even where a coordinate has the same one.
std::string extent_text(const Module& m, FamilyId family, ExprId extent) {
  const auto* ref = get_if<ParamRef>(m, extent);
  if (ref && m.params[ref->param].name) return text(m.params[ref->param].name);
  return print(m, family, extent);
}

std::string range_text(const Module& m, FamilyId family, const Range& r) {
  return extent_text(m, family, r.lo) + ".." + extent_text(m, family, r.hi);
}

std::string steps(const std::optional<int64_t>& n) { return n ? std::to_string(*n) : "all"; }

std::string clause_text(const Module& m, FamilyId family, const Clause& clause) {
  std::vector<std::string> parts;
  for (uint32_t p = 0; p < clause.box.size(); ++p) {
    parts.push_back(coordinate(m[family], p) + " in " + range_text(m, family, clause.box[p]));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string broadcast_text(const Module& m, FamilyId reader, const Broadcast& b) {
  std::vector<std::string> omits;
  for (uint32_t p : b.omits) omits.push_back(coordinate(m[reader], p));
  return fmt::format("{} over {}", m[b.operand].spelled(), fmt::join(omits, ", "));
}

const char* kind_text(const Family& f) {
  switch (f.kind) {
    case Family::Kind::Defined: return "defined";
    case Family::Kind::Input: return f.file ? "loaded" : "input";
    case Family::Kind::Table: return "table";
  }
  return "";
}

// "  species: 0 setosa, 1 versicolor, 2 virginica"
std::string labels_text(const LoadedFile& file) {
  std::string out;
  for (const ColumnLabels& c : file.header.labels) {
    std::vector<std::string> codes;
    for (size_t k = 0; k < c.labels.size(); ++k)
      codes.push_back(fmt::format("{} {}", k, c.labels[k]));
    out += fmt::format("  labels of {}: {}\n", c.column, fmt::join(codes, ", "));
  }
  return out;
}

Json steps_json(const std::optional<int64_t>& n) { return n ? Json(*n) : Json("all"); }

Json sequence_json(const Family& f, const SequenceReport& s) {
  Json order = Json::array();
  for (const SequentialCoordinate& c : s.order) {
    order.push_back(
        {{"coordinate", coordinate(f, c.position)}, {"direction", c.downward ? "down" : "up"}});
  }
  return {{"order", order},
          {"lookback", steps_json(s.lookback)},
          {"tail", steps_json(s.tail)},
          {"kept", steps_json(s.kept())}};
}

std::string order_text(const Family& f, const SequenceReport& s) {
  std::vector<std::string> parts;
  for (const SequentialCoordinate& c : s.order) {
    parts.push_back(coordinate(f, c.position) + (c.downward ? " downward" : " upward"));
  }
  return fmt::format("{}", fmt::join(parts, ", then "));
}

}  // namespace

std::string facts_text(const Module& m, const std::vector<FamilyReport>& reports) {
  std::string out;
  for (const FamilyReport& r : reports) {
    const Family& f = m[r.family];
    std::vector<std::string> coords;
    for (uint32_t p = 0; p < f.rank(); ++p) {
      coords.push_back(coordinate(f, p) + ": " + extent_text(m, r.family, f.coords[p].extent));
    }
    out += fmt::format("{}: {}{}{}\n", f.spelled(), name_of(f.dtype),
                       coords.empty() ? "" : fmt::format(" [{}]", fmt::join(coords, ", ")),
                       f.file                          ? ", loaded"
                       : f.kind == Family::Kind::Input ? ", input"
                                                       : "");
    if (f.file) out += labels_text(*f.file);
    for (const Clause& c : f.clauses) {
      if (!c.box.empty()) out += "  clause " + clause_text(m, r.family, c) + "\n";
    }
    std::vector<std::string> broadcasts;
    for (const Broadcast& b : r.broadcasts) broadcasts.push_back(broadcast_text(m, r.family, b));
    if (!broadcasts.empty()) out += fmt::format("  broadcasts {}\n", fmt::join(broadcasts, "; "));
    if (const auto& s = r.sequence) {
      out += fmt::format("  recurrence over {}; lookback {}, tail {}, kept steps {}\n",
                         order_text(f, *s), steps(s->lookback), steps(s->tail), steps(s->kept()));
    }
  }
  if (!m.constraints.empty()) out += "checked at the start of a run\n";
  for (const Constraint& c : m.constraints) out += "  " + c.message + "\n";
  return out;
}

std::string facts_json(const Module& m, const std::vector<FamilyReport>& reports) {
  Json families = Json::array();
  for (const FamilyReport& r : reports) {
    const Family& f = m[r.family];
    Json j{{"name", f.spelled()}, {"kind", kind_text(f)}, {"dtype", name_of(f.dtype)}};
    j["coords"] = Json::array();
    for (const Coord& c : f.coords) {
      Json name = c.name ? Json(text(c.name)) : Json();
      j["coords"].push_back({{"name", name}, {"extent", extent_text(m, r.family, c.extent)}});
    }
    j["clauses"] = Json::array();
    for (const Clause& c : f.clauses) {
      Json box = Json::array();
      for (const Range& range : c.box) box.push_back(range_text(m, r.family, range));
      j["clauses"].push_back(box);
    }
    j["broadcasts"] = Json::array();
    for (const Broadcast& b : r.broadcasts) {
      Json omits = Json::array();
      for (uint32_t p : b.omits) omits.push_back(coordinate(f, p));
      j["broadcasts"].push_back({{"operand", m[b.operand].spelled()}, {"omits", omits}});
    }
    if (f.file && !f.file->header.labels.empty()) {
      for (const ColumnLabels& l : f.file->header.labels) j["labels"][l.column] = l.labels;
    }
    j["recurrence"] = r.sequence ? sequence_json(f, *r.sequence) : Json();
    families.push_back(std::move(j));
  }
  Json constraints = Json::array();
  for (const Constraint& c : m.constraints) constraints.push_back(c.message);
  return Json{{"families", families}, {"constraints", constraints}}.dump() + "\n";
}

}  // namespace ein

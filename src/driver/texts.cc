#include "driver/texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/print.h"
#include "core/rewrite.h"
#include "driver/audit.h"
#include "syntax/format.h"
#include "syntax/parser.h"

namespace ein {

std::string laid_out(const std::string& printed) {
  SourceMap sources;
  Diagnostics diags;
  ast::Ast tree = ast::parse(sources.add("derivatives", printed), sources, diags);
  return ast::format(tree, sources);
}

namespace {

// The pairs that are asked for, or all that the program asks for.
std::vector<std::pair<std::string, std::string>> pairs(const core::Module& asked,
                                                       const std::vector<std::string>& of,
                                                       const std::vector<std::string>& wrt) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string& den : wrt) {
    for (const std::string& num : of) out.emplace_back(num, den);
  }
  if (!wrt.empty()) return out;
  for (uint32_t i = 0; i < asked.families.size(); ++i) {
    core::for_each_body(asked, core::FamilyId(i), [&](core::ExprId body) {
      core::for_each_node(asked, body, [&](core::ExprId e) {
        const auto* r = core::get_if<core::Request>(asked, e);
        if (!r) return;
        std::pair<std::string, std::string> p{text(asked[r->num].name), text(asked[r->den].name)};
        if (std::find(out.begin(), out.end(), p) == out.end()) out.push_back(p);
      });
    });
  }
  return out;
}

std::string place_of(const SourceMap& sources, Span at) {
  LineCol place = sources.position(at.file, at.begin);
  return fmt::format("{}:{}:{}", sources.name(at.file), place.line, place.col);
}

}  // namespace

// One that is gone, because it was put into its readers, stands for those.
std::vector<core::FamilyId> derivatives(const core::Module& asked, const core::Module& m) {
  std::map<core::FamilyId, std::vector<core::FamilyId>> readers;
  std::vector<core::FamilyId> asking, todo;
  for (uint32_t i = 0; i < asked.families.size(); ++i) {
    core::FamilyId id(i);
    core::for_each_body(asked, id, [&](core::ExprId body) {
      core::for_each_node(asked, body, [&](core::ExprId e) {
        if (core::get_if<core::Request>(asked, e)) asking.push_back(id);
        if (const auto* a = core::get_if<core::Access>(asked, e)) readers[a->family].push_back(id);
      });
    });
  }
  // What only a report of `dbg` shows is no part of the program.
  std::set<core::FamilyId> reported;
  for (const core::Effect& e : asked.effects) {
    for (const core::Piece& piece : e.pieces) {
      if (!e.users.empty()) reported.insert(piece.value);
    }
  }
  for (core::FamilyId id : asking) {
    const std::vector<core::FamilyId>& by = readers[id];
    bool only = reported.contains(id) ||
                (asked[id].generated && !by.empty() &&
                 std::all_of(by.begin(), by.end(), [&](auto f) { return reported.contains(f); }));
    if (!only) todo.push_back(id);
  }
  std::set<core::FamilyId> seen, out;
  while (!todo.empty()) {
    core::FamilyId id = todo.back();
    todo.pop_back();
    if (!seen.insert(id).second) continue;
    if (core::FamilyId kept = m.find(asked[id].name)) {
      out.insert(kept);
    } else {
      todo.insert(todo.end(), readers[id].begin(), readers[id].end());
    }
  }
  return {out.begin(), out.end()};
}

std::string derived_source(core::Module& m, const autodiff::Record& record,
                           const std::vector<core::FamilyId>& roots) {
  core::PrintOptions options{.roots = roots, .comments = autodiff::comments(record, m)};
  return laid_out(core::print(m, options));
}

std::vector<Explanation> explanations(const autodiff::Record& record, const core::Module& asked,
                                      const std::vector<std::string>& of,
                                      const std::vector<std::string>& wrt) {
  std::vector<Explanation> out;
  for (const auto& [num, den] : pairs(asked, of, wrt))
    out.push_back(explain(record, asked, num, den));
  return out;
}

Audit audit_report(core::Module& m, const SourceMap& sources) {
  Audit out;
  std::vector<Repeated> all = audit(m);
  nlohmann::json items = nlohmann::json::array();
  if (all.empty()) out.text = "there are no broadcasts: every operand has every coordinate\n";
  core::FamilyId last;
  for (const Repeated& r : all) {
    out.suspicious |= !r.suspicion.empty();
    nlohmann::json item{{"reader", text(m[r.reader].name)},
                        {"operand", text(m[r.operand].name)},
                        {"read", r.read},
                        {"along", r.along},
                        {"suspicion", r.suspicion}};
    if (r.span.valid()) item["at"] = place_of(sources, r.span);
    items.push_back(std::move(item));
    if (r.reader != last) {
      out.text += fmt::format("{}{}\n", last ? "\n" : "", text(m[r.reader].name));
      last = r.reader;
    }
    std::string along = fmt::format("{}", fmt::join(r.along, ", "));
    out.text +=
        fmt::format("  {} is repeated along {}: its gradient sums {}\n", r.read, along, along);
    if (r.suspicion.empty()) continue;
    std::string place = r.span.valid() ? " at " + place_of(sources, r.span) : "";
    out.text += fmt::format("    looks unintended{}: {}\n", place, r.suspicion);
  }
  out.json = items.dump();
  return out;
}

}  // namespace ein

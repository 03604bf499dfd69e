#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/cli.h"
#include "core/print.h"
#include "core/rewrite.h"
#include "syntax/format.h"
#include "syntax/parser.h"

namespace ein::cli {
namespace {

// The values of `m` that a derivative was asked for in the definition of. One that is gone, because it
// was put into its readers, stands for those.
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

std::string laid_out(const std::string& printed) {
  SourceMap sources;
  Diagnostics diags;
  ast::Ast tree = ast::parse(sources.add("derivatives", printed), sources, diags);
  return ast::format(tree, sources);
}

}  // namespace

int grad_verb(const GradCommand& command) {
  if (command.of.empty() != command.wrt.empty()) {
    return usage_error("--of and --wrt must be given together: --of loss --wrt W,b");
  }
  autodiff::Record record;
  Program p = load(command.common, {.extra = {command.of, command.wrt},
                                    .in = command.in,
                                    .direction = command.direction,
                                    .keep_asked = !command.all,
                                    .record = &record});
  if (p.status != kFine) return p.status;
  core::Module& m = p.compiled.module;
  core::PrintOptions options{.comments = autodiff::comments(record, m)};
  if (!command.all) options.roots = derivatives(p.compiled.asked, m);
  put(laid_out(core::print(m, options)));
  return kFine;
}

}  // namespace ein::cli

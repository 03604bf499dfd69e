#include <fmt/format.h>

#include "cli/cli.h"
#include "core/print.h"
#include "core/rewrite.h"
#include "syntax/format.h"
#include "syntax/parser.h"

namespace ein::cli {
namespace {

// The values of `m` that a derivative was asked for in the definition of.
std::vector<core::FamilyId> derivatives(const core::Module& asked, const core::Module& m) {
  std::set<Symbol> names;
  for (uint32_t i = 0; i < asked.families.size(); ++i) {
    core::FamilyId id(i);
    core::for_each_body(asked, id, [&](core::ExprId body) {
      core::for_each_node(asked, body, [&](core::ExprId e) {
        if (core::get_if<core::Request>(asked, e)) names.insert(asked[id].name);
      });
    });
  }
  std::vector<core::FamilyId> out;
  for (uint32_t i = 0; i < m.families.size(); ++i) {
    if (names.count(m[core::FamilyId(i)].name)) out.push_back(core::FamilyId(i));
  }
  return out;
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

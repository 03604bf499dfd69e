// The text that is shown on hover over a request, taken from the record that differentiation keeps.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/rewrite.h"
#include "driver/texts.h"
#include "ide/features.h"
#include "syntax/parser.h"

namespace ein::ide {
namespace {

constexpr size_t kMostLines = 40;

struct Pair {
  core::FamilyId num, den;
  friend auto operator<=>(const Pair&, const Pair&) = default;
};

bool within(Span inner, Span outer) {
  return inner.file == outer.file && inner.begin >= outer.begin && inner.end <= outer.end;
}

// The derivatives that this expression asks for, in the program before autodiff: a record has one
// for each part.
std::set<Pair> pairs_at(const core::Module& asked, Span span) {
  std::set<Pair> out;
  for (uint32_t i = 0; i < asked.families.size(); ++i) {
    core::for_each_body(asked, core::FamilyId(i), [&](core::ExprId body) {
      core::for_each_node(asked, body, [&](core::ExprId e) {
        const auto* r = core::get_if<core::Request>(asked, e);
        if (r && within(asked[e].span, span)) out.insert({r->num, r->den});
      });
    });
  }
  return out;
}

// The lines of the printed program that define these names, with the comments above them.
std::string lines_of(const std::string& printed, const std::set<std::string>& names) {
  SourceMap sources;
  Diagnostics diags;
  ast::Ast tree = ast::parse(sources.add("derivatives", printed), sources, diags);
  std::string out;
  uint32_t from = 0;
  for (ast::StmtId id : tree.items) {
    const ast::Stmt& s = tree[id];
    const auto* let = std::get_if<ast::Let>(&s.node);
    if (let && names.contains(text(let->names[0].symbol))) {
      size_t begin = printed.find_first_not_of('\n', from);
      out += printed.substr(begin, s.span.end - begin) + "\n";
    }
    from = s.span.end;
  }
  return out;
}

// Whether the program defines a value of that name at the top level.
bool defines(const Analysis& a, Symbol name) {
  return std::any_of(a.bindings.entities.begin(), a.bindings.entities.end(), [&](const Entity& e) {
    return e.name == name && e.top && e.span.file == a.root;
  });
}

std::string shortened(const std::string& lines) {
  size_t at = 0;
  for (size_t n = 0; n < kMostLines; ++n) {
    at = lines.find('\n', at);
    if (at == std::string::npos || ++at == lines.size()) return lines;
  }
  return lines.substr(0, at) + "// … `ein grad` shows all of it\n";
}

}  // namespace

std::string derivative_text(const Analysis& a, ast::ExprId request) {
  if (a.depth != Depth::Full) return "";
  if (!a.compiled.ok) return "\nThe derivative is shown when the program has no mistakes.\n";
  const core::Module& asked = a.compiled.asked;
  std::string out;
  std::set<std::string> adjoints;
  std::string why;
  for (const Pair& p : pairs_at(asked, a.ast()[request].span)) {
    Explanation e = explain(a.record, asked, text(asked[p.num].name), text(asked[p.den].name));
    if (e.steps.empty()) {
      why += fmt::format("\n`{}` does not depend on `{}`, or the derivative was taken forward.\n",
                         e.of, e.wrt);
    }
    for (const autodiff::Flow& f : e.steps) {
      adjoints.insert(text(f.adjoint));
      for (Symbol made :
           {f.reader, f.of}) {  // a generated part of a definition, which the text does not name
        if (!defines(a, made)) adjoints.insert(text(made));
      }
      why += fmt::format("- `{}` is read by `{}`", f.cell, f.by);
      std::string names = autodiff::summed_text(f);
      if (names.empty()) {
        why += ": nothing is summed\n";
      } else {
        why += fmt::format(": sums `{}`", names);
        std::vector<std::string> reasons;
        for (const autodiff::Flow::Summed& s : f.summed) {
          reasons.push_back(s.of_reader ? fmt::format("`{}` has `{}`, `{}` does not",
                                                      text(f.reader), text(s.name), text(f.of))
                                        : fmt::format("the reduction in `{}` runs over `{}`",
                                                      text(f.reader), text(s.name)));
        }
        why += fmt::format(", because {}\n", fmt::join(reasons, "; "));
      }
      for (const autodiff::Flow::Solved& s : f.solved) {
        why += fmt::format("  - `{} = {}`, from the read at `{}`\n", text(s.name), s.value, s.read);
      }
    }
  }
  Span asking = a.ast()[request].span;
  for (const ast::Stmt& s : a.ast().stmts) {  // in `let dA = @loss / @A`, dA is the derivative
    const auto* let = std::get_if<ast::Let>(&s.node);
    if (!let || !within(asking, s.span)) continue;
    for (const ast::Name& n : let->names) adjoints.insert(text(n.symbol));
  }
  core::Module printed = a.compiled.module;
  std::string lines =
      lines_of(derived_source(printed, a.record, derivatives(asked, printed)), adjoints);
  if (!lines.empty()) out += "```ein\n" + shortened(lines) + "```\n";
  return out + "\n" + why;
}

}  // namespace ein::ide

#include "sema/attributes.h"

#include <fmt/format.h>

#include "sema/sema.h"

namespace ein::sema {
namespace {

enum class On : uint8_t { Let, Rule, Nothing };

struct Known {
  const char* name;
  On on;
  const char* where;
  const char* means;
};
constexpr Known kKnown[] = {
    {"checkpoint", On::Let, "a `let`",
     "`#[checkpoint]` marks a recurrence whose steps a derivative computes again instead of "
     "keeping "
     "them; `#[checkpoint(k)]` does so k steps at a time"},
    {"surrogate", On::Rule, "an `@fn`",
     "`#[surrogate]` marks a rule that is not meant to be the derivative of its function"},
};

On kind_of(const ast::Stmt& stmt) {
  if (std::holds_alternative<ast::Let>(stmt.node)) return On::Let;
  const auto* fn = std::get_if<ast::Fn>(&stmt.node);
  return fn && fn->rule ? On::Rule : On::Nothing;
}

// The k of `#[checkpoint(k)]`, −1 without one; 0 when it is no such number.
int64_t segment_length(const Sema& s, const ast::Attribute& a) {
  if (a.args.empty()) return -1;
  const auto* k = std::get_if<ast::IntLit>(&s[a.args[0]].node);
  return a.args.size() == 1 && k && k->value > 0 ? static_cast<int64_t>(k->value) : 0;
}

}  // namespace

void check_attributes(Sema& s, const ast::Stmt& stmt) {
  for (const ast::Attribute& a : stmt.attributes) {
    const std::string& name = text(a.name.symbol);
    const Known* known = nullptr;
    std::vector<std::string> names;
    for (const Known& k : kKnown) {
      names.push_back(k.name);
      if (name == k.name) known = &k;
    }
    if (!known) {
      auto& d = s.diags.error(Code::E0114, fmt::format("there is no attribute `{}`", name))
                    .primary(a.span, "unknown");
      suggest(d, did_you_mean(name, names), a.name.span);
    } else if (known->on != kind_of(stmt)) {
      s.diags.error(Code::E0114, fmt::format("`{}` stands on {}", name, known->where))
          .primary(a.span, "not here")
          .help(known->means);
    } else if (name == "checkpoint" ? segment_length(s, a) == 0 : !a.args.empty()) {
      s.diags
          .error(Code::E0114, name == "checkpoint"
                                  ? "`checkpoint` takes a number of steps, or nothing"
                                  : fmt::format("`{}` takes no arguments", name))
          .primary(a.span, "")
          .help(known->means);
    }
  }
}

int64_t checkpoint_wish(const Sema& s, const Definition& d) {
  for (ast::StmtId id : d.clauses) {
    for (const ast::Attribute& a : s.ast[id].attributes) {
      if (text(a.name.symbol) == "checkpoint") return segment_length(s, a);
    }
  }
  return 0;
}

}  // namespace ein::sema

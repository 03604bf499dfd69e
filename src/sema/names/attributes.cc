#include "sema/names/attributes.h"

#include <fmt/format.h>

#include <algorithm>

#include "sema/names/trees.h"
#include "sema/state/definition_state.h"
#include "sema/state/report.h"

namespace ein::sema {
namespace {

enum class On : uint8_t { Let, Rule, Nothing, Anything };

struct Known {
  Attribute attribute;
  const char* name;
  On on;
  const char* where;
  const char* means;
};
constexpr Known kKnown[] = {
    {Attribute::Allow, "allow", On::Anything, "a statement",
     "`#[allow(W0301)]` before a statement turns this warning off for that statement"},
    {Attribute::Checkpoint, "checkpoint", On::Let, "a `let`",
     "`#[checkpoint]` marks a recurrence whose steps a derivative recomputes instead of "
     "keeping them; `#[checkpoint(k)]` does so k steps at a time"},
    {Attribute::Surrogate, "surrogate", On::Rule, "an `@fn`",
     "`#[surrogate]` marks a rule that is deliberately not the derivative of its function"},
    {Attribute::Nested, "nested", On::Rule, "an `@fn`",
     "`#[nested]` marks a rule that holds for calls of its function inside itself too"},
};

const Known* known_as(const std::string& name) {
  const auto* found = std::find_if(std::begin(kKnown), std::end(kKnown),
                                   [&](const Known& k) { return name == k.name; });
  return found == std::end(kKnown) ? nullptr : found;
}

On kind_of(const ast::Stmt& stmt) {
  if (std::holds_alternative<ast::Let>(stmt.node)) return On::Let;
  const auto* fn = std::get_if<ast::Fn>(&stmt.node);
  return fn && fn->rule ? On::Rule : On::Nothing;
}

// The k of `#[checkpoint(k)]`; −1 when none is written, 0 when it is not a valid number.
int64_t segment_length(const Sema& s, const ast::Attribute& a) {
  if (a.args.empty()) return -1;
  const auto* k = std::get_if<ast::IntLit>(&s[a.args[0]].node);
  return a.args.size() == 1 && k && k->value > 0 ? static_cast<int64_t>(k->value) : 0;
}

// `#[allow(W0301, W0304)]`
void allow_warnings(Sema& s, const ast::Stmt& stmt, const ast::Attribute& a, const char* means) {
  if (a.args.empty()) {
    s.diags.error(Code::E0114, "`allow` takes warning codes").primary(a.span, "").help(means);
  }
  for (TreeId arg : a.args) {
    std::string name = path_name(s.ast, arg) ? text(path_name(s.ast, arg)) : "";
    const CodeInfo* found = nullptr;
    std::vector<std::string> names;
    for (const CodeInfo& code : all_codes()) {
      if (code.severity != Severity::Warning) continue;
      names.push_back(code.name);
      if (name == code.name) found = &code;
    }
    if (found) {
      s.diags.allow(found->code, stmt.span);
      continue;
    }
    bool error = std::any_of(all_codes().begin(), all_codes().end(),
                             [&](const CodeInfo& c) { return name == c.name; });
    auto& d =
        s.diags.error(Code::E0114, error ? fmt::format("`{}` is an error, not a warning", name)
                                         : "`allow` takes warning codes");
    d.primary(s[arg].span, error ? "cannot be allowed" : "").help(means);
    if (!error) suggest(d, did_you_mean(name, names), s[arg].span);
  }
}

const ast::Attribute* checkpoint_of(const Sema& s, const Definition& d) {
  for (ast::StmtId id : d.clauses) {
    if (const auto* a = find_attribute(s.ast[id], Attribute::Checkpoint)) return a;
  }
  return nullptr;
}

bool reads_group(const Sema& s, FamilyId from, int group) {
  std::set<FamilyId> seen = {from};
  std::vector<FamilyId> open = {from};
  bool found = false;
  auto add = [&](FamilyId id) {
    auto owner = s.definitions.owner.find(id);
    found |= owner != s.definitions.owner.end() && owner->second->group == group;
    if (seen.insert(id).second) open.push_back(id);
  };
  while (!open.empty() && !found) {
    FamilyId family = open.back();
    open.pop_back();
    for (const core::Clause& c : s.m[family].clauses) {
      core::for_each_node(s.m, c.body, [&](CoreId e) {
        if (const auto* a = core::get_if<core::Access>(s.m, e)) add(a->family);
        if (const auto* r = core::get_if<core::Request>(s.m, e)) add(r->num);
      });
    }
  }
  return found;
}

// The recurrence in whose steps `d` runs, if there is one.
const Definition* runs_in_steps_of(const Sema& s, const Definition& d) {
  for (const Site* site = d.scope->env.site; site; site = site->outer) {
    const Definition* outer = site->definition;
    if (outer && outer->recurrent && reads_group(s, d.family, outer->group)) return outer;
  }
  return nullptr;
}

}  // namespace

const ast::Attribute* find_attribute(const ast::Stmt& stmt, Attribute which) {
  for (const ast::Attribute& a : stmt.attributes) {
    const Known* known = known_as(text(a.name.symbol));
    if (known && known->attribute == which) return &a;
  }
  return nullptr;
}

std::vector<const char*> attribute_names() {
  std::vector<const char*> out;
  for (const Known& k : kKnown) out.push_back(k.name);
  return out;
}

void check_attributes(Sema& s, const ast::Stmt& stmt) {
  for (const ast::Attribute& a : stmt.attributes) {
    const std::string& name = text(a.name.symbol);
    const Known* known = known_as(name);
    if (!known) {
      std::vector<std::string> names;
      for (const Known& k : kKnown) names.push_back(k.name);
      auto& d = s.diags.error(Code::E0114, fmt::format("there is no attribute `{}`", name))
                    .primary(a.span, "unknown");
      suggest(d, did_you_mean(name, names), a.name.span);
    } else if (known->attribute == Attribute::Allow) {
      allow_warnings(s, stmt, a, known->means);
    } else if (known->on != kind_of(stmt)) {
      s.diags.error(Code::E0114, fmt::format("`{}` goes before {}", name, known->where))
          .primary(a.span, "not here")
          .help(known->means);
    } else if (known->attribute == Attribute::Checkpoint && segment_length(s, a) == 0) {
      s.diags.error(Code::E0114, "`checkpoint` takes a number of steps, or nothing")
          .primary(a.span, "")
          .help(known->means);
    } else if (known->attribute == Attribute::Surrogate && !a.args.empty()) {
      s.diags.error(Code::E0114, fmt::format("`{}` takes no arguments", name))
          .primary(a.span, "")
          .help(known->means);
    }
  }
}

int64_t checkpoint_wish(const Sema& s, const Definition& d) {
  const ast::Attribute* a = checkpoint_of(s, d);
  return a ? segment_length(s, *a) : 0;
}

void check_checkpoint(Sema& s, const Definition& d) {
  const ast::Attribute* a = checkpoint_of(s, d);
  if (!a) return;
  const Definition* outer = d.recurrent && d.family ? runs_in_steps_of(s, d) : nullptr;
  if (d.recurrent && !outer) return;
  if (!s.warned.insert({a->span.begin, a->span.end}).second) return;
  if (!outer) {
    s.diags
        .warning(Code::W0603,
                 fmt::format("{} is not a recurrence, so `#[checkpoint]` has no effect",
                             quoted(d.name.symbol)))
        .primary(a->span, "")
        .label(d.name.span, "it does not read its own cells")
        .help("put it before the first clause of the recurrence, even inside a function");
    return;
  }
  s.diags
      .warning(Code::W0603,
               fmt::format("`#[checkpoint]` has no effect on {}, which runs inside the "
                           "steps of {}",
                           quoted(d.name.symbol), quoted(outer->name.symbol)))
      .primary(a->span, fmt::format("all steps of {} are kept", quoted(d.name.symbol)))
      .label(outer->name.span, "the other recurrence")
      .help(fmt::format("only the outermost recurrence is cut into segments: put `#[checkpoint]` "
                        "before {}, or move this one out of its steps",
                        quoted(outer->name.symbol)));
}

}  // namespace ein::sema

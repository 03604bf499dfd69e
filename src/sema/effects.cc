// Effects: `print` and `assert`, in source order.
#include <fmt/format.h>

#include <algorithm>

#include "sema/sema.h"

namespace ein::sema {
namespace {

bool same_names(const std::vector<core::Coord>& family, const std::vector<core::Coord>& value) {
  return family.size() == value.size() &&
         std::equal(value.begin(), value.end(), family.begin(),
                    [](const core::Coord& a, const core::Coord& b) { return a.name == b.name; });
}

// A family to show: the one that was named, or a generated one.
FamilyId shown(Sema& s, Env& env, TreeId e, const char* name) {
  Value v = settle(s, env, elaborate(s, env, e));
  if (v.poison()) return {};
  // A callee's names never appear in a caller's type: its local is not shown as it is.
  FamilyId family = whole_family(s, v);
  if (family && same_names(s.m[family].coords, v.coords)) return family;
  return family_of(s, env, v, name);
}

bool add_string(Sema& s, Env& env, const ast::StrLit& str, std::vector<core::Piece>& out) {
  bool ok = true;
  for (const ast::StrPiece& p : str.pieces) {
    core::Piece piece{p.text, {}, p.format};
    if (p.value) {
      piece.value = shown(s, env, p.value, "shown");
      ok &= piece.value.valid();
    }
    out.push_back(std::move(piece));
  }
  return ok;
}

}  // namespace

bool is_effect(Symbol name) {
  const std::string& n = text(name);
  return n == "print" || n == "assert";
}

void elaborate_effect(Sema& s, Env& outer, const ast::Call& call, Span span) {
  Env env = outer;
  core::Effect effect;
  effect.span = span;
  const std::string& name = text(path_name(s, call.callee));
  auto add = [&](TreeId e) {
    if (const auto* str = std::get_if<ast::StrLit>(&s[e].node)) {
      return add_string(s, env, *str, effect.pieces);
    }
    FamilyId family = shown(s, env, e, "shown");
    effect.pieces.push_back({{}, family, {}});
    return family.valid();
  };
  bool ok = true;
  if (name == "print") {
    for (size_t i = 0; i < call.args.size(); ++i) {
      if (i > 0) effect.pieces.push_back({" ", {}, {}});
      ok &= add(call.args[i]);
    }
  } else {
    if (call.args.empty() || call.args.size() > 2) {
      s.diags
          .error(Code::E0205,
                 fmt::format("`assert` takes one or two arguments, not {}", call.args.size()))
          .primary(span, "");
      return;
    }
    effect.kind = core::Effect::Kind::Assert;
    Value cond = condition(s, env, call.args[0]);
    if (cond.poison()) return;
    effect.cond = whole_family(s, cond);
    if (!effect.cond) effect.cond = family_of(s, env, cond, "asserted");
    if (!effect.cond) return;
    if (call.args.size() == 2) {
      const auto* str = std::get_if<ast::StrLit>(&s[call.args[1]].node);
      if (!str) {
        s.diags.error(Code::E0502, "the message of `assert` is a string")
            .primary(s[call.args[1]].span, "");
        return;
      }
      ok = add_string(s, env, *str, effect.pieces);
    }
  }
  if (ok) s.m.effects.push_back(std::move(effect));
}

void elaborate_statement(Sema& s, Env env, TreeId value) {
  Site& site = s.sites.emplace_back();
  site.span = site.value = s[value].span;
  site.name = "shown";
  env.site = &site;
  const auto* call = std::get_if<ast::Call>(&s[value].node);
  if (call && is_effect(path_name(s, call->callee))) {
    elaborate_effect(s, env, *call, s[value].span);
    return;
  }
  size_t effects = s.m.effects.size(), errors = s.diags.errors();
  env.effects = call != nullptr;
  elaborate(s, env, value);
  if (s.m.effects.size() == effects && s.diags.errors() == errors) {
    s.diags.error(Code::E0207, "this statement has no effect")
        .primary(s[value].span, "its value is not used")
        .help("give it a name with `let`, or `print` it");
  }
}

}  // namespace ein::sema

// Effects: `print` and `assert`, in source order (`save`: files.cc).
#include "sema/effects/effects.h"

#include <fmt/format.h>

#include <algorithm>

#include "sema/builtins.h"
#include "sema/expressions/expressions.h"
#include "sema/names/trees.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

bool same_names(const std::vector<core::Coord>& family, const std::vector<core::Coord>& value) {
  return family.size() == value.size() &&
         std::equal(value.begin(), value.end(), family.begin(),
                    [](const core::Coord& a, const core::Coord& b) { return a.name == b.name; });
}

}  // namespace

bool add_value(Sema& s, Env& env, const Value& v, const std::string& format,
               std::vector<core::Piece>& out) {
  if (v.poison()) return false;
  if (v.kind == Value::Kind::Text) {
    for (const TextPart& p : v.parts) {
      if (!p.item) {
        if (p.text.empty() && p.join == TextPart::Join::None) continue;
        out.push_back({p.text, {}, {}});
      } else if (!add_value(s, env, v.items[*p.item], p.format, out)) {
        return false;
      }
      out.back().join = static_cast<core::Piece::Join>(p.join);
      out.back().rank = static_cast<uint32_t>(p.rank);
    }
    return true;
  }
  if (v.kind == Value::Kind::Tuple || v.kind == Value::Kind::Texts) {
    Value shown = plain_text(env, "", v.span);
    return add_text(s, v, format, shown) && add_value(s, env, shown, {}, out);
  }
  Value one = settle(s, env, v);
  if (one.poison()) return false;
  // The family that the user named. A local of a callee is shown under a generated name instead.
  FamilyId family = whole_family(s.m, one);
  if (!family || !same_names(s.m[family].coords, one.coords))
    family = family_of(s, env, one, "shown");
  out.push_back({{}, family, format});
  return family.valid();
}

namespace {

// `print(@y)`: the piece that shows the differential of a value (autodiff/differential.h).
bool add_differential(Sema& s, Env& env, const ast::Request& request, Span span,
                      std::vector<core::Piece>& out) {
  const ast::Path* path = as_path(s.ast, request.num);
  if (!path || path->parts.size() != 1) {
    s.diags.error(Code::E0603, "`print(@…)` shows the differential of a named value")
        .primary(span, "")
        .help("name the value with `let y = …;`, then `print(@y)` shows all its cells");
    return false;
  }
  Value v = settle(s, env, elaborate(s, env, request.num));
  if (v.poison()) return false;
  if (v.kind != Value::Kind::Data || !is_float(v.type)) {
    s.diags
        .error(Code::E0602,
               fmt::format("`@{}`: only floats have differentials", text(path->parts[0].symbol)))
        .primary(span, "this is " + show_value(s, v));
    return false;
  }
  FamilyId family = whole_family(s.m, v);
  if (!family) {
    s.diags.error(Code::E0603, "this is not a named value")
        .primary(span, "")
        .help("give the value a name with `let` and use that");
    return false;
  }
  out.push_back({{}, family, "@"});
  return true;
}

}  // namespace

namespace {

// `end = ""`: what follows the line.
bool take_end(Sema& s, Env& env, const Builtin& b, const ast::Call& call, size_t i,
              core::Effect& out) {
  const ast::Name& name = call.names[i];
  if (text(name.symbol) != "end") {
    s.diags
        .error(Code::E0218, fmt::format("`{}` has no argument {}", b.spelling, quoted(name.symbol)))
        .primary(name.span, "")
        .help(
            fmt::format("write `{0}(x)`, or `{0}(x, end = \"\")` to stay on the line", b.spelling));
    return false;
  }
  Value v = elaborate(s, env, call.args[i]);
  if (v.poison()) return false;
  auto fixed = v.kind == Value::Kind::Text ? constant_text(v) : std::nullopt;
  if (!fixed) {
    s.diags.error(Code::E0502, "`end` must be a string without placeholders")
        .primary(s[call.args[i]].span, "this is " + show_value(s, v));
    return false;
  }
  out.end = *fixed;
  return true;
}

}  // namespace

Value elaborate_print(Sema& s, Env& outer, const Builtin& b, const ast::Call& call, Span span) {
  Env env = outer;
  core::Effect effect;
  effect.span = span;
  effect.error = b.id == Builtin::Id::Eprint;
  bool ok = true;
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (i < call.names.size() && call.names[i].symbol) {
      ok &= take_end(s, env, b, call, i, effect);
      continue;
    }
    if (i > 0) effect.pieces.push_back({" ", {}, {}});
    TreeId e = call.args[i];
    const auto* request = std::get_if<ast::Request>(&s[e].node);
    ok &= request && !request->den ? add_differential(s, env, *request, s[e].span, effect.pieces)
                                   : add_value(s, env, elaborate(s, env, e), {}, effect.pieces);
  }
  if (ok) s.m.effects.push_back(std::move(effect));
  return {};
}

Value elaborate_assert(Sema& s, Env& outer, const Builtin& b, const ast::Call& call, Span span) {
  if (!b.takes(call.args.size())) {
    s.diags
        .error(Code::E0205,
               fmt::format("`assert` takes one or two arguments, not {}", call.args.size()))
        .primary(span, "");
    return {};
  }
  Env env = outer;
  core::Effect effect;
  effect.span = span;
  effect.kind = core::Effect::Kind::Assert;
  Value cond = condition(s, env, call.args[0]);
  if (cond.poison()) return {};
  effect.cond = whole_family(s.m, cond);
  if (!effect.cond) effect.cond = family_of(s, env, cond, "asserted");
  if (!effect.cond) return {};
  bool ok = true;
  if (call.args.size() == 2) {
    Value message = elaborate(s, env, call.args[1]);
    if (message.poison()) return {};
    if (message.kind != Value::Kind::Text) {
      s.diags.error(Code::E0502, "the message of `assert` must be a string")
          .primary(s[call.args[1]].span, "this is " + show_value(s, message));
      return {};
    }
    ok = add_value(s, env, message, {}, effect.pieces);
  }
  if (ok) s.m.effects.push_back(std::move(effect));
  return {};
}

}  // namespace ein::sema

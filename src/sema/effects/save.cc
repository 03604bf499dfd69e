// `save("y.npy", y)`, an effect.
#include <fmt/format.h>

#include <algorithm>

#include "sema/builtins.h"
#include "sema/effects/effects.h"
#include "sema/expressions/expressions.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

// The file of `save`: any string that shows no values, so that functions can take it.
std::optional<std::string> saved_path(Sema& s, Env& env, TreeId e) {
  Value v = elaborate(s, env, e);
  if (v.poison()) return std::nullopt;
  if (v.kind == Value::Kind::Text) {
    if (auto path = constant_text(v)) return path;
  }
  auto& d = s.diags.error(Code::E0220,
                          "the name of the file to save must be a string without placeholders");
  d.primary(s[e].span, v.kind == Value::Kind::Text ? "" : "this is " + show_value(s, v));
  if (v.kind != Value::Kind::Text) d.help("write `save(\"y.npy\", y)`");
  return std::nullopt;
}

// `save("plot.svg", "…")`: a string is written as it is.
void save_text(Sema& s, Env& env, const ast::Call& call, const std::string& path,
               const std::vector<Value>& values, Span span) {
  if (values.size() > 1 || holds_tensors(path)) {
    s.diags
        .error(
            Code::E0220,
            values.size() > 1
                ? fmt::format("cannot save `{}`: a string must be the only value in its file", path)
                : fmt::format(
                      "cannot save `{}`: files with this extension hold tensors, not strings",
                      path))
        .primary(s[call.args[0]].span, "")
        .help("to save a string, use a name such as `out.txt` or `plot.svg`");
    return;
  }
  core::Effect effect;
  effect.kind = core::Effect::Kind::Write;
  effect.span = span;
  effect.path = path;
  if (add_value(s, env, values[0], {}, effect.pieces)) s.m.effects.push_back(std::move(effect));
}

// The type that is written for what `save` writes: `p as Net`, or `p` after `let p: Net = …`. It
// says what the file calls the parts.
ast::TypeId written_type_of(Sema& s, const Env& env, TreeId e) {
  if (const auto* cast = std::get_if<ast::Cast>(&s[e].node)) return cast->type;
  Symbol name = path_name(s.ast, e);
  const Definition* d = name ? find_definition(env, name) : nullptr;
  return d ? record_type(s.ast, *d) : ast::TypeId{};
}

// What `save` writes: an argument, or a part of one that is a record.
struct Saved {
  TreeId tree;
  Value value;
  std::string member;  // of a part: its name in the file
  size_t argument;
};

}  // namespace

Value elaborate_save(Sema& s, Env& outer, const Builtin& b, const ast::Call& call, Span span) {
  if (!b.takes(call.args.size())) {
    s.diags
        .error(Code::E0205,
               fmt::format("`save` takes a file name and at least one value, not {} argument{}",
                           call.args.size(), call.args.size() == 1 ? "" : "s"))
        .primary(span, "")
        .help("write `save(\"y.npy\", y)`");
    return {};
  }
  Env env = outer;
  auto path = saved_path(s, env, call.args[0]);
  if (!path) return {};
  std::vector<Value> values;
  for (size_t i = 1; i < call.args.size(); ++i) {
    values.push_back(elaborate(s, env, call.args[i]));
    if (values.back().poison()) return {};
  }
  auto text_among = std::find_if(values.begin(), values.end(),
                                 [](const Value& v) { return v.kind == Value::Kind::Text; });
  if (text_among != values.end()) {
    save_text(s, env, call, *path, values, span);
    return {};
  }
  std::vector<Saved> saved;
  for (size_t i = 1; i < call.args.size(); ++i) {
    // The only value of a file that is a record gives its parts their own names, as `load` wants.
    bool alone = call.args.size() == 2;
    Symbol name = path_name(s.ast, call.args[i]);
    std::string prefix = alone ? "" : name ? text(name) : fmt::format("arr_{}", i - 1);
    const std::vector<FilePart> members = file_parts(s.ast, written_type_of(s, env, call.args[i]));
    size_t next = 0;
    Value parts = map_leaves(values[i - 1], [&](const Value& leaf, const std::string& part) {
      std::string member = prefix + (prefix.empty() && !part.empty() ? part.substr(1) : part);
      if (next < members.size())
        member = (prefix.empty() ? "" : prefix + ".") + members[next++].name;
      saved.push_back({call.args[i], leaf, part.empty() ? "" : member, i - 1});
      return leaf;
    });
  }
  if (std::string why = check_target(*path, saved.size()); !why.empty()) {
    s.diags.error(Code::E0220, fmt::format("cannot save `{}`: {}", *path, why))
        .primary(s[call.args[0]].span, "");
    return {};
  }
  core::Effect effect;
  effect.kind = core::Effect::Kind::Save;
  effect.span = span;
  effect.path = *path;
  std::set<std::string> names;
  for (const Saved& one : saved) {
    TreeId e = one.tree;
    Value v = settle(s, env, one.value);
    if (v.poison()) return {};
    // A value that has no name of its own is called what NumPy calls it.
    std::string member = fmt::format("arr_{}", one.argument);
    FamilyId family = whole_family(s.m, v);
    if (!one.member.empty()) {
      member = one.member;
    } else if (family && !s.m[family].generated) {
      member = text(s.m[family].name);
    } else if (path_name(s.ast, e)) {
      member = text(path_name(s.ast, e));
    }
    if (!family) family = family_of(s, env, v, as_suffix(member));
    if (!family) return {};
    std::string called = member.starts_with("arr_") ? "x" : member;
    std::string why = check_value(*path, called, s.m[family].dtype, s.m[family].coords.size());
    if (!why.empty()) {
      s.diags.error(Code::E0220, fmt::format("cannot save `{}`: {}", *path, why))
          .primary(s[e].span, "this is " + show_value(s, v))
          .label(s[call.args[0]].span, "the format");
      return {};
    }
    if (!names.insert(member).second) {
      s.diags.error(Code::E0220, fmt::format("`{}` is saved twice in the same file", member))
          .primary(s[e].span, "");
      return {};
    }
    effect.pieces.push_back({member, family, {}});
  }
  s.m.effects.push_back(std::move(effect));
  return {};
}

}  // namespace ein::sema

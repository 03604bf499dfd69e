// `load("w.npz", "W")`, a value whose type the file's header gives, and `save("y.npy", y)`, an
// effect. The name of a file is written in the program: its header is read when compiling.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

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

// The text of a string literal without placeholders; reported otherwise.
std::optional<std::string> plain_string(Sema& s, TreeId e, const std::string& what) {
  const auto* str = std::get_if<ast::StrLit>(&s[e].node);
  std::string out;
  bool plain = str != nullptr;
  for (size_t i = 0; str && i < str->pieces.size(); ++i) {
    plain &= !str->pieces[i].value.valid();
    out += str->pieces[i].text;
  }
  if (plain) return out;
  s.diags.error(Code::E0220, what + " must be a string without placeholders")
      .primary(s[e].span, "")
      .note("the file's header is read when the program is compiled, so its name must be fixed");
  return std::nullopt;
}

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

// What `save` writes: an argument, or a part of one that is a record.
struct Saved {
  TreeId tree;
  Value value;
  std::string member;  // of a part: its name in the file
  size_t argument;
};

// One array of a file, as a family.
Value load_member(Sema& s, Env& env, const ast::Call& call, const std::string& path,
                  const std::string& member, Span span) {
  auto found = s.files(span.file, path, member);
  if (const auto* error = std::get_if<RuntimeError>(&found)) {
    bool refused = error->code == Code::E0811;
    auto& d = s.diags.error(refused ? Code::E0811 : Code::E0220, error->message);
    bool member_wrong = call.args.size() == 2 && (has_members(path) || is_csv(path));
    d.primary(member_wrong && !refused ? span : s[call.args[0]].span, "");
    if (error->missing_file)
      d.help(
          "the file must exist when the program is compiled; a value that is supplied only when "
          "the program runs is an input: `let x: [f32; n];` and `--in x=FILE`");
    return {};
  }
  auto& file = std::get<FoundFile>(found);
  if (too_many_indices(s, file.header.shape.size(), span)) return {};
  core::Family f;
  f.name = fresh_family_name(s.names, "loaded");
  f.kind = core::Family::Kind::Input;
  f.dtype = file.header.dtype;
  f.generated = true;
  f.span = span;
  for (int64_t n : file.header.shape) f.coords.push_back({{}, core::int_lit(s.m, n)});
  f.file =
      std::make_shared<core::LoadedFile>(core::LoadedFile{path, member, file.path, file.header});
  FamilyId id = s.m.families.add(std::move(f));
  return read_family(s.m, env, id, {}, span);
}

}  // namespace

Value load_record(Sema& s, Env& env, const ast::Cast& cast, const ast::Call& call, Span span) {
  auto path = call.args.size() == 1 ? plain_string(s, call.args[0], "the file to load")
                                    : std::optional<std::string>();
  if (!path) return {};
  std::function<Value(ast::TypeId, const std::string&)> part = [&](ast::TypeId type,
                                                                   const std::string& member) {
    const ast::TupleType* record = tuple_type(s.ast, type);
    if (!record) {
      Value v = load_member(s, env, call, *path, member, span);
      return v.poison() ? v : convert(s, env, std::move(v), type, {}, span);
    }
    Value out;
    out.kind = Value::Kind::Tuple;
    out.depth = env.depth;
    out.span = span;
    for (size_t i = 0; i < record->items.size(); ++i) {
      const std::string& name = text(record->names[i].symbol);
      out.fields.push_back(record->names[i].symbol);
      out.items.push_back(part(record->items[i], member.empty() ? name : member + "." + name));
      if (out.items.back().poison()) return Value{};
    }
    return out;
  };
  return part(cast.type, "");
}

Value elaborate_load(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span) {
  if (!b.takes(call.args.size())) {
    s.diags
        .error(Code::E0205,
               fmt::format(
                   "`load` takes a file name and optionally the name of a member, not {} arguments",
                   call.args.size()))
        .primary(span, "")
        .help("write `load(\"w.npy\")` or `load(\"weights.npz\", \"W\")`");
    return {};
  }
  auto path = plain_string(s, call.args[0], "the file to load");
  auto member = call.args.size() == 2 ? plain_string(s, call.args[1], "the member to load")
                                      : std::optional<std::string>("");
  if (!path || !member) return {};
  if (!s.files) return unsupported(s, span, "`load`", "files are not available here");
  return load_member(s, env, call, *path, *member, span);
}

Value load_as(Sema& s, Env& env, TreeId e, Value v, DType type) {
  const auto* call = std::get_if<ast::Call>(&s[e].node);
  bool loads = call && !call->has_brackets && spells(s.ast, *call, Builtin::Id::Load) &&
               !find_callee(s, env, call->callee);
  FamilyId id = loads ? whole_family(s.m, v) : FamilyId{};
  if (!id || !s.m[id].file || !s.m[id].generated || !is_csv(s.m[id].file->path) ||
      s.m[id].dtype == type || type == DType::Str) {
    return v;
  }
  core::LoadedFile file = *s.m[id].file;
  file.member += fmt::format("{}type = {}", file.member.empty() ? "" : "; ", name_of(type));
  auto found = s.files(v.span.file, file.written, file.member);
  if (const auto* error = std::get_if<RuntimeError>(&found)) {
    s.diags.error(Code::E0220, error->message).primary(v.span, "");
    return {};
  }
  file.header = std::get<FoundFile>(found).header;
  core::Family& f = s.m.families[id];
  f.dtype = type;
  f.file = std::make_shared<core::LoadedFile>(std::move(file));
  return read_family(s.m, env, id, {}, v.span);
}

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
    Value parts = map_leaves(values[i - 1], [&](const Value& leaf, const std::string& part) {
      std::string member = prefix + (prefix.empty() && !part.empty() ? part.substr(1) : part);
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

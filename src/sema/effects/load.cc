// `load("w.npz", "W")`, a value whose type the file's header gives. The name of a file is written
// in the program: its header is read when compiling.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/print.h"
#include "runtime/bytes.h"
#include "runtime/csv_options.h"
#include "runtime/members.h"
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

// ---- how a csv file is read: `load("iris.csv", columns = ["a", "b"], missing = nan)`

// The value of a named argument in the tree, as far as options have such values.
struct OptionValue {
  std::optional<bool> truth;
  std::optional<std::string> number;  // as it is written in options
  std::optional<std::vector<std::string>> strings;
};

OptionValue option_value(Sema& s, TreeId e) {
  OptionValue out;
  auto text_of = [&](TreeId x) -> std::optional<std::string> {
    const auto* str = std::get_if<ast::StrLit>(&s[x].node);
    if (!str || str->pieces.size() > 1) return std::nullopt;
    if (str->pieces.empty()) return "";
    return str->pieces[0].value.valid() ? std::nullopt : std::optional(str->pieces[0].text);
  };
  if (const auto* truth = std::get_if<ast::BoolLit>(&s[e].node)) out.truth = truth->value;
  if (auto text = text_of(e)) out.strings = {*text};
  if (const auto* list = std::get_if<ast::Array>(&s[e].node)) {
    out.strings.emplace();
    for (TreeId item : list->items) {
      auto text = text_of(item);
      if (!text) return {};
      out.strings->push_back(*text);
    }
  }
  std::string sign;
  if (const auto* minus = std::get_if<ast::Unary>(&s[e].node);
      minus && minus->op == ast::UnaryOp::Neg) {
    sign = "-";
    e = minus->arg;
  }
  if (const auto* n = std::get_if<ast::IntLit>(&s[e].node)) {
    out.number = fmt::format("{}{}", sign, n->value);
  }
  if (const auto* n = std::get_if<ast::FloatLit>(&s[e].node)) {
    out.number = fmt::format("{}{:#}", sign, n->value);  // with its point: it is no integer
  }
  if (const auto* path = std::get_if<ast::Path>(&s[e].node);
      path && path->parts.size() == 1 && text(path->parts[0].symbol) == "nan") {
    out.number = "nan";
  }
  return out;
}

// Every option: its name, what its value must be, and what it does; false when the value is another.
struct CsvArgument {
  const char *name, *wanted;
  bool (*take)(const OptionValue& v, CsvOptions& out);
};
const CsvArgument kCsvArguments[] = {
    {"columns", "an array of headings, such as `[\"length\", \"width\"]`",
     [](const OptionValue& v, CsvOptions& out) {
       if (!v.strings || v.strings->empty()) return false;
       out.columns = *v.strings;
       return true;
     }},
    {"missing", "a number or `nan`",
     [](const OptionValue& v, CsvOptions& out) {
       out.missing = v.number;
       return v.number.has_value();
     }},
    {"labels", "`true` or `false`",
     [](const OptionValue& v, CsvOptions& out) {
       out.labels = v.truth.value_or(false);
       return v.truth.has_value();
     }},
    {"headings", "`true` or `false`",
     [](const OptionValue& v, CsvOptions& out) {
       out.headings = v.truth;
       return v.truth.has_value();
     }},
    {"separator", "`\",\"`, `\";\"` or `\"\\t\"`",
     [](const OptionValue& v, CsvOptions& out) {
       if (!v.strings || v.strings->size() != 1 || v.strings->front().size() != 1) return false;
       out.separator = v.strings->front()[0];
       return out.separator == ',' || out.separator == ';' || out.separator == '\t';
     }},
    {"decimal", "`\",\"` or `\".\"`",
     [](const OptionValue& v, CsvOptions& out) {
       if (!v.strings || v.strings->size() != 1) return false;
       out.decimal_comma = v.strings->front() == ",";
       return out.decimal_comma || v.strings->front() == ".";
     }},
};
constexpr const char* kLoadSignature =
    "load(file, member, columns = …, missing = …, labels = …, headings = …, separator = …, decimal "
    "= …)";

const CsvArgument* csv_argument(Sema& s, const ast::Name& name) {
  std::vector<std::string> names;
  for (const CsvArgument& a : kCsvArguments) {
    if (text(name.symbol) == a.name) return &a;
    names.emplace_back(a.name);
  }
  auto& d =
      s.diags.error(Code::E0218, fmt::format("`load` has no parameter {}", quoted(name.symbol)));
  d.primary(name.span, "").note(fmt::format("the signature is `{}`", kLoadSignature));
  suggest(d, did_you_mean(text(name.symbol), names), name.span);
  return nullptr;
}

// What the named arguments say, as the text that stands for a member of a csv file; reported when
// something is wrong. Positional arguments are left in `given`.
std::optional<std::string> load_options(Sema& s, const ast::Call& call,
                                        std::vector<TreeId>& given) {
  CsvOptions options;
  std::set<std::string> seen;
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (call.names.empty() || !call.names[i].symbol) {
      given.push_back(call.args[i]);
      continue;
    }
    const CsvArgument* option = csv_argument(s, call.names[i]);
    if (!option) return std::nullopt;
    if (!seen.insert(option->name).second) {
      s.diags.error(Code::E0218, fmt::format("`load` gets `{}` twice", option->name))
          .primary(call.names[i].span, "");
      return std::nullopt;
    }
    if (!option->take(option_value(s, call.args[i]), options)) {
      s.diags.error(Code::E0220, fmt::format("`{}` must be {}", option->name, option->wanted))
          .primary(s[call.args[i]].span, "")
          .note("the file's header is read when the program is compiled, so this must be fixed");
      return std::nullopt;
    }
  }
  return show(options);
}

// A csv file has no members, so a second string says how to read it in the words of the command
// line; a program says that in named arguments.
void report_csv_member(Sema& s, const std::string& member, Span span) {
  auto& d = s.diags.error(Code::E0220, "a csv file has no members");
  d.primary(span, "");
  std::string arguments = ", columns = [\"a\", \"b\"], missing = nan";
  try {
    if (std::string same = core::csv_arguments(member); !same.empty()) arguments = same;
  } catch (const Malformed&) {}  // then an example will do
  d.help(fmt::format("say how to read it with named arguments: `load(\"…\"{})`", arguments));
}

void report_file(Sema& s, const RuntimeError& error, Span span) {
  auto& d = s.diags.error(error.code == Code::E0811 ? Code::E0811 : Code::E0220, error.message);
  d.primary(span, "");
  if (error.missing_file)
    d.help(
        "the file must exist when the program is compiled; a value that is supplied only when "
        "the program runs is an input: `let x: [f32; n];` and `--in x=FILE`");
}

// One array of a file, as a family.
Value load_member(Sema& s, Env& env, const ast::Call& call, const std::string& path,
                  const std::string& member, Span span) {
  auto found = s.files(span.file, path, member);
  if (const auto* error = std::get_if<RuntimeError>(&found)) {
    bool member_wrong = call.args.size() > 1 && (has_members(path) || is_csv(path));
    bool refused = error->code == Code::E0811;
    report_file(s, *error, member_wrong && !refused ? span : s[call.args[0]].span);
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

// ---- `load("model.npz") as Net`

struct RecordFile {
  Sema& s;
  Env& env;
  const ast::Call& call;
  const std::string& path;
  Span span;
  std::vector<std::pair<std::string, ast::TypeId>> parts = {};  // members that are needed
  std::vector<std::string> members = {};                        // that there are

  void collect(ast::TypeId type) {
    for (const FilePart& part : file_parts(s.ast, type)) parts.emplace_back(part.name, part.type);
  }

  bool find() {
    auto found = s.files(span.file, path, kAllMembers);
    if (const auto* error = std::get_if<RuntimeError>(&found)) {
      report_file(s, *error, s[call.args[0]].span);
      return false;
    }
    members = std::get<FoundFile>(found).members;
    if (!members.empty() || has_members(path)) return true;
    s.diags.error(Code::E0220, fmt::format("`{}` holds no parts with names", path))
        .primary(s[call.args[0]].span, "")
        .help("the parts of a record are in an .npz or .safetensors file");
    return false;
  }

  // What is known of extents so far: the number, and the part that has it.
  std::map<Symbol, std::pair<int64_t, std::string>> extents = {};

  // What is wrong with the shape of a part; empty when nothing is.
  std::string misshapen(const std::string& member, ast::TypeId type) {
    auto found = s.files(span.file, path, member);
    const auto* file = std::get_if<FoundFile>(&found);
    if (!file) return std::get<RuntimeError>(found).message;
    const auto* tensor = std::get_if<ast::TensorType>(&s.ast[type].node);
    std::vector<ast::Dim> dims = tensor ? tensor->dims : std::vector<ast::Dim>{};
    const auto& shape = file->header.shape;
    const std::string is = fmt::format("`{}` is {}", member, show_type(file->header));
    bool any = std::any_of(dims.begin(), dims.end(), [](const ast::Dim& d) {
      return d.kind == ast::Dim::Kind::AnyRank || d.kind == ast::Dim::Kind::Pack;
    });
    if (any) return "";
    if (dims.size() != shape.size()) {
      return fmt::format("{}, but it needs {} coordinate{}", is, dims.size(),
                         dims.size() == 1 ? "" : "s");
    }
    for (size_t k = 0; k < dims.size(); ++k) {
      if (dims[k].kind != ast::Dim::Kind::Extent) continue;
      const auto* number = std::get_if<ast::IntLit>(&s[dims[k].extent].node);
      if (number && static_cast<int64_t>(number->value) != shape[k]) {
        return fmt::format("{}, but {} is needed at coordinate {}", is, number->value, k);
      }
      Symbol name = path_name(s.ast, dims[k].extent);
      if (!name) continue;
      auto [it, fresh] = extents.emplace(name, std::pair(shape[k], member));
      if (it->second.first == shape[k]) continue;
      return fmt::format("{}, but `{}` is {} in `{}`", is, text(name), it->second.first,
                         it->second.second);
    }
    return "";
  }

  // Arrays of records that files number, `h.#`: how many records there are, and the part that has
  // the last of them.
  std::map<std::string, std::pair<int64_t, std::string>> numbered = {};

  void count_records(const std::string& member, const ChosenMembers& chosen) {
    if (chosen.counts.empty()) return;
    auto& [count, part] = numbered[member.substr(0, member.find(kNumber))];
    if (chosen.counts[0] > count) std::tie(count, part) = std::pair(chosen.counts[0], member);
  }
  // A part that fewer records have than another part of the same array; empty when it has them all.
  std::string too_few(const std::string& member, const ChosenMembers& chosen) {
    if (chosen.counts.empty()) return "";
    const auto& [count, part] = numbered[member.substr(0, member.find(kNumber))];
    if (chosen.counts[0] == count) return "";
    auto last = [&](const std::string& name) {
      std::vector<int64_t> at(count_numbers(name));
      at[0] = count - 1;
      return quoted(with_numbers(name, at));
    };
    return fmt::format("it has {}, but no {}", last(part), last(member));
  }

  // Names everything that does not fit, at once.
  bool report_parts(ast::TypeId type) {
    std::vector<std::string> missing, extra, wrong;
    std::vector<bool> needed(members.size());
    std::vector<std::variant<ChosenMembers, std::string>> found;
    for (const auto& [member, part] : parts) {
      found.push_back(choose_members(members, member));
      if (const auto* chosen = std::get_if<ChosenMembers>(&found.back())) {
        for (size_t at : chosen->at) needed[at] = true;
        count_records(member, *chosen);
      } else {
        for (size_t i = 0; i < members.size(); ++i) {
          if (fits_name(members[i], member)) needed[i] = true;
        }
      }
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto& [member, part] = parts[i];
      const auto* chosen = std::get_if<ChosenMembers>(&found[i]);
      std::string why = chosen ? too_few(member, *chosen) : std::get<std::string>(found[i]);
      if (chosen && chosen->at.empty()) {
        missing.push_back(member);
        continue;
      }
      if (why.empty()) why = misshapen(member, part);
      if (!why.empty()) wrong.push_back(why);
    }
    for (size_t i = 0; i < members.size(); ++i) {
      if (!needed[i]) extra.push_back(members[i]);
    }
    if (missing.empty() && extra.empty() && wrong.empty()) return false;
    auto& d = s.diags.error(Code::E0220,
                            fmt::format("`{}` does not have the parts of this record", path));
    d.primary(s.ast[type].span, "").label(s[call.args[0]].span, "the file");
    if (!missing.empty()) {
      bool number = std::any_of(missing.begin(), missing.end(),
                                [](const std::string& name) { return count_numbers(name) > 0; });
      d.note(fmt::format("it lacks {}{}", listed(missing),
                         number ? ", where `#` is a number from 0 on" : ""));
    }
    if (!extra.empty()) d.note(fmt::format("it also has {}", listed(extra)));
    for (size_t i = 0; i < std::min(wrong.size(), kListed); ++i) d.note(wrong[i]);
    if (wrong.size() > kListed) d.note(fmt::format("and {} more", wrong.size() - kListed));
    return true;
  }

  size_t next = 0;  // of `parts`

  Value value(ast::TypeId type) {
    const ast::TupleType* record = tuple_type(s.ast, type);
    if (!record) {
      Value v = load_member(s, env, call, path, parts[next++].first, span);
      return v.poison() ? v : convert(s, env, std::move(v), type, {}, span);
    }
    Value out;
    out.kind = Value::Kind::Tuple;
    out.depth = env.depth;
    out.span = span;
    for (size_t i = 0; i < record->items.size(); ++i) {
      if (!record->names.empty()) out.fields.push_back(record->names[i].symbol);
      out.items.push_back(value(record->items[i]));
      if (out.items.back().poison()) return Value{};
    }
    return out;
  }
};

}  // namespace

Value load_record(Sema& s, Env& env, const ast::Cast& cast, const ast::Call& call, Span span) {
  std::vector<TreeId> given;
  if (!load_options(s, call, given)) return {};
  if (given.size() != 1 || call.args.size() != 1) {
    s.diags.error(Code::E0205, "a record is loaded from a whole file: `load` takes its name alone")
        .primary(span, "");
    return {};
  }
  auto path = plain_string(s, given[0], "the file to load");
  if (!path) return {};
  if (!s.files) return unsupported(s, span, "`load`", "files are not available here");
  RecordFile file{s, env, call, *path, span};
  file.collect(cast.type);
  if (!file.find() || file.report_parts(cast.type)) return {};
  return file.value(cast.type);
}

Value elaborate_load(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span) {
  std::vector<TreeId> given;
  auto options = load_options(s, call, given);
  if (!options) return {};
  if (!b.takes(given.size())) {
    s.diags
        .error(Code::E0205,
               fmt::format(
                   "`load` takes a file name and optionally the name of a member, not {} arguments",
                   given.size()))
        .primary(span, "")
        .help("write `load(\"w.npy\")` or `load(\"weights.npz\", \"W\")`");
    return {};
  }
  auto path = plain_string(s, given[0], "the file to load");
  auto member = given.size() == 2 ? plain_string(s, given[1], "the member to load") : options;
  if (!path || !member) return {};
  if (is_csv(*path) && given.size() == 2) {
    report_csv_member(s, *member, s[given[1]].span);
    return {};
  }
  if (!is_csv(*path) && given.size() < call.args.size()) {
    s.diags.error(Code::E0220, "only a csv file has options")
        .primary(call.names.back().span, "")
        .label(s[given[0]].span, "this is not a csv file");
    return {};
  }
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

}  // namespace ein::sema

#include "sema/modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <mutex>

#include "base/fork_mutex.h"
#include "base/match.h"
#include "sema/builtins.h"
#include "sema/earlier.h"
#include "sema/names/names.h"
#include "sema/type_names.h"
#include "syntax/graft.h"
#include "syntax/parser.h"

namespace ein::sema {
namespace {

constexpr const char* kPrelude = "std::prelude";

std::string spelled(const std::vector<ast::Name>& parts, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) out += "::";
    out += text(parts[i].symbol);
  }
  return out;
}

Span span_of(const std::vector<ast::Name>& parts) {
  return join(parts.front().span, parts.back().span);
}

// The tree of a module of the library, parsed once per process. Null where the parser has something to say.
const ast::Ast* library_tree(const ModuleText& module) {
  static ForkMutex mutex;
  static std::map<std::string, ast::Ast> trees;
  {
    std::lock_guard<ForkMutex> lock(mutex);
    auto known = trees.find(module.name);
    if (known != trees.end()) return &known->second;
  }
  SourceMap sources;
  Diagnostics diags;
  ast::Ast tree = ast::parse(sources.add(module.name, module.text), sources, diags);
  if (!diags.all().empty()) return nullptr;
  std::lock_guard<ForkMutex> lock(mutex);
  return &trees.try_emplace(module.name, std::move(tree)).first->second;
}

class Reader {
 public:
  Reader(SourceMap& sources, const ReadModule& read, Diagnostics& diags)
      : sources_(sources), read_(read), diags_(diags) {}

  Program take(FileId root, const std::vector<EarlierText>& earlier,
               const std::set<uint32_t>& printed) {
    std::vector<std::string> tried;
    if (auto prelude = read_ ? read_("", kPrelude, tried) : std::nullopt) {
      out_.prelude = module(*prelude, {});
      out_.prelude_nodes = out_.ast.exprs.size();
    }
    out_.ast.file = root;
    std::string name = std::filesystem::path(sources_.name(root)).lexically_normal().string();
    ModuleTree tree = add_module(name, root, {}, [&] {
      std::vector<ast::StmtId> items =
          ast::parse_into(out_.ast, root, sources_, diags_, &out_.lexed);
      if (!earlier.empty()) add_earlier(earlier, items);
      return items;
    });
    out_.ast.items = tree.items;
    for (ast::StmtId id : tree.items) {
      const ast::Stmt& s = out_.ast[id];
      if (s.span.file == root && printed.contains(s.span.begin)) print_value(out_.ast.stmts[id]);
    }
    for (const ast::Expr& e : out_.ast.exprs) {
      const auto* request = std::get_if<ast::Request>(&e.node);
      out_.derives |= request && request->den;
      const auto* call = std::get_if<ast::Call>(&e.node);  // `print(@y)`
      if (!call || !spells(out_.ast, *call, Builtin::Id::Print)) continue;
      for (ast::ExprId arg : call->args) {
        out_.derives |= std::holds_alternative<ast::Request>(out_.ast[arg].node);
      }
    }
    out_.modules.push_back(std::move(tree));
    resolve_type_names(out_, diags_);
    return std::move(out_);
  }

 private:
  struct Open {  // a module whose imports are being read
    std::string name;
    Span from;  // the `use` that led to it
  };

  // `read` puts its tree into the program's and returns the top level.
  ModuleTree add_module(const std::string& name, FileId file, Span from,
                        const std::function<std::vector<ast::StmtId>()>& read) {
    size_t stmts = out_.ast.stmts.size(), exprs = out_.ast.exprs.size();
    ModuleTree tree{name, file, {}, out_.ast.types.size()};
    tree.items = read();
    tree.end_type = out_.ast.types.size();
    size_t stmts_end = out_.ast.stmts.size(), exprs_end = out_.ast.exprs.size();
    open_.push_back({name, from});
    for (size_t i = stmts; i < stmts_end; ++i) statement(ast::StmtId(static_cast<uint32_t>(i)));
    for (size_t i = exprs; i < exprs_end; ++i) {
      const auto* path = std::get_if<ast::Path>(&out_.ast.exprs[ast::ExprId(uint32_t(i))].node);
      if (path && path->parts.size() > 1) full_path(path->parts);
    }
    open_.pop_back();
    return tree;
  }

  // `x + 1.0` becomes `print(x + 1.0)`.
  void print_value(ast::Stmt& s) {
    auto* shown = std::get_if<ast::ExprStmt>(&s.node);
    if (!shown) return;
    Span span = out_.ast[shown->value].span;
    ast::ExprId print = out_.ast.exprs.add({ast::Path{{{intern("print"), span}}}, span});
    shown->value = out_.ast.exprs.add({ast::Call{.callee = print, .args = {shown->value}}, span});
  }

  // Those before the program's own, as they would stand in one text.
  void add_earlier(const std::vector<EarlierText>& earlier, std::vector<ast::StmtId>& items) {
    std::vector<EarlierItems> parts;
    for (const EarlierText& e : earlier) {
      parts.push_back({e.tree ? ast::graft(out_.ast, *e.tree, e.file)
                              : ast::parse_into(out_.ast, e.file, sources_, diags_),
                       e.hidden, e.joined});
    }
    std::vector<ast::StmtId> kept = earlier_definitions(out_.ast, items, parts);
    items.insert(items.begin(), kept.begin(), kept.end());
  }

  void statement(ast::StmtId id) {
    // Copies: reading a module adds to the tree.
    if (const auto* use = std::get_if<ast::Use>(&out_.ast[id].node)) {
      ast::Use n = *use;
      import(id, n.path, !n.glob && n.items.empty());
    } else if (const auto* mod = std::get_if<ast::Mod>(&out_.ast[id].node)) {
      import(id, {mod->name}, false);
    }
  }

  void import(ast::StmtId id, const std::vector<ast::Name>& path, bool may_be_item) {
    std::vector<std::string> tried;
    Span span = span_of(path);
    if (auto found = find(spelled(path, path.size()), tried)) {
      if (auto index = module(*found, span)) out_.targets[id] = {*index, std::nullopt};
      return;
    }
    if (may_be_item && path.size() > 1) {
      if (auto found = find(spelled(path, path.size() - 1), tried)) {
        if (auto index = module(*found, span)) out_.targets[id] = {*index, path.back()};
        return;
      }
    }
    missing(spelled(path, path.size()), span, tried);
  }

  // `std::math::erf`: the module is everything but the last name. Other paths begin with a name
  // that a `use` or `mod` brings.
  void full_path(const std::vector<ast::Name>& parts) {
    if (text(parts[0].symbol) != "std") return;
    std::string name = spelled(parts, parts.size() - 1);
    if (out_.paths.count(name)) return;
    std::vector<std::string> tried;
    auto found = find(name, tried);
    if (!found) return;  // reported where the path is used
    Span span = span_of(parts);
    if (auto index = module(*found, span)) out_.paths[name] = *index;
  }

  std::optional<ModuleText> find(const std::string& path, std::vector<std::string>& tried) {
    return read_ ? read_(open_.back().name, path, tried) : std::nullopt;
  }

  std::optional<size_t> module(const ModuleText& found, Span from) {
    auto [it, fresh] = known_.try_emplace(found.name);
    if (!fresh && it->second) return it->second;
    auto same = [&](const Open& o) { return o.name == found.name; };
    auto open = std::find_if(open_.begin(), open_.end(), same);
    if (open != open_.end()) {
      cycle(open, from);
      return std::nullopt;
    }
    if (!fresh) return std::nullopt;  // part of a cycle: reported
    FileId file = sources_.add(found.name, found.text);
    const ast::Ast* kept = found.library ? library_tree(found) : nullptr;
    ModuleTree tree = add_module(found.name, file, from, [&] {
      return kept ? ast::graft(out_.ast, *kept, file)
                  : ast::parse_into(out_.ast, file, sources_, diags_);
    });
    out_.modules.push_back(std::move(tree));
    return known_[found.name] = out_.modules.size() - 1;
  }

  void cycle(std::vector<Open>::iterator first, Span closing) {
    std::string chain;
    for (auto it = first; it != open_.end(); ++it) chain += fmt::format("`{}` → ", it->name);
    auto& d = diags_.error(Code::E0214, "modules import each other in a cycle");
    d.primary(closing, "this import closes the cycle");
    if (first + 1 != open_.end()) d.label((first + 1)->from, "it begins here");
    d.note("the cycle: " + chain + fmt::format("`{}`", first->name));
    d.help("move what both need into a third module");
  }

  void missing(const std::string& path, Span span, const std::vector<std::string>& tried) {
    auto& d = diags_.error(Code::E0211, fmt::format("there is no module `{}`", path));
    d.primary(span, "");
    for (const std::string& place : tried) d.note("looked for " + place);
    if (!read_)
      d.note("modules cannot be imported here: the program is compiled without access to files");
  }

  SourceMap& sources_;
  const ReadModule& read_;
  Diagnostics& diags_;
  Program out_;
  std::vector<Open> open_;
  std::map<std::string, std::optional<size_t>> known_;
};

}  // namespace

Program read_program(FileId root, SourceMap& sources, const ReadModule& read, Diagnostics& diags,
                     const std::vector<EarlierText>& earlier, const std::set<uint32_t>& printed) {
  Program out = Reader(sources, read, diags).take(root, earlier, printed);
  out.sources = &sources;
  return out;
}

bool is_earlier(const std::vector<EarlierText>& earlier, FileId file) {
  return std::any_of(earlier.begin(), earlier.end(),
                     [&](const EarlierText& e) { return e.file == file; });
}

Program lone_program(ast::Ast ast) {
  Program out;
  out.derives = true;
  out.modules.push_back({"", ast.file, ast.items, 0, ast.types.size()});
  out.ast = std::move(ast);
  Diagnostics ignored;  // mistakes in types are found where they are used
  resolve_type_names(out, ignored);
  return out;
}

}  // namespace ein::sema

#include "sema/earlier.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/match.h"

namespace ein::sema {
namespace {

using NameSet = std::set<std::string>;

Symbol local_name(const ast::UseItem& item) {
  return (item.alias ? *item.alias : item.name).symbol;
}

// `use a::b;`, `use a::b as c;`
Symbol local_name(const ast::Use& use) { return (use.alias ? *use.alias : use.path.back()).symbol; }

// All names that can be imported by a glob are known later only, so it stands for itself.
std::string glob_name(const ast::Use& use) {
  std::string out;
  for (const ast::Name& part : use.path) out += text(part.symbol) + "::";
  return out + "*";
}

// The derivative of a function is defined beside the function, under the same name.
std::string rule_name(const std::string& function) { return "@" + function; }

NameSet names_of(const ast::Stmt& s) {
  NameSet out;
  auto add = [&](const ast::Name& name) {
    if (text(name.symbol) != "_") out.insert(text(name.symbol));
  };
  match(
      s.node, [&](const ast::Let& n) { std::for_each(n.names.begin(), n.names.end(), add); },
      [&](const ast::Const& n) { add(n.name); }, [&](const ast::TypeDef& n) { add(n.name); },
      [&](const ast::Mod& n) { add(n.name); },
      [&](const ast::Fn& n) {
        std::string name = text(n.name.symbol);
        out.insert(n.rule ? rule_name(name) : name);
      },
      [&](const ast::Use& n) {
        for (const ast::UseItem& item : n.items) out.insert(text(local_name(item)));
        if (n.items.empty()) out.insert(n.glob ? glob_name(n) : text(local_name(n)));
      },
      [&](const ast::ExprStmt&) {}, [&](const ast::Test&) {}, [&](const ast::ErrorStmt&) {});
  return out;
}

// Whether a statement of an earlier text stays, where newer texts define `taken`.
bool definition_stays(ast::Stmt& s, const NameSet& taken) {
  if (auto* use = std::get_if<ast::Use>(&s.node); use && !use->items.empty()) {
    std::erase_if(use->items,
                  [&](const ast::UseItem& i) { return taken.count(text(local_name(i))); });
    return !use->items.empty();
  }
  const auto* fn = std::get_if<ast::Fn>(&s.node);
  if (fn && fn->rule && taken.count(text(fn->name.symbol)))
    return false;  // of the function that was
  NameSet own = names_of(s);
  auto is_taken = [&](const std::string& name) { return taken.count(name) > 0; };
  return !own.empty() && std::none_of(own.begin(), own.end(), is_taken);
}

}  // namespace

std::vector<ast::StmtId> earlier_definitions(ast::Ast& ast, const std::vector<ast::StmtId>& own,
                                             const std::vector<EarlierItems>& earlier) {
  NameSet taken;
  for (ast::StmtId id : own) taken.merge(names_of(ast[id]));
  std::vector<std::vector<ast::StmtId>> kept;
  for (size_t i = earlier.size(); i-- > 0;) {  // the newest first
    kept.emplace_back();
    NameSet defined;
    for (ast::StmtId id : earlier[i].items) {
      if (!earlier[i].joined && !definition_stays(ast.stmts[id], taken)) continue;
      if (!earlier[i].hidden) kept.back().push_back(id);
      defined.merge(names_of(ast[id]));
    }
    taken.merge(defined);
  }
  std::vector<ast::StmtId> out;
  for (size_t i = kept.size(); i-- > 0;) out.insert(out.end(), kept[i].begin(), kept[i].end());
  return out;
}

}  // namespace ein::sema

// Files: what `use` and paths mean, and type names, which belong to a whole file.
#include <algorithm>

#include "ide/binder.h"
#include "syntax/lexer.h"

namespace ein::ide {

std::optional<size_t> Binder::module_named(Frame& f, const std::vector<ast::Name>& parts,
                                           size_t count, bool mark) {
  for (Frame* at = &f; at; at = at->up) {
    auto it = at->module_of.find(parts[0].symbol);
    if (it == at->module_of.end()) continue;
    if (mark) occurs(parts[0].span, at->modules[parts[0].symbol]);
    size_t number = it->second;
    for (size_t i = 1; i < count; ++i) {
      auto& inner = modules[number].frame.module_of;
      auto next = inner.find(parts[i].symbol);
      if (next == inner.end()) return std::nullopt;
      number = next->second;
    }
    return number;
  }
  std::string name;
  for (size_t i = 0; i < count; ++i) name += (i ? "::" : "") + text(parts[i].symbol);
  auto it = program.paths.find(name);
  return it == program.paths.end() ? std::nullopt : std::optional(it->second);
}

void Binder::use_path(Frame& f, const std::vector<ast::Name>& parts) {
  auto number = module_named(f, parts, parts.size() - 1, true);
  if (!number || *number >= modules.size()) return;
  const ast::Name& last = parts.back();
  for (const Names* names : {&modules[*number].functions, &modules[*number].values}) {
    if (auto it = names->find(last.symbol); it != names->end()) {
      return occurs(last.span, it->second);
    }
  }
}

// Binds what `use` imports under one name: an item of a module, or the module itself.
void Binder::bring(Frame& f, size_t from, ast::Name name, ast::Name as, bool item, bool pub,
                   ModuleFrame* exports) {
  if (!item) {
    uint32_t id = entity(Kind::Module, as);
    out.entities[id].span = {program.modules[from].file, 0, 0};
    f.modules[as.symbol] = id;
    f.module_of[as.symbol] = from;
    out.regions[f.region].entities.push_back(id);
    return occurs(as.span, id);
  }
  ModuleFrame& m = modules[from];
  struct {
    Names &has, &own, *exported;
  } kinds[] = {{m.functions, f.functions, exports ? &exports->functions : nullptr},
               {m.values, f.values, exports ? &exports->values : nullptr},
               {m.types, f.types, exports ? &exports->types : nullptr}};
  for (auto& k : kinds) {
    auto it = k.has.find(name.symbol);
    if (it == k.has.end()) continue;
    occurs(name.span, it->second);
    if (as.span.begin != name.span.begin) occurs(as.span, it->second);
    k.own[as.symbol] = it->second;
    out.regions[f.region].entities.push_back(it->second);
    if (pub && k.exported) (*k.exported)[as.symbol] = it->second;
  }
}

void Binder::import(Frame& f, ast::StmtId id, ModuleFrame* exports) {
  auto target = program.targets.find(id);
  if (target == program.targets.end() || target->second.module >= modules.size()) return;
  size_t from = target->second.module;
  auto mention = [&](const ast::Name& name) {  // of the file, in front of its items
    uint32_t entity_of_file = entity(Kind::Module, name);
    out.entities[entity_of_file].span = {program.modules[from].file, 0, 0};
    occurs(name.span, entity_of_file);
  };
  if (const auto* mod = std::get_if<ast::Mod>(&ast[id].node)) {
    return bring(f, from, mod->name, mod->name, false, false, exports);
  }
  const auto& use = std::get<ast::Use>(ast[id].node);
  bool one = target->second.item && use.items.empty() && !use.glob;  // the path ends with an item
  if ((use.glob || !use.items.empty()) && !use.path.empty()) mention(use.path.back());
  if (one && use.path.size() > 1) mention(use.path[use.path.size() - 2]);
  if (use.glob) {
    ModuleFrame& m = modules[from];
    auto copy = [&](const Names& has, Names& own, Names* exported) {
      for (const auto& [name, it] : has) {
        if (own.emplace(name, it).second) out.regions[f.region].entities.push_back(it);
        if (use.pub && exported) exported->emplace(name, it);
      }
    };
    copy(m.functions, f.glob_functions, exports ? &exports->functions : nullptr);
    copy(m.values, f.glob_values, exports ? &exports->values : nullptr);
    copy(m.types, f.glob_types, exports ? &exports->types : nullptr);
  } else if (!use.items.empty()) {
    for (const ast::UseItem& item : use.items) {
      bring(f, from, item.name, item.alias.value_or(item.name), true, use.pub, exports);
    }
  } else if (target->second.item) {
    const ast::Name& name = *target->second.item;
    bring(f, from, name, use.alias.value_or(name), true, use.pub, exports);
  } else {
    bring(f, from, use.path.back(), use.alias.value_or(use.path.back()), false, use.pub, exports);
  }
}

// Uses of type names have been replaced in the tree (sema/type_names.h), but they are still in the
// text.
void Binder::type_uses(size_t number) {
  FileId file = program.modules[number].file;
  Frame& f = modules[number].frame;
  if (f.types.empty() && f.glob_types.empty()) return;
  Diagnostics ignored;
  std::vector<Occurrence> more;
  auto less = [](const Occurrence& a, const Occurrence& b) { return a.span.begin < b.span.begin; };
  std::vector<Occurrence> known;
  for (const Occurrence& o : out.occurrences) {
    if (o.span.file == file) known.push_back(o);
  }
  std::sort(known.begin(), known.end(), less);
  for (const ast::Token& t : ast::lex(file, sources, ignored).tokens) {
    if (t.kind != ast::Tok::Name) continue;
    Occurrence here{t.span, 0, false};
    if (std::binary_search(known.begin(), known.end(), here, less)) continue;
    const uint32_t* id = find(f, intern(sources.text(t.span)), &Frame::types, &Frame::glob_types);
    if (id) more.push_back({t.span, *id, false});
  }
  out.occurrences.insert(out.occurrences.end(), more.begin(), more.end());
}

void Binder::module(size_t number) {
  const sema::ModuleTree& tree = program.modules[number];
  bool root = number + 1 == program.modules.size();
  ModuleFrame& m = modules.emplace_back();
  m.frame.scope = true;
  m.frame.family = ++families;
  uint32_t end = static_cast<uint32_t>(sources.text(tree.file).size());
  m.frame.region = region({tree.file, 0, end});
  if (program.prelude && number > *program.prelude) {
    m.frame.up = &modules[*program.prelude].frame;
    const ModuleFrame& prelude = modules[*program.prelude];
    for (const Names* names : {&prelude.functions, &prelude.values}) {
      for (const auto& [name, id] : *names) out.regions[m.frame.region].entities.push_back(id);
    }
  }
  top = true;
  const std::vector<ast::StmtId>& items = root ? ast.items : tree.items;
  declare_all(m.frame, items, &m);
  for (ast::StmtId id : items) statement(m.frame, id);
  type_uses(number);
}

}  // namespace ein::ide

// `let W = load(…)`: W is the loaded family itself.
#include "sema/builtins.h"
#include "sema/definitions/definitions.h"
#include "sema/state/definition_state.h"
#include "sema/state/name_state.h"

namespace ein::sema {
namespace {

// `load(…)` itself, behind any number of casts.
bool is_load(const Sema& s, TreeId e) {
  while (const auto* cast = std::get_if<ast::Cast>(&s[e].node)) e = cast->arg;
  const auto* call = std::get_if<ast::Call>(&s[e].node);
  return call && !call->has_brackets && spells(s.ast, *call, Builtin::Id::Load);
}

}  // namespace

FamilyId loaded_family(const Sema& s, const Definition& d) {
  const ast::Let* let = d.outs.size() == 1 ? let_of(s.ast, d.clauses[0]) : nullptr;
  if (!let || !d.scope->root || let->names.size() != 1 || let->has_slots || d.outs[0]->gate ||
      d.outs[0]->body.kind != Value::Kind::Data || !is_load(s, let->value)) {
    return {};
  }
  const auto* read = core::get_if<core::Access>(s.m, d.outs[0]->body.body);
  return read && s.m[read->family].file ? read->family : FamilyId{};
}

void adopt_load(Sema& s, Definition& d, FamilyId loaded, std::vector<core::Coord> coords) {
  core::Family& f = s.m.families[loaded];
  s.names.reserved.erase(f.name);  // another load may have it
  f.name = d.name.symbol;
  f.generated = false;
  f.span = d.name.span;
  f.coords = std::move(coords);
  d.family = loaded;
  s.definitions.owner[d.family] = &d;
}

}  // namespace ein::sema

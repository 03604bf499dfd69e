// `[e | i in 0..n, v in xs]`: an array with a coordinate for each generator. It is read together
// with the block that means the same, so that later phases know nothing new:
//   [e | i in 0..n, j in 0..m]   { let items[i in 0..n, j in 0..m] = e; items }
//   [e | i in a..b]              { let items[k in 0..b - a] = e where i = k + a; items }
//   [e | v in xs]                { let all = xs; let items[k in 0..len(all)] = { let v = all[k]; e }; items }
// A filter makes the length depend on values; sema decides what can be done then.
#include <fmt/format.h>

#include <algorithm>

#include "syntax/parser_impl.h"

namespace ein::ast {

// The cursor is on the `|`; what follows goes to the end of the list.
ExprId Parser::comprehension(ExprId body, size_t begin) {
  take();
  Comprehension node{body, {}, {}};
  bool filtered = false;
  do {
    // `i in [1, 2]` of a known `i` is a filter.
    auto known = [&](const Generator& g) { return g.name.symbol == name_of(peek()).symbol; };
    bool again = std::any_of(node.generators.begin(), node.generators.end(), known);
    if (is(Tok::Name) && is_word("in", 1) && !again) {
      Name name = name_of(take());
      take();
      node.generators.push_back({name, binary()});
    } else {
      if (node.generators.empty()) {
        fail_expected("`i in …` after `|`").help("write `[e | i in 0..n]` or `[e | v in xs]`");
        return make(Error{}, begin);
      }
      node.generators.push_back({{}, binary()});
      filtered = true;
    }
  } while (!panic && at < limit && accept(Tok::Comma) && at < limit);
  if (panic) {  // kept for editors; nobody elaborates what stands behind the mistake
    node.generators.insert(node.generators.begin(), Generator{{}, make(Error{}, begin)});
    return make(std::move(node), begin);
  }
  if (!filtered) node.block = comprehension_block(node, span_from(begin));
  return make(std::move(node), begin);
}

Name Parser::unused_name(const std::string& base, Span span) {
  if (spelled.empty()) {
    for (const Token& t : tokens) {
      if (t.kind == Tok::Name) spelled.insert(text(t));
    }
  }
  std::string name = base;
  for (int n = 1; spelled.count(name) > 0; ++n) name = fmt::format("{}_{}", base, n);
  return {intern(name), span, true};
}

ExprId Parser::comprehension_block(const Comprehension& node, Span span) {
  auto let = [&](Let l) { return ast.stmts.add({std::move(l), span, {}, {}}); };
  auto read = [&](Name name) { return add(Path{{name}}, name.span); };
  auto number = [&](uint64_t value) { return add(IntLit{value}, span); };
  Block block;
  Let items;
  items.names.push_back(unused_name("items", span));
  items.has_slots = true;
  Where shifts;  // `i = k + a`
  Block locals;  // `let v = all[k]`
  for (const Generator& g : node.generators) {
    Slot slot{Slot::Kind::Index, g.name, {}, {}, g.name.span};
    const auto* range = std::get_if<Range>(&ast[g.value].node);
    const auto* lo = range ? std::get_if<IntLit>(&ast[range->lo].node) : nullptr;
    Span place = ast[g.value].span;
    if (range && lo && lo->value == 0) {
      slot.range = g.value;
    } else if (range) {
      Range own = *range;
      slot.name = unused_name(ein::text(g.name.symbol) + "_at", g.name.span);
      ExprId extent = add(Binary{BinaryOp::Sub, own.hi, own.lo, place}, place);
      slot.range = add(Range{number(0), extent, own.inclusive}, place);
      ExprId first = add(Binary{BinaryOp::Add, read(slot.name), own.lo, place}, place);
      shifts.items.push_back({g.name, first, true});
    } else {
      Name all = unused_name("all_" + ein::text(g.name.symbol), place);
      slot.name = unused_name(ein::text(g.name.symbol) + "_at", g.name.span);
      Let whole;
      whole.names.push_back(all);
      whole.value = g.value;
      block.stmts.push_back(let(std::move(whole)));
      Call len;
      len.callee = read({intern("len"), place, true});
      len.args.push_back(read(all));
      slot.range = add(Range{number(0), add(std::move(len), place), false}, place);
      Let one;
      one.names.push_back(g.name);
      one.value = add(Index{read(all), {read(slot.name)}}, place);
      locals.stmts.push_back(let(std::move(one)));
    }
    items.slots.push_back(slot);
  }
  items.value = node.body;
  if (!locals.stmts.empty()) {
    locals.value = node.body;
    items.value = add(std::move(locals), span);
  }
  if (!shifts.items.empty()) {
    shifts.body = items.value;
    shifts.where_span = span;
    items.value = add(std::move(shifts), span);
  }
  Name result = items.names[0];
  block.stmts.push_back(let(std::move(items)));
  block.value = read(result);
  return add(std::move(block), span);
}

}  // namespace ein::ast

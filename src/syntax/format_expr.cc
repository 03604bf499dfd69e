// Expressions and types for the formatter. Chains (`a + b + …`, `x[i][j]…`, `else if`) are laid out
// in loops, as they are parsed.
#include <algorithm>

#include "base/match.h"
#include "syntax/dump.h"
#include "syntax/format_impl.h"

namespace ein::ast {

namespace {

bool same_chain(BinaryOp a, BinaryOp b) {
  auto level = [](BinaryOp op) {
    switch (op) {
      case BinaryOp::Or: return 1;
      case BinaryOp::And: return 2;
      case BinaryOp::Add:
      case BinaryOp::Sub: return 3;
      case BinaryOp::Mul:
      case BinaryOp::Div:
      case BinaryOp::Mod: return 4;
      case BinaryOp::BitOr: return 5;
      case BinaryOp::BitXor: return 6;
      case BinaryOp::BitAnd: return 7;
      case BinaryOp::Shl:
      case BinaryOp::Shr: return 8;
      default: return 0;  // comparisons and powers do not chain to the left
    }
  };
  return level(a) != 0 && level(a) == level(b);
}

bool is_number(const ExprNode& node) {
  return std::holds_alternative<IntLit>(node) || std::holds_alternative<FloatLit>(node) ||
         std::holds_alternative<BoolLit>(node) || std::holds_alternative<Unary>(node);
}

}  // namespace

DocId Formatter::expr(ExprId id) {
  bool wrapped = ast.parenthesised.count(id) > 0;
  DocId before = comments_before(ast[id].span.begin);
  if (!wrapped) return out.cat({before, bare(id)});
  DocId opening = out.cat({});
  DocId inner = bare(id);
  return out.group(out.cat({before, out.text("("), opening,
                            out.indent(out.cat({out.soft(), inner})), out.soft(), out.text(")")}));
}

DocId Formatter::bare(ExprId id) {
  const Expr& e = ast[id];
  uint32_t end = e.span.end;
  return match(
      e.node, [&](const IntLit&) { return out.text(literal(e)); },
      [&](const FloatLit&) { return out.text(literal(e)); },
      [&](const BoolLit&) { return out.text(literal(e)); },
      [&](const StrLit&) { return out.text(literal(e)); },
      [&](const Path& n) { return names(n.parts, "::"); },
      [&](const PackRef& n) { return out.text(".." + text(n.name.symbol)); },
      [&](const Index&) { return postfix(id); }, [&](const Call&) { return postfix(id); },
      [&](const Field&) { return postfix(id); }, [&](const Cast&) { return postfix(id); },
      [&](const Unary& n) {
        return out.cat({out.text(spelling(n.op)), expr(n.arg)});
      },
      [&](const Binary&) { return binary(id); },
      [&](const Range& n) {
        DocId lo = expr(n.lo);
        return out.cat({lo, out.text(n.inclusive ? "..=" : ".."), expr(n.hi)});
      },
      [&](const If&) { return out.group(if_chain(id)); },
      [&](const Block&) { return out.group(block(id)); },
      [&](const Tuple& n) { return args(n.items, "(", n.items.size() == 1 ? ",)" : ")", end); },
      [&](const Array& n) { return args(n.items, "[", "]", end); },
      [&](const Record& n) { return record(n, e.span); },
      [&](const Comprehension& n) { return comprehension(n); },
      [&](const Lambda& n) {
        std::vector<DocId> parts{out.text("|")};
        for (size_t i = 0; i < n.params.size(); ++i) {
          if (i > 0) parts.push_back(out.text(", "));
          parts.push_back(name(n.params[i].name));
          parts.push_back(typed(n.params[i].type));
        }
        parts.push_back(out.text("| "));
        parts.push_back(expr(n.body));
        return out.cat(parts);
      },
      [&](const Alternatives& n) {
        std::vector<DocId> parts;
        for (ExprId item : n.items) {
          if (!parts.empty()) parts.push_back(out.text(" | "));
          parts.push_back(expr(item));
        }
        return out.cat(parts);
      },
      [&](const NamedPattern& n) {
        return out.cat({name(n.name), out.text(" @ "), expr(n.pattern)});
      },
      [&](const Match&) { return match_expr(id); }, [&](const Where&) { return where(id, false); },
      [&](const Request& n) {
        DocId num = out.cat({out.text("@"), expr(n.num)});
        if (!n.den.valid()) return num;
        return out.cat({num, out.text(" / @"), expr(n.den)});
      },
      [&](const Error&) { return out.text(""); });
}

// `names`: of named arguments, as in ast::Call.
DocId Formatter::args(const std::vector<ExprId>& ids, const char* open, const char* close,
                      uint32_t end, const std::vector<Name>& names) {
  std::vector<Item> items;
  bool numbers = !ids.empty() && names.empty();
  for (size_t i = 0; i < ids.size(); ++i) {
    ExprId id = ids[i];
    numbers = numbers && is_number(ast[id].node);
    if (!names.empty() && names[i].symbol) {
      items.push_back({join(names[i].span, ast[id].span), [this, id, &own = names[i]] {
                         return out.cat({name(own), out.text(" = "), expr(id)});
                       }});
      continue;
    }
    items.push_back({ast[id].span, [this, id] { return expr(id); }});
  }
  // A lone block, array or tuple breaks inside its own brackets.
  bool hug = false;
  if (ids.size() == 1 && names.empty() && !ast.parenthesised.count(ids[0]) && !pending(end)) {
    const ExprNode& node = ast[ids[0]].node;
    hug = std::holds_alternative<Block>(node) || std::holds_alternative<Array>(node) ||
          std::holds_alternative<Tuple>(node) || std::holds_alternative<Match>(node) ||
          std::holds_alternative<Record>(node);
  }
  if (hug) return out.cat({out.text(open), items[0].write(), out.text(close)});
  return list(open, items, close, end, numbers);
}

// x[i].0(y) as T: the base, then each suffix in turn.
DocId Formatter::postfix(ExprId id) {
  std::vector<ExprId> chain;
  auto is_suffix = [&](ExprId e) {
    const ExprNode& n = ast[e].node;
    return std::holds_alternative<Index>(n) || std::holds_alternative<Call>(n) ||
           std::holds_alternative<Field>(n) || std::holds_alternative<Cast>(n);
  };
  ExprId base = id;
  do {
    chain.push_back(base);
    base = leading_operand(ast[base].node);
  } while (is_suffix(base) && !ast.parenthesised.count(base));
  std::vector<DocId> parts{expr(base)};
  for (size_t i = chain.size(); i-- > 0;) {
    const Expr& e = ast[chain[i]];
    if (const auto* n = std::get_if<Index>(&e.node))
      parts.push_back(args(n->at, "[", "]", e.span.end));
    if (const auto* n = std::get_if<Field>(&e.node))
      parts.push_back(
          out.text("." + (n->name.symbol ? text(n->name.symbol) : std::to_string(n->index))));
    if (const auto* n = std::get_if<Cast>(&e.node)) {
      parts.push_back(out.text(" as "));
      parts.push_back(type(n->type));
    }
    if (const auto* n = std::get_if<Call>(&e.node); n && n->method) {
      parts.push_back(out.text("."));
      parts.push_back(expr(n->callee));
      std::vector<ExprId> rest(n->args.begin() + 1, n->args.end());
      if (!rest.empty()) parts.push_back(args(rest, "(", ")", e.span.end));
    } else if (n) {
      uint32_t open = n->args.empty() ? e.span.end : ast[n->args[0]].span.begin;
      if (n->has_brackets) parts.push_back(brackets(n->brackets, open));
      parts.push_back(args(n->args, "(", ")", e.span.end, n->names));
    }
  }
  return out.cat(parts);
}

// { ..p, a: x, b }: a field whose value is its own name is written once.
DocId Formatter::record(const Record& n, Span span) {
  std::vector<Item> items;
  if (n.base.valid()) {
    items.push_back({ast[n.base].span, [this, &n] {
                       return out.cat({out.text(".."), expr(n.base)});
                     }});
  }
  for (const RecordField& f : n.fields) {
    bool shorthand = ast[f.value].span == f.name.span;
    Span at = shorthand ? f.name.span : join(f.name.span, ast[f.value].span);
    items.push_back({at, [this, &f, shorthand] {
                       if (shorthand) return name(f.name);
                       return out.cat({name(f.name), out.text(": "), expr(f.value)});
                     }});
  }
  return list("{", items, "}", span.end, false, true);
}

// [e | i in 0..n, cond]
DocId Formatter::comprehension(const Comprehension& n) {
  std::vector<DocId> parts{out.soft(), expr(n.body), out.line(), out.text("| ")};
  for (size_t i = 0; i < n.generators.size(); ++i) {
    const Generator& g = n.generators[i];
    if (i > 0) parts.push_back(out.text(", "));
    parts.push_back(g.name.symbol ? ranged(g.name, false, g.value) : expr(g.value));
  }
  return out.group(out.cat({out.text("["), out.indent(out.cat(parts)), out.soft(), out.text("]")}));
}

DocId Formatter::brackets(const std::vector<Bracket>& items, uint32_t end) {
  std::vector<Item> list_items;
  for (const Bracket& b : items) {
    list_items.push_back({b.span, [this, &b] {
                            if (b.name.symbol) return ranged(b.name, b.pack, b.range);
                            return out.cat({out.text("("), names(b.group, ", "), out.text(")")});
                          }});
  }
  uint32_t close = items.empty() ? end : next_token(items.back().span.end);
  return list("[", list_items, "]", close);
}

DocId Formatter::ranged(const Name& n, bool pack, ExprId range) {
  DocId head = out.text((pack ? ".." : "") + text(n.symbol));
  if (!range.valid()) return head;
  return out.cat({head, out.text(" in "), expr(range)});
}

// Operators of one level break together, each at the start of its line.
DocId Formatter::binary(ExprId id) {
  struct Link {
    const Binary* node;
    ExprId operand;
  };
  std::vector<Link> links;
  ExprId first = id;
  for (;;) {
    const auto& n = std::get<Binary>(ast[first].node);
    links.push_back({&n, n.rhs});
    const auto* next = std::get_if<Binary>(&ast[n.lhs].node);
    first = n.lhs;
    if (next == nullptr || ast.parenthesised.count(first) || !same_chain(next->op, n.op)) break;
  }
  DocId head = expr(first);
  std::vector<DocId> tail;
  for (size_t i = links.size(); i-- > 0;) {
    uint32_t begin = ast[links[i].operand].span.begin;
    tail.push_back(trailing_comments(begin));
    while (pending(begin)) {
      tail.push_back(out.hard());
      tail.push_back(take_comment());
    }
    tail.push_back(out.line());
    tail.push_back(out.text(std::string(spelling(links[i].node->op)) + " "));
    tail.push_back(expr(links[i].operand));
  }
  return out.group(out.cat({head, out.indent(out.cat(tail))}));
}

// body where a, b = c else d. After a `let` the gates go to the next line before the body breaks.
DocId Formatter::where(ExprId id, bool in_let) {
  std::vector<const Where*> gates;
  ExprId body = id;
  for (;;) {
    const auto* n = std::get_if<Where>(&ast[body].node);
    if (n == nullptr || (body != id && ast.parenthesised.count(body))) break;
    gates.push_back(n);
    body = n->body;
  }
  DocId head = in_let ? out.cat({out.text(" "), expr(body)}) : expr(body);
  std::vector<DocId> tail;
  for (size_t i = gates.size(); i-- > 0;) {
    const Where& w = *gates[i];
    tail.push_back(trailing_comments(w.where_span.begin));
    while (pending(w.where_span.begin)) {
      tail.push_back(out.hard());
      tail.push_back(take_comment());
    }
    tail.push_back(out.line());
    tail.push_back(out.text("where "));
    std::vector<DocId> items;
    for (size_t k = 0; k < w.items.size(); ++k) {
      const WhereItem& item = w.items[k];
      if (k > 0) items.push_back(out.line());
      if (item.bind) items.push_back(out.text(text(item.bind->symbol) + " = "));
      items.push_back(expr(item.value));
      if (k + 1 < w.items.size()) {
        items.push_back(out.text(","));
        items.push_back(trailing_comments(next_token(ast[w.items[k + 1].value].span.begin)));
      }
    }
    tail.push_back(out.group(out.indent(out.cat(items))));
    if (w.otherwise.valid()) {
      tail.push_back(out.text(" else "));
      tail.push_back(expr(w.otherwise));
    }
  }
  return out.group(out.cat({head, out.indent(out.cat(tail))}));
}

DocId Formatter::if_chain(ExprId id) {
  std::vector<DocId> parts;
  while (id.valid()) {
    const auto& n = std::get<If>(ast[id].node);
    parts.push_back(out.text("if "));
    parts.push_back(expr(n.cond));
    parts.push_back(out.text(" "));
    parts.push_back(block(n.then_block));
    if (!n.else_block.valid()) break;
    parts.push_back(out.text(" else "));
    bool again = std::holds_alternative<If>(ast[n.else_block].node);
    if (!again) parts.push_back(block(n.else_block));
    id = again ? n.else_block : ExprId();
  }
  return out.cat(parts);
}

DocId Formatter::match_expr(ExprId id) {
  const Expr& e = ast[id];
  const auto& n = std::get<Match>(e.node);
  std::vector<DocId> head{out.text("match "), expr(n.subject), out.text(" {")};
  std::vector<DocId> arms;
  for (size_t i = 0; i < n.arms.size(); ++i) {
    const MatchArm& arm = n.arms[i];
    uint32_t begin = ast[arm.pattern].span.begin;
    if (i == 0) arms.push_back(trailing_comments(begin));
    arms.push_back(out.line());
    arms.push_back(expr(arm.pattern));
    if (arm.guard.valid()) {
      arms.push_back(out.text(" if "));
      arms.push_back(expr(arm.guard));
    }
    arms.push_back(out.text(" => "));
    arms.push_back(expr(arm.body));
    bool last = i + 1 == n.arms.size();
    arms.push_back(last ? out.if_broken(",") : out.text(","));
    arms.push_back(trailing_comments(last ? e.span.end : ast[n.arms[i + 1].pattern].span.begin));
  }
  while (pending(e.span.end)) {
    arms.push_back(out.hard());
    arms.push_back(take_comment());
  }
  if (arms.empty()) return out.cat({out.cat(head), out.text("}")});
  if (!one_line(e.span)) arms.push_back(out.broken());
  head.push_back(out.indent(out.cat(arms)));
  head.push_back(out.line());
  head.push_back(out.text("}"));
  return out.group(out.cat(head));
}

// On one line only where the author had it so: `{ x }`.
DocId Formatter::block(ExprId id) {
  const Expr& e = ast[id];
  const auto& n = std::get<Block>(e.node);
  DocId before = comments_before(e.span.begin);
  if (n.stmts.empty() && n.value.valid() && ast[n.value].span == e.span) {
    return out.cat({before, bare(n.value)});  // a record, in the braces of its block
  }
  uint32_t begin = next_token(e.span.begin + 1);
  if (n.stmts.empty() && !pending(e.span.end)) {
    if (!n.value.valid()) return out.cat({before, out.text("{}")});
    DocId value = expr(n.value);
    DocId stay = one_line(e.span) ? out.cat({}) : out.broken();
    return out.cat({before, out.text("{"), out.indent(out.cat({out.line(), value})), stay,
                    out.line(), out.text("}")});
  }
  DocId opening = trailing_comments(begin);
  std::vector<DocId> inner{out.hard()};
  statements(inner, n.stmts, n.value, e.span.begin, e.span.end);
  if (inner.size() == 1) inner.clear();  // only the comment after `{`
  return out.cat(
      {before, out.text("{"), opening, out.indent(out.cat(inner)), out.hard(), out.text("}")});
}

DocId Formatter::typed(TypeId id) {
  return id.valid() ? out.cat({out.text(": "), type(id)}) : out.cat({});
}

DocId Formatter::type(TypeId id) {
  auto joined = [&](const std::vector<TypeId>& items) {
    std::vector<DocId> parts;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) parts.push_back(out.text(", "));
      parts.push_back(type(items[i]));
    }
    if (items.size() == 1) parts.push_back(out.text(","));
    return out.cat(parts);
  };
  return match(
      ast[id].node, [&](const NamedType& t) { return name(t.name); },
      [&](const TensorType& t) {
        std::vector<DocId> parts{out.text("["), type(t.elem), out.text(";")};
        for (size_t i = 0; i < t.dims.size(); ++i) {
          const Dim& d = t.dims[i];
          parts.push_back(out.text(i > 0 ? ", " : " "));
          switch (d.kind) {
            case Dim::Kind::Extent: parts.push_back(expr(d.extent)); break;
            case Dim::Kind::Pack: parts.push_back(out.text(".." + text(d.name.symbol))); break;
            case Dim::Kind::Unknown: parts.push_back(out.text("?")); break;
            case Dim::Kind::AnyRank: parts.push_back(out.text("*")); break;
          }
        }
        parts.push_back(out.text("]"));
        return out.cat(parts);
      },
      [&](const TupleType& t) {
        if (t.names.empty()) return out.cat({out.text("("), joined(t.items), out.text(")")});
        std::vector<Item> fields;
        for (size_t i = 0; i < t.items.size(); ++i) {
          ExprId member = i < t.members.size() ? t.members[i] : ExprId{};
          Span begin = member ? ast[member].span : t.names[i].span;
          fields.push_back(
              {join(begin, ast[t.items[i]].span), [this, &t, i, member] {
                 DocId renamed = member ? out.cat({expr(member), out.text(" as ")}) : out.cat({});
                 return out.cat({renamed, name(t.names[i]), out.text(": "), type(t.items[i])});
               }});
        }
        return list("{", fields, "}", ast[id].span.end, false, true);
      },
      [&](const FnType& t) {
        std::vector<DocId> parts{out.text("fn(")};
        for (size_t i = 0; i < t.params.size(); ++i) {
          if (i > 0) parts.push_back(out.text(", "));
          parts.push_back(type(t.params[i]));
        }
        parts.push_back(out.text(") -> "));
        parts.push_back(type(t.result));
        return out.cat(parts);
      },
      [&](const ErrorType&) { return out.text(""); });
}

}  // namespace ein::ast

#include "syntax/dump.h"

#include <fmt/format.h>

#include "base/match.h"

namespace ein::ast {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      case '\0': out += "\\0"; break;
      default: out += c;
    }
  }
  return out + "\"";
}

std::string float_text(double value) {
  std::string s = fmt::format("{}", value);
  return s.find_first_of(".en") == std::string::npos ? s + ".0" : s;
}

struct Dumper {
  const Ast& ast;
  std::string out;

  void put(const std::string& s) { out += s; }
  void put(const char* s) { out += s; }
  void put(const Name& name) { out += name.symbol.valid() ? text(name.symbol) : "<error>"; }

  void path(const std::vector<Name>& parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i > 0) put("::");
      put(parts[i]);
    }
  }

  void optional(ExprId id) {
    if (!id.valid()) return;
    put(" ");
    expr(id);
  }
  void typed(TypeId id) {
    if (!id.valid()) return;
    put(" (: ");
    type(id);
    put(")");
  }
  void all(const std::vector<ExprId>& ids) {
    for (ExprId id : ids) optional(id);
  }

  // Down the chain of first operands writing what comes before each, then back up.
  void expr(ExprId id) {
    std::vector<ExprId> chain;
    for (; id.valid(); id = leading_operand(ast[id].node)) {
      open(ast[id].node);
      chain.push_back(id);
    }
    for (size_t i = chain.size(); i-- > 0;) close(ast[chain[i]].node);
  }

  // What stands before the leading operand.
  void open(const ExprNode& node) {
    match(
        node, [&](const Index&) { put("(index "); },
        [&](const Call& n) {
          put("(call ");
          if (!n.method) return;
          put(".");  // `x.len`: the leading operand is the first argument
          expr(n.callee);
          put(" ");
        },
        [&](const Binary& n) { put(fmt::format("({} ", spelling(n.op))); },
        [&](const Cast&) { put("(as "); }, [&](const Field&) { put("(field "); },
        [&](const Where&) { put("(where "); },
        [&](const Range& n) { put(n.inclusive ? "(..= " : "(.. "); }, [&](const auto&) {});
  }

  void close(const ExprNode& node) {
    match(
        node, [&](const IntLit& n) { put(std::to_string(n.value)); },
        [&](const FloatLit& n) { put(float_text(n.value)); },
        [&](const BoolLit& n) { put(n.value ? "true" : "false"); },
        [&](const StrLit& n) { string(n); }, [&](const Path& n) { path(n.parts); },
        [&](const PackRef& n) {
          put("..");
          put(n.name);
        },
        [&](const Index& n) {
          all(n.at);
          put(")");
        },
        [&](const Call& n) {
          if (n.has_brackets) brackets(n.brackets);
          arguments(n);
          put(")");
        },
        [&](const Unary& n) {
          put(n.op == UnaryOp::Neg    ? "(neg "
              : n.op == UnaryOp::Plus ? "(plus "
              : n.op == UnaryOp::Not  ? "(not "
                                      : "(bitnot ");
          expr(n.arg);
          put(")");
        },
        [&](const Binary& n) {
          optional(n.rhs);
          put(")");
        },
        [&](const Cast& n) {
          put(" ");
          type(n.type);
          put(")");
        },
        [&](const Range& n) {
          optional(n.hi);
          put(")");
        },
        [&](const If& n) { if_chain(n); }, [&](const Block& n) { block(n); },
        [&](const Tuple& n) {
          put("(tuple");
          all(n.items);
          put(")");
        },
        [&](const Array& n) {
          put("(array");
          all(n.items);
          put(")");
        },
        [&](const Field& n) {
          put(n.name.symbol ? " " + ein::text(n.name.symbol) + ")" : fmt::format(" {})", n.index));
        },
        [&](const Record& n) {
          put("(record");
          if (n.base.valid()) {
            put(" (..");
            optional(n.base);
            put(")");
          }
          for (const RecordField& f : n.fields) {
            put(" (");
            put(f.name);
            optional(f.value);
            put(")");
          }
          put(")");
        },
        [&](const Comprehension& n) {
          put("(each");
          optional(n.body);
          for (const Generator& g : n.generators) {
            if (!g.name.symbol.valid()) {
              optional(g.value);
              continue;
            }
            put(" (in ");
            put(g.name);
            optional(g.value);
            put(")");
          }
          put(")");
        },
        [&](const Lambda& n) { lambda(n); },
        [&](const Alternatives& n) {
          put("(or");
          all(n.items);
          put(")");
        },
        [&](const NamedPattern& n) {
          put("(@ ");
          put(n.name);
          optional(n.pattern);
          put(")");
        },
        [&](const Match& n) { match_arms(n); }, [&](const Where& n) { where(n); },
        [&](const Request& n) {
          put(n.den.valid() ? "(request" : "(tangent");
          optional(n.num);
          optional(n.den);
          put(")");
        },
        [&](const Error&) { put("<error>"); });
  }

  void string(const StrLit& n) {
    if (n.pieces.empty()) return put("\"\"");
    bool plain = n.pieces.size() == 1 && !n.pieces[0].value.valid();
    if (plain) return put(quoted(n.pieces[0].text));
    put("(str");
    for (const StrPiece& piece : n.pieces) {
      put(" ");
      if (!piece.value.valid()) {
        put(quoted(piece.text));
      } else if (piece.format.empty()) {
        expr(piece.value);
      } else {
        put("(fmt ");
        expr(piece.value);
        put(" " + quoted(piece.format) + ")");
      }
    }
    put(")");
  }

  void arguments(const Call& n) {
    for (size_t i = n.method ? 1 : 0; i < n.args.size(); ++i) {
      const bool named = !n.names.empty() && n.names[i].symbol.valid();
      if (!named) {
        optional(n.args[i]);
        continue;
      }
      put(" (= ");
      put(n.names[i]);
      optional(n.args[i]);
      put(")");
    }
  }

  void brackets(const std::vector<Bracket>& items) {
    put(" [");
    for (size_t i = 0; i < items.size(); ++i) {
      const Bracket& b = items[i];
      if (i > 0) put(" ");
      if (!b.group.empty()) {
        put("(group");
        for (const Name& name : b.group) {
          put(" ");
          put(name);
        }
        put(")");
      } else {
        indexed(b.name, b.pack, b.range);
      }
    }
    put("]");
  }

  void indexed(const Name& name, bool pack, ExprId range) {
    if (range.valid()) put("(in ");
    if (pack) put("..");
    put(name);
    optional(range);
    if (range.valid()) put(")");
  }

  void if_chain(const If& first) {
    size_t depth = 0;
    for (const If* n = &first; n != nullptr;) {
      put("(if");
      ++depth;
      optional(n->cond);
      optional(n->then_block);
      const If* next = n->else_block.valid() ? std::get_if<If>(&ast[n->else_block].node) : nullptr;
      if (next == nullptr) {
        optional(n->else_block);
      } else {
        put(" ");
      }
      n = next;
    }
    out.append(depth, ')');
  }

  void block(const Block& n) {
    put("(block");
    for (StmtId id : n.stmts) {
      put(" ");
      stmt(id);
    }
    if (n.value.valid()) {
      put(" => ");
      expr(n.value);
    }
    put(")");
  }

  void lambda(const Lambda& n) {
    put("(lambda (");
    for (size_t i = 0; i < n.params.size(); ++i) {
      if (i > 0) put(" ");
      put(n.params[i].name);
      typed(n.params[i].type);
    }
    put(")");
    optional(n.body);
    put(")");
  }

  void match_arms(const Match& n) {
    put("(match");
    optional(n.subject);
    for (const MatchArm& arm : n.arms) {
      put(" (arm");
      optional(arm.pattern);
      if (arm.guard.valid()) {
        put(" (when");
        optional(arm.guard);
        put(")");
      }
      optional(arm.body);
      put(")");
    }
    put(")");
  }

  void where(const Where& n) {
    for (const WhereItem& item : n.items) {
      if (item.bind) {
        put(" (bind ");
        put(*item.bind);
        optional(item.value);
        put(")");
      } else {
        optional(item.value);
      }
    }
    if (n.otherwise.valid()) {
      put(" (else");
      optional(n.otherwise);
      put(")");
    }
    put(")");
  }

  void type(TypeId id) {
    match(
        ast[id].node, [&](const NamedType& t) { put(t.name); },
        [&](const TensorType& t) {
          put("(tensor ");
          type(t.elem);
          for (const Dim& d : t.dims) dim(d);
          put(")");
        },
        [&](const TupleType& t) {
          put(t.names.empty() ? "(tuple" : "(record");
          for (size_t i = 0; i < t.items.size(); ++i) {
            put(" ");
            if (!t.names.empty()) put("(" + ein::text(t.names[i].symbol) + " ");
            if (i < t.members.size() && t.members[i]) {
              expr(t.members[i]);
              put(" ");
            }
            type(t.items[i]);
            if (!t.names.empty()) put(")");
          }
          put(")");
        },
        [&](const FnType& t) {
          put("(fn (");
          for (size_t i = 0; i < t.params.size(); ++i) {
            if (i > 0) put(" ");
            type(t.params[i]);
          }
          put(") ");
          type(t.result);
          put(")");
        },
        [&](const ErrorType&) { put("<error>"); });
  }

  void dim(const Dim& d) {
    put(" ");
    switch (d.kind) {
      case Dim::Kind::Extent: return expr(d.extent);
      case Dim::Kind::Unknown: return put("?");
      case Dim::Kind::AnyRank: return put("*");
      case Dim::Kind::Pack: put(".."); return put(d.name);
    }
  }

  void stmt(StmtId id) {
    const Stmt& s = ast[id];
    if (!s.doc.empty()) put("(doc " + quoted(s.doc) + ") ");
    for (const Attribute& a : s.attributes) {
      put("#(");
      put(a.name);
      all(a.args);
      put(") ");
    }
    match(
        s.node, [&](const Let& n) { let(n); },
        [&](const Const& n) {
          put(n.pub ? "(pub-const " : "(const ");
          put(n.name);
          typed(n.type);
          optional(n.value);
          put(")");
        },
        [&](const Fn& n) { fn(n); }, [&](const Use& n) { use(n); },
        [&](const Mod& n) {
          put("(mod ");
          put(n.name);
          put(")");
        },
        [&](const TypeDef& n) {
          put(n.pub ? "(pub-type " : "(type ");
          put(n.name);
          put(" ");
          type(n.type);
          put(")");
        },
        [&](const ExprStmt& n) {
          put("(do");
          optional(n.value);
          put(")");
        },
        [&](const Test& n) {
          put("(test " + quoted(n.name));
          optional(n.body);
          put(")");
        },
        [&](const ErrorStmt&) { put("<error>"); });
  }

  void let(const Let& n) {
    put(n.value.valid() ? "(let " : "(input ");
    if (n.tuple) put(n.record ? "{" : "(");
    for (size_t i = 0; i < n.names.size(); ++i) {
      if (i > 0) put(" ");
      put(n.names[i]);
    }
    if (n.tuple) put(n.record ? "}" : ")");
    if (n.has_slots) {
      put(" [");
      for (size_t i = 0; i < n.slots.size(); ++i) {
        const Slot& s = n.slots[i];
        if (i > 0) put(" ");
        if (s.kind == Slot::Kind::Literal) {
          expr(s.at);
        } else {
          indexed(s.name, s.kind == Slot::Kind::Pack, s.range);
        }
      }
      put("]");
    }
    typed(n.type);
    optional(n.value);
    if (n.until.valid()) {
      put(" (until");
      optional(n.until);
      put(")");
    }
    put(")");
  }

  void fn(const Fn& n) {
    put(n.rule ? "(@fn " : n.pub ? "(pub-fn " : "(fn ");
    put(n.name);
    if (!n.coords.empty()) {
      put(" [");
      for (size_t i = 0; i < n.coords.size(); ++i) {
        if (i > 0) put(" ");
        indexed(n.coords[i].name, n.coords[i].pack, {});
      }
      put("]");
    }
    put(" (");
    for (size_t i = 0; i < n.params.size(); ++i) {
      if (i > 0) put(" ");
      put(n.params[i].name);
      typed(n.params[i].type);
      if (!n.params[i].value.valid()) continue;
      put(" (=");
      optional(n.params[i].value);
      put(")");
    }
    put(")");
    if (n.result.valid()) {
      put(" (-> ");
      type(n.result);
      put(")");
    }
    optional(n.body);
    put(")");
  }

  void use(const Use& n) {
    put(n.pub ? "(pub-use " : "(use ");
    path(n.path);
    if (n.glob) put(" *");
    for (const UseItem& item : n.items) {
      put(item.alias ? " (as " : " ");
      put(item.name);
      if (!item.alias) continue;
      put(" ");
      put(*item.alias);
      put(")");
    }
    if (n.alias) {
      put(" (as ");
      put(*n.alias);
      put(")");
    }
    put(")");
  }
};

}  // namespace

std::string dump(const Ast& ast) {
  Dumper d{ast, {}};
  for (StmtId id : ast.items) {
    d.stmt(id);
    d.put("\n");
  }
  return std::move(d.out);
}

std::string dump(const Ast& ast, ExprId id) {
  Dumper d{ast, {}};
  d.expr(id);
  return std::move(d.out);
}

std::string dump(const Ast& ast, TypeId id) {
  Dumper d{ast, {}};
  d.type(id);
  return std::move(d.out);
}

std::string dump(const Ast& ast, StmtId id) {
  Dumper d{ast, {}};
  d.stmt(id);
  return std::move(d.out);
}

const char* spelling(BinaryOp op) {
  switch (op) {
    case BinaryOp::Add: return "+";
    case BinaryOp::Sub: return "-";
    case BinaryOp::Mul: return "*";
    case BinaryOp::Div: return "/";
    case BinaryOp::Mod: return "%";
    case BinaryOp::Pow: return "**";
    case BinaryOp::BitAnd: return "&";
    case BinaryOp::BitOr: return "|";
    case BinaryOp::BitXor: return "^";
    case BinaryOp::Shl: return "<<";
    case BinaryOp::Shr: return ">>";
    case BinaryOp::Lt: return "<";
    case BinaryOp::Le: return "<=";
    case BinaryOp::Gt: return ">";
    case BinaryOp::Ge: return ">=";
    case BinaryOp::Eq: return "==";
    case BinaryOp::Ne: return "!=";
    case BinaryOp::In: return "in";
    case BinaryOp::And: return "&&";
    case BinaryOp::Or: return "||";
  }
  return "?";
}

const char* spelling(UnaryOp op) {
  switch (op) {
    case UnaryOp::Neg: return "-";
    case UnaryOp::Plus: return "+";
    case UnaryOp::Not: return "!";
    case UnaryOp::BitNot: return "~";
  }
  return "?";
}

ExprId leading_operand(const ExprNode& node) {
  return match(
      node, [](const Index& n) { return n.base; },
      [](const Call& n) { return n.method ? n.args[0] : n.callee; },
      [](const Binary& n) { return n.lhs; }, [](const Cast& n) { return n.arg; },
      [](const Range& n) { return n.lo; }, [](const Field& n) { return n.base; },
      [](const Where& n) { return n.body; }, [](const auto&) { return ExprId(); });
}

}  // namespace ein::ast

#include "core/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "base/match.h"
#include "core/build.h"
#include "core/groups.h"
#include "core/print_effects.h"
#include "core/print_order.h"
#include "core/rewrite.h"
#include "runtime/csv_options.h"

namespace ein::core {
namespace {

// Binding strength, loosest first; an operand is parenthesised when it binds looser than its place.
enum Strength {
  kWhere,
  kOr,
  kAnd,
  kCompare,
  kRange,
  kBitOr,
  kBitXor,
  kBitAnd,
  kShift,
  kSum,
  kProduct,
  kUnary,
  kPower,
  kCast,
  kPostfix
};

struct Text {
  std::string s;
  Strength strength;
};

// By value: a sum of thousands of terms then grows one string instead of copying it for each term.
std::string at_least(Text t, Strength s) {
  return t.strength >= s ? std::move(t.s) : "(" + std::move(t.s) + ")";
}

std::string float_text(double v, DType type) {
  if (std::isnan(v)) return "(0.0 / 0.0)";
  if (std::isinf(v)) return v < 0 ? "(-1.0 / 0.0)" : "(1.0 / 0.0)";
  std::string s =
      type == DType::F64 ? fmt::format("{}", v) : fmt::format("{}", static_cast<float>(v));
  return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}

bool is_zero(const Module& m, ExprId e) {
  if (const auto* f = get_if<FloatLit>(m, e)) return f->value == 0 && !std::signbit(f->value);
  const auto* i = get_if<IntLit>(m, e);
  return i && i->value == 0;
}

// Nothing in the expression fixes its numeric type: literals, indices, extents.
bool flexible(const Module& m, ExprId e) {
  return match(
      m[e].node, [](const FloatLit&) { return true; }, [](const IntLit&) { return true; },
      [](const BoolLit&) { return false; }, [](const Slot&) { return true; },
      [](const ParamRef&) { return true; },
      [&](const Affine& n) {
        return std::all_of(n.terms.begin(), n.terms.end(),
                           [&](const Affine::Term& t) { return flexible(m, t.atom); });
      },
      [&](const Apply& n) {
        OpClass cls = info(n.op).cls;
        if (cls == OpClass::Cast || cls == OpClass::Compare || cls == OpClass::Logic) return false;
        if (cls == OpClass::Draw) return false;
        size_t first = n.op == Op::Select ? 1 : 0;
        return std::all_of(n.args.begin() + static_cast<ptrdiff_t>(first), n.args.end(),
                           [&](ExprId a) { return flexible(m, a); });
      },
      [](const Access&) { return false; },
      [&](const Reduce& n) {
        return n.op != ReduceOp::ArgMax && n.op != ReduceOp::ArgMin && flexible(m, n.body);
      },
      [](const Request&) { return false; }, [](const Call&) { return false; },
      [](const Arg&) { return false; });
}

using Values = std::unordered_set<Symbol>;

// Whether `e` uses a slot elsewhere than in brackets, in a range or in a comparison. There, an
// index may have the name of a value.
bool as_number(const Module& m, ExprId e, uint32_t slot, std::unordered_set<ExprId>& seen) {
  if (!(m[e].free >> slot & 1) || !seen.insert(e).second) return false;
  if (get_if<Slot>(m, e)) return true;
  const auto* a = get_if<Apply>(m, e);
  if (get_if<Access>(m, e) || (a && info(a->op).cls == OpClass::Compare)) return false;
  if (const auto* r = get_if<Reduce>(m, e)) {
    return as_number(m, r->body, slot, seen) || (r->gate && as_number(m, r->gate, slot, seen));
  }
  bool found = false;
  for_each_child(m, e, [&](ExprId c) { found = found || as_number(m, c, slot, seen); });
  return found;
}

bool reads_number(const Module& m, ExprId e, Symbol name) {
  bool found = false;
  for_each_node(m, e, [&](ExprId x) {
    const auto* a = get_if<Access>(m, x);
    found |= a && a->at.empty() && m[a->family].name == name;
  });
  return found;
}

class Printer {
 public:
  Printer(const Module& m, const Family& family) : m_(m) {
    for (const Coord& c : family.coords) names_.push_back(unused(c.name ? text(c.name) : "i"));
  }

  // The clause of a whole program, in which `values` are the names of all families.
  Printer(const Module& m, const Family& family, ExprId body, const Values& values)
      : m_(m), values_(&values) {
    for (const Coord& c : family.coords) {
      names_.push_back(index_named(c.name ? text(c.name) : "i", {body}));
    }
  }

  Printer(const Module& m, const std::vector<Symbol>& slots, bool brief) : m_(m), brief_(brief) {
    for (Symbol s : slots) names_.push_back(unused(s ? text(s) : "i"));
  }

  Printer(const Module& m, const Function& function) : m_(m) {
    for (const auto& p : function.params) names_.push_back(unused(text(p.name)));
  }

  const std::string& coordinate(size_t k) const { return names_[k]; }

  std::string clause_body(ExprId body) {
    if (const auto* a = get_if<Apply>(m_, body);
        a && a->op == Op::Select && is_zero(m_, a->args[2])) {
      Text value = expr(a->args[1]);
      return at_least(value, kOr) + " where " + conditions(a->args[0]);
    }
    return expr(body).s;
  }

  Text expr(ExprId e) {
    const Expr& x = m_[e];
    return match(
        x.node,
        [&](const FloatLit& n) {
          return Text{float_text(n.value, x.type), std::signbit(n.value) ? kUnary : kPostfix};
        },
        [&](const IntLit& n) {
          return Text{std::to_string(n.value), n.value < 0 ? kUnary : kPostfix};
        },
        [&](const BoolLit& n) {
          return Text{n.value ? "true" : "false", kPostfix};
        },
        [&](const Slot& n) {
          return Text{names_.at(n.n), kPostfix};
        },
        [&](const ParamRef& n) {
          return Text{extent(n.param), kPostfix};
        },
        [&](const Affine& n) { return affine(n); },
        [&](const Apply& n) { return apply_text(n, x); },
        [&](const Access& n) {
          return Text{access_text(n.family, n.at), kPostfix};
        },
        [&](const Reduce& n) { return reduction(n); },
        [&](const Request& n) {
          return Text{"@" + access_text(n.num, n.num_at) + " / @" + access_text(n.den, n.den_at),
                      kPostfix};
        },
        [&](const Call& n) {
          std::vector<std::string> args;
          for (ExprId a : n.args) args.push_back(expr(a).s);
          return Text{
              fmt::format("{}({})", text(m_.functions[n.function].name), fmt::join(args, ", ")),
              kPostfix};
        },
        [&](const Arg& n) {
          return Text{names_.at(n.n), kPostfix};
        });
  }

  std::string range(const Range& r) {
    return at_least(expr(r.lo), kSum) + ".." + at_least(expr(r.hi), kSum);
  }

 private:
  // A symbolic extent is written by its name, unless an index or a value of that name is in scope.
  std::string extent(ParamId id) {
    const Param& p = m_.params[id];
    bool hidden = std::find(names_.begin(), names_.end(), text(p.name)) != names_.end() ||
                  hidden_.contains(text(p.name)) || (values_ && values_->contains(p.name));
    if (p.position == Param::kItself || (p.name && !hidden)) return text(p.name);
    return asked_extent(p);
  }

  std::string asked_extent(const Param& p) {
    return fmt::format("extent({}, {})", text(m_[p.source].name), p.position);
  }

  std::string access_text(FamilyId f, const std::vector<ExprId>& at) {
    if (at.empty()) return text(m_[f].name);
    std::vector<std::string> parts;
    for (ExprId e : at) parts.push_back(index(e));
    return fmt::format("{}[{}]", text(m_[f].name), fmt::join(parts, ", "));
  }

  // In an index slot an integer value needs no cast.
  std::string index(ExprId e) {
    if (const auto* a = get_if<Apply>(m_, e);
        a && a->op == Op::Cast && is_int(m_[a->args[0]].type)) {
      return expr(a->args[0]).s;
    }
    // Alone in a slot the name of an extent would be read as an index.
    if (const auto* p = get_if<ParamRef>(m_, e);
        p && m_.params[p->param].position != Param::kItself)
      return asked_extent(m_.params[p->param]);
    return expr(e).s;
  }

  Text affine(const Affine& n) {
    struct Part {
      bool negative;
      int rank;
      std::string s;
    };
    std::vector<Part> parts;
    for (const auto& t : n.terms) {
      Text atom = expr(t.atom);
      int64_t c = std::abs(t.coef);
      std::string s =
          c == 1 ? at_least(atom, kProduct) : std::to_string(c) + " * " + at_least(atom, kUnary);
      uint32_t slot = slot_of(m_, t.atom);
      parts.push_back({t.coef < 0, slot == ~0u ? 1000 : static_cast<int>(slot), std::move(s)});
    }
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
      return std::tie(a.negative, a.rank, a.s) < std::tie(b.negative, b.rank, b.s);
    });
    std::string out;
    // A leading negative term would read `-k + 3`; the constant goes first instead.
    bool constant_first = parts[0].negative && n.constant > 0;
    if (constant_first) out = std::to_string(n.constant);
    for (const Part& p : parts) {
      if (out.empty()) {
        out = p.negative ? "-" + p.s : p.s;
      } else {
        out += (p.negative ? " - " : " + ") + p.s;
      }
    }
    if (n.constant != 0 && !constant_first) {
      out += fmt::format(" {} {}", n.constant < 0 ? '-' : '+', std::abs(n.constant));
    }
    bool product = n.terms.size() == 1 && n.constant == 0;
    return {out, product ? (n.terms[0].coef < 0 ? kUnary : kProduct) : kSum};
  }

  Text apply_text(const Apply& n, const Expr& x) {
    std::string op = info(n.op).spelling;
    auto binary = [&](Strength own, Strength left, Strength right) {
      return Text{
          at_least(expr(n.args[0]), left) + " " + op + " " + at_least(expr(n.args[1]), right), own};
    };
    switch (n.op) {
      case Op::Add:
      case Op::Sub:
        return {
            at_least(term(n.args[0]), kSum) + " " + op + " " + at_least(term(n.args[1]), kProduct),
            kSum};
      case Op::Mul:
      case Op::Div:
      case Op::Mod: return binary(kProduct, kProduct, kUnary);
      case Op::Pow: return binary(kPower, kCast, kPower);
      case Op::BitOr: return binary(kBitOr, kBitOr, kBitXor);
      case Op::BitXor: return binary(kBitXor, kBitXor, kBitAnd);
      case Op::BitAnd: return binary(kBitAnd, kBitAnd, kShift);
      case Op::Shl:
      case Op::Shr: return binary(kShift, kShift, kSum);
      case Op::BitNot:
      case Op::Neg:
      case Op::Not: return {op + at_least(expr(n.args[0]), kUnary), kUnary};
      case Op::And: return binary(kAnd, kAnd, kCompare);
      case Op::Or: return binary(kOr, kOr, kAnd);
      case Op::Lt:
      case Op::Le:
      case Op::Gt:
      case Op::Ge:
      case Op::Eq:
      case Op::Ne: return comparison(n);
      case Op::Select: return {selection(n), kPostfix};
      case Op::Tangent: return {"@" + at_least(expr(n.args[0]), kPostfix), kPostfix};
      case Op::Factor: {
        std::string which = expr(n.args[0]).s, i = index(n.args[1]), j = index(n.args[2]);
        std::string cells = expr(n.args[3]).s;
        if (n.args[4] != n.args[3]) cells += ", " + expr(n.args[4]).s;
        return {fmt::format("{}({}, {}, {}, {})", op, which, i, j, cells), kPostfix};
      }
      case Op::Cast: return {at_least(expr(n.args[0]), kCast) + " as " + name_of(x.type), kCast};
      default: {
        std::vector<std::string> args;
        if (info(n.op).cls == OpClass::Draw) {
          addresses(n.args[0], args);
        } else {
          for (ExprId a : n.args) args.push_back(expr(a).s);
        }
        return {fmt::format("{}({})", op, fmt::join(args, ", ")), kPostfix};
      }
    }
  }

  // Of a sum: where one counts only under a condition, the condition stands behind it.
  Text term(ExprId e) {
    const auto* a = get_if<Apply>(m_, e);
    if (!a || a->op != Op::Select || !is_zero(m_, a->args[2])) return expr(e);
    std::string value = at_least(expr(a->args[1]), kOr);
    return {fmt::format("({} where {})", value, gate(a->args[0])), kPostfix};
  }

  // A condition behind a value whose reductions must not take it for theirs: an extent named like
  // one of their binders is spelled in another way.
  std::string gate(ExprId cond) {
    std::set<std::string> outer = std::exchange(hidden_, bound_);
    std::string out = at_least(expr(cond), kOr);
    hidden_ = std::move(outer);
    return out;
  }

  // Written front to back: thousands of selections may nest in each other's last arms, and each
  // would copy the text of all those inside it.
  std::string selection(const Apply& first) {
    std::string out;
    const Apply* n = &first;
    for (;;) {
      out += "if " + expr(n->args[0]).s + " { " + expr(n->args[1]).s + " } else ";
      const auto* next = get_if<Apply>(m_, n->args[2]);
      if (!next || next->op != Op::Select) return out + "{ " + expr(n->args[2]).s + " }";
      n = next;
    }
  }

  // The seed and the addresses of a random number, which chain through philox.
  void addresses(ExprId bits, std::vector<std::string>& out) {
    const auto* a = get_if<Apply>(m_, bits);
    if (a && a->op == Op::Philox) {
      addresses(a->args[0], out);
      out.push_back(index(a->args[1]));
    } else {
      out.push_back(index(bits));
    }
  }

  // `idx[k] == r`: an integer value beside an index is compared as an index, without a cast.
  Text comparison(const Apply& n) {
    auto side = [&](ExprId a, ExprId other) {
      const auto* c = get_if<Apply>(m_, a);
      bool widened = c && c->op == Op::Cast && m_[a].type == DType::I64 &&
                     is_int(m_[c->args[0]].type) && flexible(m_, other) &&
                     !get_if<IntLit>(m_, other);
      return at_least(expr(widened ? c->args[0] : a), kSum);
    };
    return {
        side(n.args[0], n.args[1]) + " " + info(n.op).spelling + " " + side(n.args[1], n.args[0]),
        kCompare};
  }

  std::string conditions(ExprId cond) {
    std::vector<ExprId> parts;
    conjuncts(m_, cond, parts);
    std::vector<std::string> out;
    for (ExprId p : parts) out.push_back(gate(p));
    return fmt::format("{}", fmt::join(out, ", "));
  }

  Text reduction(const Reduce& n) {
    EIN_CHECK(names_.size() == n.first, "binders are not numbered from the slots in scope");
    std::vector<std::string> binders;
    for (size_t k = 0; k < n.over.size(); ++k) {
      std::string r = range(n.over[k]);  // its own name is not in scope yet
      names_.push_back(index_named(n.names[k] ? text(n.names[k]) : "k", {n.body, n.gate}));
      bound_.insert(names_.back());
      binders.push_back(brief_ ? names_.back() : names_.back() + " in " + r);
    }
    std::string body = at_least(expr(n.body), kOr);
    std::vector<std::string> gates;  // inside parentheses a `where` takes one condition
    if (n.gate) gates.push_back(at_least(expr(n.gate), n.routes.empty() ? kOr : kAnd));
    for (const Route& r : n.routes) {
      gates.push_back(at_least(route_value(r.to), kSum) + " == " + names_[r.slot]);
    }
    // Source has to mention every index it sums over; a condition that always holds does.
    uint64_t mentioned = m_[n.body].free | (n.gate ? m_[n.gate].free : 0);
    for (const Route& r : n.routes) mentioned |= m_[r.to].free | uint64_t{1} << r.slot;
    for (size_t k = 0; k < n.over.size() && !brief_; ++k) {
      if (mentioned >> (n.first + k) & 1 || n.op == ReduceOp::Collect) continue;
      gates.push_back(names_[n.first + k] + " >= " + at_least(expr(n.over[k].lo), kSum));
    }
    names_.resize(n.first);
    std::string where = gates.empty() ? "" : fmt::format(" where {}", fmt::join(gates, " && "));
    return {fmt::format("{}[{}]({}{})", name_of(n.op), fmt::join(binders, ", "), body, where),
            kPostfix};
  }

  Text route_value(ExprId to) {
    const auto* c = get_if<Apply>(m_, to);
    return expr(c && c->op == Op::Cast && is_int(m_[c->args[0]].type) ? c->args[0] : to);
  }

  // `base`, or `base_1` … where that name is in scope already.
  std::string unused(const std::string& base, bool as_value = false) {
    std::string name = base;
    auto taken = [&] {
      return std::find(names_.begin(), names_.end(), name) != names_.end() ||
             (as_value && values_->contains(intern(name)));
    };
    for (int n = 1; taken(); ++n) name = base + "_" + std::to_string(n);
    return name;
  }

  // The name of the next slot, which `used` may use. Where source would not say whether the index
  // or a value is meant, it is another name.
  std::string index_named(const std::string& base, std::initializer_list<ExprId> used) {
    Symbol name = intern(base);
    auto slot = static_cast<uint32_t>(names_.size());
    bool as_value =
        values_ && values_->contains(name) && std::any_of(used.begin(), used.end(), [&](ExprId e) {
          std::unordered_set<ExprId> seen;
          return e && (as_number(m_, e, slot, seen) || reads_number(m_, e, name));
        });
    return unused(base, as_value);
  }

  const Module& m_;
  const Values* values_ = nullptr;  // none: what is printed is read by people only
  bool brief_ = false;              // reductions without ranges
  std::vector<std::string> names_;  // by slot
  std::set<std::string> bound_;     // by reductions printed so far
  std::set<std::string> hidden_;    // extents of these names need another spelling
};

}  // namespace

std::string csv_arguments(const std::string& options) {
  const CsvOptions o = parse_csv_options(options);
  std::string out;
  if (o.headings) out += fmt::format(", headings = {}", *o.headings);
  if (!o.columns.empty()) {
    std::vector<std::string> names;
    for (const std::string& column : o.columns) names.push_back(quoted(column));
    out += fmt::format(", columns = [{}]", fmt::join(names, ", "));
  }
  if (o.labels) out += ", labels = true";
  if (o.missing) out += ", missing = " + *o.missing;
  if (o.separator != '\0') out += ", separator = " + quoted(std::string(1, o.separator));
  if (o.decimal_comma) out += ", decimal = \",\"";
  return out;
}

namespace {

std::string load_text(const Module& m, const Family& f) {
  std::string type;
  std::vector<std::string> dims;
  Printer p(m, Family{});
  for (const Coord& c : f.coords) {
    dims.push_back(c.name ? text(c.name) : p.expr(c.extent).s);
    if (c.name) type = ":";
  }
  if (!type.empty()) type = fmt::format(": [{}; {}]", name_of(f.dtype), fmt::join(dims, ", "));
  const std::string& member = f.file->member;
  std::string more = member.empty() ? "" : ", " + quoted(member), cast;
  if (is_csv(f.file->path)) {
    more = csv_arguments(member);
    if (parse_csv_options(member).type) cast = fmt::format(" as {}", name_of(f.dtype));
  }
  return fmt::format("let {}{} = load({}{}){};\n", text(f.name), type, quoted(f.file->written),
                     more, cast);
}

std::string input_text(const Module& m, const Family& f) {
  if (f.file) return load_text(m, f);
  if (f.coords.empty()) return fmt::format("let {}: {};\n", text(f.name), name_of(f.dtype));
  Printer p(m, Family{});
  std::vector<std::string> dims;
  for (const Coord& c : f.coords) {
    const auto* ref = get_if<ParamRef>(m, c.extent);
    dims.push_back(ref && !m.params[ref->param].name ? "?" : p.expr(c.extent).s);
  }
  return fmt::format("let {}: [{}; {}];\n", text(f.name), name_of(f.dtype), fmt::join(dims, ", "));
}

// Families of a recurrence in which every clause reads the recurrence: only an annotation
// fixes their type.
std::set<FamilyId> ungrounded(Module& m) {
  std::set<FamilyId> out;
  std::function<void(const Sequence&)> visit = [&](const Sequence& q) {
    std::set<FamilyId> members;
    for (const auto& member : q.members) members.insert(member.family);
    for (FamilyId id : members) {
      bool reads = std::all_of(m[id].clauses.begin(), m[id].clauses.end(), [&](const Clause& c) {
        bool found = false;
        for_each_node(m, c.body, [&](ExprId e) {
          const auto* a = get_if<Access>(m, e);
          found |= a && members.contains(a->family);
        });
        return found;
      });
      if (reads) out.insert(id);
    }
  };
  for (const Step& s : schedule(m, {}).steps) {
    if (const auto* q = std::get_if<Sequence>(&s)) visit(*q);
  }
  return out;
}

// The type must be written where nothing in the value fixes it.
std::string annotation(const Module& m, const Family& f, ExprId body, bool grounded) {
  if (!grounded) return fmt::format(": {}", name_of(f.dtype));
  if (!flexible(m, body)) return "";
  bool by_default = f.dtype == DType::F32 ? is_float(m[body].type) : f.dtype == DType::I32;
  return by_default ? "" : fmt::format(": {}", name_of(f.dtype));
}

// The clause covers one address of coordinate k and its body does not use that index.
bool is_point(const Module& m, const Clause& c, size_t k) {
  auto lo = const_int(m, c.box[k].lo), hi = const_int(m, c.box[k].hi);
  return lo && hi && *hi == *lo + 1 && !mentions_slot(m, c.body, static_cast<uint32_t>(k));
}

std::string clause_text(Module& m, const Family& f, const Clause& c, bool grounded,
                        const Values& values) {
  Printer p(m, f, c.body, values);
  std::vector<std::string> slots;
  Printer outside(m, Family{}, {}, values);
  for (size_t k = 0; k < c.box.size(); ++k) {
    bool point = is_point(m, c, k) && f.clauses.size() > 1;
    // Some clause has to name the coordinate.
    if (point && &c == &f.clauses.front() && f.coords[k].name) {
      point = !std::all_of(f.clauses.begin(), f.clauses.end(),
                           [&](const Clause& o) { return is_point(m, o, k); });
    }
    slots.push_back(point ? std::to_string(*const_int(m, c.box[k].lo))
                          : p.coordinate(k) + " in " + outside.range(c.box[k]));
  }
  std::string left = text(f.name);
  if (!slots.empty()) left += fmt::format("[{}]", fmt::join(slots, ", "));
  return fmt::format("let {}{} = {};\n", left, annotation(m, f, c.body, grounded),
                     p.clause_body(c.body));
}

std::string table_text(const Module& m, const Family& f) {
  Printer p(m, Family{});
  size_t next = 0;
  std::function<std::string(size_t)> level = [&](size_t k) {
    if (k == f.coords.size()) return p.expr(f.cells[next++]).s;
    std::vector<std::string> items;
    int64_t n = const_int(m, f.coords[k].extent).value();
    for (int64_t i = 0; i < n; ++i) items.push_back(level(k + 1));
    return fmt::format("[{}]", fmt::join(items, ", "));
  };
  std::string type;
  bool plain =
      std::all_of(f.cells.begin(), f.cells.end(), [&](ExprId c) { return flexible(m, c); });
  bool named =
      std::any_of(f.coords.begin(), f.coords.end(), [](const Coord& c) { return c.name.valid(); });
  bool by_default = f.dtype == DType::F32 || f.dtype == DType::I32 || f.dtype == DType::Bool;
  if (named || f.cells.empty() || (plain && !by_default)) {
    std::vector<std::string> dims;
    for (const Coord& c : f.coords) dims.push_back(c.name ? text(c.name) : p.expr(c.extent).s);
    type = fmt::format(": [{}; {}]", name_of(f.dtype), fmt::join(dims, ", "));
  }
  return fmt::format("let {}{} = {};\n", text(f.name), type, level(0));
}

std::string family_text(Module& m, FamilyId id, const std::set<FamilyId>& bare,
                        const Values& values) {
  const Family& f = m[id];
  switch (f.kind) {
    case Family::Kind::Input: return input_text(m, f);
    case Family::Kind::Table: return table_text(m, f);
    case Family::Kind::Defined: break;
  }
  std::string out;
  if (f.checkpoint != 0) {
    out = f.checkpoint > 0 ? fmt::format("#[checkpoint({})]\n", f.checkpoint) : "#[checkpoint]\n";
  }
  for (const Clause& c : f.clauses) out += clause_text(m, f, c, !bare.contains(id), values);
  return out;
}

std::string function_text(const Module& m, const Function& f) {
  Printer p(m, f);
  std::vector<std::string> params;
  for (size_t k = 0; k < f.params.size(); ++k) {
    params.push_back(p.coordinate(k) + ": " + name_of(f.params[k].type));
  }
  return fmt::format("fn {}({}) -> {} {{ {} }}\n", text(f.name), fmt::join(params, ", "),
                     name_of(f.result), p.expr(f.body).s);
}

// A comment in the formatter's columns; it goes on further in.
std::string comment(std::string line) {
  constexpr size_t kColumns = 100;
  std::string out, start = "// ";
  while (start.size() + line.size() > kColumns) {
    size_t cut = line.rfind(' ', kColumns - start.size());
    if (cut == std::string::npos || cut == 0) break;
    out += start + line.substr(0, cut) + "\n";
    line.erase(0, cut + 1);
    start = "//   ";
  }
  return out + start + line + "\n";
}

}  // namespace

std::string print(Module& m, const PrintOptions& options) {
  part_names(m);
  std::string out;
  std::set<FamilyId> bare = ungrounded(m);
  Values values;
  for (const Family& f : m.families) values.insert(f.name);
  if (!options.only.empty()) {
    for (FamilyId id : options.only) out += family_text(m, id, bare, values);
    return out;
  }
  std::vector<const Effect*> effects;
  std::vector<FamilyId> wanted = options.roots;
  const std::set<FamilyId> roots(wanted.begin(), wanted.end());
  for (const Effect& e : m.effects) {
    if (!roots.empty() && (e.error || !shows(m, e, roots))) continue;
    effects.push_back(&e);
    if (e.cond) wanted.push_back(e.cond);
    for (const Piece& p : e.pieces) {
      if (p.value) wanted.push_back(p.value);
    }
  }
  if (roots.empty()) {
    for (uint32_t i = 0; i < m.families.size(); ++i) wanted.push_back(FamilyId(i));
  }
  wanted = needed_for(m, wanted);
  for (FunctionId f : called_functions(m, wanted)) out += function_text(m, m.functions[f]);
  for (FamilyId id : reading_order(m, wanted)) {
    auto lines = options.comments.find(m[id].name);
    if (lines != options.comments.end()) {
      for (const std::string& line : lines->second) out += comment(line);
    }
    out += family_text(m, id, bare, values);
  }
  for (const Effect* e : effects) out += effect_text(m, *e);
  return out;
}

std::string print(const Module& m, const std::vector<Symbol>& slots, ExprId e, bool brief) {
  return Printer(m, slots, brief).expr(e).s;
}

std::string print(const Module& m, FunctionId function) {
  return function_text(m, m.functions[function]);
}

std::string print(const Module& m, FamilyId family, ExprId e) {
  return Printer(m, m[family]).expr(e).s;
}

}  // namespace ein::core

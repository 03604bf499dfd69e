// `match`: patterns become conditions and arms become nested Selects. An arm therefore acts like a
// gate: it bounds indices, orders recurrences, and is not evaluated when not taken (decisions.md,
// 10).
#include "base/match.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "sema/expressions/expressions.h"
#include "sema/names/names.h"
#include "sema/names/trees.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/types/types.h"

namespace ein::sema {
namespace {

struct Pattern {
  // A range of numbers is a literal that matches several values.
  enum class Kind : uint8_t { Any, Literal, Tuple, Alternatives } kind = Kind::Any;
  std::string key;   // Literal: equal keys match the same values
  bool two = false;  // Literal: of a type with two values, `true` and `false`
  bool range = false;
  std::optional<std::pair<int64_t, int64_t>> whole;  // Literal: the first and last integer
  std::vector<Pattern> items;
};

// Whether every value that literal `b` matches is matched by literal `a`.
bool covers(const Pattern& a, const Pattern& b) {
  if (a.key == b.key) return true;
  return a.whole && b.whole && a.whole->first <= b.whole->first &&
         b.whole->second <= a.whole->second;
}

struct Arm {
  Pattern pattern;
  std::vector<Pattern> cases;  // the same without alternatives: one of these matches
  Frame frame;                 // the names it binds
  std::optional<Value> cond;   // absent: it always matches
  bool reachable = true;
  Value body;
};

std::string quoted_key(const Sema& s, TreeId e) {
  std::string out = "\"";
  for (const ast::StrPiece& p : std::get<ast::StrLit>(s[e].node).pieces) out += p.text;
  return out + "\"";
}

std::string key_of(const Sema& s, TreeId e, const Value& subject) {
  bool minus = false;
  if (const auto* u = std::get_if<ast::Unary>(&s[e].node)) {
    minus = true;
    e = u->arg;
  }
  bool real = subject.typing == Typing::Float ||
              (subject.typing == Typing::Fixed && is_float(subject.type));
  if (const auto* i = std::get_if<ast::IntLit>(&s[e].node); i && !real) {
    return (minus && i->value != 0 ? "-" : "") + std::to_string(i->value);
  }
  if (std::holds_alternative<ast::StrLit>(s[e].node)) return quoted_key(s, e);
  if (const auto* b = std::get_if<ast::BoolLit>(&s[e].node)) return b->value ? "true" : "false";
  double v = 0;
  if (const auto* i = std::get_if<ast::IntLit>(&s[e].node)) v = static_cast<double>(i->value);
  if (const auto* f = std::get_if<ast::FloatLit>(&s[e].node)) v = f->value;
  return fmt::format("{}", minus && v != 0 ? -v : v);
}

// The integer that a literal of a pattern is, if it is one and not compared with floats.
std::optional<int64_t> whole_number(const Sema& s, TreeId e, const Value& subject) {
  bool integer =
      subject.typing == Typing::Int || (subject.typing == Typing::Fixed && is_int(subject.type));
  bool minus = std::holds_alternative<ast::Unary>(s[e].node);
  if (minus) e = std::get<ast::Unary>(s[e].node).arg;
  const auto* lit = std::get_if<ast::IntLit>(&s[e].node);
  if (!integer || !lit || lit->value > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  auto value = static_cast<int64_t>(lit->value);
  return minus ? -value : value;
}

struct PatternReader {
  Sema& s;
  Env& env;
  Arm& arm;

  void require(Value cond) {
    Span at = cond.span;
    arm.cond = arm.cond ? apply_binary(s, env, core::Op::And, std::move(*arm.cond), std::move(cond),
                                       at, {})
                        : std::move(cond);
  }

  bool bind(const ast::Name& name, const Value& subject) {
    if (text(name.symbol) == "_") return true;
    for (const auto& [other, value] : arm.frame.values) {
      if (other.symbol != name.symbol) continue;
      s.diags.error(Code::E0202, quoted(name.symbol) + " appears twice in one pattern")
          .primary(name.span, "bound again here")
          .label(other.span, "first bound here")
          .help("bind two names and compare them in a guard, as in `(a, b) if a == b`");
      return false;
    }
    arm.frame.values.push_back({name, subject});
    return true;
  }

  bool tuple(const ast::Tuple& t, const Value& subject, Span span, Pattern& out) {
    bool fits = subject.kind == Value::Kind::Tuple && !subject.record() &&
                subject.items.size() == t.items.size();
    if (!fits) {
      s.diags
          .error(Code::E0502, fmt::format("a pattern for {} values cannot match {}", t.items.size(),
                                          show_value(s, subject)))
          .primary(span, "this pattern")
          .label(subject.span, "this is " + show_value(s, subject));
      return false;
    }
    out.kind = Pattern::Kind::Tuple;
    for (size_t i = 0; i < t.items.size(); ++i) {
      if (!read(t.items[i], subject.items[i], out.items.emplace_back())) return false;
    }
    return true;
  }

  bool literal(TreeId e, const Value& subject, Pattern& out) {
    if (subject.kind == Value::Kind::Tuple) {
      s.diags.error(Code::E0502, "a literal pattern cannot match " + show_value(s, subject))
          .primary(s[e].span, "this pattern")
          .label(subject.span, show_value(s, subject))
          .help(subject.record() ? "match one of its fields, as in `match p.a { … }`"
                                 : "write a tuple of patterns, as in `(0, _)`");
      return false;
    }
    Value lit = elaborate(s, env, e);
    if (lit.poison()) return false;
    Value cond = apply_binary(s, env, core::Op::Eq, subject, std::move(lit), s[e].span, {});
    if (cond.poison()) return false;
    out.kind = Pattern::Kind::Literal;
    out.key = key_of(s, e, subject);
    out.two = std::holds_alternative<ast::BoolLit>(s[e].node);
    if (auto n = whole_number(s, e, subject)) out.whole = {*n, *n};
    require(std::move(cond));
    return !arm.cond->poison();
  }

  bool range(const ast::Range& r, const Value& subject, Span span, Pattern& out) {
    Value lo = elaborate(s, env, r.lo), hi = elaborate(s, env, r.hi);
    if (lo.poison() || hi.poison()) return false;
    if (!subject.one()) {
      s.diags.error(Code::E0502, "a range of numbers cannot match " + show_value(s, subject))
          .primary(span, "this pattern")
          .label(subject.span, "this is " + show_value(s, subject));
      return false;
    }
    out.kind = Pattern::Kind::Literal;
    out.range = true;
    out.key = key_of(s, r.lo, subject) + (r.inclusive ? "..=" : "..") + key_of(s, r.hi, subject);
    auto first = whole_number(s, r.lo, subject), end = whole_number(s, r.hi, subject);
    if (first && end) {
      out.whole = {*first, r.inclusive ? *end : *end - 1};
      if (out.whole->second < out.whole->first) {
        s.diags.error(Code::E0307, "this range is empty, so the pattern matches nothing")
            .primary(span, "");
        return false;
      }
    }
    Value cond = within(s, env, subject, std::move(lo), std::move(hi), r.inclusive, span);
    if (cond.poison()) return false;
    require(std::move(cond));
    return !arm.cond->poison();
  }

  bool alternatives(const ast::Alternatives& a, const Value& subject, Pattern& out) {
    out.kind = Pattern::Kind::Alternatives;
    std::optional<Value> any;
    bool always = false;
    for (TreeId e : a.items) {
      Arm one;
      PatternReader reader{s, env, one};
      if (!reader.read(e, subject, out.items.emplace_back())) return false;
      if (!one.frame.values.empty()) {
        const ast::Name& name = one.frame.values[0].first;
        s.diags.error(Code::E0113, "alternatives cannot bind names")
            .primary(name.span, "only this alternative has a name here")
            .help(fmt::format("name the whole: `{} @ 1 | 2`", text(name.symbol)));
        return false;
      }
      always |= !one.cond;
      if (!one.cond) continue;
      any = any ? apply_binary(s, env, core::Op::Or, *any, *one.cond, s[e].span, {}) : *one.cond;
      if (any->poison()) return false;
    }
    if (!always) require(std::move(*any));
    return always || !arm.cond->poison();
  }

  bool read(TreeId e, const Value& subject, Pattern& out) {
    const ast::ExprNode& node = s[e].node;
    if (std::holds_alternative<ast::Error>(node)) return false;  // the parser has said why
    if (const auto* t = std::get_if<ast::Tuple>(&node)) return tuple(*t, subject, s[e].span, out);
    if (const ast::Path* path = as_path(s.ast, e)) return bind(path->parts[0], subject);
    if (const auto* r = std::get_if<ast::Range>(&node)) return range(*r, subject, s[e].span, out);
    if (const auto* a = std::get_if<ast::Alternatives>(&node))
      return alternatives(*a, subject, out);
    if (const auto* n = std::get_if<ast::NamedPattern>(&node)) {
      return bind(n->name, subject) && read(n->pattern, subject, out);
    }
    if (!std::holds_alternative<ast::Path>(node)) return literal(e, subject, out);
    s.diags.error(Code::E0113, "a path is not a pattern")
        .primary(s[e].span, "")
        .help("bind a name and compare it in a guard, as in `n if n == math::pi`");
    return false;
  }
};

// ---- what the arms cover -----------------------------------------------------------------------

// A row has one pattern per column; null matches everything.
using Row = std::vector<const Pattern*>;

bool matches_all(const Pattern* p) { return !p || p->kind == Pattern::Kind::Any; }

struct Column {
  size_t arity = 0;  // of the tuples in it
  bool tuple = false;
  std::vector<const Pattern*> literals;  // different ones, in the order of the rows
  bool two = false;
  bool complete() const { return tuple || (two && literals.size() == 2); }
};

Column first_column(const std::vector<Row>& rows) {
  Column c;
  std::unordered_set<std::string_view> seen;
  for (const Row& r : rows) {
    if (matches_all(r[0])) continue;
    if (r[0]->kind == Pattern::Kind::Tuple) {
      c.tuple = true;
      c.arity = r[0]->items.size();
    } else if (seen.insert(r[0]->key).second) {
      c.literals.push_back(r[0]);
      c.two = r[0]->two;
    }
  }
  return c;
}

// The rows that match when the first column holds a tuple, with its items in its place.
Row unpack(const Row& r, size_t arity) {
  Row out;
  for (size_t i = 0; i < arity; ++i) out.push_back(matches_all(r[0]) ? nullptr : &r[0]->items[i]);
  out.insert(out.end(), r.begin() + 1, r.end());
  return out;
}

std::vector<Row> unpack(const std::vector<Row>& rows, size_t arity) {
  std::vector<Row> out;
  for (const Row& r : rows) out.push_back(unpack(r, arity));
  return out;
}

// The rows that match when the first column holds what `literal` matches, or (null) what none of
// the literals in it does.
std::vector<Row> rest_of(const std::vector<Row>& rows, const Pattern* literal) {
  std::vector<Row> out;
  for (const Row& r : rows) {
    bool here = matches_all(r[0]) || (literal && covers(*r[0], *literal));
    if (here) out.emplace_back(r.begin() + 1, r.end());
  }
  return out;
}

using Witness = std::optional<std::vector<std::string>>;

// A value that no row matches, spelled as patterns.
Witness missing(const std::vector<Row>& rows, size_t columns) {
  if (rows.empty()) return std::vector<std::string>(columns, "_");
  if (columns == 0) return std::nullopt;
  Column c = first_column(rows);
  auto with = [](std::string head, Witness tail) {
    if (tail) tail->insert(tail->begin(), std::move(head));
    return tail;
  };
  if (c.tuple) {
    Witness w = missing(unpack(rows, c.arity), c.arity + columns - 1);
    if (!w) return w;
    auto end = w->begin() + static_cast<ptrdiff_t>(c.arity);
    std::string head = fmt::format("({})", fmt::join(w->begin(), end, ", "));
    w->erase(w->begin(), end);
    return with(std::move(head), std::move(w));
  }
  if (!c.complete()) {
    std::string other = c.two ? (c.literals[0]->key == "true" ? "false" : "true") : "_";
    // Rows that match whatever stands here match each of the literals too.
    return with(other, missing(rest_of(rows, nullptr), columns - 1));
  }
  for (const Pattern* p : c.literals) {
    if (Witness w = with(p->key, missing(rest_of(rows, p), columns - 1))) return w;
  }
  return std::nullopt;
}

// Whether `row` matches a value that none of `rows` matches.
bool useful(const std::vector<Row>& rows, const Row& row) {
  if (row.empty()) return rows.empty();
  Row tail(row.begin() + 1, row.end());
  if (!matches_all(row[0])) {
    if (row[0]->kind == Pattern::Kind::Literal) return useful(rest_of(rows, row[0]), tail);
    size_t arity = row[0]->items.size();
    return useful(unpack(rows, arity), unpack(row, arity));
  }
  Column c = first_column(rows);
  if (c.tuple) return useful(unpack(rows, c.arity), unpack(row, c.arity));
  if (!c.complete()) return useful(rest_of(rows, nullptr), tail);
  return std::any_of(c.literals.begin(), c.literals.end(),
                     [&](const Pattern* p) { return useful(rest_of(rows, p), tail); });
}

// A pattern as patterns without alternatives, of which one has to match; empty when there are too
// many of them.
constexpr size_t kMostCases = 4096;
std::vector<Pattern> cases_of(const Pattern& p) {
  std::vector<Pattern> out;
  if (p.kind == Pattern::Kind::Alternatives) {
    for (const Pattern& item : p.items) {
      for (Pattern& c : cases_of(item)) out.push_back(std::move(c));
      if (out.size() > kMostCases) return {};
    }
    return out;
  }
  out.push_back(p);
  for (size_t i = 0; i < p.items.size(); ++i) {  // of a tuple
    std::vector<Pattern> wider;
    for (const Pattern& choice : cases_of(p.items[i])) {
      for (const Pattern& sofar : out) {
        wider.push_back(sofar);
        wider.back().items[i] = choice;
      }
    }
    out = std::move(wider);
    if (out.size() > kMostCases) return {};
  }
  return out;
}

// The patterns of the arms so far, indexed by the literal they begin with, because a `match` may
// have thousands: patterns that begin with different literals never match the same value.
class Covered {
 public:
  const std::vector<Row>& rows() const { return rows_; }

  void add(const Pattern& p) {
    rows_.push_back({&p});
    const std::string* key = head(p);
    (key ? by_head_[*key] : others_).push_back({&p});
  }
  // Whether the pattern matches a value that none of those before it matches.
  bool leaves(const Pattern& p) const {
    const std::string* key = head(p);
    if (!key) return useful(rows_, {&p});
    std::vector<Row> rows = others_;
    if (auto it = by_head_.find(*key); it != by_head_.end())
      rows.insert(rows.end(), it->second.begin(), it->second.end());
    return useful(rows, {&p});
  }

 private:
  static const std::string* head(const Pattern& p) {
    if (p.kind == Pattern::Kind::Literal) return p.range ? nullptr : &p.key;
    return p.kind == Pattern::Kind::Tuple && !p.items.empty() ? head(p.items[0]) : nullptr;
  }

  std::vector<Row> rows_, others_;
  std::unordered_map<std::string, std::vector<Row>> by_head_;
};

// ---- arms --------------------------------------------------------------------------------------

void warn_unreachable(Sema& s, const Env& env, const ast::Match& n, size_t k) {
  Span place = s[n.arms[k].pattern].span;
  if (!s.warned.insert({place.begin, place.end}).second) return;
  auto& d = s.diags.warning(Code::W0501, "this arm can never match");
  d.primary(place, "the arms before it match everything that it could match");
  for (size_t i = 0; i < k; ++i) {
    Symbol name = path_name(s.ast, n.arms[i].pattern);
    if (n.arms[i].guard || !name) continue;
    d.label(s[n.arms[i].pattern].span, "this arm matches every value");
    if (value_exists(env, name)) {
      d.help(
          fmt::format("a name in a pattern is a new name, not a comparison with the value `{0}`; "
                      "to compare, use a guard: `n if n == {0}`",
                      text(name)));
    }
    return;
  }
}

void not_exhaustive(Sema& s, const ast::Match& n, const std::string& witness, const Value& body,
                    Span span) {
  auto& d = s.diags.error(Code::E0506, fmt::format("no arm matches `{}`", witness));
  d.primary(s[n.subject].span, "not all values of this are matched");
  bool guarded = std::any_of(n.arms.begin(), n.arms.end(),
                             [](const ast::MatchArm& a) { return a.guard.valid(); });
  if (guarded) d.note("an arm with a guard does not count, because the guard may be false");
  d.help(fmt::format("add an arm for the rest: `{} => …`", witness));
  if (n.arms.empty() || body.kind != Value::Kind::Data) return;
  uint32_t end = s[n.arms.back().body].span.end;
  bool boolean = body.typing == Typing::Fixed && body.type == DType::Bool;
  d.fix({"add an arm for the rest",
         {{{span.file, end, end}, fmt::format(", {} => {}", witness, boolean ? "false" : "0")}},
         false});
}

// Reads pattern and guard; false after an error.
bool read_arm(Sema& s, Env& env, const ast::MatchArm& tree, const Value& subject, Arm& arm) {
  PatternReader reader{s, env, arm};
  if (!reader.read(tree.pattern, subject, arm.pattern)) return false;
  if (!tree.guard) return true;
  size_t conds = env.conds.size();
  const Frame* outer = env.frame;
  arm.frame.up = outer;
  env.frame = &arm.frame;
  if (arm.cond && arm.cond->scalar()) env.conds.push_back(arm.cond->body);
  Value guard = condition(s, env, tree.guard);
  env.conds.resize(conds);
  env.frame = outer;
  if (guard.poison()) return false;
  reader.require(std::move(guard));
  return !arm.cond->poison();
}

Value arm_body(Sema& s, Env& env, TreeId body, Arm& arm) {
  size_t conds = env.conds.size();
  const Frame* outer = env.frame;
  arm.frame.up = outer;
  env.frame = &arm.frame;
  if (arm.cond && arm.cond->scalar()) env.conds.push_back(arm.cond->body);
  Value v = elaborate(s, env, body);
  env.conds.resize(conds);
  env.frame = outer;
  return v;
}

}  // namespace

Value elaborate_match(Sema& s, Env& env, const ast::Match& n, Span span) {
  Value subject = without_tables(s, env, elaborate(s, env, n.subject));
  if (subject.poison()) return {};
  std::vector<Arm> arms(n.arms.size());
  Covered covered;  // by the arms without a guard
  size_t conds = env.conds.size();
  bool ok = true;
  for (size_t k = 0; k < arms.size(); ++k) {
    Arm& arm = arms[k];
    if (!read_arm(s, env, n.arms[k], subject, arm)) {
      ok = false;
      continue;
    }
    arm.cases = cases_of(arm.pattern);
    if (arm.cases.empty()) {
      unsupported(s, s[n.arms[k].pattern].span,
                  fmt::format("patterns with more than {} alternatives", kMostCases));
      ok = false;
      continue;
    }
    arm.reachable = std::any_of(arm.cases.begin(), arm.cases.end(),
                                [&](const Pattern& p) { return covered.leaves(p); });
    if (!arm.reachable) warn_unreachable(s, env, n, k);
    for (const Pattern& p : arm.cases) {
      if (!n.arms[k].guard) covered.add(p);
    }
    arm.body = arm_body(s, env, n.arms[k].body, arm);
    ok &= !arm.body.poison();
    if (arm.cond && arm.cond->scalar()) env.conds.push_back(core::negate(s.m, arm.cond->body));
  }
  env.conds.resize(conds);
  if (!ok) return {};
  if (Witness w = missing(covered.rows(), 1)) {
    not_exhaustive(s, n, (*w)[0], arms.empty() ? Value{} : arms[0].body, span);
    return {};
  }
  std::erase_if(arms, [](const Arm& a) { return !a.reachable; });
  // The arms are exhaustive, so the last one needs no test.
  Value out = arms.back().body;
  for (size_t k = arms.size() - 1; k-- > 0;) {
    out = select(s, env, *arms[k].cond, std::move(arms[k].body), std::move(out), span);
  }
  return out;
}

}  // namespace ein::sema

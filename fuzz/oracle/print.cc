#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tree.h"

namespace oracle {
namespace {

std::string float_text(double v) {
  if (v < 0 || (v == 0 && 1 / v < 0)) return "(-" + float_text(-v) + ")";
  std::string s = fmt::format("{}", v);
  return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}

const char* name_of(Function f) {
  switch (f) {
    case Function::Tanh: return "tanh";
    case Function::Sin: return "sin";
    case Function::Cos: return "cos";
    case Function::Exp: return "exp";
    case Function::Log: return "log";
    case Function::Sqrt: return "sqrt";
    case Function::Sigmoid: return "sigmoid";
    case Function::Abs: return "abs";
    default: return "";
  }
}

const char* name_of(Reduction r) {
  switch (r) {
    case Reduction::Sum: return "sum";
    case Reduction::Prod: return "prod";
    case Reduction::Mean: return "mean";
    case Reduction::Max: return "max";
    case Reduction::Min: return "min";
    case Reduction::ArgMax: return "argmax";
    case Reduction::ArgMin: return "argmin";
  }
  return "";
}

const char* infix(Kind k) {
  switch (k) {
    case Kind::Add:
    case Kind::Plus: return "+";
    case Kind::Subtract:
    case Kind::Minus: return "-";
    case Kind::Multiply:
    case Kind::Times: return "*";
    case Kind::Divide: return "/";
    case Kind::Modulo: return "%";
    case Kind::BitAnd: return "&";
    case Kind::BitOr: return "|";
    case Kind::BitXor: return "^";
    case Kind::ShiftRight: return ">>";
    case Kind::Less: return "<";
    case Kind::LessEqual: return "<=";
    case Kind::Equal: return "==";
    case Kind::Unequal: return "!=";
    case Kind::Greater: return ">";
    case Kind::GreaterEqual: return ">=";
    case Kind::And: return "&&";
    case Kind::Or: return "||";
    default: return nullptr;
  }
}

class Printer {
 public:
  explicit Printer(const Program& p) : p_(p) {}

  std::string program(bool closed) {
    std::string out;
    if (closed) {
      for (const Extent& e : p_.extents)
        if (!e.name.empty()) out += fmt::format("const {} = {};\n", e.name, e.size);
    }
    for (const std::string& s : p_.preamble) out += s + "\n";
    for (const Recursive& f : p_.functions) {
      out += fmt::format(
          "fn {0}(a: {1}, b: {1}, n: i32) -> {1} {{ if n <= 0 {{ {2} }} else {{ let c = {0}({3}, "
          "{4}, n - 1); {5} }} }}\n",
          f.name, p_.dtype, text(f.base), text(f.first), text(f.second), text(f.step));
    }
    std::string record = record_input(closed);
    for (int id : p_.order) {
      const Definition& d = p_.defs[static_cast<size_t>(id)];
      if (d.dropped) continue;
      if (is_part(d)) {  // all parts are declared where the first one would be
        out += std::exchange(record, "");
        continue;
      }
      out += definition(d, closed, "\n");
    }
    return out;
  }

  std::string text(const Node& n);

 private:
  std::string type_name(Type t) {
    return t == Type::Float ? p_.dtype : t == Type::Int ? "i32" : "bool";
  }

  std::string array(const Definition& d, size_t axis, size_t& at) {
    if (axis == d.extents.size()) {
      double v = d.data[at++];
      if (d.type == Type::Bool) return v != 0 ? "true" : "false";
      return d.type == Type::Int ? fmt::format("{}", static_cast<int64_t>(v)) : float_text(v);
    }
    std::vector<std::string> parts;
    int64_t size = shape_of(p_, static_cast<int>(&d - p_.defs.data()))[axis];
    for (int64_t k = 0; k < size; ++k) parts.push_back(array(d, axis + 1, at));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }

  std::string type_of(const Definition& d) {
    if (d.extents.empty()) return type_name(d.type);
    std::vector<std::string> dims;
    for (const Node& e : d.extents) dims.push_back(bound(e));
    return fmt::format("[{}; {}]", type_name(d.type), fmt::join(dims, ", "));
  }

  // An input called `given.x` is a part of the record `given`, which is declared as a whole.
  static bool is_part(const Definition& d) {
    return d.input && d.name.find('.') != std::string::npos;
  }

  std::string record_input(bool closed) {
    std::vector<std::string> types, values;
    for (const Definition& d : p_.defs) {
      if (d.dropped || !is_part(d)) continue;
      std::string field = d.name.substr(d.name.find('.') + 1);
      size_t at = 0;
      types.push_back(fmt::format("{}: {}", field, type_of(d)));
      values.push_back(fmt::format("{}: {}", field, array(d, 0, at)));
    }
    if (types.empty()) return "";
    std::string value = closed ? fmt::format(" = {{ {} }}", fmt::join(values, ", ")) : "";
    return fmt::format("let given: {{ {} }}{};\n", fmt::join(types, ", "), value);
  }

  std::string definition(const Definition& d, bool closed, const char* end) {
    std::string out = d.attribute.empty() ? "" : d.attribute + end;
    if (d.input) {
      size_t at = 0;
      return fmt::format("let {}: {}{};{}", d.name, type_of(d),
                         closed ? " = " + array(d, 0, at) : "", end);
    }
    for (const Clause& c : d.clauses) {
      std::vector<std::string> slots;
      for (size_t k = 0; k + static_cast<size_t>(c.trailing) < c.slots.size(); ++k) {
        const Slot& s = c.slots[k];
        if (s.var < 0) {
          slots.push_back(text(s.low));
        } else if (s.inferred) {
          slots.push_back(var(s.var));
        } else {
          slots.push_back(fmt::format("{} in {}..{}", var(s.var), bound(s.low), bound(s.high)));
        }
      }
      out += fmt::format("let {}{}{} = {}", d.name,
                         slots.empty() ? "" : fmt::format("[{}]", fmt::join(slots, ", ")),
                         c.typed ? ": " + type_name(d.type) : "", plain(c.body));
      if (c.gate.kind != Kind::None) out += " where " + plain(c.gate);
      if (c.otherwise.kind != Kind::None) out += " else " + text(c.otherwise);
      if (c.until.kind != Kind::None) out += " until " + plain(c.until);
      out += fmt::format(";{}", end);
    }
    return out;
  }

  std::string var(int id) { return p_.vars[static_cast<size_t>(id)]; }

  std::string plain(const Node& n) {  // without the parentheses around it
    std::string s = text(n);
    if (!infix(n.kind) && n.kind != Kind::If && n.kind != Kind::Choose && n.kind != Kind::Match &&
        n.kind != Kind::Request)
      return s;
    return s.substr(1, s.size() - 2);
  }
  std::string bound(const Node& n) { return infix(n.kind) ? plain(n) : text(n); }

  std::string address(const Node& n, size_t first) {
    std::vector<std::string> at;
    for (size_t k = first; k + static_cast<size_t>(n.hidden) < n.kids.size(); ++k)
      at.push_back(bound(n.kids[k]));
    return at.empty() ? "" : fmt::format("[{}]", fmt::join(at, ", "));
  }

  std::string locals(const Node& n) {
    std::string out;
    for (int id : n.locals) {
      const Definition& d = p_.defs[static_cast<size_t>(id)];
      if (!d.dropped) out += definition(d, false, " ");
    }
    return out;
  }

  const Program& p_;
};

std::string Printer::text(const Node& n) {
  if (const char* op = infix(n.kind))
    return fmt::format("({} {} {})", text(n.kids[0]), op, text(n.kids[1]));
  switch (n.kind) {
    case Kind::Literal: return float_text(static_cast<double>(n.value));
    case Kind::Read: return p_.defs[static_cast<size_t>(n.id)].name + address(n, 0);
    case Kind::Negate: return fmt::format("(-{})", text(n.kids[0]));
    case Kind::Apply:
      if (n.function == Function::Square) return fmt::format("({} ** 2.0)", text(n.kids[0]));
      if (n.function == Function::Cube) return fmt::format("({} ** 3.0)", text(n.kids[0]));
      return fmt::format("{}({})", name_of(n.function), plain(n.kids[0]));
    case Kind::Max2:
    case Kind::Min2:
      return fmt::format("{}({}, {})", n.kind == Kind::Max2 ? "max" : "min", plain(n.kids[0]),
                         plain(n.kids[1]));
    case Kind::If:
      return fmt::format("(if {} {{ {} }} else {{ {} }})", plain(n.kids[0]), plain(n.kids[1]),
                         plain(n.kids[2]));
    case Kind::Match: {
      const Definition& d = p_.defs[static_cast<size_t>(n.locals[0])];
      return fmt::format("(match {} {{ {} if {} => {}, {} => {} }})", text(d.clauses[0].body),
                         d.name, plain(n.kids[0]), text(n.kids[1]), d.name, text(n.kids[2]));
    }
    case Kind::Choose: {
      std::string out = fmt::format("(match {} {{ ", text(n.kids[0]));
      for (size_t k = 1; k + 1 < n.kids.size(); ++k)
        out += fmt::format("{} => {}, ", k - 1, text(n.kids[k]));
      return out + fmt::format("_ => {} }})", text(n.kids.back()));
    }
    case Kind::Reduce: {
      std::vector<std::string> names;
      for (size_t k = 0; k < n.vars.size(); ++k) {
        const Node &low = n.kids[2 + 2 * k], &high = n.kids[3 + 2 * k];
        if (n.inferred) {
          names.push_back(var(n.vars[k]));
        } else {
          names.push_back(fmt::format("{} in {}..{}{}", var(n.vars[k]), bound(low),
                                      n.inclusive ? "=" : "", bound(high)));
        }
      }
      return fmt::format("{}[{}]({}{})", name_of(n.reduction), fmt::join(names, ", "),
                         plain(n.kids[0]),
                         n.kids[1].kind == Kind::None ? "" : " where " + plain(n.kids[1]));
    }
    case Kind::Block: return fmt::format("{{ {}{} }}", locals(n), plain(n.kids[0]));
    case Kind::Shown: return n.text;
    case Kind::Request: {
      const Node& of = n.kids[0];
      std::string above = of.kind == Kind::Read ? text(of) : fmt::format("({})", plain(of));
      return fmt::format("(@{} / @{}{})", above, p_.defs[static_cast<size_t>(n.id)].name,
                         address(n, 1));
    }
    case Kind::Cast: return fmt::format("({} as {})", text(n.kids[0]), p_.dtype);
    case Kind::Recurse:
      return fmt::format("{}({}, {}, {})", p_.functions[static_cast<size_t>(n.id)].name,
                         plain(n.kids[0]), plain(n.kids[1]), text(n.kids[2]));
    case Kind::Param: return std::string(1, static_cast<char>('a' + n.id));
    case Kind::Integer:
      return n.value < 0 ? fmt::format("(-{})", -static_cast<int64_t>(n.value))
                         : fmt::format("{}", static_cast<int64_t>(n.value));
    case Kind::Variable: return var(n.id);
    case Kind::Extent: {
      const Extent& e = p_.extents[static_cast<size_t>(n.id)];
      return e.name.empty() ? std::to_string(e.size) : e.name;
    }
    case Kind::Not: return fmt::format("!{}", text(n.kids[0]));
    default: return "?";
  }
}

}  // namespace

std::string print(const Program& p, const Node& n) { return Printer(p).text(n); }
std::string print(const Program& p) { return Printer(p).program(false); }
std::string print_closed(const Program& p) { return Printer(p).program(true); }

}  // namespace oracle

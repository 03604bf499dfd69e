#include "sema/state/report.h"

#include <fmt/format.h>

#include "sema/state/values.h"

namespace ein::sema {
namespace {

void show_into(const Sema& s, CoreId e, std::string& out, bool nested);

void show_affine(const Sema& s, const core::Affine& a, std::string& out) {
  bool first = true;
  auto sign = [&](int64_t value) {
    if (!first) out += value < 0 ? " - " : " + ";
    if (first && value < 0) out += "-";
    first = false;
  };
  // Positive terms first, so that `n - 1` does not read `-1 + n`.
  for (bool positive : {true, false}) {
    for (const auto& t : a.terms) {
      if ((t.coef > 0) != positive) continue;
      sign(t.coef);
      if (std::abs(t.coef) != 1) out += fmt::format("{} * ", std::abs(t.coef));
      show_into(s, t.atom, out, true);
    }
  }
  if (a.constant != 0) {
    sign(a.constant);
    out += std::to_string(std::abs(a.constant));
  }
}

void show_into(const Sema& s, CoreId e, std::string& out, bool nested) {
  if (!e) {
    out += "?";
    return;
  }
  const core::Expr& x = s.m[e];
  if (const auto* i = std::get_if<core::IntLit>(&x.node)) {
    out += std::to_string(i->value);
  } else if (const auto* p = std::get_if<core::ParamRef>(&x.node)) {
    if (is_placeholder(p->param)) {
      out += "?";
    } else if (const core::Param& param = s.m.params[p->param]; param.name) {
      out += text(param.name);
    } else {
      out += fmt::format("extent({}, {})", text(s.m[param.source].name), param.position);
    }
  } else if (const auto* a = std::get_if<core::Affine>(&x.node)) {
    if (nested) out += "(";
    show_affine(s, *a, out);
    if (nested) out += ")";
  } else if (const auto* f = std::get_if<core::Apply>(&x.node); f && f->args.size() == 2) {
    const core::OpInfo& op = core::info(f->op);
    bool named = f->op == core::Op::Min || f->op == core::Op::Max;
    if (named) out += std::string(op.spelling) + "(";
    show_into(s, f->args[0], out, !named);
    out += named ? ", " : fmt::format(" {} ", op.spelling);
    show_into(s, f->args[1], out, !named);
    if (named) out += ")";
  } else if (f && f->op == core::Op::Cast) {
    show_into(s, f->args[0], out, nested);
  } else if (const auto* read = std::get_if<core::Access>(&x.node);
             read && s.m[read->family].name) {
    out += text(s.m[read->family].name);
    for (size_t k = 0; k < read->at.size(); ++k) {
      out += k == 0 ? "[" : ", ";
      show_into(s, read->at[k], out, false);
    }
    if (!read->at.empty()) out += "]";
  } else {
    out += "…";
  }
}

}  // namespace

bool suggest(Diagnostic& d, const std::string& near, Span span) {
  if (near.empty()) return false;
  d.help("did you mean " + quoted(near) + "?");
  d.fix({"use " + quoted(near), {{span, near}}, false});
  return true;
}

bool reject_names(Sema& s, const ast::Call& call, const std::string& callee) {
  for (const ast::Name& name : call.names) {
    if (!name.symbol) continue;
    s.diags.error(Code::E0218, fmt::format("{} takes no named arguments", callee))
        .primary(name.span, "")
        .help(fmt::format("leave out `{} =`; to compare, write `==`", text(name.symbol)));
    return true;
  }
  return false;
}

void warn_unused_value(Sema& s, Span statement) {
  if (!s.warned.insert({statement.begin, statement.end}).second) return;
  s.diags.warning(Code::W0201, "this statement has no effect")
      .primary(statement, "its value is not used")
      .help("give it a name with `let`, or `print` it");
}

Value unsupported(Sema& s, Span span, const std::string& what, const std::string& help) {
  auto& d = s.diags.error(Code::E0701, what + " are not supported yet");
  if (what.back() == '`') d.message = what + " is not supported yet";
  d.primary(span, "");
  if (!help.empty()) d.help(help);
  return {};
}

bool too_many_indices(Sema& s, size_t count, Span span) {
  if (count <= core::kMaxSlots / 2) return false;
  unsupported(s, span, fmt::format("more than {} indices in one definition", core::kMaxSlots / 2));
  return true;
}

std::string show_coords(const Sema&, const std::vector<core::Coord>& coords) {
  std::string out = "[";
  for (const core::Coord& c : coords) {
    if (out.size() > 1) out += ", ";
    out += c.name ? text(c.name) : "_";
  }
  return out + "]";
}

std::string show(const Sema& s, CoreId extent) {
  std::string out;
  show_into(s, extent, out, false);
  return out;
}

void note_part(Sema& s, size_t before, const std::string& path) {
  if (path.empty()) return;
  for (size_t i = before; i < s.diags.all().size(); ++i) {
    s.diags.at(i).note(fmt::format("for the part `{}`", path.substr(1)));
  }
}

std::string show_fields(const std::vector<Symbol>& fields) {
  std::string names;
  for (Symbol f : fields) names += (names.empty() ? "" : ", ") + text(f);
  return fmt::format("field{} `{}`", fields.size() == 1 ? "" : "s", names);
}

std::string show_value(const Sema& s, const Value& v) {
  if (v.record()) return fmt::format("a record with {}", show_fields(v.fields));
  if (v.kind == Value::Kind::Tuple) return fmt::format("a tuple of {} values", v.items.size());
  if (v.kind == Value::Kind::Function) return "a function";
  if (v.kind == Value::Kind::Text) return "a string";
  if (v.kind == Value::Kind::Texts) return "an array of strings";
  std::string type = v.typing == Typing::Int     ? "an untyped integer"
                     : v.typing == Typing::Float ? "an untyped float"
                                                 : "`" + std::string(name_of(v.type)) + "`";
  return v.scalar() ? type : type + " over " + show_coords(s, v.coords);
}

}  // namespace ein::sema

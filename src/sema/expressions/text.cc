// Strings: the text is known when compiling, the values shown in it are not.
#include <fmt/format.h>

#include "runtime/show.h"
#include "sema/builtins.h"
#include "sema/expressions/expressions.h"
#include "sema/ranges/ranges.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"
#include "sema/types/types.h"

namespace ein::sema {

Value plain_text(const Env& env, std::string text, Span span) {
  Value v;
  v.kind = Value::Kind::Text;
  v.depth = env.depth;
  v.span = span;
  v.parts.push_back({std::move(text), {}, {}});
  return v;
}

namespace {

bool format_fits(Sema& s, const Value& v, const std::string& format) {
  if (format.empty() || (v.kind != Value::Kind::Data && v.kind != Value::Kind::Table)) return true;
  DType type = default_type(v);
  std::string why = check_format(format, type);
  if (why.empty()) return true;
  s.diags.error(Code::E0106, fmt::format("the format `{}` does not fit: {}", format, why))
      .primary(v.span, fmt::format("this is {}", name_of(type)))
      .help(is_float(type)        ? "floats have `.4f`, `8.3f`, `.3e`, `.6g`"
            : type == DType::Bool ? "true and false have a width only: `6`, `>6`"
                                  : "integers have `5`, `05d`, `x`, `b`; to show decimals convert "
                                    "the value: `{n as f32:.2f}`");
  return false;
}

}  // namespace

bool add_text(Sema& s, const Value& v, const std::string& format, Value& out) {
  if (v.kind == Value::Kind::Tuple) {
    for (size_t i = 0; i < v.items.size(); ++i) {
      std::string before = i > 0 ? ", " : v.record() ? "{ " : "(";
      if (v.record()) before += text(v.fields[i]) + ": ";
      out.parts.push_back({std::move(before), {}, {}});
      if (!add_text(s, v.items[i], format, out)) return false;
    }
    out.parts.push_back({v.record() ? " }" : v.items.size() == 1 ? ",)" : ")", {}, {}});
    return true;
  }
  if (v.kind == Value::Kind::Texts) {
    for (size_t i = 0; i < v.items.size(); ++i) {
      out.parts.push_back({i == 0 ? "[\"" : "\", \"", {}, {}});
      if (!add_text(s, v.items[i], format, out)) return false;
    }
    out.parts.push_back({v.items.empty() ? "[]" : "\"]", {}, {}});
    return true;
  }
  if (v.kind != Value::Kind::Text) {
    if (!format_fits(s, v, format)) return false;
    out.parts.push_back({{}, out.items.size(), format});
    out.items.push_back(v);
    return true;
  }
  if (!format.empty()) {
    s.diags.error(Code::E0502, "a string cannot have a format").primary(v.span, "");
    return false;
  }
  for (TextPart p : v.parts) {
    if (p.item) *p.item += out.items.size();
    if (p.item || !p.text.empty() || p.join != TextPart::Join::None) out.parts.push_back(p);
  }
  out.items.insert(out.items.end(), v.items.begin(), v.items.end());
  return true;
}

Value elaborate_text(Sema& s, Env& env, const ast::StrLit& str, Span span) {
  Value out = plain_text(env, "", span);
  for (const ast::StrPiece& p : str.pieces) {
    if (!p.value) {
      out.parts.push_back({p.text, {}, {}});
      continue;
    }
    Value item = elaborate(s, env, p.value);
    if (item.poison() || !add_text(s, item, p.format, out)) return {};
  }
  return out;
}

std::optional<std::string> constant_text(const Value& v) {
  std::string out;
  for (const TextPart& p : v.parts) {
    if (p.item) return std::nullopt;
    out += p.text;
  }
  return out;
}

std::string type_text(const Sema& s, const Value& v) {
  switch (v.kind) {
    case Value::Kind::Poison: return "?";
    case Value::Kind::Function: return "fn";
    case Value::Kind::Text: return "str";
    case Value::Kind::Texts: return fmt::format("[str; {}]", v.items.size());
    case Value::Kind::Tuple: {
      std::string out;
      for (size_t i = 0; i < v.items.size(); ++i) {
        if (i > 0) out += ", ";
        if (v.record()) out += text(v.fields[i]) + ": ";
        out += type_text(s, v.items[i]);
      }
      if (v.record()) return "{ " + out + " }";
      return "(" + out + (v.items.size() == 1 ? ",)" : ")");
    }
    case Value::Kind::Data:
    case Value::Kind::Table: break;
  }
  std::string element(name_of(default_type(v)));
  if (v.scalar()) return element;
  std::string dims;
  for (const core::Coord& c : v.coords) {
    dims += (dims.empty() ? "" : ", ") + (c.name ? text(c.name) : show(s, c.extent));
  }
  return fmt::format("[{}; {}]", element, dims);
}

Value elaborate_typeof(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span) {
  if (!b.takes(call.args.size())) {
    s.diags.error(Code::E0205, fmt::format("`typeof` takes 1 argument, not {}", call.args.size()))
        .primary(span, "");
    return {};
  }
  Value v = elaborate(s, env, call.args[0]);
  if (v.poison()) return {};
  v = map_leaves(v, [&](Value leaf, const std::string&) {
    for (core::Coord& c : leaf.coords) c.extent = resolve(s, c.extent);
    return leaf;
  });
  return plain_text(env, type_text(s, v), span);
}

Value elaborate_coordinate(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span) {
  if (!b.takes(call.args.size())) {
    s.diags
        .error(Code::E0205,
               fmt::format("`coordinate` takes an array and a number, not {} argument{}",
                           call.args.size(), call.args.size() == 1 ? "" : "s"))
        .primary(span, "")
        .help("write `coordinate(x, 0)`; the last one is `coordinate(x, -1)`");
    return {};
  }
  Value v = elaborate(s, env, call.args[0]), which = elaborate(s, env, call.args[1]);
  if (v.poison() || which.poison()) return {};
  if (reject_non_data(s, v)) return {};
  auto k = which.kind == Value::Kind::Data && which.scalar() && is_int(which.type)
               ? core::const_int(s.m, which.body)
               : std::nullopt;
  auto rank = static_cast<int64_t>(v.coords.size());
  if (!k || *k >= rank || *k < -rank) {
    auto& d = s.diags.error(Code::E0305, k ? fmt::format("there is no coordinate {}", *k)
                                           : "which coordinate must be known when compiling");
    d.primary(s[call.args[1]].span, "").label(v.span, "this is " + show_value(s, v));
    return {};
  }
  return plain_text(env, text(v.coords[static_cast<size_t>(*k < 0 ? *k + rank : *k)].name), span);
}

}  // namespace ein::sema

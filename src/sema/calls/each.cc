// `each(p, |w| …)` and `fold(p, 0.0, |acc, w| …)`: a function applied to every part of a record,
// nested ones too, when the program is compiled; `names(p)`: what the parts are called.
#include <fmt/format.h>

#include "sema/builtins.h"
#include "sema/calls/calls.h"
#include "sema/expressions/expressions.h"
#include "sema/state/on_demand.h"
#include "sema/state/report.h"
#include "sema/state/values.h"

namespace ein::sema {
namespace {

// The function given last to `each` or `fold`; none after an error.
std::optional<Value> last_function(Sema& s, Env& env, const Builtin& b, const ast::Call& call,
                                   Span span, std::vector<Value>& args) {
  const char* form = b.id == Builtin::Id::Each ? "each(p, |w| …)" : "fold(p, 0.0, |acc, w| …)";
  if (!b.takes(call.args.size())) {
    s.diags.error(Code::E0205, fmt::format("`{}` takes a record and a function", b.spelling))
        .primary(span, "")
        .help(fmt::format("write `{}`", form));
    return std::nullopt;
  }
  for (TreeId e : call.args) {
    args.push_back(elaborate(s, env, e));
    if (args.back().poison()) return std::nullopt;
  }
  Value f = std::move(args.back());
  args.pop_back();
  if (f.kind == Value::Kind::Function) return f;
  s.diags
      .error(Code::E0502, fmt::format("the last argument of `{}` is a function, not {}", b.spelling,
                                      show_value(s, f)))
      .primary(f.span, "this is " + show_value(s, f))
      .help(fmt::format("write `{}`", form));
  return std::nullopt;
}

// Calls `f` for one part. What goes wrong inside is about this part, so the message says which.
Value call_for(Sema& s, Env& env, const Value& f, std::vector<Value> args, const std::string& path,
               Span span) {
  size_t before = s.diags.all().size();
  Value v = call_value(s, env, f, {}, std::move(args), span);  // no argument has a name
  note_part(s, before, path);
  return v;
}

Value each_part(Sema& s, Env& env, const std::vector<Value>& args, const Value& f,
                const std::string& path, Span span) {
  const Value& like = args[0];
  if (like.kind != Value::Kind::Tuple) return call_for(s, env, f, args, path, span);
  Value out = like;
  out.span = span;
  std::optional<size_t> parts;  // how many values each call gives, if those are tuples
  for (size_t i = 0; i < like.items.size(); ++i) {
    std::vector<Value> items;
    for (const Value& a : args) items.push_back(a.kind == Value::Kind::Tuple ? a.items[i] : a);
    std::string part = like.record() ? text(like.fields[i]) : std::to_string(i);
    out.items[i] = each_part(s, env, items, f, path + "." + part, span);
    if (out.items[i].poison()) return {};
    const Value& made = out.items[i];
    bool tuple = made.kind == Value::Kind::Tuple && !made.record();
    size_t count = tuple ? made.items.size() : 0;
    if (i == 0) parts = count;
    if (count != *parts) {
      s.diags.error(Code::E0502, "the function given to `each` returns different numbers of values")
          .primary(made.span, fmt::format("for the part `{}`", (path + "." + part).substr(1)))
          .label(out.items[0].span, fmt::format("for the part `{}`", text(like.fields[0])));
      return {};
    }
  }
  if (!parts || *parts == 0) return out;
  // A record of tuples becomes a tuple of records.
  Value turned;
  turned.kind = Value::Kind::Tuple;
  turned.depth = out.depth;
  turned.span = span;
  for (size_t k = 0; k < *parts; ++k) {
    Value& record = turned.items.emplace_back(out);
    for (size_t i = 0; i < out.items.size(); ++i) record.items[i] = out.items[i].items[k];
  }
  return turned;
}

}  // namespace

// each(p, |w| …), each(p, g, |w, d| …)
Value elaborate_each(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span) {
  std::vector<Value> args;
  auto f = last_function(s, env, b, call, span, args);
  if (!f) return {};
  for (size_t i = 1; i < args.size(); ++i) {
    auto aligned = in_order_of(args[0], args[i]);
    if (!aligned)
      return different_fields(s, "the arguments of `each` must be", args[0], args[i], span);
    args[i] = std::move(*aligned);
  }
  return each_part(s, env, args, *f, {}, span);
}

// fold(p, 0.0, |acc, w| acc + …)
Value elaborate_fold(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span) {
  std::vector<Value> args;
  auto f = last_function(s, env, b, call, span, args);
  if (!f) return {};
  Value folded = args[1];
  Value all = map_leaves(args[0], [&](const Value& leaf, const std::string& path) {
    folded = call_for(s, env, *f, {folded, leaf}, path, span);
    return folded;
  });
  return all.poison() ? Value{} : folded;
}

// names(p): the same record with the path of every part, as in "enc.w", for functions that choose by it.
Value elaborate_names(Sema& s, Env& env, const Builtin& b, const ast::Call& call, Span span) {
  if (!b.takes(call.args.size())) {
    s.diags
        .error(Code::E0205,
               fmt::format("`names` takes a record, not {} arguments", call.args.size()))
        .primary(span, "");
    return {};
  }
  return map_leaves(
      elaborate(s, env, call.args[0]), [&](const Value& leaf, const std::string& path) {
        return leaf.poison() ? leaf : plain_text(env, path.empty() ? "" : path.substr(1), span);
      });
}

}  // namespace ein::sema

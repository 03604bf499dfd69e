#include "driver/rule_programs.h"

#include <fmt/format.h>

#include <algorithm>

#include "sema/names/attributes.h"

namespace ein {
namespace {

const ast::Fn* function_of(const ast::Ast& ast, const std::vector<ast::StmtId>& items,
                           Symbol name) {
  for (ast::StmtId id : items) {
    const auto* f = std::get_if<ast::Fn>(&ast[id].node);
    if (f && !f->rule && f->name.symbol == name) return f;
  }
  return nullptr;
}

bool is_float_name(std::string_view type) {
  return type == "f16" || type == "bf16" || type == "f32" || type == "f64";
}

// How a parameter is supplied.
struct Given {
  std::string param;
  std::string name;  // of the input
  std::string type;  // of the input, as written
  bool tensor = false, floating = true;
};

// The type of a parameter, a pack as one coordinate.
Given written(const ast::Ast& ast, const SourceMap& sources, ast::TypeId id) {
  Given g;
  const ast::Type& t = ast[id];
  const auto* tensor = std::get_if<ast::TensorType>(&t.node);
  std::string element(sources.text(tensor ? ast[tensor->elem].span : t.span));
  g.tensor = tensor != nullptr;
  if (!tensor) {
    g.floating = is_float_name(element);
    g.type = element;
    return g;
  }
  bool known =
      is_float_name(element) || element[0] == 'i' || element[0] == 'u' || element == "bool";
  if (!known) element = "f64";  // a type parameter
  g.floating = is_float_name(element);
  std::vector<std::string> dims;
  for (const ast::Dim& d : tensor->dims) {
    switch (d.kind) {
      case ast::Dim::Kind::Pack: dims.push_back(text(d.name.symbol) + "_0"); break;
      case ast::Dim::Kind::AnyRank: dims.push_back("?"); break;
      default: dims.emplace_back(sources.text(d.span));
    }
  }
  g.type = fmt::format("[{}; {}]", element, fmt::join(dims, ", "));
  return g;
}

// Which values of a function that returns a tuple have derivatives; empty when it returns one
// value. Without a written type all of them are taken to be floats.
std::vector<bool> fields_of(const ast::Ast& ast, const SourceMap& sources, const ast::Fn& fn) {
  std::vector<bool> out;
  if (fn.result) {
    if (const auto* types = std::get_if<ast::TupleType>(&ast[fn.result].node)) {
      for (ast::TypeId t : types->items) out.push_back(written(ast, sources, t).floating);
    }
    return out;
  }
  const auto* block = std::get_if<ast::Block>(&ast[fn.body].node);
  if (!block || !block->value) return out;
  if (const auto* tuple = std::get_if<ast::Tuple>(&ast[block->value].node)) {
    out.assign(tuple->items.size(), true);
  }
  return out;
}

// The name of what holds the derivative by a parameter (for a tuple: of one of its values).
std::string holder_of(const std::string& prefix, size_t field, bool tuple, const std::string& by) {
  return tuple ? fmt::format("{}_{}_{}_by", prefix, field, by)
               : fmt::format("{}_{}_by", prefix, by);
}

// A parameter that keeps its default: one that is not known to be a real number.
bool keeps_default(const ast::Ast& ast, const SourceMap& sources, const ast::Param& p) {
  return p.value && !(p.type && written(ast, sources, p.type).floating);
}

constexpr int kPoints = 16;  // a scalar function is tried at this many points

// `untyped`: what parameters without a type are; empty: scalars. `cast`: the function gives an
// integer, which a rule turns into a float.
std::string call_text(const ast::Ast& ast, const SourceMap& sources, const ast::Fn& fn,
                      const std::string& prefix, const std::string& untyped, bool cast,
                      const std::vector<bool>& fields) {
  std::vector<Given> given;
  const bool tuple = !fields.empty();
  auto value_of = [&](size_t k) { return tuple ? fmt::format("{}_{}", prefix, k) : prefix; };
  std::vector<std::string> values;
  for (size_t k = 0; k < std::max<size_t>(1, fields.size()); ++k) values.push_back(value_of(k));
  bool scalar = fn.coords.empty();
  for (const ast::Param& p : fn.params) {
    if (keeps_default(ast, sources, p)) continue;
    Given g;
    if (p.type) {
      g = written(ast, sources, p.type);
    } else {
      g.tensor = !untyped.empty();
      g.type = g.tensor ? untyped : "f64";
    }
    g.param = text(p.name.symbol);
    g.name = fmt::format("{}_{}", prefix, g.param);
    scalar = scalar && !g.tensor;
    given.push_back(std::move(g));
  }
  std::string out = "\n", element = "f64";
  std::vector<std::string> args, brackets;
  for (const Given& g : given) {
    if (g.floating) {
      size_t begin = g.tensor ? 1 : 0;
      element = g.type.substr(begin, g.type.find(';', begin) - begin);
    }
    out += scalar ? fmt::format("let {}: [{}; {}];\n", g.name, g.type, kPoints)
                  : fmt::format("let {}: {};\n", g.name, g.type);
    // By name behind a parameter that keeps its default.
    std::string arg = scalar ? g.name + "[point]" : g.name;
    bool in_place = g.param == text(fn.params[args.size()].name.symbol);
    args.push_back(in_place ? arg : fmt::format("{} = {}", g.param, arg));
  }
  for (const ast::FnCoord& c : fn.coords) {
    if (!c.pack) brackets.push_back(text(c.name.symbol));
  }
  std::string call = text(fn.name.symbol);
  if (!brackets.empty()) call += fmt::format("[{}]", fmt::join(brackets, ", "));
  call += fmt::format("({})", fmt::join(args, ", "));
  std::string left = tuple ? fmt::format("({})", fmt::join(values, ", ")) : prefix;
  out += fmt::format("let {}{} = {}{};\n", left, scalar ? "[point]" : "", call,
                     cast ? " as " + element : "");
  for (size_t k = 0; k < values.size(); ++k) {
    if (tuple && !fields[k]) continue;
    for (const Given& g : given) {
      if (!g.floating) continue;
      out += fmt::format("let {} = @{} / @{};\n", holder_of(prefix, k, tuple, g.param), values[k],
                         g.name);
    }
  }
  return out;
}

}  // namespace

std::vector<RuleProgram> rule_programs(const sema::Program& program, const SourceMap& sources) {
  std::vector<RuleProgram> out;
  const ast::Ast& ast = program.ast;
  for (const sema::ModuleTree& module : program.modules) {
    if (module.name.starts_with("std/")) continue;
    for (ast::StmtId id : module.items) {
      const auto* rule = std::get_if<ast::Fn>(&ast[id].node);
      if (!rule || !rule->rule) continue;
      const ast::Fn* fn = function_of(ast, module.items, rule->name.symbol);
      if (!fn) continue;  // an error, reported
      RuleProgram r;
      r.function = text(fn->name.symbol);
      r.span = rule->name.span;
      r.file = sources.name(module.file);
      r.surrogate = sema::find_attribute(ast[id], sema::Attribute::Surrogate) != nullptr;
      std::string prefix = "gradcheck_" + r.function;
      bool untyped = false;
      std::vector<bool> fields = fields_of(ast, sources, *fn);
      for (const ast::Param& p : fn->params) {
        if (keeps_default(ast, sources, p)) continue;
        untyped |= !p.type;
        bool floating = !p.type || written(ast, sources, p.type).floating;
        std::string name = text(p.name.symbol);
        for (size_t k = 0; floating && k < std::max<size_t>(1, fields.size()); ++k) {
          if (!fields.empty() && !fields[k]) continue;
          r.by.push_back({holder_of(prefix, k, !fields.empty(), name), name});
        }
      }
      std::vector<std::string> shapes{""};
      if (untyped) {
        std::vector<std::string> coords;
        for (const ast::FnCoord& c : fn->coords) {
          coords.push_back(text(c.name.symbol) + (c.pack ? "_0" : ""));
        }
        if (coords.empty()) coords.push_back("place");
        shapes.push_back(fmt::format("[f64; {}]", fmt::join(coords, ", ")));
        shapes.push_back(fmt::format("[f64; row_0, {}]", fmt::join(coords, ", ")));
        if (!fn->coords.empty()) std::rotate(shapes.begin(), shapes.begin() + 1, shapes.end());
      }
      for (const std::string& shape : shapes) {
        for (bool cast : {false, true}) {
          r.candidates.push_back(sources.text(module.file) +
                                 call_text(ast, sources, *fn, prefix, shape, cast, fields));
        }
      }
      out.push_back(std::move(r));
    }
  }
  return out;
}

}  // namespace ein

#include "ide/analysis.h"

#include <fmt/format.h>

namespace ein::ide {

std::shared_ptr<const Analysis> analyse(const std::string& path, const std::string& text,
                                        Depth depth, const Documents& documents,
                                        const std::function<bool()>& cancelled) {
  auto out = std::make_shared<Analysis>();
  Analysis& a = *out;
  a.depth = depth;
  a.root = a.sources.add(path, text);
  for (const Documents::Earlier& e : documents.earlier) {
    a.earlier.push_back({a.sources.add(e.name, e.text), false, e.joined, e.tree});
  }
  if (depth == Depth::Names) {
    sema::ReadModule read = module_reader(documents.read, path);
    a.compiled.program = sema::read_program(a.root, a.sources, read, a.diags, a.earlier);
  } else {
    CompileOptions options;
    options.read_file = documents.read;
    if (documents.files) options.files = documents.files(a.sources);
    options.meanings = &a.meanings;
    a.meanings.uses = documents.binds;
    options.cancelled = cancelled;
    options.names_only = depth == Depth::Quick;
    options.tests = options.keep_asked = depth == Depth::Full;
    options.record = &a.record;
    options.earlier = a.earlier;
    options.printed = documents.printed;
    a.compiled = compile(a.root, a.sources, options, a.diags);
    if (a.compiled.cancelled) return nullptr;
  }
  a.lexed = std::move(a.compiled.program.lexed);
  if (cancelled && cancelled()) return nullptr;
  if (documents.binds) {
    a.bindings = bind(a.compiled.program, a.sources);
    add_argument_names(a.bindings, a.ast(), a.meanings);
  }
  return out;
}

const Entity& entity_of(const Analysis& a, const Occurrence& o) {
  return a.bindings.entities[o.entity];
}

const std::vector<sema::Shown>& values_of(const Analysis& a, const Occurrence& o) {
  static const std::vector<sema::Shown> none;
  for (Span place : {o.span, entity_of(a, o).span}) {
    auto it = a.meanings.values.find(sema::Meanings::place(place));
    if (it != a.meanings.values.end() && !it->second.empty()) return it->second;
  }
  return none;
}

std::string describe(const sema::Shown& v) {
  if (v.type == "record" || v.type == "tuple") {
    bool record = v.type == "record";
    std::string out = record ? "{ " : "(";
    for (size_t i = 0; i < v.items.size(); ++i) {
      if (i > 0) out += ", ";
      if (record) out += v.fields[i] + ": ";
      out += describe(v.items[i]);
    }
    return out + (record ? " }" : ")");
  }
  std::string out = v.type;
  for (size_t i = 0; i < v.coords.size(); ++i) {
    const auto& [name, extent] = v.coords[i];
    out += i == 0 ? " [" : ", ";
    out += name.empty() ? extent : name == extent ? name : name + ": " + extent;
  }
  return v.coords.empty() ? out : out + "]";
}

std::string as_type(const sema::Shown& v) {
  if (v.literal || v.type == "function" || v.type.empty()) return "";
  if (v.type == "record" || v.type == "tuple") {
    std::string out = v.type == "record" ? "{ " : "(";
    for (size_t i = 0; i < v.items.size(); ++i) {
      std::string item = as_type(v.items[i]);
      if (item.empty()) return "";
      if (i > 0) out += ", ";
      out += v.type == "record" ? v.fields[i] + ": " + item : item;
    }
    return out + (v.type == "record" ? " }" : ")");
  }
  std::string dims;
  for (const auto& c : v.coords) {
    if (c.extent.find_first_of("?…") != std::string::npos) return "";
    dims += (dims.empty() ? "; " : ", ") + c.extent;
  }
  return v.coords.empty() ? v.type : "[" + v.type + dims + "]";
}

std::string signature_of(const Analysis& a, const ast::Fn& fn) {
  std::string out = "fn ";
  bool space = false;
  for (char c : a.sources.text(fn.signature)) {
    bool blank = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    if (blank) {
      space = true;
      continue;
    }
    bool opened = out.back() == '(' || out.back() == '[';
    if (space && !opened && c != ')') out += ' ';
    space = false;
    out += c;
  }
  return out;
}

ast::ExprId tree_at(const Analysis& a, uint32_t offset,
                    const std::function<bool(const ast::Expr&)>& wanted) {
  ast::ExprId best;
  uint32_t size = ~0u;
  const auto& exprs = a.ast().exprs;
  for (uint32_t i = 0; i < exprs.size(); ++i) {
    const ast::Expr& e = exprs[ast::ExprId(i)];
    if (e.span.file != a.root || offset < e.span.begin || offset > e.span.end) continue;
    if (e.span.end - e.span.begin >= size || !wanted(e)) continue;
    best = ast::ExprId(i);
    size = e.span.end - e.span.begin;
  }
  return best;
}

const ast::Fn* function_of(const Analysis& a, const Entity& e) {
  return e.stmt ? std::get_if<ast::Fn>(&a.ast()[e.stmt].node) : nullptr;
}

}  // namespace ein::ide

#include "driver/doc.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

namespace ein {
namespace {

std::string_view trimmed(std::string_view s) {
  size_t begin = s.find_first_not_of(" \t\r\n"), end = s.find_last_not_of(" \t\r\n");
  return begin == std::string_view::npos ? "" : s.substr(begin, end - begin + 1);
}

// What follows the slashes of a comment.
std::string said(std::string_view line, size_t slashes) {
  line.remove_prefix(slashes);
  if (!line.empty() && line[0] == ' ') line.remove_prefix(1);
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  return std::string(line);
}

// The `///` lines above an item; attributes and other comments may stand between them.
std::vector<DocItem::Line> doc_lines(const SourceMap& sources, FileId file, uint32_t item_line) {
  std::vector<DocItem::Line> out;
  for (uint32_t n = item_line; n-- > 1;) {
    std::string_view line = sources.line(file, n);
    if (line.starts_with("///")) {
      out.push_back({said(line, 3), n});
    } else if (!trimmed(line).empty() && !line.starts_with("//") && !line.starts_with("#[")) {
      break;
    }
  }
  std::reverse(out.begin(), out.end());
  return out;
}

// The `//` lines that a file opens with, joined. A blank line must end them; if code follows
// directly, they are about that code and do not count.
std::string opening(const SourceMap& sources, FileId file) {
  std::string out;
  uint32_t n = 1;
  for (;; ++n) {
    std::string_view line = sources.line(file, n);
    if (!line.starts_with("//") || line.starts_with("///")) break;
    if (!out.empty()) out += '\n';
    out += said(line, 2);
  }
  return trimmed(sources.line(file, n)).empty() ? out : "";
}

std::string text_of(const SourceMap& sources, Span span) {
  return std::string(trimmed(sources.text(span)));
}

const ast::Stmt* rule_of(const ast::Ast& ast, Symbol name) {
  for (ast::StmtId id : ast.items) {
    const auto* f = std::get_if<ast::Fn>(&ast[id].node);
    if (f && f->rule && f->name.symbol == name) return &ast[id];
  }
  return nullptr;
}

std::string rule_text(const SourceMap& sources, const ast::Stmt& rule) {
  Span all = rule.span;
  for (const ast::Attribute& a : rule.attributes) all = join(all, a.span);
  return text_of(sources, all);
}

// Up to the first full stop, in one line.
std::string first_sentence(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) {
    if (trimmed(line).empty() || line.starts_with("```")) break;
    if (!all.empty()) all += ' ';
    all += line;
  }
  size_t stop = all.find(". ");
  return stop == std::string::npos ? all : all.substr(0, stop + 1);
}

std::string summary(const DocItem& item) {
  std::vector<std::string> lines;
  for (const DocItem::Line& l : item.doc) lines.push_back(l.text);
  return first_sentence(lines);
}

// Escaped for a cell of a table.
std::string cell(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

bool opens_example(const std::string& line) { return trimmed(line) == "```ein"; }

// What a link says after `#` to reach the heading of a name: anchors are in lower case.
std::string heading_anchor(std::string name) {
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

}  // namespace

bool DocItem::has_example() const {
  return std::any_of(doc.begin(), doc.end(), [](const Line& l) { return opens_example(l.text); });
}

DocModule doc_module(const ast::Ast& ast, FileId file, const SourceMap& sources) {
  DocModule out;
  out.about = opening(sources, file);
  for (ast::StmtId id : ast.items) {
    const ast::Stmt& stmt = ast[id];
    if (const auto* use = std::get_if<ast::Use>(&stmt.node); use && use->pub) {
      out.reexports.push_back(text_of(sources, stmt.span));
    }
    DocItem item;
    const auto* fn = std::get_if<ast::Fn>(&stmt.node);
    const auto* constant = std::get_if<ast::Const>(&stmt.node);
    if (!(fn && fn->pub && !fn->rule) && !(constant && constant->pub)) continue;
    ast::Name name = fn ? fn->name : constant->name;
    item.name = text(name.symbol);
    item.function = fn != nullptr;
    item.line = sources.position(file, name.span.begin).line;
    uint32_t first = sources.position(file, stmt.span.begin).line;
    item.doc = doc_lines(sources, file, first);
    if (fn) {
      uint32_t begin = sources.line_begin(file, item.line);
      item.signature = text_of(sources, {file, begin, ast[fn->body].span.begin});
      for (const ast::FnCoord& c : fn->coords) {
        item.coords.push_back((c.pack ? ".." : "") + text(c.name.symbol));
      }
      for (const ast::Param& p : fn->params) {
        std::string type = p.type ? text_of(sources, ast[p.type].span) : "";
        std::string value = p.value ? text_of(sources, ast[p.value].span) : "";
        item.params.push_back({text(p.name.symbol), type, value});
      }
      if (fn->result) item.result = text_of(sources, ast[fn->result].span);
      if (const ast::Stmt* rule = rule_of(ast, name.symbol)) item.rule = rule_text(sources, *rule);
    } else {
      item.signature = text_of(sources, stmt.span);
    }
    out.items.push_back(std::move(item));
  }
  return out;
}

std::string doc_page(const DocModule& module, const ExampleOutputs& outputs) {
  std::string out = fmt::format("# {0}\n\n`use {0}::*;`\n", module.name);
  if (!module.about.empty()) out += fmt::format("\n{}\n", module.about);
  if (!module.reexports.empty()) {
    out += fmt::format("\nIt re-exports:\n\n```ein\n{}\n```\n", fmt::join(module.reexports, "\n"));
  }
  for (const DocItem& item : module.items) {
    out += fmt::format("\n## {}\n\n```ein\n{}\n```\n", item.name, item.signature);
    uint32_t example = 0;  // the line it begins in; 0: outside of one
    if (!item.doc.empty()) out += '\n';
    for (const DocItem::Line& l : item.doc) {
      out += l.text + "\n";
      if (example == 0) {
        if (opens_example(l.text)) example = l.number;
        continue;
      }
      if (trimmed(l.text) != "```") continue;
      auto printed = outputs.find(example);
      if (printed != outputs.end() && !printed->second.empty()) {
        out += fmt::format("\n```output\n{}```\n", printed->second);
      }
      example = 0;
    }
    if (!item.rule.empty()) {
      out += fmt::format("\nIts derivative is a rule:\n\n```ein\n{}\n```\n", item.rule);
    }
  }
  return out;
}

std::string doc_index(const std::string& title, const std::vector<DocModule>& modules) {
  std::string out = fmt::format("# {}\n", title);
  for (const DocModule& m : modules) {
    out += fmt::format("\n## [{}]({}.md)\n\n", m.name, m.page);
    if (!m.about.empty()) out += m.about + "\n";
    if (m.items.empty()) continue;
    if (!m.about.empty()) out += "\n";
    out += "| name | what it is |\n|---|---|\n";
    for (const DocItem& item : m.items) {
      out += fmt::format("| [{}]({}.md#{}) | {} |\n", item.name, m.page, heading_anchor(item.name),
                         cell(summary(item)));
    }
  }
  return out;
}

nlohmann::json doc_json(const std::vector<DocModule>& modules) {
  nlohmann::json out = nlohmann::json::array();
  for (const DocModule& m : modules) {
    nlohmann::json items = nlohmann::json::array();
    for (const DocItem& item : m.items) {
      nlohmann::json j{{"name", item.name},
                       {"kind", item.function ? "fn" : "const"},
                       {"signature", item.signature},
                       {"summary", summary(item)},
                       {"line", item.line}};
      if (item.function) {
        j["coords"] = item.coords;
        j["params"] = nlohmann::json::array();
        for (const DocParam& p : item.params) {
          nlohmann::json param{{"name", p.name}, {"type", p.type}};
          if (!p.value.empty()) param["default"] = p.value;
          j["params"].push_back(std::move(param));
        }
        j["result"] = item.result;
        j["rule"] = item.rule;
      }
      items.push_back(std::move(j));
    }
    nlohmann::json module{{"name", m.name}, {"page", m.page}, {"about", m.about}, {"items", items}};
    if (!m.reexports.empty()) module["reexports"] = m.reexports;
    out.push_back(std::move(module));
  }
  return out;
}

}  // namespace ein

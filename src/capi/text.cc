// Texts about programs. Each one compiles the program again, up to autodiff. That takes a few
// milliseconds, and calls do not need what it produces.
#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/deep_stack.h"
#include "capi/handles.h"
#include "driver/audit.h"
#include "driver/compile.h"
#include "driver/doc.h"
#include "driver/facts.h"
#include "driver/files.h"
#include "driver/fix.h"
#include "driver/requests.h"
#include "driver/texts.h"
#include "runtime/show.h"
#include "syntax/parser.h"

namespace ein::capi {
namespace {

struct Again {
  SourceMap sources;
  FileId root;
  autodiff::Record record;
  Diagnostics diags;
  Compiled compiled;
};

void compile_again(const ein_program& p, const ExtraRequest& extra, bool reverse, Again& out) {
  FileId file = out.root = out.sources.add(p.name, p.text);
  CompileOptions options;
  options.earlier = add_earlier(p, out.sources);
  options.read_file = [&p](const std::string& path) -> std::optional<std::string> {
    for (const auto& [known, text] : p.files) {
      if (known == path) return text;
    }
    return std::nullopt;
  };
  options.files = files_on_disk(out.sources);
  options.keep_asked = true;
  options.record = &out.record;
  options.extra = extra;
  if (!reverse) options.derivations = p.derivations;
  if (reverse) options.direction = autodiff::Direction::Reverse;
  out.compiled = compile(file, out.sources, options, out.diags);
}

struct Asked {
  ein_text_kind kind;
  ein_text_format format;
  std::string of;
  std::vector<std::string> wrt;
};

std::string source_text(const ein_program& p) {
  bool derived = !p.derivations.empty() || !p.extra.of.empty();
  if (!derived) return p.text;
  Again again;
  compile_again(p, p.extra, false, again);
  core::Module& m = again.compiled.module;
  std::vector<core::FamilyId> roots;
  for (Symbol s : again.compiled.derived.values) roots.push_back(m.find(s));
  for (Symbol s : again.compiled.derived.derivatives) roots.push_back(m.find(s));
  if (roots.empty()) roots = derivatives(again.compiled.asked, m);
  return derived_source(m, again.record, roots);
}

// The message of the first error.
std::string first_error(const Diagnostics& diags) {
  for (const Diagnostic& d : diags.all()) {
    if (info(d.code).severity != Severity::Error) continue;
    return d.help_text.empty() ? d.message : d.message + "; " + d.help_text;
  }
  return "";
}

std::string explain_text(const ein_program& p, const Asked& asked, std::string& wrong) {
  Again again;
  compile_again(p, {asked.of, asked.wrt}, true, again);
  if (!again.compiled.ok) {
    wrong = first_error(again.diags);
    return "";
  }
  const core::Module& m = again.compiled.asked;
  std::vector<std::string> of, wrt;
  Diagnostics known;  // these diagnostics were already reported by the first compilation
  auto add = [&](const std::string& name, std::vector<std::string>& to) {
    for (core::FamilyId f : float_values(m, name, known)) to.push_back(text(m[f].name));
  };
  if (!asked.of.empty()) add(asked.of, of);
  for (const std::string& name : asked.wrt) add(name, wrt);
  std::vector<Explanation> all = explanations(again.record, m, of, wrt);
  if (all.empty()) {
    wrong = "the program contains no derivative: name a value and what to differentiate by";
    return "";
  }
  if (asked.format == EIN_AS_HTML) return explanation_html(all, again.sources, again.root);
  std::string out;
  for (const Explanation& e : all) {
    if (asked.format == EIN_AS_JSON) {
      out += (out.empty() ? "[" : ",") + explanation_json(e);
    } else {
      out += (out.empty() ? "" : "\n") + explanation_text(e);
    }
  }
  return asked.format == EIN_AS_JSON ? out + "]" : out;
}

std::string audit_text(const ein_program& p, ein_text_format format) {
  Again again;
  compile_again(p, p.extra, false, again);
  if (format == EIN_AS_HTML)
    return audit_html(audit(again.compiled.asked), again.compiled.asked, again.sources, again.root);
  Audit report = audit_report(again.compiled.asked, again.sources);
  return format == EIN_AS_JSON ? report.json : report.text;
}

std::string facts_text(ein_program& p, ein_text_format format) {
  core::Module m = copy_of(p);
  std::vector<FamilyReport> reports = report_families(m);
  return format == EIN_AS_JSON ? ein::facts_json(m, reports) : ein::facts_text(m, reports);
}

struct Parsed {
  SourceMap sources;
  FileId file;
  ast::Ast tree;
  explicit Parsed(const ein_program& p) : file(sources.add(p.name, p.text)) {
    Diagnostics diags;  // already reported by the first compilation
    tree = ast::parse(file, sources, diags);
  }
};

std::string functions_json(const ein_program& p) {
  Parsed parsed(p);
  return doc_json({doc_module(parsed.tree, parsed.file, parsed.sources)}).dump();
}

// Blanks out everything but these items, so that places in messages stay the same.
std::string items_text(const ein_program& p) {
  Parsed parsed(p);
  std::string out = p.text;
  for (ast::StmtId id : parsed.tree.items) {
    const ast::Stmt& s = parsed.tree[id];
    bool goes = std::holds_alternative<ast::Let>(s.node) ||
                std::holds_alternative<ast::ExprStmt>(s.node) ||
                std::holds_alternative<ast::Test>(s.node);
    for (uint32_t k = s.span.begin; goes && k < s.span.end && k < out.size(); ++k) {
      if (out[k] != '\n') out[k] = ' ';
    }
  }
  return out;
}

std::string text_of(ein_program& p, const Asked& asked, std::string& wrong) {
  bool json = asked.kind == EIN_EXPLAIN || asked.kind == EIN_AUDIT || asked.kind == EIN_FACTS ||
              asked.kind == EIN_FUNCTIONS;
  bool fits =
      (asked.format == EIN_AS_TEXT && asked.kind != EIN_FUNCTIONS) ||
      (asked.format == EIN_AS_JSON && json) ||
      (asked.format == EIN_AS_HTML && (asked.kind == EIN_EXPLAIN || asked.kind == EIN_AUDIT));
  if (!fits) wrong = "this text does not exist in that format";
  bool always = asked.kind == EIN_FIXED || asked.kind == EIN_COLOURED;
  if (!p.ok && !always) wrong = "the program did not compile";
  if (!wrong.empty()) return "";
  switch (asked.kind) {
    case EIN_SOURCE: return source_text(p);
    case EIN_EXPLAIN: return explain_text(p, asked, wrong);
    case EIN_AUDIT: return audit_text(p, asked.format);
    case EIN_FACTS: return facts_text(p, asked.format);
    case EIN_FIXED: return apply_fixes(p.name, p.text, read_file).text;
    case EIN_COLOURED: return p.diagnostics_coloured;
    case EIN_FUNCTIONS: return functions_json(p);
    case EIN_ITEMS: return items_text(p);
  }
  wrong = fmt::format("there is no text {}", int{asked.kind});
  return "";
}

char* copy(const std::string& text) {
  char* out = new char[text.size() + 1];
  std::memcpy(out, text.c_str(), text.size() + 1);
  return out;
}

}  // namespace
}  // namespace ein::capi

extern "C" {

ein_status ein_text(ein_program* program, ein_text_kind kind, ein_text_format format,
                    const char* of, const char* const* wrt, size_t wrt_count, char** text,
                    ein_error* error) {
  using namespace ein::capi;
  if (!program || !text || !of != (wrt_count == 0)) {
    report(
        error, "",
        "ein_text needs a program, somewhere to put the text, and both `of` and `wrt` or neither");
    return EIN_USAGE;
  }
  *text = nullptr;
  ein_status status = EIN_INTERNAL;
  ein::on_deep_stack([&] {
    status = guarded(
        [&] {
          std::string wrong;
          std::string made =
              text_of(*program, {kind, format, of ? of : "", names(wrt, wrt_count)}, wrong);
          if (!wrong.empty()) {
            report(error, "", wrong);
            return EIN_USAGE;
          }
          *text = copy(made);
          return EIN_OK;
        },
        error);
  });
  return status;
}

void ein_text_free(char* text) { delete[] text; }

ein_status ein_show(const ein_tensor* tensor, const char* const* coords, char** text,
                    ein_error* error) {
  using namespace ein::capi;
  if (!tensor || !text || !ein_dtype_name(tensor->dtype) || tensor->rank < 0) {
    report(error, "", "ein_show needs a tensor, and somewhere to put the text");
    return EIN_USAGE;
  }
  return guarded(
      [&] {
        auto rank = static_cast<size_t>(tensor->rank);
        ein::Tensor value(static_cast<ein::DType>(tensor->dtype),
                          {tensor->shape, tensor->shape + rank});
        size_t bytes = static_cast<size_t>(value.size()) * ein_dtype_size(tensor->dtype);
        if (bytes > 0) std::memcpy(value.data(), tensor->data, bytes);
        std::vector<std::string> known = names(coords, rank);
        known.resize(rank);
        *text = copy(ein::show(value, known));
        return EIN_OK;
      },
      error);
}

const char* ein_backend(const ein_program* program) {
  return program && program->way.native ? "native" : "reference";
}

}  // extern "C"

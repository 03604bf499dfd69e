#include "base/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/canvas.h"
#include "base/frame.h"

namespace ein {

namespace {

const char* word(Severity severity) { return severity == Severity::Error ? "error" : "warning"; }

Span main_span(const Diagnostic& diag) {
  return diag.labels.empty() ? Span{} : diag.labels.front().span;
}

std::string place(const SourceMap& sources, Span span) {
  LineCol at = sources.position(span.file, span.begin);
  return fmt::format("{}:{}:{}", sources.name(span.file), at.line, at.col);
}

size_t gutter_width(const Diagnostic& diag, const SourceMap& sources) {
  uint32_t line = 1;
  auto see = [&](Span span) {
    if (span.valid()) line = std::max(line, sources.position(span.file, span.end).line);
  };
  for (const Label& label : diag.labels) see(label.span);
  for (const Fix& fix : diag.fixes) {
    for (const Edit& edit : fix.edits) see(edit.span);
  }
  return std::to_string(line).size();
}

// `= note: text`, with the following lines of the text under its first.
void put_note(std::string& out, size_t gutter, const char* kind, const std::string& text,
              bool color) {
  std::string indent(gutter + 5 + std::char_traits<char>::length(kind), ' ');
  out += std::string(gutter + 1, ' ') + styled("=", Style::Gutter, color) + " " +
         styled(kind, Style::Bold, color) + ": ";
  for (char c : text) {
    out += c;
    if (c == '\n') out += indent;
  }
  out += '\n';
}

// Labels grouped by file, the primary label's file first.
std::vector<std::vector<Label>> by_file(const std::vector<Label>& labels) {
  std::vector<std::vector<Label>> groups;
  for (const Label& label : labels) {
    if (!label.span.valid()) continue;
    auto it = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return group.front().span.file == label.span.file;
    });
    if (it == groups.end()) it = groups.insert(groups.end(), std::vector<Label>{});
    it->push_back(label);
  }
  return groups;
}

std::string count(size_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

nlohmann::ordered_json json_span(const SourceMap& sources, Span span, FileId main) {
  nlohmann::ordered_json j;
  LineCol at = sources.position(span.file, span.begin);
  j["start"] = span.begin;
  j["end"] = span.end;
  j["line"] = at.line;
  j["col"] = at.col;
  if (span.file != main) j["file"] = sources.name(span.file);
  return j;
}

}  // namespace

std::string render_human(const Diagnostic& diag, const SourceMap& sources, bool color) {
  const CodeInfo& code = info(diag.code);
  Style mark = code.severity == Severity::Error ? Style::Error : Style::Warning;
  std::string out = styled(fmt::format("{}[{}]", word(code.severity), code.name), mark, color) +
                    styled(": " + diag.message, Style::Bold, color) + "\n";
  size_t gutter = gutter_width(diag, sources);
  std::string bar = std::string(gutter + 1, ' ') + styled("|", Style::Gutter, color) + "\n";
  auto groups = by_file(diag.labels);
  for (size_t i = 0; i < groups.size(); ++i) {
    const char* arrow = i == 0 ? "-->" : ":::";
    out += std::string(gutter, ' ') + styled(arrow, Style::Gutter, color) + " " +
           place(sources, groups[i].front().span) + "\n" + bar;
    Canvas canvas;
    draw_frame(canvas, sources, groups[i], gutter, mark);
    out += canvas.str(color);
  }
  bool has_notes = !diag.notes.empty() || !diag.help_text.empty();
  if (!groups.empty() && has_notes) out += bar;
  for (const std::string& note : diag.notes) put_note(out, gutter, "note", note, color);
  if (!diag.help_text.empty()) put_note(out, gutter, "help", diag.help_text, color);
  for (const Fix& fix : diag.fixes) {
    out += styled("fix", Style::Bold, color) + ": " + fix.title + (fix.safe ? "" : " (check it)") +
           "\n" + bar;
    Canvas canvas;
    draw_fix(canvas, sources, fix, gutter);
    out += canvas.str(color);
  }
  return out;
}

std::string render_short(const Diagnostic& diag, const SourceMap& sources) {
  const CodeInfo& code = info(diag.code);
  Span span = main_span(diag);
  std::string where = span.valid() ? place(sources, span) + ": " : "";
  return fmt::format("{}{}[{}]: {}\n", where, word(code.severity), code.name, diag.message);
}

std::string render_json(const Diagnostic& diag, const SourceMap& sources) {
  const CodeInfo& code = info(diag.code);
  Span span = main_span(diag);
  nlohmann::ordered_json j;
  j["code"] = code.name;
  j["severity"] = word(code.severity);
  j["message"] = diag.message;
  j["file"] = nullptr;
  if (span.valid()) j["file"] = sources.name(span.file);
  j["labels"] = nlohmann::ordered_json::array();
  for (const Label& label : diag.labels) {
    if (!label.span.valid()) continue;
    auto item = json_span(sources, label.span, span.file);
    item["text"] = label.text;
    item["primary"] = label.primary;
    j["labels"].push_back(item);
  }
  j["notes"] = diag.notes;
  j["help"] = nullptr;
  if (!diag.help_text.empty()) j["help"] = diag.help_text;
  j["fixes"] = nlohmann::ordered_json::array();
  for (const Fix& fix : diag.fixes) {
    auto edits = nlohmann::ordered_json::array();
    for (const Edit& edit : fix.edits) {
      auto item = json_span(sources, edit.span, span.file);
      item["replacement"] = edit.replacement;
      edits.push_back(item);
    }
    j["fixes"].push_back({{"title", fix.title}, {"edits", edits}, {"safe", fix.safe}});
  }
  j["rendered"] = render_human(diag, sources);
  // A source file may hold bytes that are not UTF-8; they must not stop the report about them.
  return j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string render(const Diagnostics& diags, const SourceMap& sources,
                   const RenderOptions& options) {
  std::string out;
  size_t errors = 0, warnings = 0, hidden = 0;
  for (const Diagnostic* diag : diags.sorted()) {
    bool is_error = info(diag->code).severity == Severity::Error;
    ++(is_error ? errors : warnings);
    if (options.format == ErrorFormat::Json) {
      out += render_json(*diag, sources);
      continue;
    }
    if (is_error && errors > options.max_errors) {
      ++hidden;
      continue;
    }
    if (options.format == ErrorFormat::Short) {
      out += render_short(*diag, sources);
    } else {
      out += render_human(*diag, sources, options.color) + "\n";
    }
  }
  if (options.format == ErrorFormat::Json || errors + warnings == 0) return out;
  std::string summary;
  if (hidden > 0) summary += fmt::format("{} not shown; ", count(hidden, "more error"));
  if (errors > 0) summary += count(errors, "error");
  if (errors > 0 && warnings > 0) summary += ", ";
  if (warnings > 0) summary += count(warnings, "warning");
  return out + summary + "\n";
}

}  // namespace ein

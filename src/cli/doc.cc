#include "driver/doc.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "driver/doc_examples.h"
#include "driver/files.h"
#include "driver/run.h"
#include "syntax/parser.h"

namespace ein::cli {
namespace {

namespace fs = std::filesystem;

// A module, its text, and what its examples print.
struct Described {
  DocModule module;
  ExampleOutputs outputs;
};

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
}

// Runs the examples, because a page that shows wrong results would be worse than none.
int run_examples(const DocCommand& command, const std::string& name, const std::string& text,
                 Described& out) {
  SourceMap sources;
  Diagnostics diags;
  CompileOptions options;
  options.read_file = read_file;
  options.tests = true;
  std::optional<int> wrong;
  CommonOptions common = command.common;
  common.file = name;
  auto access = access_of(common, wrong);
  if (wrong) return *wrong;
  options.files = files_on_disk(sources, access);
  FileId file = sources.add(name, doc_examples_as_tests(text));
  Compiled compiled = compile(file, sources, options, diags);
  show_diagnostics(diags, sources, command.common);
  if (!compiled.ok) return kProgramWrong;
  int status = kFine;
  RunOptions how;
  how.access = access.get();
  // Gives the same text on every machine, and needs no compilation.
  how.backend = Backend::Reference;
  for (CompiledTest& test : compiled.tests) {
    // `test` blocks are not examples.
    uint32_t line = sources.position(test.span.file, test.span.begin).line;
    if (test.name.find("example in line") == std::string::npos) continue;
    std::string printed;
    RunResult result = run(test.module, {}, how, [&](const std::string& s) { printed += s; });
    if (result.error) {
      Span at = result.error->at.valid() ? result.error->at : test.span;
      print_error("error: an example fails: {}\n  at {}\n", result.error->message,
                  place_text(sources, at));
      status = kProgramWrong;
    }
    out.outputs[line] = printed;
  }
  return status;
}

int describe(const DocCommand& command, const std::string& name, const std::string& text,
             bool outputs, Described& out) {
  SourceMap sources;
  Diagnostics diags;
  FileId file = sources.add(name, text);
  ast::Ast tree = ast::parse(file, sources, diags);
  if (diags.has_errors()) {
    show_diagnostics(diags, sources, command.common);
    return kProgramWrong;
  }
  out.module = doc_module(tree, file, sources);
  for (const DocItem& item : out.module.items) {
    const char* lacks = item.doc.empty() ? "no doc comment" : "no example";
    if (!item.doc.empty() && (item.has_example() || !item.function)) continue;
    print_error("warning: `{}` is public and has {}\n  at {}:{}\n", item.name, lacks, name,
                item.line);
  }
  return outputs ? run_examples(command, name, text, out) : kFine;
}

int write_pages(const DocCommand& command, const std::string& title,
                const std::vector<Described>& all) {
  std::error_code error;
  fs::create_directories(command.out, error);
  std::vector<DocModule> modules;
  for (const Described& d : all) {
    std::string path = fs::path(command.out) / (d.module.page + ".md");
    if (int status = write_file(path, doc_page(d.module, d.outputs))) return status;
    modules.push_back(d.module);
  }
  std::string index = fs::path(command.out) / "index.md";
  if (int status = write_file(index, doc_index(title, modules))) return status;
  print_out("wrote {} pages to {}; start with {}\n", all.size() + 1, command.out, index);
  return kFine;
}

int describe_library(const DocCommand& command, bool outputs, std::vector<Described>& all) {
  int status = kFine;
  for (const LibraryFile& file : library_files()) {
    std::string name(file.path.substr(0, file.path.rfind('.')));
    Described d;
    // Not under its path: a module that reads itself through the prelude would be a cycle.
    status = std::max(status, describe(command, "std/" + name + ".ein (library)",
                                       std::string(file.text), outputs, d));
    d.module.page = d.module.name = name;
    replace_all(d.module.page, "/", "_");
    replace_all(d.module.name, "/", "::");
    d.module.name = "std::" + d.module.name;
    if (!d.module.empty()) all.push_back(std::move(d));
  }
  return status;
}

// Processes every file, whatever happened to earlier ones.
int describe_files(const DocCommand& command, bool outputs, std::vector<Described>& all) {
  int status = kFine;
  for (const std::string& file : command.files) {
    CommonOptions options = command.common;
    options.file = file;
    Text source = read_source(options);
    status = std::max(status, source.status);
    if (source.status != kFine) continue;
    Described d;
    int described = describe(command, source.name, source.text, outputs, d);
    status = std::max(status, described);
    d.module.name = d.module.page = file == "-" ? "program" : fs::path(file).stem().string();
    if (described == kFine && d.module.empty()) {
      status = std::max<int>(
          status, usage_error(fmt::format("nothing in `{}` is public: the reference consists of "
                                          "its `pub fn` and `pub const`",
                                          source.name)));
    }
    all.push_back(std::move(d));
  }
  return status;
}

// The page that two modules would be written to; empty if there is none.
std::string clash(const std::vector<Described>& all) {
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].module.page == "index") return "index";
    for (size_t k = 0; k < i; ++k) {
      if (all[i].module.page == all[k].module.page) return all[i].module.page;
    }
  }
  return "";
}

}  // namespace

int doc_verb(const DocCommand& command) {
  if (command.library != command.files.empty()) {
    return usage_error(command.library ? "--library and files cannot be combined"
                                       : "no module given: name files, or use --library");
  }
  bool json = command.format == "json";
  if (json && !command.out.empty())
    return usage_error("--out writes pages and cannot be combined with json");
  std::vector<Described> all;
  int status =
      command.library ? describe_library(command, !json, all) : describe_files(command, !json, all);
  if (status != kFine) return status;
  if (json) {
    std::vector<DocModule> modules;
    for (const Described& d : all) modules.push_back(d.module);
    print_out("{}\n", doc_json(modules).dump());
    return kFine;
  }
  if (command.out.empty()) {
    for (const Described& d : all) {
      print_out("{}{}", &d == all.data() ? "" : "\n", doc_page(d.module, d.outputs));
    }
    return kFine;
  }
  if (std::string page = clash(all); !page.empty()) {
    return usage_error(fmt::format(
        "two pages would be called `{}.md`: document these modules in separate folders", page));
  }
  return write_pages(command, command.library ? "The standard library" : "Reference", all);
}

}  // namespace ein::cli

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "cli/cli.h"

namespace ein::cli {
namespace {

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad() || text.fail()) return std::nullopt;
  return text.str();
}

RenderOptions render_options(const CommonOptions& options) {
  RenderOptions out;
  if (options.error_format == "short") out.format = ErrorFormat::Short;
  if (options.error_format == "json") out.format = ErrorFormat::Json;
  const char* no_color = std::getenv("NO_COLOR");
  bool allowed = !(no_color && *no_color) && isatty(STDERR_FILENO) != 0;
  out.color = options.color == "always" || (options.color == "auto" && allowed);
  return out;
}

}  // namespace

int usage_error(const std::string& message) {
  fmt::print(stderr, "ein: {}\n", message);
  return kUsage;
}

int runtime_error(const std::string& message) {
  std::fflush(stdout);
  fmt::print(stderr, "run-time error: {}\n", message);
  return kRuntimeFailure;
}

Program load(const CommonOptions& options, const ExtraRequest& extra) {
  Program p;
  std::string name = options.file, text;
  if (options.code) {
    name = "<command line>";
    text = *options.code;
  } else if (options.file == "-") {
    name = "<standard input>";
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else if (options.file.empty()) {
    p.status = usage_error("no program: give a file, `-` for standard input, or -c 'code'");
    return p;
  } else if (auto read = read_file(options.file)) {
    text = std::move(*read);
  } else {
    p.status = usage_error(fmt::format("cannot read `{}`", options.file));
    return p;
  }
  FileId file = p.sources.add(name, std::move(text));
  p.compiled = compile(file, p.sources, {options.dump_after, extra}, p.diags);
  std::fputs(render(p.diags, p.sources, render_options(options)).c_str(), stderr);
  if (!p.compiled.ok) p.status = kProgramWrong;
  if (!p.compiled.dump.empty()) std::fputs(p.compiled.dump.c_str(), stdout);
  if (options.time_passes) {
    for (const PassTime& t : p.compiled.times) fmt::print(stderr, "{:>12}  {:8.3f} ms\n", t.pass, t.milliseconds);
  }
  return p;
}

}  // namespace ein::cli

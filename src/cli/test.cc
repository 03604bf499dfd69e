#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "cli/cli.h"
#include "driver/cache.h"
#include "driver/run.h"

namespace ein::cli {
namespace {

struct Tally {
  int passed = 0, failed = 0, status = kFine;
};

// Every program below the current folder, in a stable order, without hidden folders and links.
std::vector<std::string> programs_here() {
  namespace fs = std::filesystem;
  std::vector<std::string> out;
  fs::recursive_directory_iterator it(".", fs::directory_options::skip_permission_denied), end;
  for (; it != end; ++it) {
    const fs::path& path = it->path();
    if (it->is_directory() && path.filename().string().starts_with('.'))
      it.disable_recursion_pending();
    if (it->is_regular_file() && path.extension() == ".ein") out.push_back(path.lexically_normal());
  }
  std::sort(out.begin(), out.end());
  return out;
}

void run_file(const TestCommand& command, const std::string& file, ImageCache* cache,
              Tally& tally) {
  CommonOptions options = command.common;
  options.file = file;
  Program p = load(options, {.tests = true, .doc_examples = true});
  tally.status = std::max(tally.status, p.status);
  if (p.status != kFine) return;
  RunOptions run_options;
  run_options.backend = command.backend == "ref" ? Backend::Reference : Backend::Native;
  run_options.cache = cache;
  run_options.access = p.access.get();
  for (CompiledTest& test : p.compiled.tests) {
    std::string printed;
    RunResult result =
        run(test.module, {}, run_options, [&](const std::string& line) { printed += line; });
    ++(result.error ? tally.failed : tally.passed);
    print_out("{}: {} … {}\n", file, test.name, result.error ? "failed" : "ok");
    if (!result.error) continue;
    // The output of a test only helps if the test failed.
    put(printed);
    Span at = result.error->at.valid() ? result.error->at : test.span;
    print_out("  {}: {}\n", place_text(p.sources, at), result.error->message);
  }
}

}  // namespace

int test_verb(const TestCommand& command) {
  Tally tally;
  std::string note;
  std::unique_ptr<DiskCache> cache = command.no_cache ? nullptr : open_cache(&note);
  if (!note.empty()) print_error("note: {}\n", note);
  for (const std::string& file : command.files.empty() ? programs_here() : command.files) {
    run_file(command, file, cache.get(), tally);
  }
  show_thread_note();
  print_out("{} passed, {} failed\n", tally.passed, tally.failed);
  return tally.failed > 0 ? std::max<int>(tally.status, kProgramWrong) : tally.status;
}

}  // namespace ein::cli

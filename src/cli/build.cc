#include "driver/build.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <sstream>

#include "cli/cli.h"
#include "core/print.h"
#include "driver/run.h"
#include "runtime/write_program.h"

namespace ein::cli {
namespace {

namespace fs = std::filesystem;

// Finds libeinlang_rt.a: next to the binary in a build folder, under lib/ when installed.
std::string find_runtime() {
  if (const char* own = std::getenv("EINLANG_RUNTIME"); own && *own) return own;
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {"libeinlang_rt.a", "../lib/einlang/libeinlang_rt.a"}) {
    fs::path found = folder / place;
    if (fs::exists(found, error)) return found.lexically_normal().string();
  }
  return {};
}

// A folder for the linker's input: next to the output it might overwrite somebody's file.
struct ScratchFolder {
  std::string path;
  ScratchFolder() {
    std::error_code error;
    fs::path folder = fs::temp_directory_path(error);
    path = (error ? fs::path("/tmp") : folder) / "ein-build-XXXXXX";
    if (!mkdtemp(path.data())) path.clear();
  }
  ~ScratchFolder() {
    std::error_code error;
    if (!path.empty()) fs::remove_all(path, error);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
};

// Returns 0, or the exit status for this process.
int run_linker(const std::vector<std::string>& args) {
  std::vector<char*> argv;
  for (const std::string& a : args) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  flush_output();
  // The linker should not ignore the signals that this process ignores.
  sigset_t usual;
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  sigaddset(&usual, SIGXFSZ);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  posix_spawnattr_setsigdefault(&how, &usual);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF);
  int failed = posix_spawnp(&child, argv[0], nullptr, &how, argv.data(), environ);
  posix_spawnattr_destroy(&how);
  if (failed != 0) {
    return usage_error(fmt::format(
        "cannot run `{}`, which is needed to link libraries and programs: {}; install gcc or "
        "clang, or set CC to another compiler (--emit obj does not need one)",
        args[0], std::strerror(failed)));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return kFine;
  return usage_error(fmt::format("`{}` could not link the program", args[0]));
}

int link(const std::string& object, const std::string& output, bool executable) {
  std::string runtime = find_runtime();
  if (runtime.empty()) {
    return usage_error(
        "libeinlang_rt.a is not next to `ein`; set EINLANG_RUNTIME to its path (--emit obj does "
        "not need it)");
  }
  const char* compiler = std::getenv("CC");  // several words, as in make: `ccache gcc`
  std::istringstream words(compiler ? compiler : "");
  std::vector<std::string> args{std::istream_iterator<std::string>(words), {}};
  if (args.empty()) args.push_back("cc");
  if (executable) {
    args.insert(args.end(), {"-pie"});
  } else {
    args.insert(args.end(), {"-shared", "-Wl,--exclude-libs,ALL", "-Wl,-z,defs"});
  }
  // The C++ library by its full file name: that file is always there, whereas the short link comes
  // only with a compiler.
  args.insert(args.end(), {"-o", output, object, runtime, "-Wl,--gc-sections", "-Wl,--as-needed",
                           "-l:libstdc++.so.6", "-l:libz.so.1", "-lm", "-ldl", "-pthread"});
  return run_linker(args);
}

int write_or_show(const std::string& output, const std::string& text) {
  if (output.empty() || output == "-") {
    put(text);
    return kFine;
  }
  return write_file(output, text);
}

// The name in `libwave.so`, `wave.o` and `wave.ein` is `wave`.
std::string name_of_file(const fs::path& path) {
  std::string name = path.filename().string();
  name = name.substr(0, name.find('.'));
  if (path.extension() == ".so" && name.starts_with("lib")) name = name.substr(3);
  return name;
}

int make_program(const BuildCommand& command, Program& p) {
  bool executable = command.emit == "exe";
  BuildOptions options;
  options.show = shown_parts(p.compiled.module, command.show);
  options.opt_level = command.opt_level;
  options.executable = executable;
  options.processor = *processor_named(command.cpu);
  fs::path output = command.output;
  if (output.empty()) {
    std::string stem = command.common.code || command.common.file == "-"
                           ? "program"
                           : name_of_file(command.common.file);
    output = executable ? stem : command.emit == "obj" ? stem + ".o" : "lib" + stem + ".so";
  }
  options.name = command.name.empty() ? c_identifier(name_of_file(output)) : command.name;
  if (c_identifier(options.name) != options.name) {
    return usage_error(fmt::format("--name needs a C identifier, got `{}`", options.name));
  }
  auto built = build(p.compiled.module, p.sources, options);
  if (auto* e = std::get_if<RuntimeError>(&built)) {
    runtime_error(*e, command.common, &p.sources);
    return kProgramWrong;
  }
  const Built& b = std::get<Built>(built);
  for (const std::string& w : b.warnings) print_error("warning: {}\n", w);
  if (command.emit == "obj") {
    if (int status = write_file(output.string(), b.object)) return status;
  } else {
    ScratchFolder scratch;
    if (scratch.path.empty()) {
      return usage_error(
          fmt::format("cannot create a folder for the linker: {}", std::strerror(errno)));
    }
    std::string object = scratch.path + "/program.o";
    int status = write_file(object, b.object);
    std::string linked = scratch.path + "/linked";
    if (status == kFine) status = link(object, linked, executable);
    if (status != kFine) return status;
    auto bytes = read_file(linked);
    if (!bytes)
      return usage_error(fmt::format("cannot read the linker's output: {}", std::strerror(errno)));
    auto written = write_program(output.string(), *bytes);
    if (auto* e = std::get_if<RuntimeError>(&written)) return usage_error(e->message);
  }
  if (executable) return kFine;
  fs::path header = output.parent_path() / (name_of_file(output) + ".h");
  return write_file(header.string(), b.header);
}

}  // namespace

int build_verb(const BuildCommand& command) {
  Program p = load(command.common, {.in = command.in, .direction = command.direction});
  if (p.status != kFine) return p.status;
  for (const std::string& name : shown_parts(p.compiled.module, command.show)) {
    std::string problem;
    if (!find_value(p.compiled.module, name, problem)) return usage_error(problem);
  }
  if (command.emit == "core") {
    return write_or_show(command.output, core::print(p.compiled.module));
  }
  if (command.emit == "loops" || command.emit == "llvm" || command.emit == "asm") {
    RunOptions options;
    options.opt_level = command.opt_level;
    options.processor = *processor_named(command.cpu);
    options.show = shown_parts(p.compiled.module, command.show);
    options.streams = false;  // a library receives its inputs in memory
    auto text = emit(p.compiled.module, {}, options, command.emit);
    if (auto* e = std::get_if<RuntimeError>(&text)) {
      runtime_error(*e, command.common, &p.sources);
      return kProgramWrong;
    }
    return write_or_show(command.output, std::get<std::string>(text));
  }
  return make_program(command, p);
}

}  // namespace ein::cli

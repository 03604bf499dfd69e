// The commands of code lenses. Each runs `ein` as a process of its own, with limits on time and
// memory, so that a program that never ends harms nobody.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "lsp/serve.h"
#include "runtime/files.h"

namespace ein::lsp {
namespace {

using namespace std::chrono_literals;
constexpr auto kTimeLimit = 60s;
constexpr rlim_t kMemory = rlim_t{8} << 30;
constexpr size_t kMostOutput = 1 << 20;
constexpr int kMostAtOnce = 4;

struct Ended {
  int status = 0;
  std::string output;
  std::string why;  // why it was stopped
};

// Between fork and exec only async-signal-safe functions may be called.
[[noreturn]] void become(char* const* argv, const char* folder, int out) {
  if (chdir(folder) != 0) _exit(126);
  int none = open("/dev/null", O_RDONLY);
  dup2(none, 0);
  dup2(out, 1);
  dup2(out, 2);
  setpgid(0, 0);
  rlimit memory{kMemory, kMemory};
  setrlimit(RLIMIT_AS, &memory);
  execv(argv[0], argv);
  _exit(127);
}

Ended run(Server& s, const std::vector<std::string>& words, const std::string& folder) {
  Ended out;
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return {kFailed, "", "no pipe"};
  std::vector<char*> argv;
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  pid_t child = fork();
  if (child == 0) become(argv.data(), folder.c_str(), pipe_ends[1]);
  close(pipe_ends[1]);
  if (child < 0) {
    close(pipe_ends[0]);
    return {kFailed, "", "no process"};
  }
  auto end = Clock::now() + kTimeLimit;
  for (;;) {
    pollfd p{pipe_ends[0], POLLIN, 0};
    int ready = poll(&p, 1, 50);
    if (ready > 0) {
      char bytes[4096];
      ssize_t n = read(pipe_ends[0], bytes, sizeof bytes);
      if (n <= 0) break;
      out.output.append(bytes, static_cast<size_t>(n));
    }
    if (Clock::now() > end) out.why = fmt::format("stopped after {} seconds", kTimeLimit.count());
    if (s.leaving) out.why = "stopped";
    if (out.output.size() > kMostOutput) out.why = "stopped: it printed too much";
    if (!out.why.empty()) {
      kill(-child, SIGKILL);
      break;
    }
  }
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  out.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return out;
}

std::vector<std::string> words_of(const std::string& verb, const std::string& path,
                                  const std::vector<std::string>& values) {
  std::error_code error;
  std::vector<std::string> out{std::filesystem::read_symlink("/proc/self/exe", error).string(),
                               verb, path};
  bool derivative = verb == "grad" || verb == "explain";
  if (derivative && values.size() == 2) {
    out.insert(out.end(), {"--of", values[0], "--wrt", values[1]});
  }
  return out;
}

}  // namespace

void run_command(Server& s, Commands& commands, const Json& id, const Json& params) {
  std::string command = params.at("command").get<std::string>();
  std::vector<std::string> arguments =
      params.value("arguments", Json::array()).get<std::vector<std::string>>();
  static const std::set<std::string> verbs = {"run", "test", "grad", "explain", "audit"};
  std::string verb = command.starts_with("ein.") ? command.substr(4) : "";
  if (!verbs.contains(verb)) throw Refusal{kInvalidParams, "there is no command " + command};
  if (arguments.empty()) throw Refusal{kInvalidParams, command + " needs a document"};
  std::string path = path_of(arguments[0]);
  auto doc = s.documents.find(arguments[0]);
  auto saved = read_text(path);
  if (!saved || (doc && ide::valid_utf8(*saved) != doc->text)) {
    throw Refusal{kFailed, "save the document first: the command reads the file"};
  }
  if (commands.running >= kMostAtOnce) throw Refusal{kFailed, "other commands are still running"};
  std::vector<std::string> values(arguments.begin() + 1, arguments.end());
  std::vector<std::string> words = words_of(verb, path, values);
  std::string folder = std::filesystem::path(path).parent_path().string();
  ++commands.running;
  commands.threads.emplace_back([&s, &commands, id, words, folder, verb] {
    Ended ended = run(s, words, folder);
    if (!ended.why.empty()) ended.output += "\n" + ended.why + "\n";
    if (!s.shows_output) {
      s.send({{"jsonrpc", "2.0"},
              {"method", "window/showMessage"},
              {"params",
               {{"type", ended.status == 0 ? 3 : 1},
                {"message", fmt::format("ein {}:\n{}", verb, ended.output)}}}});
    }
    s.send({{"jsonrpc", "2.0"},
            {"id", id},
            {"result", {{"status", ended.status}, {"output", ended.output}}}});
    --commands.running;
  });
}

}  // namespace ein::lsp

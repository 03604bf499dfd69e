#include "cli/answers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "driver/files.h"
#include "runtime/bytes.h"
#include "runtime/files.h"
#include "runtime/paths.h"
#include "web/web.h"

namespace ein::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kTimeLimit{60};
constexpr rlim_t kMemoryLimit = rlim_t{8} << 30;
constexpr size_t kLongestFrame = size_t{1} << 30;

bool write_frame(int fd, const std::string& text) {
  std::string length = fmt::format("{}\n", text.size());
  return write_all(fd, length.data(), length.size()) && write_all(fd, text.data(), text.size());
}

// Reads a frame; gives up at `end`, and then sets `late`.
std::optional<std::string> read_frame(int fd, std::optional<Clock::time_point> end, bool& late) {
  std::string got;
  size_t line = std::string::npos, length = 0;
  for (;;) {
    bool known = line != std::string::npos;
    if (!known) line = got.find('\n');
    if (!known && line != std::string::npos) {
      auto [stop, error] = std::from_chars(got.data(), got.data() + line, length);
      if (error != std::errc{} || stop != got.data() + line || length > kLongestFrame)
        return std::nullopt;
    }
    if (line != std::string::npos && got.size() >= line + 1 + length)
      return got.substr(line + 1, length);
    if (end) {
      auto left = std::chrono::ceil<std::chrono::milliseconds>(*end - Clock::now()).count();
      pollfd p{fd, POLLIN, 0};
      int ready = left > 0 ? ::poll(&p, 1, static_cast<int>(left)) : 0;
      if (ready < 0 && errno == EINTR) continue;
      late = ready == 0;
      if (ready <= 0) return std::nullopt;
    }
    char bytes[1 << 16];
    ssize_t n = ::read(fd, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    got.append(bytes, static_cast<size_t>(n));
  }
}

std::string failed(int status, const std::string& why, const char* stopped) {
  nlohmann::json out{{"status", status},
                     {"stdout", ""},
                     {"stderr", why + "\n"},
                     {"error", why},
                     {"diagnostics", nlohmann::json::array()},
                     {"files", nlohmann::json::array()}};
  if (stopped) out["stopped"] = stopped;
  return out.dump();
}

// Ends this process once nobody is left to read its answers, whatever it is computing.
void end_when_alone() {
  std::thread([] {
    pollfd p{STDIN_FILENO, 0, 0};
    for (;;) {
      if (::poll(&p, 1, -1) > 0 && (p.revents & (POLLHUP | POLLERR))) _exit(0);
    }
  }).detach();
}

// Between fork and exec only async-signal-safe functions may be called.
[[noreturn]] void become_answerer(char* const* argv, int in, int out) {
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  rlimit memory{kMemoryLimit, kMemoryLimit};
  setrlimit(RLIMIT_AS, &memory);
  execv(argv[0], argv);
  _exit(127);
}

}  // namespace

int answer_requests(const std::string& file) {
  namespace fs = std::filesystem;
  auto access = std::make_shared<FileAccess>();
  std::string beside = fs::path(file).parent_path().string();
  access->read = {resolved("."), resolved(beside.empty() ? "." : beside)};
  web::Surroundings around;
  around.backend = Backend::Native;
  around.name = file;
  around.version = EIN_VERSION;
  around.read_file = [](const std::string& path) { return read_text(path); };
  around.files = [access](const SourceMap& sources) { return files_on_disk(sources, access); };
  web::Session session(std::move(around));
  end_when_alone();
  bool late = false;
  while (auto request = read_frame(STDIN_FILENO, std::nullopt, late)) {
    if (!write_frame(STDOUT_FILENO, session.answer(*request))) break;
  }
  return 0;
}

bool Answers::start() {
  int to[2], from[2];
  if (::pipe2(to, O_CLOEXEC) != 0) return false;
  if (::pipe2(from, O_CLOEXEC) != 0) {
    ::close(to[0]), ::close(to[1]);
    return false;
  }
  std::error_code error;
  std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  std::string verb = "explore", flag = "--answers";
  char* argv[] = {self.data(), verb.data(), file_.data(), flag.data(), nullptr};
  pid_t child = fork();
  if (child == 0) become_answerer(argv, to[0], from[1]);
  ::close(to[0]), ::close(from[1]);
  std::lock_guard<std::mutex> lock(child_);
  pid_ = child, in_ = to[1], out_ = from[0];
  if (child < 0) ::close(in_), ::close(out_);
  return child >= 0;
}

void Answers::end() {
  std::lock_guard<std::mutex> lock(child_);
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  ::close(in_), ::close(out_);
  pid_ = in_ = out_ = -1;
}

void Answers::stop() {
  std::lock_guard<std::mutex> lock(child_);
  stopped_ = true;
  // Whoever waits for the answer then sees that there will be none.
  if (pid_ >= 0) ::kill(pid_, SIGKILL);
}

Answers::~Answers() { end(); }

std::string Answers::answer(const std::string& request) {
  std::lock_guard<std::mutex> turn(turn_);
  {
    std::lock_guard<std::mutex> lock(child_);
    stopped_ = false;
  }
  if (pid_ < 0 && !start()) return failed(70, "no process could be started", nullptr);
  bool late = false;
  if (write_frame(in_, request)) {
    if (auto out = read_frame(out_, Clock::now() + kTimeLimit, late)) return *out;
  }
  end();
  if (late) {
    return failed(
        130,
        fmt::format("stopped: the program ran for more than {} seconds; `ein run` has no limit",
                    kTimeLimit.count()),
        "time");
  }
  std::lock_guard<std::mutex> lock(child_);
  if (stopped_) return failed(130, "stopped", "user");
  return failed(70,
                "the process that ran the program ended: the program may need more than 8 GiB of "
                "memory, or this is a bug in the compiler; `ein run` shows which",
                "memory");
}

}  // namespace ein::cli

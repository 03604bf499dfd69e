// Random programs against the oracle, which shares nothing with the compiler:
//   fuzz_oracle [--count N] [--seed S] [--jobs J] [--native N] [--without CLASS]… [--show]
//               [--classes] [--all] [--shrink FOLDER]
// Native code is checked on the first N programs (all by default). Every program runs in a process
// that may die or hang: then that is the failure, and the next one takes over. `--all` takes every
// route for every program; `--shrink` writes the smallest program of each kind of failure.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <deque>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "oracle/generate.h"
#include "oracle/shrink.h"
#include "oracle_routes.h"

namespace {

using ein::fuzz::Routes;

struct Options {
  uint64_t count = 200, seed = 1, jobs = 1, native = ~uint64_t{0};
  std::set<std::string> without;
  bool show = false, classes = false, all = false;
  std::string shrink;
};

constexpr int kSeconds = 30;          // how long one program may take
constexpr long kKilobytes = 3 << 20;  // how much memory its process may hold
constexpr int kAttempts = 6;          // how many programs are drawn for a seed until one has no tie
constexpr size_t kShrunk = 3;         // how many programs are shrunk for each kind of failure
constexpr int kNoEnd = 98, kNoMemory = 99;  // exit statuses of such a process

struct Drawing {
  oracle::Program program;
  oracle::Prepared expected;
  int redrawn = 0;
};

Drawing drawn(uint64_t seed, const Options& options) {
  Drawing out;
  for (; out.redrawn < kAttempts; ++out.redrawn) {
    out.program = oracle::draw(seed, out.redrawn, options.without);
    out.expected = oracle::prepare(out.program);
    if (out.expected.state == oracle::Prepared::State::Ready ||
        out.expected.state == oracle::Prepared::State::Invalid)
      break;
  }
  return out;
}

Routes routes_of(uint64_t seed, const Options& options) {
  return {seed, seed - options.seed < options.native, options.all};
}

// Address space is reserved in large pieces, so memory is watched instead of limited. Time is
// processor time, because the machine may be busy; a process that only waits is ended too, but much
// later.
volatile sig_atomic_t cpu_limit = 0, wall_left = 0;

sig_atomic_t cpu_seconds(const rusage& used) {
  return static_cast<sig_atomic_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
}

void watch(int) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  if (used.ru_maxrss > kKilobytes) _exit(kNoMemory);
  wall_left = wall_left - 1;
  if (cpu_seconds(used) >= cpu_limit || wall_left <= 0) _exit(kNoEnd);
}

void limit(int seconds) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  cpu_limit = cpu_seconds(used) + seconds;
  wall_left = 20 * seconds;
  struct sigaction action {};
  action.sa_handler = watch;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  itimerval every{{1, 0}, {1, 0}};
  setitimer(ITIMER_REAL, &every, nullptr);
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

// ---- workers -----------------------------------------------------------------------------------

void send(int fd, const std::string& text) {
  size_t at = 0;
  while (at < text.size()) {
    ssize_t n = write(fd, text.data() + at, text.size() - at);
    if (n <= 0) _exit(3);
    at += static_cast<size_t>(n);
  }
}

double seconds_since(clock_t begin) {
  return static_cast<double>(clock() - begin) / CLOCKS_PER_SEC;
}

std::string flattened(std::string text) {
  std::replace(text.begin(), text.end(), '\n', '\1');
  return text;
}
std::string unfolded(std::string text) {
  std::replace(text.begin(), text.end(), '\1', '\n');
  return text;
}

// What is wrong with a program. The few runs that measure rounding may all be close to the exact
// values by chance, so a difference only counts if many runs do not explain it either.
std::string checked(const oracle::Program& p, const oracle::Prepared& expected,
                    const Routes& routes, std::map<std::string, double>& taken) {
  std::string wrong = check_routes(p, expected, routes, taken);
  if (wrong.empty()) return wrong;
  constexpr int kRuns = 16;
  oracle::Prepared again = oracle::prepare(p, kRuns);
  return again.state == oracle::Prepared::State::Ready ? check_routes(p, again, routes, taken)
                                                       : wrong;
}

// Lines to the parent: `begin SEED`, then `class NAME`, `route SECONDS NAME`, `state NAME`, and
// finally `fail TEXT` or `fine`.
void work(uint64_t first, uint64_t last, const Options& options, int fd) {
  for (uint64_t seed = first; seed < last; ++seed) {
    limit(kSeconds);
    send(fd, fmt::format("begin {}\n", seed));
    clock_t begin = clock();
    Drawing d = drawn(seed, options);
    std::string out = fmt::format("route {} oracle\n", seconds_since(begin));
    for (int k = 0; k < d.redrawn; ++k) out += "state redrawn\n";
    using State = oracle::Prepared::State;
    if (d.expected.state == State::Invalid) {
      out += "fail generator: " + d.expected.why + "\n";
    } else if (d.expected.state != State::Ready) {
      out += "state skipped\nfine\n";
    } else {
      for (const std::string& name : d.program.classes) out += "class " + name + "\n";
      for (const oracle::Expected& e : d.expected.values) {
        if (!e.derivative) continue;
        out += e.nonfinite ? "state derivatives not compared: not finite\n" : "state derivatives\n";
      }
      std::map<std::string, double> taken;
      std::string wrong = checked(d.program, d.expected, routes_of(seed, options), taken);
      for (const auto& [name, seconds] : taken) out += fmt::format("route {} {}\n", seconds, name);
      out += wrong.empty() ? "fine\n" : "fail " + flattened(wrong) + "\n";
    }
    send(fd, out);
  }
}

struct Worker {
  pid_t pid;
  int fd;
  uint64_t next, last;  // seeds that are left
  bool busy = false;    // it is working on the seed before `next`
  std::string text;
};

struct Route {
  uint64_t times = 0;
  double seconds = 0;  // processor time
};

struct Totals {
  std::map<std::string, uint64_t> classes, states;
  std::map<std::string, Route> routes;
  std::map<uint64_t, std::string> failures;
  uint64_t done = 0;
};

void read_lines(Worker& w, Totals& totals) {
  size_t end;
  while ((end = w.text.find('\n')) != std::string::npos) {
    std::string line = w.text.substr(0, end);
    w.text.erase(0, end + 1);
    std::string word = line.substr(0, line.find(' ')), rest;
    if (word.size() < line.size()) rest = line.substr(word.size() + 1);
    if (word == "begin") {
      w.next = std::stoull(rest) + 1;
      w.busy = true;
    } else if (word == "class") {
      ++totals.classes[rest];
    } else if (word == "route") {
      size_t end_of_number = rest.find(' ');
      Route& route = totals.routes[rest.substr(end_of_number + 1)];
      ++route.times;
      route.seconds += std::stod(rest.substr(0, end_of_number));
    } else if (word == "state") {
      ++totals.states[rest];
    } else {
      w.busy = false;
      ++totals.done;
      if (word == "fail") totals.failures[w.next - 1] = unfolded(rest);
    }
  }
}

Worker start(uint64_t first, uint64_t last, const Options& options) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(3);
  std::fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    work(first, last, options, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  return {pid, ends[0], first, last, false, ""};
}

std::string death(int status) {
  if (WIFSIGNALED(status)) return fmt::format("crash: signal {}: ", WTERMSIG(status));
  int code = WEXITSTATUS(status);
  return code == kNoEnd      ? "crash: does not end: "
         : code == kNoMemory ? "crash: takes too much memory: "
                             : fmt::format("crash: status {}: ", code);
}

Totals run(const Options& options) {
  Totals totals;
  std::deque<std::pair<uint64_t, uint64_t>> ranges;
  constexpr uint64_t kChunk = 200;
  for (uint64_t at = 0; at < options.count; at += kChunk)
    ranges.push_back({options.seed + at, options.seed + std::min(at + kChunk, options.count)});
  std::vector<Worker> workers;
  while (!ranges.empty() || !workers.empty()) {
    while (!ranges.empty() && workers.size() < options.jobs) {
      workers.push_back(start(ranges.front().first, ranges.front().second, options));
      ranges.pop_front();
    }
    std::vector<pollfd> polls;
    for (const Worker& w : workers) polls.push_back({w.fd, POLLIN, 0});
    poll(polls.data(), polls.size(), -1);
    for (size_t k = workers.size(); k-- > 0;) {
      if (polls[k].revents == 0) continue;
      Worker& w = workers[k];
      char buffer[65536];
      ssize_t n = read(w.fd, buffer, sizeof buffer);
      if (n > 0) {
        w.text.append(buffer, static_cast<size_t>(n));
        read_lines(w, totals);
        continue;
      }
      int status = 0;
      waitpid(w.pid, &status, 0);
      close(w.fd);
      if (w.busy) {
        totals.failures[w.next - 1] = death(status);
        ++totals.done;
      }
      if (w.next < w.last) ranges.push_front({w.next, w.last});
      workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }
  return totals;
}

// ---- failures ----------------------------------------------------------------------------------

// The kind of a failure: its route and symptom, up to the second colon.
std::string kind_of(const std::string& failure) {
  size_t colon = failure.find(": ");
  if (colon == std::string::npos) return failure;
  size_t second = failure.find(": ", colon + 2);
  std::string kind = failure.substr(0, second);
  if (kind.rfind("fault", 0) == 0) kind = failure.substr(0, failure.find('\n'));
  return kind;
}

// How a program fails, in a process of its own.
std::string failure_of(const oracle::Program& p, const Routes& routes) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(3);
  std::fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    limit(10);
    oracle::Prepared expected = oracle::prepare(p);
    std::map<std::string, double> taken;
    if (expected.state == oracle::Prepared::State::Ready)
      send(ends[1], checked(p, expected, routes, taken));
    _exit(0);
  }
  close(ends[1]);
  std::string out;
  char buffer[65536];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    out.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  return status == 0 ? out : death(status);
}

void write_shrunk(const oracle::Program& p, const Routes& routes, uint64_t seed,
                  const std::string& kind, const Options& options) {
  oracle::Program small = oracle::shrink(
      p, [&](const oracle::Program& q) { return kind_of(failure_of(q, routes)) == kind; });
  std::string text = fmt::format("// seed {}\n", seed), why = failure_of(small, routes);
  auto comment = [&](const std::string& lines) {
    std::istringstream in(lines);
    for (std::string line; std::getline(in, line);) text += "// " + line + "\n";
  };
  comment(why);
  oracle::Prepared expected = oracle::prepare(small);
  for (const oracle::Expected& e : expected.values) {
    std::vector<double> cells(e.cells.begin(), e.cells.end());
    comment(fmt::format("wanted: {} = [{}]", e.name, fmt::join(cells, ", ")));
  }
  text += "// ---- with inputs:\n";
  comment(oracle::print(small));
  text += oracle::print_closed(small);
  std::vector<std::string> names;
  for (const oracle::Expected& e : expected.values) names.push_back(e.name);
  text += fmt::format("print({});\n", fmt::join(names, ", "));
  std::ofstream(fmt::format("{}/seed_{}.ein", options.shrink, seed)) << text;
  fmt::print("{}\n", text);
}

int report(const Totals& totals, const Options& options, double seconds) {
  std::map<std::string, std::vector<uint64_t>> kinds;
  for (const auto& [seed, failure] : totals.failures) kinds[kind_of(failure)].push_back(seed);
  for (const auto& [kind, seeds] : kinds) {
    Drawing d = drawn(seeds[0], options);
    fmt::print(
        "--- {} programs, seed {}: {}\n{}{}\n", seeds.size(),
        fmt::join(seeds.begin(), seeds.begin() + std::min<ptrdiff_t>(8, std::ssize(seeds)), ", "),
        kind, oracle::print(d.program), totals.failures.at(seeds[0]));
    for (size_t k = 0; k < std::min<size_t>(kShrunk, seeds.size()) && !options.shrink.empty(); ++k)
      write_shrunk(drawn(seeds[k], options).program, routes_of(seeds[k], options), seeds[k], kind,
                   options);
  }
  if (options.classes) {
    for (const std::string& name : oracle::class_names()) {
      auto it = totals.classes.find(name);
      fmt::print("{:>8} {}\n", it == totals.classes.end() ? 0 : it->second, name);
    }
  }
  for (const auto& [name, route] : totals.routes)
    fmt::print("{:>8} by route {}, {:.1f} s\n", route.times, name, route.seconds);
  for (const auto& [name, times] : totals.states) fmt::print("{:>8} {}\n", times, name);
  fmt::print("{} programs, {} passed, {} failed, {:.1f} s\n", totals.done,
             totals.done - totals.failures.size(), totals.failures.size(), seconds);
  return totals.failures.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    auto next = [&]() -> std::string { return i + 1 < argc ? argv[++i] : ""; };
    auto number = [&] { return std::strtoull(next().c_str(), nullptr, 10); };
    if (word == "--count") {
      options.count = number();
    } else if (word == "--seed") {
      options.seed = number();
    } else if (word == "--jobs") {
      options.jobs = std::max<uint64_t>(1, number());
    } else if (word == "--native") {
      options.native = number();
    } else if (word == "--show") {
      options.show = true;
    } else if (word == "--classes") {
      options.classes = true;
    } else if (word == "--all") {
      options.all = true;
    } else if (word == "--shrink") {
      options.shrink = next();
    } else if (word == "--without") {
      std::string name = next();
      const std::vector<std::string>& names = oracle::class_names();
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        fmt::print(stderr, "no class `{}`; there are: {}\n", name, fmt::join(names, ", "));
        return 2;
      }
      options.without.insert(name);
    } else {
      fmt::print(stderr,
                 "usage: fuzz_oracle [--count N] [--seed S] [--jobs J] [--native N] [--without "
                 "CLASS]… [--show] [--classes] [--all] [--shrink FOLDER]\n");
      return 2;
    }
  }
  if (options.show) {
    for (uint64_t k = 0; k < options.count; ++k)
      fmt::print("// seed {}\n{}\n", options.seed + k,
                 oracle::print(drawn(options.seed + k, options).program));
  }
  auto begin = std::chrono::steady_clock::now();
  Totals totals = run(options);
  std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  return report(totals, options, spent.count());
}

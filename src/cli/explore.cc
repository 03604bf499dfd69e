// `ein explore FILE`: serves the playground's page for a file on the loopback address, with native
// code.
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/answers.h"
#include "cli/cli.h"
#include "cli/http.h"
#include "ide/position.h"
#include "runtime/files.h"

namespace ein::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kHeld = 20s;  // how long a request for the file waits for a change
constexpr auto kLookEvery = 100ms;
// One for the program that runs, one for what the editor asks meanwhile.
constexpr size_t kLanes = 2;

// 128 random bits as hexadecimal digits.
std::string random_token() {
  unsigned char bytes[16];
  std::string out;
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return out;
  for (unsigned char b : bytes) out += fmt::format("{:02x}", b);
  return out;
}

// The page: built beside the binary (build/web), or installed with it (share/einlang).
std::string find_page(const std::string& given) {
  if (!given.empty()) return given;
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& place : {folder / "web" / "playground.html",
                                folder.parent_path() / "share" / "einlang" / "playground.html"}) {
    if (fs::is_regular_file(place, error)) return place.string();
  }
  return "";
}

// Text as a literal in a script element.
std::string literal(const std::string& text) {
  std::string out =
      nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  for (size_t at = 0; (at = out.find('<', at)) != std::string::npos;) out.replace(at, 1, "\\u003c");
  return out;
}

// Distinguishes one version of the file from another: an editor may write several times within a
// second.
struct Stamp {
  int64_t seconds = 0, nanoseconds = 0, size = -1;
  uint64_t inode = 0;
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

Stamp stamp_of(const std::string& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0) return {};
  return {there.st_mtim.tv_sec, there.st_mtim.tv_nsec, there.st_size, there.st_ino};
}

class Explorer {
 public:
  Explorer(std::string file, std::string page, std::string token)
      : file_(std::move(file)), page_(std::move(page)), token_(std::move(token)) {
    for (size_t k = 0; k < kLanes; ++k) lanes_.push_back(std::make_unique<Answers>(file_));
  }

  HttpResponse answer(const HttpRequest& r) {
    if (r.method == "GET" && r.path == "/" + token_ + "/")
      return {200, "text/html; charset=utf-8", page_};
    auto token = r.headers.find("x-ein-token");
    if (token == r.headers.end() || token->second != token_)
      return {403, "text/plain", "the token is missing\n"};
    if (r.method == "POST" && r.path == "/answer") {
      return {200, "application/json", lane_of(r).answer(r.body)};
    }
    if (r.method == "POST" && r.path == "/stop") {
      lane_of(r).stop();
      return {200, "text/plain", ""};
    }
    if (r.method == "GET" && r.path == "/file") return file(r);
    return {404, "text/plain", "there is nothing here\n"};
  }

 private:
  Answers& lane_of(const HttpRequest& r) {
    auto lane = r.query.find("lane");
    return *lanes_[lane != r.query.end() && lane->second == "1" ? 1 : 0];
  }

  // Answers with the file as soon as it differs from the version that the page has (`after`), or
  // after a while.
  HttpResponse file(const HttpRequest& r) {
    auto after = r.query.find("after");
    std::string known = after == r.query.end() ? "" : after->second;
    auto end = std::chrono::steady_clock::now() + kHeld;
    for (;;) {
      Stamp now = stamp_of(file_);
      std::string version =
          fmt::format("{}.{}.{}.{}", now.seconds, now.nanoseconds, now.size, now.inode);
      bool gone = now.size < 0;  // editors write a new file and then rename it
      if ((!gone && version != known) || std::chrono::steady_clock::now() >= end) {
        nlohmann::json out{{"version", version},
                           {"text", ide::valid_utf8(read_text(file_).value_or(""))}};
        return {200, "application/json", out.dump()};
      }
      std::this_thread::sleep_for(kLookEvery);
    }
  }

  std::string file_, page_, token_;
  std::vector<std::unique_ptr<Answers>> lanes_;
};

}  // namespace

int explore_verb(const ExploreCommand& command) {
  const std::string& file = command.common.file;
  if (command.answers) return answer_requests(file);
  if (!read_text(file)) return usage_error(fmt::format("cannot read `{}`", file));
  std::string where = find_page(command.page);
  auto page = where.empty() ? std::nullopt : read_text(where);
  if (!page) {
    return usage_error(
        where.empty()
            ? "the playground's page is not installed with this `ein`: build it with `make "
              "playground` "
              "in the sources of Einlang (build/web/playground.html), or name it with --page FILE"
            : fmt::format("cannot read the page `{}`", where));
  }
  size_t head = page->find("</head>");
  if (head == std::string::npos)
    return usage_error(fmt::format("`{}` is not the page of the playground", where));
  HttpServer server(command.port);
  if (!server.problem().empty()) {
    return usage_error(fmt::format("cannot serve on port {}: {}", command.port, server.problem()));
  }
  std::string token = random_token();
  if (token.empty()) return usage_error("the system gives no random numbers");
  page->insert(
      head,
      fmt::format(
          "<script>globalThis.EIN_SERVED = {{url: \"/\", token: \"{}\", name: {}}};</script>\n",
          token, literal(fs::path(file).filename().string())));
  print_out("http://127.0.0.1:{}/{}/\n", server.port(), token);
  flush_output();
  print_error("{} is shown there and updated when the file changes; Ctrl-C stops the server\n",
              file);
  Explorer explorer(file, std::move(*page), token);
  server.serve([&](const HttpRequest& r) { return explorer.answer(r); });
}

}  // namespace ein::cli

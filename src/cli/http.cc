#include "cli/http.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <thread>

namespace ein::cli {
namespace {

constexpr size_t kMostHead = 32 << 10, kMostBody = 8 << 20;  // the largest request, in bytes
constexpr int kMostAtOnce = 32;                              // the most connections at a time
constexpr int kPatience = 10;  // seconds that a request may take to arrive

const char* reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 413: return "Content Too Large";
    default: return "Error";
  }
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string trimmed(const std::string& text) {
  size_t from = text.find_first_not_of(" \t"), to = text.find_last_not_of(" \t\r");
  return from == std::string::npos ? "" : text.substr(from, to - from + 1);
}

void read_target(const std::string& target, HttpRequest& out) {
  size_t mark = target.find('?');
  out.path = target.substr(0, mark);
  for (size_t at = mark; at != std::string::npos && at + 1 < target.size();) {
    size_t end = target.find('&', at + 1);
    std::string pair = target.substr(at + 1, end == std::string::npos ? end : end - at - 1);
    size_t equal = pair.find('=');
    if (equal != std::string::npos) out.query[pair.substr(0, equal)] = pair.substr(equal + 1);
    at = end;
  }
}

// The head of a request, up to the empty line.
std::optional<HttpRequest> parse_head(const std::string& head) {
  HttpRequest out;
  size_t line_end = head.find("\r\n");
  std::string first = head.substr(0, line_end);
  size_t a = first.find(' '), b = first.rfind(' ');
  if (a == std::string::npos || a == b || !first.substr(b).starts_with(" HTTP/1."))
    return std::nullopt;
  out.method = first.substr(0, a);
  read_target(first.substr(a + 1, b - a - 1), out);
  while (line_end != std::string::npos) {
    size_t from = line_end + 2;
    line_end = head.find("\r\n", from);
    std::string line =
        head.substr(from, line_end == std::string::npos ? line_end : line_end - from);
    size_t colon = line.find(':');
    if (colon != std::string::npos)
      out.headers[lower(line.substr(0, colon))] = trimmed(line.substr(colon + 1));
  }
  return out;
}

bool receive(int fd, std::string& into) {
  char bytes[1 << 16];
  ssize_t n = ::recv(fd, bytes, sizeof bytes, 0);
  if (n < 0 && errno == EINTR) return true;
  if (n <= 0) return false;
  into.append(bytes, static_cast<size_t>(n));
  return true;
}

// What arrived on a connection: a request, or the status with which it is refused; neither if the
// client is gone.
struct Arrived {
  std::optional<HttpRequest> request;
  int refused = 0;
};

Arrived read_request(int fd) {
  std::string got;
  size_t end = std::string::npos;
  while ((end = got.find("\r\n\r\n")) == std::string::npos) {
    if (got.size() > kMostHead) return {{}, 413};
    if (!receive(fd, got)) return {};
  }
  auto request = parse_head(got.substr(0, end));
  if (!request) return {{}, 400};
  size_t length = 0;
  if (auto it = request->headers.find("content-length"); it != request->headers.end()) {
    const std::string& text = it->second;
    auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    if (error != std::errc{} || stop != text.data() + text.size()) return {{}, 400};
  }
  if (length > kMostBody) return {{}, 413};
  request->body = got.substr(end + 4);
  while (request->body.size() < length) {
    if (!receive(fd, request->body)) return {};
  }
  request->body.resize(length);
  return {std::move(request), 0};
}

void send_all(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    ssize_t n = ::send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    at += static_cast<size_t>(n);
  }
}

void respond(int fd, const HttpResponse& r) {
  send_all(fd, fmt::format("HTTP/1.1 {} {}\r\n"
                           "Content-Type: {}\r\n"
                           "Content-Length: {}\r\n"
                           "Cache-Control: no-store\r\n"
                           "X-Content-Type-Options: nosniff\r\n"
                           "Referrer-Policy: no-referrer\r\n"
                           "Content-Security-Policy: frame-ancestors 'none'\r\n"
                           "Connection: close\r\n\r\n",
                           r.status, reason_of(r.status), r.type, r.body.size()) +
                   r.body);
}

// Whether a request comes from our own page. A page of another site may know the port, but its host
// and origin are not ours.
bool is_ours(const HttpRequest& r, int port) {
  auto is = [&](const std::string& host) {
    return host == fmt::format("127.0.0.1:{}", port) || host == fmt::format("localhost:{}", port);
  };
  auto host = r.headers.find("host");
  if (host == r.headers.end() || !is(host->second)) return false;
  auto origin = r.headers.find("origin");
  if (origin == r.headers.end()) return true;
  return origin->second.starts_with("http://") && is(origin->second.substr(7));
}

}  // namespace

HttpServer::HttpServer(int port) {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int yes = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* at = reinterpret_cast<sockaddr*>(&address);
  bool listens = socket_ >= 0 &&
                 ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                 ::bind(socket_, at, size) == 0 && ::listen(socket_, kMostAtOnce) == 0 &&
                 ::getsockname(socket_, at, &size) == 0;
  if (!listens) problem_ = std::strerror(errno);
  port_ = ntohs(address.sin_port);
}

HttpServer::~HttpServer() {
  if (socket_ >= 0) ::close(socket_);
}

void HttpServer::serve(const std::function<HttpResponse(const HttpRequest&)>& answer) {
  static std::atomic<int> open = 0;
  for (;;) {
    int fd = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    if (open >= kMostAtOnce) {
      ::close(fd);
      continue;
    }
    timeval patience{kPatience, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ++open;
    std::thread([fd, &answer, port = port_] {
      Arrived arrived = read_request(fd);
      if (arrived.refused) {
        respond(fd, {arrived.refused, "text/plain", "not understood\n"});
      } else if (arrived.request && !is_ours(*arrived.request, port)) {
        respond(fd, {403, "text/plain", "not meant for this address\n"});
      } else if (arrived.request) {
        respond(fd, answer(*arrived.request));
      }
      ::close(fd);
      --open;
    }).detach();
  }
}

}  // namespace ein::cli

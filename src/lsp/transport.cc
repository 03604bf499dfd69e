#include "lsp/transport.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <charconv>

#include "runtime/bytes.h"

namespace ein::lsp {
namespace {

constexpr size_t kLongest = size_t{1} << 28;  // the longest message, in bytes

}  // namespace

bool Transport::fill() {
  char bytes[1 << 16];
  for (;;) {
    ssize_t n = ::read(in_, bytes, sizeof bytes);
    if (n > 0) {
      buffer_.append(bytes, static_cast<size_t>(n));
      return true;
    }
    if (n == 0 || errno != EINTR) return false;
  }
}

std::optional<std::string> Transport::read() {
  for (;;) {
    size_t end = buffer_.find("\r\n\r\n");
    if (end == std::string::npos) {
      if (!fill()) return std::nullopt;
      continue;
    }
    std::string header = buffer_.substr(0, end);
    buffer_.erase(0, end + 4);
    for (char& c : header) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    size_t at = header.find("content-length:");
    if (at == std::string::npos) continue;
    at = header.find_first_not_of(' ', at + 15);
    size_t length = 0;
    if (at == std::string::npos) continue;
    auto [stop, error] = std::from_chars(header.data() + at, header.data() + header.size(), length);
    if (error != std::errc{} || length > kLongest) continue;
    while (buffer_.size() < length) {
      if (!fill()) return std::nullopt;
    }
    std::string body = buffer_.substr(0, length);
    buffer_.erase(0, length);
    return body;
  }
}

bool Transport::write(const Json& message) {
  // Programs may contain invalid UTF-8.
  std::string body = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string all = fmt::format("Content-Length: {}\r\n\r\n", body.size()) + body;
  std::lock_guard<std::mutex> lock(writing_);
  return write_all(out_, all.data(), all.size());
}

}  // namespace ein::lsp

#include "runtime/streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "runtime/sink.h"

namespace ein {
namespace {

int g_reason = 0;  // errno of the first failure

void note_failure() {
  if (g_reason == 0) g_reason = errno ? errno : EIO;
}

}  // namespace

void take_streams() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // A folder can neither be read nor written: using the stream is still an error.
    if (::open("/", O_RDONLY | O_DIRECTORY) != fd) _exit(3);  // the lowest number is free
  }
  std::signal(SIGPIPE, SIG_IGN);
}

void put(std::string_view text) {
  if (const Sink* sink = current_sink()) {
    sink->write(text, false);
    return;
  }
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) note_failure();
}

void put_error(std::string_view text) {
  if (const Sink* sink = current_sink()) {
    sink->write(text, true);
    return;
  }
  if (std::fwrite(text.data(), 1, text.size(), stderr) != text.size()) std::clearerr(stderr);
}

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0) note_failure();
}

std::optional<std::string> lost_output() {
  flush_output();
  // Some file systems report that they are full only when a file is closed.
  if (int copy = ::dup(STDOUT_FILENO); copy >= 0 && ::close(copy) != 0) note_failure();
  if (g_reason == 0 && std::ferror(stdout) != 0) g_reason = EIO;
  if (g_reason == 0) return std::nullopt;
  return std::strerror(g_reason);
}

}  // namespace ein

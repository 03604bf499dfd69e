#include "runtime/bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/files.h"
#include "runtime/paths.h"

namespace ein {
namespace {

int64_t nanoseconds(const timespec& t) { return t.tv_sec * 1'000'000'000 + t.tv_nsec; }

}  // namespace

InFile::InFile(const std::string& path) {
  if (path.find('\0') != std::string::npos) throw Malformed{"its name holds a NUL character"};
  // Does not wait for a writer if the path is a pipe, which is refused below.
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0 && errno == ENOENT) throw Malformed{"there is no such file", true};
  if (fd_ < 0) throw Malformed{std::strerror(errno)};
  struct stat info {};
  bool regular = ::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode);
  if (!regular) {
    ::close(fd_);
    throw Malformed{S_ISDIR(info.st_mode) ? "it is a folder" : "it is not a regular file"};
  }
  size_ = static_cast<uint64_t>(info.st_size);
  modified_ = nanoseconds(info.st_mtim);
}

InFile::~InFile() { ::close(fd_); }

void InFile::read_at(uint64_t offset, void* to, size_t n) const {
  auto* out = static_cast<char*>(to);
  while (n > 0) {
    ssize_t got = ::pread(fd_, out, n, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Malformed{std::strerror(errno)};
    if (got == 0) throw Malformed{"it is truncated"};
    out += got;
    offset += static_cast<uint64_t>(got);
    n -= static_cast<size_t>(got);
  }
}

void InFile::read_ahead(uint64_t offset, uint64_t n) const {
  // A hint: if it is not taken, reading waits for the device.
  (void)::posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(n),
                        POSIX_FADV_WILLNEED);
}

bool InFile::has_changed() const {
  struct stat now {};
  return ::fstat(fd_, &now) != 0 || static_cast<uint64_t>(now.st_size) != size_ ||
         nanoseconds(now.st_mtim) != modified_;
}

std::optional<std::string> read_text(int descriptor) {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    ssize_t got = ::read(descriptor, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
  }
}

std::optional<std::string> read_text(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::optional<std::string> text = read_text(fd);
  int reason = errno;
  ::close(fd);
  errno = reason;
  return text;
}

void FileSource::read(void* to, size_t n) {
  if (n > left()) throw Malformed{"it is truncated"};
  file_.read_at(at_, to, n);
  at_ += n;
}

OutFile::OutFile(const std::string& path, bool executable) {
  if (path.find('\0') != std::string::npos) throw Malformed{"its name holds a NUL character"};
  struct stat there {};
  bool exists = ::stat(path.c_str(), &there) == 0;
  if (exists && S_ISDIR(there.st_mode)) throw Malformed{"it is a folder"};
  // Standard output is written in place, after what was printed before.
  if (int stream = exists ? standard_stream(path) : -1; stream >= 0) {
    std::fflush(stream == STDOUT_FILENO ? stdout : stderr);
    fd_ = ::fcntl(stream, F_DUPFD_CLOEXEC, 3);
  } else if (exists && !S_ISREG(there.st_mode)) {
    fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  } else {
    path_ = resolved(path);
    if (path_.empty()) throw Malformed{"its links cannot be followed"};
    struct stat real {};  // `no/..` is a folder only once it is resolved
    if (path.ends_with('/') || (::stat(path_.c_str(), &real) == 0 && S_ISDIR(real.st_mode))) {
      throw Malformed{"it is a folder"};
    }
    if (exists && ::faccessat(AT_FDCWD, path_.c_str(), W_OK, AT_EACCESS) != 0) {
      throw Malformed{std::strerror(errno)};
    }
    open_beside(exists ? &there : nullptr, executable);
  }
  if (fd_ < 0) {
    throw Malformed{errno == ENOENT ? "there is no such folder" : std::strerror(errno)};
  }
}

// Nobody can have put a link at this name, and O_EXCL follows none. What replaces a file is never
// more accessible than that was.
void OutFile::open_beside(const struct stat* old, bool executable) {
  std::string folder = path_.substr(0, path_.rfind('/') + 1);
  for (int attempt = 0; attempt < 100; ++attempt) {
    uint64_t random = 0;
    if (::getrandom(&random, sizeof random, 0) != sizeof random) throw Malformed{"no random name"};
    temporary_ = fmt::format("{}.ein-{:016x}.part", folder, random);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                 old          ? 0600
                 : executable ? 0777
                              : 0666);
    if (fd_ >= 0 || errno != EEXIST) break;
  }
  if (fd_ < 0) {
    temporary_.clear();
    // The file may be written although its folder may not.
    if (old && (errno == EACCES || errno == EPERM || errno == EROFS)) {
      fd_ = ::open(path_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
    }
    return;
  }
  if (!old) return;
  if (::fchown(fd_, old->st_uid, old->st_gid) != 0) {}        // only root can keep another owner
  mode_t more = executable ? (old->st_mode & 0444) >> 2 : 0;  // whoever may read it may run it
  if (::fchmod(fd_, (old->st_mode | more) & 07777) == 0) return;
  std::string why = std::strerror(errno);
  ::close(fd_);
  ::unlink(temporary_.c_str());
  throw Malformed{why};
}

OutFile::~OutFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

bool write_all(int fd, const void* from, size_t size) {
  const auto* at = static_cast<const char*>(from);
  while (size > 0) {
    ssize_t put = ::write(fd, at, size);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    at += put;
    size -= static_cast<size_t>(put);
  }
  return true;
}

void OutFile::write(const void* from, size_t n) {
  written_ += n;
  if (!write_all(fd_, from, n)) throw Malformed{std::strerror(errno)};
}

void OutFile::close() {
  int status = ::close(fd_);
  fd_ = -1;
  if (status == 0 && !temporary_.empty()) status = ::rename(temporary_.c_str(), path_.c_str());
  if (status == 0) return;
  std::string why = std::strerror(errno);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  throw Malformed{why};
}

}  // namespace ein

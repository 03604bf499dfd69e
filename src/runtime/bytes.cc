#include "runtime/bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ein {

InFile::InFile(const std::string& path) {
  // Not to wait for a writer when the path is a pipe: that is refused below.
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) throw Malformed{errno == ENOENT ? "there is no such file" : std::strerror(errno)};
  struct stat info {};
  bool regular = ::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode);
  if (!regular) {
    ::close(fd_);
    throw Malformed{S_ISDIR(info.st_mode) ? "it is a folder" : "it is not a regular file"};
  }
  size_ = static_cast<uint64_t>(info.st_size);
  modified_ = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec;
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

void FileSource::read(void* to, size_t n) {
  if (n > left()) throw Malformed{"it is truncated"};
  file_.read_at(at_, to, n);
  at_ += n;
}

OutFile::OutFile(const std::string& path) : path_(path) {
  struct stat info {};
  bool special = ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  if (!special) temporary_ = fmt::format("{}.{}.part", path, ::getpid());
  const std::string& name = special ? path_ : temporary_;
  fd_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    throw Malformed{errno == ENOENT ? "there is no such folder" : std::strerror(errno)};
  }
}

OutFile::~OutFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutFile::write(const void* from, size_t n) {
  const auto* in = static_cast<const char*>(from);
  written_ += n;
  while (n > 0) {
    ssize_t put = ::write(fd_, in, n);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw Malformed{std::strerror(errno)};
    in += put;
    n -= static_cast<size_t>(put);
  }
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

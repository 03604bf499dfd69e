#include "runtime/paths.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace ein {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // the same limit as in the kernel

bool is_null_device(const std::string& path) {
  struct stat there {
  }, null{};
  return ::stat(path.c_str(), &there) == 0 && ::stat("/dev/null", &null) == 0 &&
         S_ISCHR(there.st_mode) && S_ISCHR(null.st_mode) && there.st_rdev == null.st_rdev;
}

std::optional<RuntimeError> refuse(const std::vector<std::string>& allowed, const std::string& path,
                                   const char* doing, const char* where, const char* flag) {
  std::string real = resolved(path);
  bool fine = !real.empty() && path.find('\0') == std::string::npos &&
              std::any_of(allowed.begin(), allowed.end(),
                          [&](const std::string& a) { return is_within(real, a); });
  if (fine) return std::nullopt;
  if (real.empty()) {
    return RuntimeError{Code::E0811, fmt::format("the program may not {} `{}`: its links cannot be "
                                                 "followed",
                                                 doing, path)};
  }
  std::string same = real == path ? "it" : fmt::format("it is `{}`, which", real);
  return RuntimeError{
      Code::E0811,
      fmt::format("the program may not {} `{}`: {} is outside {}; if you trust the program, run "
                  "it with {}={}",
                  doing, path, same, where, flag, fs::path(real).parent_path().string())};
}

}  // namespace

std::string resolved(const std::string& path) {
  std::error_code error;
  fs::path at = fs::absolute(path, error);
  for (int links = 0; links < kMostLinks && !error; ++links) {
    fs::path name = at.filename();
    if (name.empty() || name == "." || name == "..") {
      fs::path out = fs::weakly_canonical(at, error);
      return error ? "" : out.string();
    }
    fs::path folder = fs::weakly_canonical(at.parent_path(), error);
    if (error) return "";
    at = folder / name;
    // weakly_canonical would take a dangling link for a file that does not exist.
    if (!fs::is_symlink(fs::symlink_status(at, error))) return at.string();
    fs::path to = fs::read_symlink(at, error);
    at = folder / to;  // just `to` if that is absolute
  }
  return "";
}

bool is_within(const std::string& path, const std::string& folder) {
  if (folder.empty() || !path.starts_with(folder)) return false;
  return path.size() == folder.size() || folder.back() == '/' || path[folder.size()] == '/';
}

int standard_stream(const std::string& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0) return -1;
  for (int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat here {};
    if (::fstat(fd, &here) == 0 && here.st_dev == there.st_dev && here.st_ino == there.st_ino) {
      return fd;
    }
  }
  return -1;
}

std::optional<RuntimeError> refuse_read(const FileAccess& access, const std::string& path) {
  return refuse(access.read, path, "read", "the folder of the program and the current one",
                "--allow-read");
}

// A program may always save to where its printed output goes.
std::optional<RuntimeError> refuse_write(const FileAccess& access, const std::string& path) {
  if (path.find('\0') == std::string::npos && (is_null_device(path) || standard_stream(path) >= 0))
    return std::nullopt;
  return refuse(access.write, path, "write", "the current folder", "--allow-write");
}

}  // namespace ein

#include "driver/cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <vector>

#include "base/blake2.h"
#include "runtime/bytes.h"

namespace ein {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'e', 'i', 'n', 'c', 'a', 'c', 'h', '2'};
constexpr const char* kEnding = ".eincache";

struct Header {
  char magic[8];
  uint64_t size;  // of what follows
  Digest checksum;
};

// Covers the key too: an entry under another program's name is as wrong as a damaged one.
Digest checksum(const std::string& key, const std::string& image) {
  return blake2(key + '\0' + image);
}

struct File {
  int fd;
  ~File() {
    if (fd >= 0) ::close(fd);
  }
};

bool read_all(int fd, char* at, size_t size) {
  while (size > 0) {
    ssize_t n = ::read(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

// Like `mkdir -p`, for the user alone.
bool make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return true;
  size_t slash = path.find_last_of('/');
  if (errno != ENOENT || slash == std::string::npos || slash == 0) return false;
  return make_folder(path.substr(0, slash)) &&
         (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST);
}

}  // namespace

std::string cache_folder() {
  auto get = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  std::string own = get("EINLANG_CACHE");
  if (own == "off") return {};
  if (!own.empty()) return own;
  // Relative paths are to be ignored, says the XDG specification.
  if (std::string xdg = get("XDG_CACHE_HOME"); xdg.starts_with('/')) return xdg + "/einlang";
  if (std::string home = get("HOME"); home.starts_with('/')) return home + "/.cache/einlang";
  return {};
}

std::string unsafe_folder(const std::string& folder) {
  struct stat about;
  if (::stat(folder.c_str(), &about) != 0 || !S_ISDIR(about.st_mode)) return {};
  if (about.st_uid != ::geteuid()) {
    return fmt::format("the cache `{}` is not used: it belongs to another user", folder);
  }
  if ((about.st_mode & 022) == 0) return {};
  return fmt::format(
      "the cache `{}` is not used: other users may write to it (mode {:03o}); `chmod go-w` changes "
      "that",
      folder, about.st_mode & 0777);
}

std::unique_ptr<DiskCache> open_cache(std::string* note) {
  std::string folder = cache_folder();
  if (folder.empty()) return nullptr;
  std::string unsafe = unsafe_folder(folder);
  if (note) *note = unsafe;
  return unsafe.empty() ? std::make_unique<DiskCache>(std::move(folder)) : nullptr;
}

std::string DiskCache::path_of(const std::string& key) const {
  return folder_ + "/" + key + kEnding;
}

std::optional<std::string> DiskCache::read(const std::string& key) const {
  // O_NONBLOCK: a pipe in its place must not hold the program up.
  File file{::open(path_of(key).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)};
  if (file.fd < 0) return std::nullopt;
  Header header;
  struct stat about;
  // Code from a file that somebody else can write would be code that somebody else can run.
  if (::fstat(file.fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != ::geteuid() ||
      (about.st_mode & 022) != 0) {
    return std::nullopt;
  }
  auto size = static_cast<uint64_t>(about.st_size);
  if (size < sizeof header || !read_all(file.fd, reinterpret_cast<char*>(&header), sizeof header))
    return std::nullopt;
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 ||
      header.size != size - sizeof header) {
    return std::nullopt;
  }
  std::string out(header.size, '\0');
  if (!read_all(file.fd, out.data(), out.size()) || checksum(key, out) != header.checksum)
    return std::nullopt;
  ::futimens(file.fd, nullptr);  // used just now, so not among the oldest
  return out;
}

bool DiskCache::write(const std::string& key, const std::string& image) const {
  static std::atomic<uint64_t> count{0};
  if (image.size() > most_bytes_ / 4 || !make_folder(folder_)) return false;
  std::string aside =
      path_of(key) + "." + std::to_string(::getpid()) + "-" + std::to_string(count++) + ".tmp";
  Header header;
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.size = image.size();
  header.checksum = checksum(key, image);
  bool written = false;
  {
    File file{::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
    if (file.fd < 0) return false;
    written = write_all(file.fd, &header, sizeof header) &&
              write_all(file.fd, image.data(), image.size());
  }
  if (written && ::rename(aside.c_str(), path_of(key).c_str()) == 0) return true;
  ::unlink(aside.c_str());
  return false;
}

void DiskCache::shrink() const {
  struct Entry {
    fs::path path;
    fs::file_time_type time;
    uint64_t size;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.find(kEnding) == std::string::npos) continue;  // not ours
    std::error_code gone;
    Entry e{it->path(), it->last_write_time(gone), 0};
    if (!gone) e.size = it->file_size(gone);
    if (gone) continue;
    // Left by a process that died while it wrote.
    if (name.ends_with(".tmp") && now - e.time > std::chrono::hours(1)) {
      fs::remove(e.path, gone);
      continue;
    }
    total += e.size;
    entries.push_back(std::move(e));
  }
  if (total <= most_bytes_) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.time < b.time; });
  for (const Entry& e : entries) {
    // More than needed is removed, so that this is not done for every file.
    if (total <= most_bytes_ / 4 * 3) break;
    fs::remove(e.path, error);
    total -= e.size;
  }
}

std::optional<std::string> DiskCache::find(const std::string& key) {
  try {
    if (auto found = read(key)) {
      ++counts_.found;
      return found;
    }
  } catch (const std::exception&) {}
  ++counts_.missed;
  return std::nullopt;
}

void DiskCache::store(const std::string& key, const std::string& image) {
  try {
    if (!write(key, image)) return;
    ++counts_.stored;
    if (key.starts_with('0')) shrink();  // for one file in sixteen: it looks at all of them
  } catch (const std::exception&) {}
}

}  // namespace ein

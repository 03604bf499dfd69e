// Compiled programs on disk, so that a program that has not changed starts at once. A file is
// written under another name and renamed, carries a checksum of itself and of the program's key,
// and whatever goes wrong (no folder, no room, no permission, damage, a race) is a miss: no run
// ever fails because of the cache.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "codegen/native.h"

namespace ein {

// $EINLANG_CACHE, else $XDG_CACHE_HOME/einlang, else ~/.cache/einlang; empty when there is none or
// EINLANG_CACHE is `off`.
std::string cache_folder();

class DiskCache final : public ImageCache {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{256} << 20;
  explicit DiskCache(std::string folder, uint64_t most_bytes = kMostBytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  std::optional<std::string> find(const std::string& key) override;
  void store(const std::string& key, const std::string& image) override;

  struct Counts {
    uint64_t found = 0, missed = 0, stored = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  std::string path_of(const std::string& key) const;
  std::optional<std::string> read(const std::string& key) const;
  bool write(const std::string& key, const std::string& image) const;
  void shrink() const;  // the oldest files go until the rest fits

  std::string folder_;
  uint64_t most_bytes_;
  Counts counts_;
};

// Why code from that folder must not be run: somebody else may have put it there. Empty when it is
// safe, or does not exist yet.
std::string unsafe_folder(const std::string& folder);

// Null when there is no folder for it, or an unsafe one, which `note` then says.
std::unique_ptr<DiskCache> open_cache(std::string* note = nullptr);

}  // namespace ein

// Zip archives, as far as .npz files need them (APPNOTE.TXT 6.3.10).
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <set>

#include "runtime/formats.h"

namespace ein {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint32_t kFull = 0xffffffff;  // "see the zip64 field"
constexpr uint16_t kNewest = 63;        // 6.3
// How hard deflate tried, sizes after the data, names in UTF-8.
constexpr int kKnownFlags = 0x0006 | 0x0008 | 0x0800;
constexpr uint64_t kMostDirectory = 64u << 20;
constexpr uint64_t kBestRatio = 1032;  // deflate cannot do better

std::vector<unsigned char> bytes_at(const InFile& file, uint64_t offset, uint64_t n) {
  if (offset > file.size() || n > file.size() - offset) throw Malformed{"it is truncated"};
  std::vector<unsigned char> out(n);
  file.read_at(offset, out.data(), n);
  return out;
}

struct Directory {
  uint64_t offset = 0, size = 0, count = 0;
};

Directory find_directory(const InFile& file) {
  if (file.size() < 22) throw Malformed{"it is not an npz file"};
  // The end record is followed by a comment of at most 65535 bytes.
  uint64_t window = std::min<uint64_t>(file.size(), 22 + 65535), begin = file.size() - window;
  std::vector<unsigned char> tail = bytes_at(file, begin, window);
  size_t at = tail.size() - 22;
  while (little_at<uint32_t>(&tail[at]) != kEnd ||
         little_at<uint16_t>(&tail[at + 20]) != tail.size() - at - 22) {
    if (at-- == 0) throw Malformed{"it is not an npz file, or it is truncated"};
  }
  Directory d{little_at<uint32_t>(&tail[at + 16]), little_at<uint32_t>(&tail[at + 12]),
              little_at<uint16_t>(&tail[at + 10])};
  uint64_t end = begin + at;
  if ((d.offset == kFull || d.size == kFull) && end >= 20) {
    std::vector<unsigned char> locator = bytes_at(file, end - 20, 20);
    if (little_at<uint32_t>(locator.data()) != kLocator64)
      throw Malformed{"its directory is damaged"};
    end = little_at<uint64_t>(&locator[8]);
    std::vector<unsigned char> end64 = bytes_at(file, end, 56);
    if (little_at<uint32_t>(end64.data()) != kEnd64) throw Malformed{"its directory is damaged"};
    d = {little_at<uint64_t>(&end64[48]), little_at<uint64_t>(&end64[40]),
         little_at<uint64_t>(&end64[32])};
  }
  // It lies right before the record that says where it lies.
  if (d.size > kMostDirectory || d.offset > end || d.size != end - d.offset) {
    throw Malformed{"its directory is damaged"};
  }
  return d;
}

// The zip64 field holds, in order, those of the three numbers that were full.
void widen(ZipMember& m, const unsigned char* extra, size_t n) {
  while (n >= 4) {
    uint16_t id = little_at<uint16_t>(extra), size = little_at<uint16_t>(extra + 2);
    if (size > n - 4) throw Malformed{"its directory is damaged"};
    const unsigned char* field = extra + 4;
    size_t left = size;
    for (uint64_t* value : {&m.size, &m.compressed, &m.offset}) {
      if (id != 1 || *value != kFull) continue;
      if (left < 8) throw Malformed{"its directory is damaged"};
      *value = little_at<uint64_t>(field);
      field += 8;
      left -= 8;
    }
    extra += 4 + size;
    n -= 4u + size;
  }
}

// A checksum covers all bytes, also those that nobody asks for.
void skip_rest(Source& in) {
  char buffer[1 << 12];
  while (in.left() > 0) in.read(buffer, std::min<uint64_t>(in.left(), sizeof buffer));
}

// The part of a file that is a stored member, with its checksum.
class StoredSource : public Source {
 public:
  StoredSource(const InFile& file, uint64_t begin, const ZipMember& m)
      : in_(file, begin, m.size), crc_(m.crc) {}
  void read(void* to, size_t n) override {
    in_.read(to, n);
    sum_ = crc32_z(sum_, static_cast<const Bytef*>(to), n);
  }
  uint64_t left() const override { return in_.left(); }
  void finish() override {
    skip_rest(*this);
    if (sum_ != crc_) throw Malformed{"its checksum is wrong: the data is damaged"};
  }

 private:
  FileSource in_;
  uint32_t crc_;
  uLong sum_ = crc32_z(0, nullptr, 0);
};

class InflateSource : public Source {
 public:
  InflateSource(const InFile& file, uint64_t begin, const ZipMember& m)
      : in_(file, begin, m.compressed), left_(m.size), crc_(m.crc) {
    if (inflateInit2(&z_, -MAX_WBITS) != Z_OK) throw Malformed{"out of memory"};
  }
  ~InflateSource() override { inflateEnd(&z_); }
  InflateSource(const InflateSource&) = delete;
  InflateSource& operator=(const InflateSource&) = delete;

  void read(void* to, size_t n) override {
    if (n > left_) throw Malformed{"it is truncated"};
    auto* out = static_cast<Bytef*>(to);
    for (size_t done = 0; done < n;) {
      if (z_.avail_in == 0) refill();
      auto room = static_cast<uInt>(std::min<size_t>(n - done, 1u << 30));
      z_.next_out = out + done;
      z_.avail_out = room;
      int status = inflate(&z_, Z_NO_FLUSH);
      done += room - z_.avail_out;
      ended_ = status == Z_STREAM_END;
      if (status != Z_OK && !(status == Z_STREAM_END && done == n)) {
        throw Malformed{"its compressed data is damaged"};
      }
    }
    sum_ = crc32_z(sum_, out, n);
    left_ -= n;
  }
  uint64_t left() const override { return left_; }
  void finish() override {
    skip_rest(*this);
    if (sum_ != crc_) throw Malformed{"its checksum is wrong: the data is damaged"};
    // The stream must end exactly where the directory says.
    if (!ended_) {
      Bytef none = 0;
      if (z_.avail_in == 0) refill();
      z_.next_out = &none;
      z_.avail_out = 1;
      ended_ = inflate(&z_, Z_NO_FLUSH) == Z_STREAM_END && z_.avail_out == 1;
    }
    if (!ended_ || z_.avail_in > 0 || in_.left() > 0) {
      throw Malformed{"its compressed data is damaged"};
    }
  }

 private:
  void refill() {
    size_t more = std::min<uint64_t>(in_.left(), sizeof buffer_);
    if (more == 0) throw Malformed{"it is truncated"};
    in_.read(buffer_, more);
    z_.next_in = buffer_;
    z_.avail_in = static_cast<uInt>(more);
  }

  FileSource in_;
  bool ended_ = false;
  uint64_t left_;
  uint32_t crc_;
  uLong sum_ = crc32_z(0, nullptr, 0);
  z_stream z_{};
  Bytef buffer_[1 << 16];
};

}  // namespace

std::vector<ZipMember> zip_members(const InFile& file) {
  Directory d = find_directory(file);
  std::vector<unsigned char> all = bytes_at(file, d.offset, d.size);
  std::vector<ZipMember> out;
  size_t at = 0;
  while (all.size() - at >= 46 && little_at<uint32_t>(&all[at]) == kCentral) {
    const unsigned char* p = &all[at];
    size_t name = little_at<uint16_t>(p + 28), extra = little_at<uint16_t>(p + 30),
           comment = little_at<uint16_t>(p + 32);
    if (all.size() - at - 46 < name + extra + comment) throw Malformed{"its directory is damaged"};
    ZipMember m;
    m.name.assign(reinterpret_cast<const char*>(p + 46), name);
    if (little_at<uint16_t>(p + 6) > kNewest) {
      throw Malformed{"its directory is damaged: it asks for a version of zip that does not exist"};
    }
    auto flags = little_at<uint16_t>(p + 8);
    if (flags & 1) throw Malformed{"it is encrypted"};
    if (flags & ~kKnownFlags) throw Malformed{"its directory is damaged: it has unknown flags"};
    m.method = little_at<uint16_t>(p + 10);
    m.crc = little_at<uint32_t>(p + 16);
    m.compressed = little_at<uint32_t>(p + 20);
    m.size = little_at<uint32_t>(p + 24);
    m.offset = little_at<uint32_t>(p + 42);
    widen(m, p + 46 + name, extra);
    out.push_back(std::move(m));
    at += 46 + name + extra + comment;
  }
  if (at != all.size() || out.size() % 0x10000 != d.count % 0x10000) {
    throw Malformed{"its directory is damaged"};
  }
  std::set<std::string> names;
  for (const ZipMember& m : out) {
    if (!names.insert(m.name).second) {
      throw Malformed{fmt::format("it has two members `{}`", m.name.substr(0, 100))};
    }
  }
  return out;
}

std::unique_ptr<Source> open_member(const InFile& file, const ZipMember& m) {
  std::vector<unsigned char> local = bytes_at(file, m.offset, 30);
  if (little_at<uint32_t>(local.data()) != kLocal) throw Malformed{"its directory is damaged"};
  // The member says its own name and method too; where they differ, one of them is damaged.
  std::vector<unsigned char> name = bytes_at(file, m.offset + 30, little_at<uint16_t>(&local[26]));
  if (std::string(name.begin(), name.end()) != m.name ||
      little_at<uint16_t>(&local[8]) != m.method) {
    throw Malformed{"its directory is damaged"};
  }
  uint64_t begin =
      m.offset + 30 + little_at<uint16_t>(&local[26]) + little_at<uint16_t>(&local[28]);
  if (begin > file.size() || m.compressed > file.size() - begin) throw Malformed{"it is truncated"};
  if (m.method == 0) {
    if (m.size != m.compressed) throw Malformed{"its directory is damaged"};
    return std::make_unique<StoredSource>(file, begin, m);
  }
  if (m.method != 8) {
    throw Malformed{
        fmt::format("`{}` is compressed by method {}, not stored or deflated", m.name, m.method)};
  }
  // Checked before anybody allocates what the directory claims.
  if (m.size / kBestRatio > m.compressed) throw Malformed{"its directory is damaged"};
  return std::make_unique<InflateSource>(file, begin, m);
}

void write_zip(OutFile& out, const std::vector<ZipEntry>& entries) {
  std::string directory;
  for (const ZipEntry& e : entries) {
    size_t bytes = static_cast<size_t>(e.tensor->size()) * size_of(e.tensor->dtype());
    uint64_t size = e.head.size() + bytes, offset = out.written();
    uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(e.head.data()), e.head.size());
    crc = crc32_z(crc, e.tensor->as<Bytef>(), bytes);
    bool large = size >= kFull || offset >= kFull;
    std::string extra;
    if (large) {
      add_little<uint16_t>(extra, 1);
      add_little<uint16_t>(extra, 24);
      add_little<uint64_t>(extra, size);
      add_little<uint64_t>(extra, size);
      add_little<uint64_t>(extra, offset);
    }
    auto common = [&](std::string& to) {
      add_little<uint16_t>(to, large ? 45 : 20);
      add_little<uint16_t>(to, 0x0800);  // the name is UTF-8
      add_little<uint16_t>(to, 0);       // stored
      add_little<uint16_t>(to, 0);       // no time: equal values make equal files
      add_little<uint16_t>(to, 0x21);    // the first day that a zip file can name
      add_little(to, static_cast<uint32_t>(crc));
      for (int i = 0; i < 2; ++i) add_little(to, large ? kFull : static_cast<uint32_t>(size));
      add_little(to, static_cast<uint16_t>(e.name.size()));
      add_little(to, static_cast<uint16_t>(extra.size()));
    };
    std::string local;
    add_little(local, kLocal);
    common(local);
    out.write(local + e.name + extra + e.head);
    out.write(e.tensor->data(), bytes);
    add_little(directory, kCentral);
    add_little<uint16_t>(directory, large ? 45 : 20);
    common(directory);
    add_little<uint16_t>(directory, 0);  // comment
    add_little<uint16_t>(directory, 0);  // disk
    add_little<uint16_t>(directory, 0);
    add_little<uint32_t>(directory, 0);
    add_little(directory, large ? kFull : static_cast<uint32_t>(offset));
    directory += e.name + extra;
  }
  uint64_t begin = out.written();
  bool large = begin >= kFull || directory.size() >= kFull || entries.size() >= 0xffff;
  std::string end;
  if (large) {
    add_little(end, kEnd64);
    add_little<uint64_t>(end, 44);
    add_little<uint16_t>(end, 45);
    add_little<uint16_t>(end, 45);
    add_little<uint64_t>(end, 0);
    add_little<uint64_t>(end, entries.size());
    add_little<uint64_t>(end, entries.size());
    add_little<uint64_t>(end, directory.size());
    add_little<uint64_t>(end, begin);
    add_little(end, kLocator64);
    add_little<uint32_t>(end, 0);
    add_little<uint64_t>(end, begin + directory.size());
    add_little<uint32_t>(end, 1);
  }
  auto count = static_cast<uint16_t>(std::min<size_t>(entries.size(), 0xffff));
  add_little(end, kEnd);
  add_little<uint32_t>(end, 0);
  add_little(end, count);
  add_little(end, count);
  add_little(end, large ? kFull : static_cast<uint32_t>(directory.size()));
  add_little(end, large ? kFull : static_cast<uint32_t>(begin));
  add_little<uint16_t>(end, 0);
  out.write(directory);
  out.write(end);
}

}  // namespace ein

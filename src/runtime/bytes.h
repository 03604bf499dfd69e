// Bytes in files. Readers of formats take a Source, so that a file and a member of an archive look
// the same to them; they throw Malformed, which files.cc turns into a message with the file's name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct stat;

namespace ein {

struct Malformed {
  std::string why;
  bool missing = false;  // there is no such file
};

// Writes all bytes to a descriptor; false, with errno, if that fails.
bool write_all(int fd, const void* from, size_t size);

// A regular file, open for reading at any offset.
class InFile {
 public:
  explicit InFile(const std::string& path);
  ~InFile();
  InFile(const InFile&) = delete;
  InFile& operator=(const InFile&) = delete;

  uint64_t size() const { return size_; }
  int64_t modified() const { return modified_; }  // nanoseconds since 1970
  // Exactly n bytes, or Malformed.
  void read_at(uint64_t offset, void* to, size_t n) const;
  void read_ahead(uint64_t offset, uint64_t n) const;  // these bytes are wanted soon
  bool has_changed() const;                            // since it was opened

 private:
  int fd_ = -1;
  uint64_t size_ = 0;
  int64_t modified_ = 0;
};

// Bytes in order.
class Source {
 public:
  virtual ~Source() = default;
  virtual void read(void* to, size_t n) = 0;  // exactly n, or Malformed
  virtual uint64_t left() const = 0;          // how many may be read, never more than there are
  virtual void finish() {}                    // checks what can be checked after the last byte
};

// A part of a file as it is.
class FileSource : public Source {
 public:
  FileSource(const InFile& file, uint64_t begin, uint64_t size)
      : file_(file), at_(begin), end_(begin + size) {}
  void read(void* to, size_t n) override;
  uint64_t left() const override { return end_ - at_; }

 private:
  const InFile& file_;
  uint64_t at_, end_;
};

// A file that is written under another name and replaces the old one in `close`: nobody ever sees
// half of it. It keeps the mode of the file that it replaces, and replaces what a link leads to,
// not the link. What is not a regular file (a pipe, /dev/null) is written directly, and so is
// standard output under any name.
class OutFile {
 public:
  explicit OutFile(const std::string& path, bool executable = false);
  ~OutFile();
  OutFile(const OutFile&) = delete;
  OutFile& operator=(const OutFile&) = delete;

  void write(const void* from, size_t n);
  void write(std::string_view text) { write(text.data(), text.size()); }
  uint64_t written() const { return written_; }
  void close();

 private:
  void open_beside(const struct stat* old, bool executable);

  std::string path_, temporary_;
  int fd_ = -1;
  uint64_t written_ = 0;
};

// Little-endian integers in a byte string.
template <class T>
T little_at(const unsigned char* p) {
  uint64_t out = 0;
  for (size_t i = 0; i < sizeof(T); ++i) out |= static_cast<uint64_t>(p[i]) << (8 * i);
  return static_cast<T>(out);
}
template <class T>
void add_little(std::string& to, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    to += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xff);
  }
}

// The length of a text and then its bytes; ByteReader::text takes it back.
inline void add_text(std::string& to, std::string_view text) {
  add_little<uint64_t>(to, text.size());
  to += text;
}

// Missing bytes set `bad` and leave everything empty.
struct ByteReader {
  std::string_view in;
  bool bad = false;

  uint64_t number() {
    if (in.size() < 8) bad = true;
    if (bad) return 0;
    auto out = little_at<uint64_t>(reinterpret_cast<const unsigned char*>(in.data()));
    in.remove_prefix(8);
    return out;
  }
  std::string text() {
    uint64_t size = number();
    if (size > in.size()) bad = true;
    if (bad) return {};
    std::string out(in.substr(0, size));
    in.remove_prefix(size);
    return out;
  }
};

}  // namespace ein

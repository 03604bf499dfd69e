// Private to src/runtime: the formats behind files.h. All of them throw Malformed.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "runtime/bytes.h"
#include "runtime/files.h"
#include "runtime/members.h"
#include "runtime/tensor.h"

namespace ein {

// The bytes of a tensor with these extents; Malformed when they or their number do not fit 63 bits.
uint64_t byte_count(DType dtype, const std::vector<int64_t>& shape);
// Malformed unless the rest of the source is exactly such a tensor: bytes that nobody reads are a
// sign that the extents are wrong.
void check_rest(const Source& in, DType dtype, const std::vector<int64_t>& shape);
void swap_bytes(Tensor& t);  // of every element

// npy.cc: NumPy's .npy, versions 1 to 3.
struct NpyHeader {
  DType dtype = DType::F32;
  bool swapped = false;  // big-endian
  bool fortran = false;
  std::vector<int64_t> shape;
};
NpyHeader read_npy_header(Source& in);  // the data must be there, as far as the source knows
Tensor read_npy_data(Source& in, const NpyHeader& header);
std::string npy_header(const Tensor& t);

// zip.cc: archives, as far as .npz needs them: stored and deflated members, zip64.
struct ZipMember {
  std::string name;
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t compressed = 0, size = 0, offset = 0;  // offset: of its local header
};
std::vector<ZipMember> zip_members(const InFile& file);
std::unique_ptr<Source> open_member(const InFile& file, const ZipMember& member);
// Stored members, each the concatenation of `head` and the tensor's bytes.
struct ZipEntry {
  std::string name, head;
  const Tensor* tensor = nullptr;
};
void write_zip(OutFile& out, const std::vector<ZipEntry>& entries);

// csv.cc. One column is a vector, more are rows of a matrix. The element type is that of the same
// numbers in a program: i32, i64 where that is too small, f32 when one has a point, or bool.
struct CsvShape {
  DType dtype = DType::I32;
  int64_t rows = 0, columns = 0;
  std::vector<ColumnLabels> labels;
};
// `how` it is read: csv_options.h.
Tensor read_csv(const std::string& text, const std::string& how, std::optional<Wanted> wanted);
CsvShape csv_shape(const std::string& text, const std::string& how);
std::string csv_text(const Tensor& t);

// safetensors.cc
struct SafeEntry {
  std::string name;
  std::string type;            // as written
  std::optional<DType> dtype;  // when it is one of ours
  std::vector<int64_t> shape;
  uint64_t begin = 0, size = 0;  // in the file
};
std::vector<SafeEntry> safetensors_entries(const InFile& file);
std::string safetensors_header(const std::vector<NamedTensor>& tensors);

// member_file.cc: the tensors of an .npz or .safetensors file. The file must outlive it.
class MemberFile {
 public:
  static MemberFile npz(const InFile& file);
  static MemberFile safetensors(const InFile& file);

  const std::vector<std::string>& names() const { return names_; }
  // The tensors of that name (members.h), or the only one when none is asked for.
  ChosenMembers choose(const std::string& wanted) const;
  FileHeader header(const ChosenMembers& chosen) const;  // element type and extents
  Tensor tensor(const ChosenMembers& chosen) const;
  uint64_t begin_of(size_t member) const { return safe_[member].begin; }

 private:
  explicit MemberFile(const InFile& file) : file_(file) {}
  FileHeader header(size_t member) const;
  Tensor tensor(size_t member) const;

  const InFile& file_;
  std::vector<ZipMember> zip_;  // one of the two
  std::vector<SafeEntry> safe_;
  std::vector<std::string> names_;
};
// What is written for these values: a value with a `#` in its name is cut along its first
// coordinates. `slices` owns the pieces.
std::vector<NamedTensor> numbered(const std::vector<NamedTensor>& values,
                                  std::deque<Tensor>& slices);

// file_names.cc: what keeps a value out of a file of that format, by what is known before anything
// is computed; empty when nothing does.
std::string idx_problem(DType dtype);
std::string png_problem(const std::string& name, DType dtype, size_t rank);
std::string pnm_problem(const std::string& extension, const std::string& name, DType dtype,
                        size_t rank);

// idx.cc
struct IdxHeader {
  DType dtype = DType::U8;
  std::vector<int64_t> shape;
};
IdxHeader read_idx_header(Source& in);  // the data must be there, and nothing else
Tensor read_idx_data(Source& in, const IdxHeader& header);
std::string idx_bytes(const Tensor& t);  // the whole file

// png.cc: images of u8, or with 16 bits of i32 from 0 to 65535; [y, x] grey, [y, x, c] with 2
// (grey, alpha), 3 (red, green, blue) or 4 channels.
struct PngHeader {
  DType dtype = DType::U8;
  std::vector<int64_t> shape;
};
PngHeader read_png_header(const std::string& bytes);
Tensor read_png_data(const std::string& bytes);
std::string png_bytes(const Tensor& t);  // the whole file

// pnm.cc: images of u8, [y, x] grey and [y, x, 3] in colours.
struct PnmHeader {
  bool text = false;    // samples in digits
  int64_t white = 255;  // the largest sample
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // of the samples
};
PnmHeader read_pnm_header(const InFile& file);
Tensor read_pnm_data(const InFile& file, const PnmHeader& header);
std::string pnm_header(const Tensor& t);

}  // namespace ein

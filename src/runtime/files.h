// Tensors in files: .npy, .npz, .csv, .safetensors, .idx, .pgm and .ppm, by the file's extension.
//
// A header (element type and extents) is read without the data where the format allows it. No
// header is trusted: extents are multiplied with overflow checks and compared with the bytes that
// are there before anything is allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/tensor.h"

namespace ein {

// A column of words in a .csv file is loaded as numbers: a word's place in the sorted `labels`.
struct ColumnLabels {
  std::string column;  // its heading, or `column 2`
  std::vector<std::string> labels;

  friend bool operator==(const ColumnLabels&, const ColumnLabels&) = default;
};

struct FileHeader {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  uint64_t size = 0;                      // of the file, in bytes
  int64_t modified = 0;                   // its time, in nanoseconds
  std::vector<ColumnLabels> labels = {};  // of a .csv file

  friend bool operator==(const FileHeader&, const FileHeader&) = default;
};

// Numbers in a text have no element type and rank of their own; they get those of their value.
struct Wanted {
  DType dtype = DType::F32;
  size_t rank = 0;
};

// `member` names a tensor of an .npz or .safetensors file; it may be empty when there is only one.
// For a .csv file it says how to read it (csv_options.h).
inline constexpr const char* kCsvHeadings = "headings";
std::variant<FileHeader, RuntimeError> inspect_file(const std::string& path,
                                                    const std::string& member);
std::variant<Tensor, RuntimeError> read_tensor(const std::string& path, const std::string& member,
                                               std::optional<Wanted> wanted = std::nullopt);

// A value as it is written on a command line; nothing when it is not one of that type. A finite
// number stays finite, as in a program.
std::optional<Tensor> read_scalar(const std::string& text, DType dtype);

struct NamedTensor {
  std::string name;
  const Tensor* tensor = nullptr;
};
// All but .npz and .safetensors files hold one tensor and no name.
std::variant<std::monostate, RuntimeError> write_tensors(const std::string& path,
                                                         const std::vector<NamedTensor>& tensors);

// A text as it is; nothing, and the reason in `errno`, when it cannot be read.
std::optional<std::string> read_text(const std::string& path);
std::optional<std::string> read_text(int descriptor);

// A text as it is, under any name that is not one of tensors.
std::variant<std::monostate, RuntimeError> write_text(const std::string& path,
                                                      const std::string& text);
bool holds_tensors(const std::string& path);  // by its name

// What is wrong with writing that many tensors to that path; empty when nothing is. It follows from
// the name alone, so that it can be reported before anything is computed.
std::string check_target(const std::string& path, size_t tensors);
// What keeps a value of that type and rank out of that file, also before anything is computed;
// `name` is what the program calls it.
std::string check_value(const std::string& path, const std::string& name, DType dtype, size_t rank);
bool has_members(const std::string& path);   // by its extension
bool is_csv(const std::string& path);        // likewise
std::string show_type(const FileHeader& h);  // "[f32; 3, 4]"

}  // namespace ein

#include "runtime/file_names.h"

#include <fmt/format.h>

#include <cctype>
#include <utility>

#include "runtime/files.h"
#include "runtime/formats.h"

namespace ein {
namespace {

constexpr const char* kFormats = ".npy, .npz, .csv, .safetensors, .idx, .png, .pgm, .ppm and .txt";
constexpr std::pair<const char*, Format> kExtensions[] = {{".npy", Format::Npy},
                                                          {".npz", Format::Npz},
                                                          {".csv", Format::Csv},
                                                          {".tsv", Format::Csv},
                                                          {".idx", Format::Idx},
                                                          {".pgm", Format::Pnm},
                                                          {".ppm", Format::Pnm},
                                                          {".pnm", Format::Pnm},
                                                          {".png", Format::Png},
                                                          {".txt", Format::Text},
                                                          {".safetensors", Format::Safetensors}};

// The names of the MNIST files have no extension: `train-images-idx3-ubyte`.
bool named_like_mnist(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  if (name.ends_with("-ubyte")) return true;
  for (size_t at = name.find("-idx"); at != std::string::npos; at = name.find("-idx", at + 1)) {
    if (at + 5 < name.size() && name[at + 4] >= '0' && name[at + 4] <= '9' && name[at + 5] == '-') {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string extension(const std::string& path) {
  size_t dot = path.find_last_of("./");
  if (dot == std::string::npos || path[dot] == '/') return "";
  std::string out = path.substr(dot);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

Format format_of(const std::string& path) {
  std::string e = extension(path);
  for (auto [known, format] : kExtensions) {
    if (e == known) return format;
  }
  return e != ".gz" && named_like_mnist(path) ? Format::Idx : Format::Unknown;
}

std::string unknown_format(const std::string& path) {
  std::string e = extension(path);
  return e.empty() ? fmt::format("its name has no extension; the known ones are {}", kFormats)
                   : fmt::format("`{}` is not a tensor format; the known ones are {}", e, kFormats);
}

std::string idx_problem(DType dtype) {
  for (DType fine : {DType::U8, DType::I8, DType::I16, DType::I32, DType::F32, DType::F64}) {
    if (dtype == fine) return "";
  }
  return fmt::format("an IDX file holds u8, i8, i16, i32, f32 or f64, but the value is {}",
                     name_of(dtype));
}

std::string pnm_problem(const std::string& extension, const std::string& name, DType dtype,
                        size_t rank) {
  if (is_float(dtype)) {
    return fmt::format(
        "an image holds u8 from 0 to 255, but the value is {}; write `(255.0 * {}) as u8` if it "
        "goes from 0 to 1",
        name_of(dtype), name);
  }
  if (dtype != DType::U8) {
    return fmt::format("an image holds u8 from 0 to 255, but the value is {}; write `{} as u8`",
                       name_of(dtype), name);
  }
  if (extension == ".pgm" && rank != 2) {
    return fmt::format(
        "a grey image has the coordinates y and x, but the value has {} coordinate{}{}", rank,
        rank == 1 ? "" : "s", rank == 3 ? "; .ppm is for colours" : "");
  }
  if (extension == ".ppm" && rank != 3) {
    return fmt::format(
        "a colour image has the coordinates y, x and c, but the value has {} coordinate{}{}", rank,
        rank == 1 ? "" : "s", rank == 2 ? "; .pgm is for grey" : "");
  }
  if (rank != 2 && rank != 3) {
    return fmt::format("an image has 2 coordinates, or 3 for colours; the value has {}", rank);
  }
  return "";
}

std::string png_problem(const std::string& name, DType dtype, size_t rank) {
  if (is_float(dtype)) {
    return fmt::format(
        "an image holds integers, but the value is {}; write `(255.0 * {}) as u8` if it goes from "
        "0 to 1",
        name_of(dtype), name);
  }
  if (dtype != DType::U8 && dtype != DType::I32) {
    return fmt::format(
        "an image holds u8, or with 16 bits i32 from 0 to 65535, but the value is {}; write `{} as "
        "u8`",
        name_of(dtype), name);
  }
  if (rank != 2 && rank != 3) {
    return fmt::format(
        "an image has the coordinates y and x, and a third one for colours; the value has {}",
        rank);
  }
  return "";
}

std::string check_target(const std::string& path, size_t tensors) {
  Format format = format_of(path);
  if (format == Format::Unknown) return unknown_format(path);
  if (tensors != 1 && !has_members(path)) {
    return fmt::format("a {} file holds one tensor, not {}; .npz and .safetensors hold several",
                       extension(path), tensors);
  }
  return "";
}

std::string check_value(const std::string& path, const std::string& name, DType dtype,
                        size_t rank) {
  switch (format_of(path)) {
    case Format::Idx: return idx_problem(dtype);
    case Format::Pnm: return pnm_problem(extension(path), name, dtype, rank);
    case Format::Png: return png_problem(name, dtype, rank);
    case Format::Text:
      if (dtype == DType::U8 && rank == 1) return "";
      return fmt::format(
          "a text is bytes along one coordinate (u8), but the value is {} with {} coordinate{}; "
          "`save(\"{}\", \"{{x}}\")` writes what `print` shows",
          name_of(dtype), rank, rank == 1 ? "" : "s", path.substr(path.find_last_of('/') + 1));
    default: return "";
  }
}

bool is_csv(const std::string& path) { return format_of(path) == Format::Csv; }

bool has_members(const std::string& path) {
  Format format = format_of(path);
  return format == Format::Npz || format == Format::Safetensors;
}

std::string show_type(const FileHeader& h) {
  if (h.shape.empty()) return name_of(h.dtype);
  return fmt::format("[{}; {}]", name_of(h.dtype), fmt::join(h.shape, ", "));
}

// A csv file is also text: whoever writes one as text adds headings.
bool holds_tensors(const std::string& path) {
  Format format = format_of(path);
  return format != Format::Unknown && format != Format::Csv && format != Format::Text;
}

}  // namespace ein

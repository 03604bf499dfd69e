// Private to src/runtime: what the name of a file says about it, and what a file of a format can
// hold. Nothing here opens a file; the questions that others may ask are in files.h.
#pragma once

#include <string>

namespace ein {

enum class Format { Npy, Npz, Csv, Safetensors, Idx, Pnm, Png, Text, Unknown };

std::string extension(const std::string& path);  // in small letters, with its point
Format format_of(const std::string& path);
std::string unknown_format(const std::string& path);  // why there is none, in words

}  // namespace ein

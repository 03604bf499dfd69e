#include "runtime/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <new>

#include "base/check.h"
#include "runtime/file_names.h"
#include "runtime/formats.h"
#include "runtime/members.h"
#include "runtime/row_file.h"
#include "runtime/write_program.h"

namespace ein {
namespace {

std::string whole_text(const InFile& file) {
  std::string text(file.size(), '\0');
  file.read_at(0, text.data(), text.size());
  return text;
}

MemberFile open_members(const InFile& file, const std::string& path) {
  return format_of(path) == Format::Npz ? MemberFile::npz(file) : MemberFile::safetensors(file);
}

void no_member(const std::string& member) {
  if (!member.empty()) throw Malformed{"only .npz and .safetensors files have named tensors"};
}

FileHeader header_of(const InFile& file, const std::string& path, const std::string& member) {
  FileHeader out;
  out.size = file.size();
  out.modified = file.modified();
  auto with = [&](const auto& header) {
    out.dtype = header.dtype;
    out.shape = header.shape;
    return out;
  };
  switch (format_of(path)) {
    case Format::Npy: {
      no_member(member);
      FileSource in(file, 0, file.size());
      return with(read_npy_header(in));
    }
    case Format::Npz:
    case Format::Safetensors: {
      MemberFile members = open_members(file, path);
      return with(members.header(members.choose(member)));
    }
    case Format::Csv: {
      CsvShape s = csv_shape(whole_text(file), member);
      out.dtype = s.dtype;
      out.shape = {s.rows};
      if (s.columns != 1) out.shape.push_back(s.columns);
      out.labels = s.labels;
      return out;
    }
    case Format::Idx: {
      no_member(member);
      FileSource in(file, 0, file.size());
      return with(read_idx_header(in));
    }
    case Format::Pnm: {
      no_member(member);
      out.dtype = DType::U8;
      out.shape = read_pnm_header(file).shape;
      return out;
    }
    case Format::Png: no_member(member); return with(read_png_header(whole_text(file)));
    case Format::Text:
      no_member(member);
      out.dtype = DType::U8;
      out.shape = {static_cast<int64_t>(file.size())};
      return out;
    case Format::Unknown: break;
  }
  throw Malformed{unknown_format(path)};
}

Tensor tensor_of(const InFile& file, const std::string& path, const std::string& member,
                 std::optional<Wanted> wanted) {
  switch (format_of(path)) {
    case Format::Npy: {
      no_member(member);
      FileSource in(file, 0, file.size());
      NpyHeader h = read_npy_header(in);
      return read_npy_data(in, h);
    }
    case Format::Npz:
    case Format::Safetensors: {
      MemberFile members = open_members(file, path);
      return members.tensor(members.choose(member));
    }
    case Format::Csv: return read_csv(whole_text(file), member, wanted);
    case Format::Idx: {
      no_member(member);
      FileSource in(file, 0, file.size());
      IdxHeader h = read_idx_header(in);
      return read_idx_data(in, h);
    }
    case Format::Pnm: no_member(member); return read_pnm_data(file, read_pnm_header(file));
    case Format::Png: no_member(member); return read_png_data(whole_text(file));
    case Format::Text: {
      no_member(member);
      Tensor t(DType::U8, {static_cast<int64_t>(file.size())});
      file.read_at(0, t.data(), file.size());
      return t;
    }
    case Format::Unknown: break;
  }
  throw Malformed{unknown_format(path)};
}

// Names come from files, so bytes that are not text must not reach a terminal.
std::string printable(const std::string& s) {
  std::string out;
  for (size_t i = 0; i < s.size();) {
    auto c = static_cast<unsigned char>(s[i]);
    size_t n = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 0;
    bool text = n > 0 && c < 0xf5 && c >= 0x20 && c != 0x7f && i + n <= s.size();
    for (size_t k = 1; text && k < n; ++k) text = (s[i + k] & 0xc0) == 0x80;
    if (text) {
      out.append(s, i, n);
    } else {
      out += fmt::format("\\x{:02x}", c);
    }
    i += text ? n : 1;
  }
  return out;
}

void check_name(const std::string& path) {
  if (extension(path) == ".gz") throw Malformed{"compressed files are not supported; use gunzip"};
  if (format_of(path) == Format::Unknown) throw Malformed{unknown_format(path)};
}

// Runs `body`, and turns what it throws into a message that names the file.
template <class T, class F>
std::variant<T, RuntimeError> named(const char* doing, const std::string& path, const F& body) {
  auto fail = [&](const std::string& why, bool missing = false) {
    std::string message = fmt::format("cannot {} `{}`: {}", doing, path, printable(why));
    return RuntimeError{.code = Code::E0808, .message = message, .missing_file = missing};
  };
  try {
    return body();
  } catch (const Malformed& m) { return fail(m.why, m.missing); } catch (const std::bad_alloc&) {
    return fail("out of memory");
  }
}

}  // namespace

std::optional<RowFile> find_rows(const std::string& path, const std::string& member,
                                 std::string& why) try {
  const Format format = format_of(path);
  if (format != Format::Npy && format != Format::Idx && format != Format::Safetensors) {
    why = fmt::format("{} files are read as a whole", extension(path));
    return std::nullopt;
  }
  const InFile file(path);
  RowFile out{path, member, header_of(file, path, member)};
  FileSource in(file, 0, file.size());
  switch (format) {
    case Format::Npy: {
      NpyHeader h = read_npy_header(in);
      if (h.fortran && h.shape.size() > 1) why = "its cells are in column-major order";
      out.begin = file.size() - in.left();
      out.swapped = h.swapped;
      break;
    }
    case Format::Idx:
      read_idx_header(in);
      out.begin = file.size() - in.left();
      out.swapped = true;
      break;
    case Format::Safetensors: {
      MemberFile members = MemberFile::safetensors(file);
      ChosenMembers chosen = members.choose(member);
      if (!chosen.counts.empty()) why = "its rows are tensors of their own in the file";
      out.begin = members.begin_of(chosen.at[0]);
      break;
    }
    default: EIN_UNREACHABLE("a format without rows");
  }
  if (why.empty() && out.header.shape.empty()) why = "it is one number";
  return why.empty() ? std::optional(out) : std::nullopt;
} catch (const Malformed& m) {
  why = m.why;
  return std::nullopt;
}

std::optional<Tensor> read_scalar(const std::string& text, DType dtype) {
  Tensor t(dtype, {});
  if (dtype == DType::Bool) {
    if (text != "true" && text != "false") return std::nullopt;
    t.set_int(0, text == "true");
    return t;
  }
  const char* end = text.data() + text.size();
  double real = 0;
  int64_t whole = 0;
  auto [stop, error] = is_float(dtype) ? std::from_chars(text.data(), end, real)
                                       : std::from_chars(text.data(), end, whole);
  if (error != std::errc{} || stop != end) return std::nullopt;
  if (is_float(dtype)) {
    t.set_float(0, real);
    if (std::isfinite(real) && !std::isfinite(t.get_float(0))) return std::nullopt;
    return t;
  }
  t.set_int(0, whole);
  return t.get_int(0) == whole ? std::optional(t) : std::nullopt;
}

std::variant<std::vector<std::string>, RuntimeError> file_members(const std::string& path) {
  return named<std::vector<std::string>>("read", path, [&] {
    check_name(path);
    const InFile file(path);
    std::vector<std::string> out;
    if (has_members(path)) {
      const MemberFile members = open_members(file, path);
      for (const std::string& name : members.names()) out.push_back(printable(name));
    }
    return out;
  });
}

std::variant<FileHeader, RuntimeError> inspect_file(const std::string& path,
                                                    const std::string& member) {
  return named<FileHeader>("read", path, [&] {
    check_name(path);
    InFile file(path);
    return header_of(file, path, member);
  });
}

std::variant<Tensor, RuntimeError> read_tensor(const std::string& path, const std::string& member,
                                               std::optional<Wanted> wanted) {
  return named<Tensor>("read", path, [&] {
    check_name(path);
    InFile file(path);
    return tensor_of(file, path, member, wanted);
  });
}

std::variant<std::monostate, RuntimeError> write_tensors(const std::string& path,
                                                         const std::vector<NamedTensor>& values) {
  return named<std::monostate>("write", path, [&] {
    std::deque<Tensor> slices;
    const std::vector<NamedTensor> tensors = has_members(path) ? numbered(values, slices) : values;
    if (std::string why = check_target(path, tensors.size()); !why.empty()) throw Malformed{why};
    for (const NamedTensor& t : tensors) {
      std::string why = check_value(path, t.name, t.tensor->dtype(), t.tensor->rank());
      if (!why.empty()) throw Malformed{why};
    }
    std::string head;
    std::vector<ZipEntry> entries;
    Format format = format_of(path);
    if (format == Format::Npy) head = npy_header(*tensors[0].tensor);
    if (format == Format::Csv) head = csv_text(*tensors[0].tensor);
    if (format == Format::Safetensors) head = safetensors_header(tensors);
    if (format == Format::Idx) head = idx_bytes(*tensors[0].tensor);
    if (format == Format::Pnm) head = pnm_header(*tensors[0].tensor);
    if (format == Format::Png) head = png_bytes(*tensors[0].tensor);
    for (const NamedTensor& t : tensors) {
      if (format == Format::Npz)
        entries.push_back({t.name + ".npy", npy_header(*t.tensor), t.tensor});
    }
    OutFile out(path);
    if (format == Format::Npz) {
      write_zip(out, entries);
    } else {
      out.write(head);
      for (const NamedTensor& t : tensors) {
        if (format == Format::Csv || format == Format::Idx || format == Format::Png) break;
        out.write(t.tensor->data(),
                  static_cast<size_t>(t.tensor->size()) * size_of(t.tensor->dtype()));
      }
    }
    out.close();
    return std::monostate{};
  });
}

namespace {

std::variant<std::monostate, RuntimeError> write_bytes(const std::string& path,
                                                       const std::string& bytes, bool executable) {
  return named<std::monostate>("write", path, [&] {
    OutFile out(path, executable);
    out.write(bytes);
    out.close();
    return std::monostate{};
  });
}

}  // namespace

std::variant<std::monostate, RuntimeError> write_text(const std::string& path,
                                                      const std::string& text) {
  return write_bytes(path, text, false);
}

std::variant<std::monostate, RuntimeError> write_program(const std::string& path,
                                                         const std::string& bytes) {
  return write_bytes(path, bytes, true);
}

}  // namespace ein

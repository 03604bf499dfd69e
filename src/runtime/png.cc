// PNG images: grey, grey with alpha, colours, colours with alpha, of u8 or (16 bits) i32 from 0 to
// 65535; palettes and fewer bits are read as u8. https://www.w3.org/TR/png-3/
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "runtime/formats.h"

namespace ein {
namespace {

constexpr std::string_view kSignature("\x89PNG\r\n\x1a\n", 8);
constexpr int kGrey = 0, kColour = 2, kPalette = 3, kGreyAlpha = 4, kColourAlpha = 6;
// No stream of zlib's grows by more than this.
constexpr uint64_t kMostGrowth = 1032;

uint32_t big_at(std::string_view bytes, size_t at) {
  uint32_t out = 0;
  for (size_t i = 0; i < 4; ++i) out = out << 8 | static_cast<unsigned char>(bytes[at + i]);
  return out;
}

void add_big(std::string& to, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) to += static_cast<char>(value >> shift & 0xff);
}

uint32_t checksum(std::string_view bytes) {
  uint32_t crc = 0;
  while (!bytes.empty()) {  // zlib counts in 32 bits
    size_t n = std::min<size_t>(bytes.size(), 1u << 30);
    crc = static_cast<uint32_t>(
        crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(n)));
    bytes.remove_prefix(n);
  }
  return crc;
}

struct Picture {
  uint32_t width = 0, height = 0;
  int bits = 8, colour = kGrey;
  bool interlaced = false;
  std::string palette, transparent;  // PLTE and tRNS; the latter may be empty
  std::vector<std::string_view> data;
  uint64_t data_size = 0;

  size_t samples() const {  // in a pixel of the file
    switch (colour) {
      case kColour: return 3;
      case kGreyAlpha: return 2;
      case kColourAlpha: return 4;
      default: return 1;
    }
  }
  size_t channels() const {  // in a pixel of the tensor
    size_t own = colour == kPalette ? 3 : samples();
    return own + (transparent.empty() ? 0 : 1);
  }
  uint64_t row_bytes(uint64_t pixels) const {
    return (pixels * samples() * static_cast<uint64_t>(bits) + 7) / 8;
  }
};

void read_png_size(std::string_view body, Picture& out) {
  if (body.size() != 13) throw Malformed{"its header does not have 13 bytes"};
  out.width = big_at(body, 0);
  out.height = big_at(body, 4);
  out.bits = static_cast<unsigned char>(body[8]);
  out.colour = static_cast<unsigned char>(body[9]);
  int interlace = static_cast<unsigned char>(body[12]);
  if (out.width == 0 || out.height == 0) throw Malformed{"its width or height is 0"};
  if (out.width > INT32_MAX || out.height > INT32_MAX) {
    throw Malformed{"its width or height does not fit in 31 bits"};
  }
  bool few = out.bits == 1 || out.bits == 2 || out.bits == 4;
  bool known = out.colour == kGrey || out.colour == kColour || out.colour == kPalette ||
               out.colour == kGreyAlpha || out.colour == kColourAlpha;
  bool fits = out.bits == 8 || (out.bits == 16 && out.colour != kPalette) ||
              (few && (out.colour == kGrey || out.colour == kPalette));
  if (!known || !fits) {
    throw Malformed{
        fmt::format("its header has the colour type {} with {} bits, which do not exist",
                    out.colour, out.bits)};
  }
  if (body[10] != 0 || body[11] != 0 || interlace > 1) {
    throw Malformed{"its compression, filter or interlace method is unknown"};
  }
  out.interlaced = interlace == 1;
}

void read_png_transparency(std::string_view body, Picture& out) {
  size_t wanted = out.colour == kGrey ? 2 : out.colour == kColour ? 6 : 0;
  bool ok = out.colour == kPalette ? body.size() > 0 && body.size() <= out.palette.size() / 3
                                   : wanted > 0 && body.size() == wanted;
  if (!ok) throw Malformed{"its tRNS chunk does not fit its colour type"};
  out.transparent = body;
}

// Every chunk with its checksum, in an order that is allowed.
Picture parse_png(std::string_view bytes) {
  if (!bytes.starts_with(kSignature)) throw Malformed{"it is not a PNG image"};
  Picture out;
  bool first = true, ended = false, data_over = false;
  for (size_t at = kSignature.size(); at < bytes.size();) {
    if (ended) throw Malformed{"it has bytes after its last chunk"};
    if (bytes.size() - at < 12) throw Malformed{"it is truncated inside a chunk"};
    uint32_t size = big_at(bytes, at);
    if (size > bytes.size() - at - 12) throw Malformed{"it is truncated inside a chunk"};
    std::string_view type = bytes.substr(at + 4, 4), body = bytes.substr(at + 8, size);
    if (checksum(bytes.substr(at + 4, 4 + size)) != big_at(bytes, at + 8 + size)) {
      throw Malformed{fmt::format("the checksum of its chunk `{}` is wrong", type)};
    }
    at += 12 + size;
    if ((type == "IHDR") != first) {
      throw Malformed{first ? "its first chunk is not IHDR" : "it has two IHDR chunks"};
    }
    first = false;
    if (type != "IDAT" && !out.data.empty()) data_over = true;
    if (type == "IHDR") {
      read_png_size(body, out);
    } else if (type == "PLTE") {
      bool grey = out.colour == kGrey || out.colour == kGreyAlpha;
      size_t most = out.colour == kPalette ? size_t{1} << out.bits : 256;
      if (grey || size == 0 || size % 3 != 0 || size / 3 > most || !out.palette.empty() ||
          !out.data.empty()) {
        throw Malformed{"its palette does not fit its header"};
      }
      if (out.colour == kPalette) out.palette = body;  // others only suggest one
    } else if (type == "tRNS") {
      if (!out.data.empty() || !out.transparent.empty())
        throw Malformed{"its tRNS chunk is misplaced"};
      read_png_transparency(body, out);
    } else if (type == "IDAT") {
      if (data_over) throw Malformed{"its IDAT chunks are not consecutive"};
      if (out.colour == kPalette && out.palette.empty()) throw Malformed{"its palette is missing"};
      out.data.push_back(body);
      out.data_size += size;
    } else if (type == "IEND") {
      if (size != 0) throw Malformed{"its IEND chunk is not empty"};
      ended = true;
    } else if (type[0] >= 'A' && type[0] <= 'Z') {
      throw Malformed{fmt::format("it has a chunk `{}`, which this reader does not know", type)};
    }
  }
  if (first) throw Malformed{"it is truncated before its header"};
  if (out.data.empty()) throw Malformed{"it has no image data"};
  if (!ended) throw Malformed{"it is truncated: its IEND chunk is missing"};
  return out;
}

// The pixels of an interlaced image come in seven grids, those of others in one.
struct Grid {
  uint32_t x, y, dx, dy;

  uint64_t columns(const Picture& i) const { return i.width > x ? (i.width - x + dx - 1) / dx : 0; }
  uint64_t rows(const Picture& i) const { return i.height > y ? (i.height - y + dy - 1) / dy : 0; }
  uint64_t bytes(const Picture& i) const {
    uint64_t across = columns(i);
    return across == 0 ? 0 : rows(i) * (1 + i.row_bytes(across));
  }
};

std::vector<Grid> grids_of(const Picture& i) {
  if (!i.interlaced) return {{0, 0, 1, 1}};
  return {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
          {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
}

std::string inflated(const Picture& image) {
  uint64_t size = 0;
  for (const Grid& g : grids_of(image)) size += g.bytes(image);  // below 2^31 rows of 2^34 bytes
  if (size / kMostGrowth > image.data_size) {
    throw Malformed{fmt::format("it is truncated: {} bytes of data cannot be {} by {} pixels",
                                image.data_size, image.width, image.height)};
  }
  std::string out(size, '\0');
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw std::bad_alloc();
  std::unique_ptr<z_stream, int (*)(z_stream*)> closer(&stream, inflateEnd);
  int status = Z_OK;
  uint64_t at = 0;
  for (std::string_view piece : image.data) {
    if (status == Z_STREAM_END && !piece.empty()) throw Malformed{"it has data after its image"};
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream.avail_in = static_cast<uInt>(piece.size());
    while (stream.avail_in > 0 && status == Z_OK) {
      char beyond = 0;  // a byte too many shows here
      uint64_t room = std::min<uint64_t>(size - at, 1u << 30);
      stream.next_out = reinterpret_cast<Bytef*>(room > 0 ? out.data() + at : &beyond);
      stream.avail_out = static_cast<uInt>(room > 0 ? room : 1);
      uInt before = stream.avail_out;
      status = inflate(&stream, Z_NO_FLUSH);
      if (room == 0 && stream.avail_out == 0)
        throw Malformed{"it has more data than its header says"};
      at += room > 0 ? before - stream.avail_out : 0;
      if (status != Z_OK && status != Z_STREAM_END) {
        throw Malformed{"its compressed data is damaged"};
      }
    }
    if (stream.avail_in > 0) throw Malformed{"it has data after its image"};
  }
  if (status != Z_STREAM_END || at != size) {
    throw Malformed{
        fmt::format("it is truncated: {} bytes of pixels where its header needs {}", at, size)};
  }
  return out;
}

uint8_t paeth(uint8_t left, uint8_t up, uint8_t corner) {
  int p = left + up - corner;
  int a = std::abs(p - left), b = std::abs(p - up), c = std::abs(p - corner);
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

// What a filter predicts for a byte from its neighbours.
uint8_t predicted_byte(int filter, uint8_t left, uint8_t up, uint8_t corner) {
  switch (filter) {
    case 1: return left;
    case 2: return up;
    case 3: return static_cast<uint8_t>((left + up) / 2);
    case 4: return paeth(left, up, corner);
    default: return 0;
  }
}

// `row` and the row `above` it (null for the first), both of n bytes; `step` bytes are one pixel.
void unfilter(int filter, uint8_t* row, const uint8_t* above, size_t n, size_t step) {
  if (filter > 4)
    throw Malformed{fmt::format("a row has the filter {}, which does not exist", filter)};
  for (size_t i = 0; filter != 0 && i < n; ++i) {
    uint8_t left = i < step ? 0 : row[i - step], up = above ? above[i] : 0;
    uint8_t corner = above && i >= step ? above[i - step] : 0;
    row[i] = static_cast<uint8_t>(row[i] + predicted_byte(filter, left, up, corner));
  }
}

int64_t sample_at(const Picture& image, const uint8_t* row, uint64_t k) {
  if (image.bits == 16) return row[2 * k] << 8 | row[2 * k + 1];
  if (image.bits == 8) return row[k];
  auto bits = static_cast<uint64_t>(image.bits);
  uint64_t shift = 8 - bits - k * bits % 8;
  return row[k * bits / 8] >> shift & ((1 << bits) - 1);
}

// One pixel of the file as one of the tensor.
void put_pixel(const Picture& image, const uint8_t* row, uint64_t column, Tensor& t, int64_t at) {
  size_t n = image.samples();
  auto put = [&](int64_t v) { t.set_int(at++, v); };
  if (image.colour == kPalette) {
    auto k = static_cast<size_t>(sample_at(image, row, column));
    if (3 * k >= image.palette.size()) {
      throw Malformed{
          fmt::format("a pixel has the colour {} of a palette of {}", k, image.palette.size() / 3)};
    }
    for (size_t c = 0; c < 3; ++c) put(static_cast<unsigned char>(image.palette[3 * k + c]));
    if (!image.transparent.empty()) {
      put(k < image.transparent.size() ? static_cast<unsigned char>(image.transparent[k]) : 255);
    }
    return;
  }
  bool same = true;  // as the colour that stands for transparent
  int64_t white = image.bits == 16 ? 65535 : 255;
  for (size_t c = 0; c < n; ++c) {
    int64_t v = sample_at(image, row, column * n + c);
    if (!image.transparent.empty()) {
      auto high = static_cast<unsigned char>(image.transparent[2 * c]);
      auto low = static_cast<unsigned char>(image.transparent[2 * c + 1]);
      same &= v == (high << 8 | low);
    }
    put(image.bits < 8 ? v * 255 / ((1 << image.bits) - 1) : v);
  }
  if (!image.transparent.empty()) put(same ? 0 : white);
}

std::vector<int64_t> picture_shape(const Picture& image) {
  std::vector<int64_t> out{image.height, image.width};
  if (image.channels() > 1) out.push_back(static_cast<int64_t>(image.channels()));
  return out;
}

// The filter whose differences are smallest compresses best, as a rule.
void add_filtered(std::string& to, const std::string& row, const std::string& above, size_t step) {
  std::string best;
  uint64_t least = UINT64_MAX;
  for (int filter = 0; filter <= 4; ++filter) {
    std::string out(1, static_cast<char>(filter));
    uint64_t size = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      auto byte = [](const std::string& s, size_t k) { return static_cast<uint8_t>(s[k]); };
      uint8_t left = i < step ? 0 : byte(row, i - step), up = above.empty() ? 0 : byte(above, i);
      uint8_t corner = above.empty() || i < step ? 0 : byte(above, i - step);
      auto d = static_cast<uint8_t>(byte(row, i) - predicted_byte(filter, left, up, corner));
      size += static_cast<uint64_t>(std::abs(static_cast<int8_t>(d)));
      out += static_cast<char>(d);
    }
    if (size < least) {
      least = size;
      best = std::move(out);
    }
  }
  to += best;
}

void add_chunk(std::string& to, const std::string& type, const std::string& body) {
  add_big(to, static_cast<uint32_t>(body.size()));
  to += type + body;
  add_big(to, checksum(type + body));
}

}  // namespace

PngHeader read_png_header(const std::string& bytes) {
  Picture image = parse_png(bytes);
  return {image.bits == 16 ? DType::I32 : DType::U8, picture_shape(image)};
}

Tensor read_png_data(const std::string& bytes) {
  Picture image = parse_png(bytes);
  std::string pixels = inflated(image);
  std::vector<int64_t> shape = picture_shape(image);
  byte_count(DType::I32, shape);  // Malformed when that does not fit
  Tensor t(image.bits == 16 ? DType::I32 : DType::U8, shape);
  auto channels = static_cast<int64_t>(image.channels());
  size_t step = std::max<size_t>(1, image.samples() * static_cast<size_t>(image.bits) / 8);
  auto* row = reinterpret_cast<uint8_t*>(pixels.data());
  for (const Grid& g : grids_of(image)) {
    uint64_t columns = g.columns(image), n = image.row_bytes(columns);
    const uint8_t* above = nullptr;
    for (uint64_t r = 0; columns > 0 && r < g.rows(image); ++r) {
      unfilter(row[0], row + 1, above, n, step);
      for (uint64_t c = 0; c < columns; ++c) {
        auto at = static_cast<int64_t>((g.y + r * g.dy) * image.width + g.x + c * g.dx);
        put_pixel(image, row + 1, c, t, at * channels);
      }
      above = row + 1;
      row += 1 + n;
    }
  }
  return t;
}

std::string png_bytes(const Tensor& t) {
  int64_t channels = t.rank() == 3 ? t.shape()[2] : 1;
  if (channels < 1 || channels > 4) {
    throw Malformed{fmt::format(
        "the last coordinate of an image has extent 1 (grey), 2 (grey, alpha), 3 (red, green, "
        "blue) or 4 (with alpha), not {}",
        channels)};
  }
  int64_t height = t.shape()[0], width = t.shape()[1];
  if (height < 1 || width < 1) throw Malformed{"a PNG image has at least one pixel"};
  if (height > INT32_MAX || width > INT32_MAX) {
    throw Malformed{"the sides of a PNG image fit in 31 bits"};
  }
  bool wide = t.dtype() == DType::I32;
  constexpr int kColours[] = {kGrey, kGreyAlpha, kColour, kColourAlpha};
  auto step = static_cast<size_t>(channels * (wide ? 2 : 1));
  std::string rows, above;
  for (int64_t y = 0; y < height; ++y) {
    std::string row;
    for (int64_t i = y * width * channels; i < (y + 1) * width * channels; ++i) {
      int64_t v = t.get_int(i);
      if (v < 0 || v > 65535) {
        throw Malformed{fmt::format(
            "the sample {} in row {} does not fit in 16 bits: samples go from 0 to 65535", v, y)};
      }
      if (wide) row += static_cast<char>(v >> 8);
      row += static_cast<char>(v & 0xff);
    }
    add_filtered(rows, row, above, step);
    above = std::move(row);
  }
  std::string head;
  add_big(head, static_cast<uint32_t>(width));
  add_big(head, static_cast<uint32_t>(height));
  head += static_cast<char>(wide ? 16 : 8);
  head += static_cast<char>(kColours[channels - 1]);
  head += std::string(3, '\0');
  uLongf size = compressBound(static_cast<uLong>(rows.size()));
  std::string packed(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                reinterpret_cast<const Bytef*>(rows.data()), static_cast<uLong>(rows.size()),
                6) != Z_OK) {
    throw std::bad_alloc();
  }
  packed.resize(size);
  std::string out(kSignature);
  add_chunk(out, "IHDR", head);
  constexpr size_t kPiece = size_t{1} << 30;  // the size of a chunk fits in 31 bits
  for (size_t at = 0; at < packed.size(); at += kPiece) {
    add_chunk(out, "IDAT", packed.substr(at, kPiece));
  }
  add_chunk(out, "IEND", "");
  return out;
}

}  // namespace ein

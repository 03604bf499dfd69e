// Netpbm's grey and colour images: P5 and P6 (bytes) are read and written, P2 and P3 (text) read.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats.h"

namespace ein {
namespace {

constexpr uint64_t kLongestPnmHeader = 1 << 16;  // comments may be long
constexpr int64_t kMostSamples = 255;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The words of a text, without comments; after the first one all are numbers.
class Words {
 public:
  Words(const std::string& text, size_t at) : text_(text), at_(at) {}

  // The next number; `what` it is, for the message.
  int64_t number(const char* what) {
    skip();
    size_t begin = at_;
    int64_t n = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      n = n * 10 + (text_[at_++] - '0');
      if (n > INT32_MAX) throw Malformed{fmt::format("its {} does not fit in 31 bits", what)};
    }
    if (at_ == begin && at_ == text_.size()) {
      throw Malformed{fmt::format("it is truncated: its {} is missing", what)};
    }
    if (at_ == begin) throw Malformed{fmt::format("its {} is not a number", what)};
    return n;
  }
  bool done() {
    skip();
    return at_ == text_.size();
  }
  size_t at() const { return at_; }

 private:
  void skip() {
    while (at_ < text_.size() && (is_space(text_[at_]) || text_[at_] == '#')) {
      if (text_[at_] == '#') at_ = std::min(text_.find('\n', at_), text_.size());
      if (at_ < text_.size()) ++at_;
    }
  }

  const std::string& text_;
  size_t at_;
};

// A sample as a part of 255, whatever the file calls white.
int64_t scaled(int64_t sample, int64_t white) {
  if (sample > white) {
    throw Malformed{
        fmt::format("it has a sample {} where its header says at most {}", sample, white)};
  }
  return white == kMostSamples ? sample : (sample * kMostSamples * 2 + white) / (2 * white);
}

}  // namespace

PnmHeader read_pnm_header(const InFile& file) {
  std::string text(static_cast<size_t>(std::min(file.size(), kLongestPnmHeader)), '\0');
  file.read_at(0, text.data(), text.size());
  if (text.size() < 2 || text[0] != 'P' || text[1] < '1' || text[1] > '7') {
    throw Malformed{"it is not a PGM or PPM image"};
  }
  char kind = text[1];
  if (kind == '1' || kind == '4' || kind == '7') {
    throw Malformed{fmt::format(
        "it is a P{} image; only P2 and P5 (grey), P3 and P6 (colour) are supported", kind)};
  }
  PnmHeader h;
  h.text = kind < '4';
  Words words(text, 2);
  int64_t width = words.number("width"), height = words.number("height");
  h.white = words.number("largest sample");
  if (h.white < 1) throw Malformed{"its largest sample is 0"};
  if (h.white > kMostSamples) {
    throw Malformed{fmt::format(
        "its samples go up to {}; only images with one byte per sample (up to 255) are supported",
        h.white)};
  }
  h.shape = {height, width};
  if (kind == '3' || kind == '6') h.shape.push_back(3);
  if (words.at() == text.size() && byte_count(DType::U8, h.shape) > 0) {
    throw Malformed{"it is truncated inside its header"};
  }
  if (words.at() < text.size() && !is_space(text[words.at()])) {
    throw Malformed{"its largest sample is not a number"};
  }
  h.begin = std::min<uint64_t>(words.at() + 1, file.size());
  uint64_t wanted = byte_count(DType::U8, h.shape), left = file.size() - h.begin;
  // As text, a sample takes at least a digit, and a space after it unless it is the last.
  uint64_t least = h.text && wanted > 0 ? 2 * wanted - 1 : wanted;
  if (least > left) {
    throw Malformed{fmt::format("it is truncated: {} bytes of data where its header needs {}{}",
                                left, h.text ? "at least " : "", least)};
  }
  // Some programs end the file like a text.
  char last = '\n';
  if (left == wanted + 1) file.read_at(file.size() - 1, &last, 1);
  if (!h.text && (left > wanted + 1 || last != '\n')) {
    throw Malformed{fmt::format("it has {} bytes of data where its header needs {}", left, wanted)};
  }
  return h;
}

Tensor read_pnm_data(const InFile& file, const PnmHeader& h) {
  Tensor t(DType::U8, h.shape);
  if (!h.text) {
    file.read_at(h.begin, t.data(), byte_count(DType::U8, h.shape));
    for (int64_t i = 0; i < t.size(); ++i) t.set_int(i, scaled(t.get_int(i), h.white));
    return t;
  }
  std::string text(static_cast<size_t>(file.size() - h.begin), '\0');
  file.read_at(h.begin, text.data(), text.size());
  Words words(text, 0);
  for (int64_t i = 0; i < t.size(); ++i) {
    if (words.done()) {
      throw Malformed{
          fmt::format("it is truncated: {} samples where its header needs {}", i, t.size())};
    }
    t.set_int(i, scaled(words.number("sample"), h.white));
  }
  if (!words.done()) {
    throw Malformed{fmt::format("it has more than the {} samples of its header", t.size())};
  }
  return t;
}

std::string pnm_header(const Tensor& t) {
  bool colour = t.rank() == 3;
  if (colour && t.shape()[2] != 3) {
    throw Malformed{
        fmt::format("the last coordinate of a colour image has extent 3 (red, green, blue), not {}",
                    t.shape()[2])};
  }
  return fmt::format("P{}\n{} {}\n255\n", colour ? 6 : 5, t.shape()[1], t.shape()[0]);
}

}  // namespace ein

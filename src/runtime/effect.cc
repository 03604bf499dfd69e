#include "runtime/effect.h"

#include <cstring>

#include "runtime/files.h"
#include "runtime/show.h"
#include "runtime/sink.h"
#include "runtime/streams.h"

namespace ein {
namespace {

using ValueOf = std::function<const Tensor&(uint32_t)>;

// The text of an effect. Every value is asked for once: some callers keep each answer.
class Line {
 public:
  Line(const Effect& e, const ValueOf& value) : pieces_(e.pieces) {
    for (const Effect::Piece& p : pieces_) {
      tensors_.push_back(p.value == Effect::kNoValue ? nullptr : &value(p.value));
    }
  }
  std::string text() {
    write(0, pieces_.size());
    return std::move(out_);
  }

 private:
  void write(size_t begin, size_t end) {
    for (size_t k = begin; k < end; ++k) {
      const Effect::Piece& p = pieces_[k];
      out_ += p.text;
      if (p.join == Effect::Piece::Join::Open) {
        size_t close = closed_by(k);
        repeat(k, close, p.rank);
        k = close;
      } else if (tensors_[k]) {
        value(k);
      }
    }
  }
  size_t closed_by(size_t k) const {
    for (int open = 0;; ++k) {
      open += pieces_[k].join == Effect::Piece::Join::Open    ? 1
              : pieces_[k].join == Effect::Piece::Join::Close ? -1
                                                              : 0;
      if (open == 0) return k;
    }
  }
  // Writes what stands between `open` and `close` for all addresses along the next
  // `rank` coordinates.
  void repeat(size_t open, size_t close, uint32_t rank) {
    const Tensor& gate = *tensors_[open];
    if (rank == 0) {
      if (gate.get_int(offset(gate)) != 0) write(open + 1, close);
      return;
    }
    for (int64_t i = 0; i < gate.shape()[at_.size()]; ++i) {
      at_.push_back(i);
      repeat(open, close, rank - 1);
      at_.pop_back();
    }
  }
  // The offset of the first cell at the current addresses.
  int64_t offset(const Tensor& t) const {
    int64_t out = 0;
    for (size_t k = 0; k < t.rank(); ++k) {
      out = out * t.shape()[k] + (k < at_.size() ? at_[k] : 0);
    }
    return out;
  }
  void value(size_t k) {
    const Tensor& t = *tensors_[k];
    const Effect::Piece& p = pieces_[k];
    if (t.rank() == at_.size()) {
      out_ += show_scalar(t, offset(t), p.format);
      return;
    }
    auto inside = static_cast<ptrdiff_t>(at_.size());
    Tensor part(t.dtype(), {t.shape().begin() + inside, t.shape().end()});
    size_t bytes = static_cast<size_t>(part.size()) * size_of(t.dtype());
    if (bytes > 0) {
      std::memcpy(part.data(),
                  t.as<std::byte>() + static_cast<size_t>(offset(t)) * size_of(t.dtype()), bytes);
    }
    out_ += show(part, {p.coords.begin() + inside, p.coords.end()}, p.format);
  }

  const std::vector<Effect::Piece>& pieces_;
  std::vector<const Tensor*> tensors_;
  std::vector<int64_t> at_;  // addresses along the coordinates of the joins around
  std::string out_;
};

std::string line_of(const Effect& e, const ValueOf& value) { return Line(e, value).text(); }

bool holds(const Tensor& t) {
  for (int64_t i = 0; i < t.size(); ++i) {
    if (t.get_int(i) == 0) return false;
  }
  return true;
}

}  // namespace

std::optional<RuntimeError> perform(const Effect& e, const ValueOf& value,
                                    const std::function<void(const std::string&)>& write) {
  switch (e.kind) {
    case Effect::Kind::Print:
      e.error ? put_error(line_of(e, value) + e.end) : write(line_of(e, value) + e.end);
      return std::nullopt;
    case Effect::Kind::Assert: {
      if (holds(value(e.cond))) return std::nullopt;
      std::string message = line_of(e, value);
      return RuntimeError{Code::E0804,
                          message.empty() ? "assertion failed" : "assertion failed: " + message,
                          e.span};
    }
    case Effect::Kind::Write: {
      std::string text = line_of(e, value);
      const Sink* sink = current_sink();
      if (sink && sink->file && sink->file(e.path, text)) return std::nullopt;
      auto written = write_text(e.path, text);
      if (auto* error = std::get_if<RuntimeError>(&written)) {
        return RuntimeError{error->code, error->message, e.span};
      }
      return std::nullopt;
    }
    case Effect::Kind::Save: {
      std::vector<NamedTensor> tensors;
      for (const Effect::Piece& p : e.pieces) tensors.push_back({p.text, &value(p.value)});
      auto written = write_tensors(e.path, tensors);
      if (auto* error = std::get_if<RuntimeError>(&written)) {
        return RuntimeError{error->code, error->message, e.span};
      }
      return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace ein

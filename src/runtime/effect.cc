#include "runtime/effect.h"

#include "runtime/files.h"
#include "runtime/show.h"

namespace ein {
namespace {

using Value = std::function<const Tensor&(uint32_t)>;

std::string line_of(const Effect& e, const Value& value) {
  std::string out;
  for (const Effect::Piece& p : e.pieces) {
    out += p.text;
    if (p.value != Effect::kNoValue) out += show(value(p.value), p.coords, p.format);
  }
  return out;
}

bool holds(const Tensor& t) {
  for (int64_t i = 0; i < t.size(); ++i) {
    if (t.get_int(i) == 0) return false;
  }
  return true;
}

}  // namespace

std::optional<RuntimeError> perform(const Effect& e, const Value& value,
                                    const std::function<void(const std::string&)>& write) {
  switch (e.kind) {
    case Effect::Kind::Print: write(line_of(e, value) + "\n"); return std::nullopt;
    case Effect::Kind::Assert: {
      if (holds(value(e.cond))) return std::nullopt;
      std::string message = line_of(e, value);
      return RuntimeError{Code::E0804,
                          message.empty() ? "assertion failed" : "assertion failed: " + message,
                          e.span};
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

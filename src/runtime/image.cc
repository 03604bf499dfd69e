// How images are written. One function for each struct lists its fields, for writing and reading
// alike.
#include "runtime/image.h"

#include <cstring>
#include <type_traits>

namespace ein {
namespace {

struct Writer {
  std::string out;
  static constexpr bool kReads = false;
  void bytes(void* at, size_t size) { out.append(static_cast<const char*>(at), size); }
};

// Missing bytes set `bad` and leave everything empty; nothing is allocated for more elements than
// there are bytes.
struct Reader {
  std::string_view in;
  bool bad = false;
  static constexpr bool kReads = true;
  void bytes(void* at, size_t size) {
    if (size > in.size()) bad = true;
    if (bad || size == 0) return;
    std::memcpy(at, in.data(), size);
    in.remove_prefix(size);
  }
};

template <class A, class T>
requires std::is_arithmetic_v<T> || std::is_enum_v<T>
void field(A& a, T& x) {
  if constexpr (std::is_same_v<T, bool>) {
    uint8_t byte = x;
    a.bytes(&byte, 1);
    x = byte != 0;
  } else {
    a.bytes(&x, sizeof x);
  }
}

template <class A>
size_t count(A& a, size_t size) {
  uint64_t n = size;
  field(a, n);
  if constexpr (A::kReads) {
    if (n > a.in.size()) a.bad = true;
    if (a.bad) return 0;
  }
  return n;
}

template <class A>
void field(A& a, std::string& x) {
  x.resize(count(a, x.size()));
  a.bytes(x.data(), x.size());
}

template <class A, class T>
void field(A& a, std::vector<T>& x);

template <class A, class... T>
void fields(A& a, T&... x) {
  (field(a, x), ...);
}

template <class A>
void field(A& a, Span& x) {
  fields(a, x.file.v, x.begin, x.end);
}
template <class A>
void field(A& a, Formula::Part& x) {
  fields(a, x.op, x.value);
}
template <class A>
void field(A& a, Formula& x) {
  field(a, x.parts);
}

template <class A>
void field(A& a, Tensor& x) {
  DType dtype = x.dtype();
  std::vector<int64_t> shape = x.shape();
  uint64_t size = x.data() ? static_cast<uint64_t>(x.size()) * size_of(dtype) : 0;
  bool there = x.data() != nullptr;
  fields(a, there, dtype, shape, size);
  if (!there) return;
  if constexpr (A::kReads) {
    if (size > a.in.size() || dtype > DType::Str) a.bad = true;
    if (a.bad) return;
    x = Tensor(dtype, shape);
    if (static_cast<uint64_t>(x.size()) * size_of(dtype) != size) a.bad = true;
    if (a.bad) return;
  }
  a.bytes(x.data(), size);
}

template <class A>
void field(A& a, Image::Coord& x) {
  fields(a, x.name, x.extent);
}
template <class A>
void field(A& a, Image::Input& x) {
  fields(a, x.name, x.path, x.dtype, x.coords, x.span, x.window);
}
template <class A>
void field(A& a, Image::Param& x) {
  fields(a, x.name, x.input, x.position);
}
template <class A>
void field(A& a, Image::Constraint& x) {
  fields(a, x.cond, x.message, x.params, x.span);
}
template <class A>
void field(A& a, Image::Buffer& x) {
  fields(a, x.space, x.name, x.path, x.dtype, x.dims, x.coords, x.input, x.family, x.step,
         x.lives.first, x.lives.last, x.wanted, x.constant, x.span);
}
template <class A>
void field(A& a, Image::Site::Member& x) {
  fields(a, x.buffer, x.position, x.extent);
}
template <class A>
void field(A& a, Image::Site& x) {
  fields(a, x.kind, x.name, x.extents, x.span, x.statement, x.arity, x.type, x.coordinate,
         x.downward, x.step, x.kernel, x.members);
}
template <class A>
void field(A& a, Image::Launch& x) {
  fields(a, x.name, x.threads, x.buffers, x.written, x.extents, x.words);
}
template <class A>
void field(A& a, Image::Place& x) {
  fields(a, x.span, x.text);
}
template <class A>
void field(A& a, Effect::Piece& x) {
  fields(a, x.text, x.value, x.coords, x.format, x.join, x.rank);
}
template <class A>
void field(A& a, Effect& x) {
  fields(a, x.kind, x.cond, x.pieces, x.path, x.error, x.end, x.span);
}
template <class A>
void field(A& a, Image& x) {
  fields(a, x.inputs, x.params, x.constraints, x.buffers, x.sites, x.processor, x.kernels, x.object,
         x.ptx, x.launches, x.outputs, x.effects, x.unused, x.places);
}

template <class A, class T>
void field(A& a, std::vector<T>& x) {
  x.resize(count(a, x.size()));
  for (T& element : x) {
    if constexpr (A::kReads) {
      if (a.bad) return;
    }
    field(a, element);
  }
}

}  // namespace

std::string pack(const Image& image) {
  Writer writer;
  field(writer, const_cast<Image&>(image));  // a writer changes nothing
  return std::move(writer.out);
}

std::optional<Image> unpack(std::string_view bytes) {
  Reader reader{bytes};
  Image out;
  field(reader, out);
  if (reader.bad || !reader.in.empty()) return std::nullopt;
  return out;
}

std::string place_text(const Image& image, Span at) {
  for (const Image::Place& p : image.places) {
    if (p.span == at) return p.text;
  }
  return {};
}

}  // namespace ein

#include "runtime/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/bytes.h"

namespace ein {
namespace {

using Space = Image::Buffer::Space;

// Whether a buffer's contents are still needed: by the kernel of the recurrence, by a later one, or
// by the caller.
bool is_live(const Image::Buffer& b, const Image::Site& site) {
  if (b.space == Space::Output) return b.step <= site.step;
  return b.space == Space::Temp && b.lives.first <= site.kernel && site.kernel <= b.lives.last &&
         b.step <= site.step;
}

// How many bytes of a buffer have been computed: those of the steps so far, if they come first in
// memory and all of them are kept.
size_t done_bytes(const Image& image, const Frame& frame, uint32_t buffer, const Image::Site& site,
                  int64_t next) {
  auto shape = frame.shape(image, buffer);
  size_t whole = byte_size(shape, image.buffers[buffer].dtype);
  for (const Image::Site::Member& member : site.members) {
    bool in_order = member.buffer == buffer && member.position == 0 && !site.downward;
    if (!in_order || shape[0] == 0) continue;
    // It keeps the last few only.
    if (shape[0] != evaluate(member.extent, frame.params.data())) continue;
    int64_t done = std::clamp<int64_t>(next, 0, shape[0]);
    return whole / static_cast<size_t>(shape[0]) * static_cast<size_t>(done);
  }
  return whole;
}

uint32_t number_among_equals(const Image& image, size_t site) {
  uint32_t number = 0;
  for (size_t i = 0; i < site; ++i) {
    const Image::Site& s = image.sites[i];
    number += s.kind == image.sites[site].kind && s.name == image.sites[site].name;
  }
  return number;
}

std::optional<size_t> site_of(const Image& image, const KeptState& state) {
  for (size_t i = 0; i < image.sites.size(); ++i) {
    const Image::Site& s = image.sites[i];
    bool runs = s.kind == Image::Site::Kind::Step || s.kind == Image::Site::Kind::Rows;
    if (runs && s.name == state.family && number_among_equals(image, i) == state.site) return i;
  }
  return std::nullopt;
}

}  // namespace

KeptState keep_state(const Image& image, const Frame& frame, size_t number, int64_t next,
                     int64_t steps) {
  const Image::Site& site = image.sites[number];
  KeptState out{site.name, number_among_equals(image, number), next, steps, {}};
  for (uint32_t i = 0; i < image.buffers.size(); ++i) {
    const Image::Buffer& b = image.buffers[i];
    if (!is_live(b, site)) continue;
    auto shape = frame.shape(image, i);
    KeptState::Part& part =
        out.parts.emplace_back(KeptState::Part{b.name, b.dtype, {shape.begin(), shape.end()}, {}});
    part.bytes.assign(static_cast<const char*>(frame.pointers[i]),
                      done_bytes(image, frame, i, site, next));
  }
  return out;
}

std::optional<std::string> put_back(const KeptState& state, const Image& image, Frame& frame,
                                    NativeContext& context) {
  auto number = site_of(image, state);
  if (!number) return fmt::format("this program has no recurrence `{}`", state.family);
  const Image::Site& site = image.sites[*number];
  for (uint32_t i = 0; i < image.buffers.size(); ++i) {
    const Image::Buffer& b = image.buffers[i];
    if (!is_live(b, site)) continue;
    auto part = std::find_if(state.parts.begin(), state.parts.end(),
                             [&](const KeptState::Part& p) { return p.name == b.name; });
    if (part == state.parts.end()) return fmt::format("it has no value of `{}`", b.name);
    auto shape = frame.shape(image, i);
    bool fits = part->dtype == b.dtype &&
                std::equal(shape.begin(), shape.end(), part->shape.begin(), part->shape.end()) &&
                part->bytes.size() == done_bytes(image, frame, i, site, state.next);
    if (!fits) return fmt::format("`{}` has other extents, or is kept in another way", b.name);
    if (!part->bytes.empty()) {
      std::memcpy(frame.pointers[i], part->bytes.data(), part->bytes.size());
    }
  }
  context.first_kernel = site.kernel;
  context.resumed_site = static_cast<int64_t>(*number);
  context.resumed_step = state.next;
  return std::nullopt;
}

std::string pack(const KeptState& state) {
  std::string out;
  add_text(out, state.family);
  add_little<uint64_t>(out, state.site);
  add_little<int64_t>(out, state.next);
  add_little<int64_t>(out, state.steps);
  add_little<uint64_t>(out, state.parts.size());
  for (const KeptState::Part& part : state.parts) {
    add_text(out, part.name);
    add_little<uint64_t>(out, static_cast<uint64_t>(part.dtype));
    add_little<uint64_t>(out, part.shape.size());
    for (int64_t extent : part.shape) add_little<int64_t>(out, extent);
    add_text(out, part.bytes);
  }
  return out;
}

std::optional<KeptState> unpack_state(std::string_view bytes) {
  ByteReader in{bytes};
  KeptState out;
  out.family = in.text();
  out.site = static_cast<uint32_t>(in.number());
  out.next = static_cast<int64_t>(in.number());
  out.steps = static_cast<int64_t>(in.number());
  for (uint64_t parts = in.number(); parts > 0 && !in.bad; --parts) {
    KeptState::Part& part = out.parts.emplace_back();
    part.name = in.text();
    uint64_t dtype = in.number(), rank = in.number();
    if (dtype > static_cast<uint64_t>(DType::Str) || rank > in.in.size()) in.bad = true;
    part.dtype = static_cast<DType>(dtype);
    for (; rank > 0 && !in.bad; --rank) part.shape.push_back(static_cast<int64_t>(in.number()));
    part.bytes = in.text();
  }
  if (in.bad || !in.in.empty()) return std::nullopt;
  return out;
}

}  // namespace ein

#include "runtime/standalone.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/check.h"
#include "runtime/standalone_state.h"

namespace ein {
namespace {

size_t aligned(size_t at, size_t to) { return (at + to - 1) / to * to; }

// Puts a field under its path, `net.enc.w`.
void add_part(StructPart& to, const std::string& path, uint32_t field) {
  const size_t dot = path.find('.');
  const std::string head = path.substr(0, dot);
  if (dot == std::string::npos) {
    to.parts.push_back({head, field});
    return;
  }
  auto it = std::find_if(to.parts.begin(), to.parts.end(),
                         [&](const StructPart& p) { return p.name == head && !p.parts.empty(); });
  if (it == to.parts.end()) it = to.parts.insert(it, {head, 0});
  add_part(*it, path.substr(dot + 1), field);
}

struct Layouter {
  const std::vector<StructField>& list;  // by field; offsets are not known yet
  StructLayout out = {};

  static size_t size_of_field(const StructField& f) {
    return f.rank == 0 ? size_of(f.dtype) : sizeof(void*);
  }
  size_t alignment(const StructPart& part) const {
    if (part.parts.empty()) return size_of_field(list[part.field]);
    size_t most = 1;
    for (const StructPart& p : part.parts) most = std::max(most, alignment(p));
    return most;
  }
  // The end of the part when it comes after `end`, as a C compiler lays it out.
  size_t place(const StructPart& part, size_t end) {
    size_t at = aligned(end, alignment(part));
    if (part.parts.empty()) {
      StructField f = list[part.field];
      f.offset = at;
      out.fields.push_back(f);
      return at + size_of_field(f) + f.rank * sizeof(int64_t);
    }
    for (const StructPart& p : part.parts) at = place(p, at);
    return aligned(at, alignment(part));
  }
  StructLayout run(const StructPart& whole) {
    for (const StructPart& p : whole.parts) out.owned = place(p, out.owned);
    return std::move(out);
  }
};

void report(StandaloneError* to, const char* code, const std::string& message) {
  if (!to) return;
  std::memset(to, 0, sizeof *to);
  std::strncpy(to->code, code, sizeof to->code - 1);
  std::strncpy(to->message, message.c_str(), sizeof to->message - 1);
}

// Who owns the memory of an output, as stored in its byte. During a call this also says what to
// free if the call fails.
enum Owner : uint8_t { kCaller = 0, kLibrary = 1, kThisCall = 2 };

template <class T>
T* at(void* base, size_t offset) {
  return reinterpret_cast<T*>(static_cast<char*>(base) + offset);
}

std::vector<View> views_of(const StructLayout& layout, const void* inputs) {
  std::vector<View> out(layout.fields.size());
  auto* base = const_cast<void*>(inputs);
  for (const StructField& f : layout.fields) {
    View v{f.dtype};
    if (f.rank == 0) {
      v.data = at<char>(base, f.offset);
    } else {
      v.data = *at<void*>(base, f.offset);
      v.shape = {at<int64_t>(base, f.offset + sizeof(void*)), f.rank};
      bool empty = std::count(v.shape.begin(), v.shape.end(), 0) > 0;
      v.given = v.data != nullptr || empty;
    }
    out[f.buffer] = v;
  }
  return out;
}

std::optional<RuntimeError> negative(const Image& image, const std::vector<View>& views) {
  for (size_t i = 0; i < views.size(); ++i) {
    for (int64_t extent : views[i].shape) {
      if (extent < 0) {
        return RuntimeError{Code::E0802,
                            "input `" + image.inputs[i].name + "` has a negative extent",
                            image.inputs[i].span};
      }
    }
  }
  return std::nullopt;
}

// Uses the caller's memory, which must have the right extents, or otherwise allocates some.
std::optional<RuntimeError> place_output(const Image& image, const StructField& f, size_t k,
                                         size_t owned, void* outputs, Frame& frame) {
  if (f.rank == 0) {
    frame.pointers[f.buffer] = at<void>(outputs, f.offset);
    return std::nullopt;
  }
  auto shape = frame.shape(image, f.buffer);
  void*& data = *at<void*>(outputs, f.offset);
  auto* extents = at<int64_t>(outputs, f.offset + sizeof(void*));
  if (data) {
    if (!std::equal(shape.begin(), shape.end(), extents)) {
      auto text = [](auto begin, size_t n) {
        std::string out;
        for (size_t i = 0; i < n; ++i) out += (i ? ", " : "") + std::to_string(begin[i]);
        return out;
      };
      const std::string& name = image.buffers[f.buffer].name;
      return RuntimeError{Code::E0802, "the memory for `" + name + "` has the extents [" +
                                           text(extents, f.rank) + "], but its value has [" +
                                           text(shape.begin(), f.rank) + "]"};
    }
  } else {
    try {
      size_t bytes = std::max<size_t>(1, byte_size(shape, f.dtype));
      data = std::aligned_alloc(64, aligned(bytes, 64));
    } catch (const std::bad_alloc&) {}
    if (!data) return out_of_memory(image, frame, f.buffer);
    *at<uint8_t>(outputs, owned + k) = kThisCall;
    std::copy(shape.begin(), shape.end(), extents);
  }
  frame.pointers[f.buffer] = data;
  return std::nullopt;
}

std::optional<RuntimeError> call(StandaloneProgram& program, StandaloneState& s, const void* inputs,
                                 void* outputs) {
  using Space = Image::Buffer::Space;
  if ((!inputs && !s.inputs.fields.empty()) || (!outputs && !s.outputs.fields.empty())) {
    return RuntimeError{Code::E0801, "the pointer to the inputs or outputs is null"};
  }
  std::vector<View> views = views_of(s.inputs, inputs);
  if (auto wrong = negative(s.image, views)) return wrong;
  Borrowed borrowed(s.frames);
  Frame& frame = *borrowed;
  if (auto wrong = prepare(s.image, views, frame)) return wrong;
  for (size_t k = 0; k < s.outputs.fields.size(); ++k) {
    auto wrong = place_output(s.image, s.outputs.fields[k], k, s.outputs.owned, outputs, frame);
    if (wrong) return wrong;
  }
  std::vector<void*> memory = frame.pointers;
  CallResult result = execute(s.image, program.entry, views, frame);
  if (result.error) return result.error;
  for (const StructField& f : s.outputs.fields) {  // an input or a constant that is also an output
    if (s.image.buffers[f.buffer].space == Space::Output) continue;
    size_t bytes = byte_size(frame.shape(s.image, f.buffer), f.dtype);
    if (bytes > 0) std::memcpy(memory[f.buffer], frame.pointers[f.buffer], bytes);
  }
  std::vector<Tensor> kept;
  kept.reserve(s.image.buffers.size());
  for (const Effect& e : s.image.effects) {
    if (e.kind != Effect::Kind::Assert) continue;
    auto value = [&](uint32_t buffer) -> const Tensor& {
      return kept.emplace_back(value_of(s.image, frame, buffer));
    };
    kept.clear();
    if (auto failed = perform(e, value, [](const std::string&) {})) return failed;
  }
  return std::nullopt;
}

void release(const StandaloneState& s, void* outputs, Owner whose) {
  if (!outputs) return;
  for (size_t k = 0; k < s.outputs.fields.size(); ++k) {
    uint8_t& owner = *at<uint8_t>(outputs, s.outputs.owned + k);
    if (owner != whose) continue;
    void*& data = *at<void*>(outputs, s.outputs.fields[k].offset);
    std::free(data);
    data = nullptr;
    owner = kCaller;
  }
}

}  // namespace

StructPart input_struct(const Image& image) {
  StructPart out;
  for (uint32_t i = 0; i < image.inputs.size(); ++i) {
    add_part(out, image.inputs[i].spelled(), i);
  }
  return out;
}

StructPart output_struct(const Image& image) {
  StructPart out;
  for (uint32_t i = 0; i < image.outputs.size(); ++i) {
    add_part(out, image.buffers[image.outputs[i]].spelled(), i);
  }
  return out;
}

StructLayout input_layout(const Image& image) {
  std::vector<StructField> list;
  for (uint32_t i = 0; i < image.inputs.size(); ++i) {
    list.push_back({i, image.inputs[i].dtype, image.inputs[i].coords.size()});
  }
  return Layouter{list}.run(input_struct(image));
}

StructLayout output_layout(const Image& image) {
  std::vector<StructField> list;
  for (uint32_t i : image.outputs) {
    list.push_back({i, image.buffers[i].dtype, image.buffers[i].dims.size()});
  }
  return Layouter{list}.run(output_struct(image));
}

StandaloneState& state_of(StandaloneProgram& program) {
  std::atomic_ref<void*> slot(program.state);
  void* known = slot.load(std::memory_order_acquire);
  if (!known) {
    auto made = std::make_unique<StandaloneState>();
    auto image = unpack({program.image, program.size});
    EIN_CHECK(image, "the description of the program is damaged");
    made->image = std::move(*image);
    made->inputs = input_layout(made->image);
    made->outputs = output_layout(made->image);
    // If two first calls happen at the same time, one of them wins.
    if (slot.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) {
      known = made.release();
    }
  }
  return *static_cast<StandaloneState*>(known);
}

std::string error_text(const Image& image, const RuntimeError& error) {
  std::string where = place_text(image, error.at);
  if (where.empty()) where = place_text(image, error.statement);
  return where.empty() ? error.message : where + ": " + error.message;
}

}  // namespace ein

extern "C" int ein_standalone_run(ein::StandaloneProgram* program, const void* inputs,
                                  void* outputs, ein::StandaloneError* error) {
  try {
    ein::StandaloneState& s = ein::state_of(*program);
    std::optional<ein::RuntimeError> wrong;
    try {
      wrong = ein::call(*program, s, inputs, outputs);
    } catch (...) {
      ein::release(s, outputs, ein::kThisCall);
      throw;
    }
    if (!wrong) {
      for (size_t k = 0; k < s.outputs.fields.size(); ++k) {
        uint8_t& owner = *ein::at<uint8_t>(outputs, s.outputs.owned + k);
        if (owner == ein::kThisCall) owner = ein::kLibrary;
      }
      ein::report(error, "", "");
      return 0;
    }
    ein::release(s, outputs, ein::kThisCall);
    ein::report(error, ein::info(wrong->code).name, ein::error_text(s.image, *wrong));
  } catch (const std::bad_alloc&) {
    ein::report(error, "E0807", "out of memory");
  } catch (const std::exception& e) { ein::report(error, "", e.what()); }
  return 1;
}

extern "C" void ein_standalone_free(ein::StandaloneProgram* program, void* outputs) {
  try {
    ein::release(ein::state_of(*program), outputs, ein::kLibrary);
  } catch (const std::exception&) {}  // then nothing has been allocated either
}

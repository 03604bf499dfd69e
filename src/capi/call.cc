// Calls.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "capi/handles.h"
#include "core/eval.h"

namespace ein::capi {
namespace {

static_assert(static_cast<int>(EIN_F64) == static_cast<int>(DType::F64));

struct Usage {
  std::string why;
};

View view_of_given(const ein_tensor& t, const Value& expected) {
  View out{static_cast<DType>(t.dtype), {}, t.data};
  if (t.rank < 0 || (t.rank > 0 && !t.shape)) {
    throw Usage{fmt::format("`{}` has no shape", expected.name)};
  }
  out.shape = {t.shape, static_cast<size_t>(t.rank)};
  bool empty = false;
  for (int64_t extent : out.shape) {
    if (extent < 0) throw Usage{fmt::format("`{}` has a negative extent", expected.name)};
    empty |= extent == 0;
  }
  if (!t.data && !empty) throw Usage{fmt::format("`{}` has no data", expected.name)};
  if (!ein_dtype_name(t.dtype)) throw Usage{fmt::format("`{}` has no dtype", expected.name)};
  return out;
}

// The caller's memory for a value, if the value fits.
void* check_output(const ein_tensor& t, const Value& v, std::span<const int64_t> shape) {
  View given = view_of_given(t, v);
  if (given.dtype != v.dtype) {
    throw Usage{fmt::format("the memory for `{}` is {}, but its value is {}", v.name,
                            name_of(given.dtype), name_of(v.dtype))};
  }
  if (!std::equal(shape.begin(), shape.end(), given.shape.begin(), given.shape.end())) {
    throw Usage{fmt::format("the memory for `{}` has the extents [{}], but its value has [{}]",
                            v.name, fmt::join(given.shape, ", "), fmt::join(shape, ", "))};
  }
  return given.data;
}

void check_counts(const ein_program& p, const ein_tensor* inputs, size_t count) {
  if (!p.ok) throw Usage{"the program did not compile"};
  if (count == p.inputs.size() && (inputs || count == 0)) return;
  std::string names;
  for (const auto& v : p.inputs) names += (names.empty() ? "" : ", ") + v->name;
  throw Usage{fmt::format("the program has {} inputs ({}), got {}", p.inputs.size(), names,
                          inputs ? count : 0)};
}

void check_asserts(const ein_program& p, const std::function<Tensor(uint32_t)>& value) {
  for (const Effect& e : p.asserts) {
    std::vector<Tensor> kept;
    kept.reserve(e.pieces.size() + 1);
    auto keep = [&](uint32_t n) -> const Tensor& { return kept.emplace_back(value(n)); };
    if (auto failed = perform(e, keep, [](const std::string&) {})) throw *failed;
  }
}

// `outputs` or, where that is null, `result` gets the values.
void call_native(ein_program& p, const ein_tensor* inputs, const ein_tensor* outputs,
                 ein_result* result) {
  const Image& image = image_of(*p.native);
  constexpr size_t kFew = 16;  // up to this many inputs need no allocation
  View few[kFew];
  std::vector<View> many(image.inputs.size() > kFew ? image.inputs.size() : 0);
  std::span<View> views{many.empty() ? few : many.data(), image.inputs.size()};
  for (size_t i = 0; i < views.size(); ++i) {
    uint32_t from = p.from[i];
    views[i] =
        from == ein_program::kLoaded ? p.views[i] : view_of_given(inputs[from], *p.inputs[from]);
  }
  Borrowed borrowed(p.frames);
  Frame& frame = *borrowed;
  if (auto wrong = prepare(image, views, frame)) throw *wrong;
  std::vector<Tensor> values;
  if (result) values.resize(p.outputs.size());
  using Space = Image::Buffer::Space;
  for (size_t k = 0; k < p.outputs.size(); ++k) {
    uint32_t buffer = p.output_buffers[k];
    void* at = nullptr;
    if (outputs) {
      at = check_output(outputs[k], *p.outputs[k], frame.shape(image, buffer));
    } else {
      try {
        auto shape = frame.shape(image, buffer);
        values[k] = Tensor(image.buffers[buffer].dtype, {shape.begin(), shape.end()});
      } catch (const std::bad_alloc&) { throw out_of_memory(image, frame, buffer); }
      at = values[k].data();
    }
    if (image.buffers[buffer].space == Space::Output) frame.pointers[buffer] = at;
  }
  CallResult done = execute(image, entry_of(*p.native), views, frame);
  if (done.error) throw *done.error;
  for (size_t k = 0; k < p.outputs.size(); ++k) {
    uint32_t buffer = p.output_buffers[k];
    // Copied: an input or a constant that was asked for, or the same value a second time.
    void* at = outputs ? outputs[k].data : values[k].data();
    if (frame.pointers[buffer] == at) continue;
    size_t bytes = byte_size(frame.shape(image, buffer), image.buffers[buffer].dtype);
    if (bytes > 0) std::memcpy(at, frame.pointers[buffer], bytes);
  }
  check_asserts(p, [&](uint32_t buffer) { return value_of(image, frame, buffer); });
  if (result) result->values = std::move(values);
}

void call_evaluator(ein_program& p, const ein_tensor* inputs, const ein_tensor* outputs,
                    ein_result* result) {
  core::Inputs given = p.loaded;
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    View v = view_of_given(inputs[i], *p.inputs[i]);
    Tensor t(v.dtype, {v.shape.begin(), v.shape.end()});
    size_t bytes = byte_size(v.shape, v.dtype);
    if (bytes > 0) std::memcpy(t.data(), v.data, bytes);
    given[p.inputs[i]->name] = std::move(t);
  }
  std::lock_guard lock(p.evaluator);
  core::EvalResult done = core::evaluate(p.module, given, p.wanted);
  if (done.error) throw *done.error;
  check_asserts(p, [&](uint32_t family) { return done.values.at(core::FamilyId(family)); });
  std::vector<Tensor> values;
  for (size_t k = 0; k < p.outputs.size(); ++k) {
    const Tensor& t = done.values.at(p.outputs[k]->family);
    if (!outputs) {
      values.push_back(t);
      continue;
    }
    void* at = check_output(outputs[k], *p.outputs[k], t.shape());
    size_t bytes = byte_size(t.shape(), t.dtype());
    if (bytes > 0) std::memcpy(at, t.data(), bytes);
  }
  if (result) result->values = std::move(values);
}

ein_status call(ein_program* p, const ein_tensor* inputs, size_t count, const ein_tensor* outputs,
                ein_result* result, ein_error* error) {
  return guarded(
      [&] {
        try {
          check_counts(*p, inputs, count);
          if (p->native) {
            call_native(*p, inputs, outputs, result);
          } else {
            call_evaluator(*p, inputs, outputs, result);
          }
          if (error) error->code[0] = error->message[0] = '\0';
          return EIN_OK;
        } catch (const Usage& u) {
          report(error, "", u.why);
          return EIN_USAGE;
        } catch (const RuntimeError& e) {
          report(error, info(e.code).name, error_text(*p, e));
          return EIN_FAILED;
        }
      },
      error);
}

}  // namespace
}  // namespace ein::capi

extern "C" {

ein_status ein_call(ein_program* program, const ein_tensor* inputs, size_t count,
                    ein_result** result, ein_error* error) {
  if (!program || !result) {
    ein::capi::report(error, "", "ein_call needs a program, and somewhere to put the result");
    return EIN_USAGE;
  }
  *result = nullptr;
  auto* made = new (std::nothrow) ein_result;
  if (!made) {
    ein::capi::report(error, "E0807", "out of memory");
    return EIN_FAILED;
  }
  ein_status status = ein::capi::call(program, inputs, count, nullptr, made, error);
  if (status == EIN_OK) {
    try {
      for (ein::Tensor& t : made->values) {
        made->plain.push_back({static_cast<ein_dtype>(t.dtype()), static_cast<int32_t>(t.rank()),
                               t.shape().data(), t.data()});
      }
      *result = made;
      return EIN_OK;
    } catch (const std::bad_alloc&) {
      ein::capi::report(error, "E0807", "out of memory");
      status = EIN_FAILED;
    }
  }
  delete made;
  return status;
}

const ein_tensor* ein_result_output(const ein_result* result, size_t number) {
  return result && number < result->plain.size() ? &result->plain[number] : nullptr;
}

void ein_result_free(ein_result* result) { delete result; }

ein_status ein_call_into(ein_program* program, const ein_tensor* inputs, size_t count,
                         const ein_tensor* outputs, size_t output_count, ein_error* error) {
  if (!program) {
    ein::capi::report(error, "", "ein_call_into needs a program");
    return EIN_USAGE;
  }
  if (output_count != program->outputs.size() || (!outputs && output_count > 0)) {
    ein::capi::report(error, "",
                      fmt::format("the program has {} outputs, got memory for {}",
                                  program->outputs.size(), outputs ? output_count : 0));
    return EIN_USAGE;
  }
  ein_tensor none;
  return ein::capi::call(program, inputs, count, outputs ? outputs : &none, nullptr, error);
}

}  // extern "C"

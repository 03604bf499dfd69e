// Calls of compiled programs.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/render.h"
#include "capi/calls.h"
#include "capi/handles.h"
#include "capi/poll.h"
#include "core/eval.h"
#include "driver/run.h"
#include "runtime/pool.h"

namespace ein::capi {
namespace {

static_assert(static_cast<int>(EIN_F64) == static_cast<int>(DType::F64));

enum class Data : uint8_t { Needed, Optional };

View view_of_given(const ein_tensor& t, const Value& expected, Data needs = Data::Needed) {
  View out{static_cast<DType>(t.dtype), {}, t.data};
  if (t.rank < 0 || (t.rank > 0 && !t.shape)) {
    throw Usage{fmt::format("`{}` has no shape", expected.path)};
  }
  out.shape = {t.shape, static_cast<size_t>(t.rank)};
  bool empty = false;
  for (int64_t extent : out.shape) {
    if (extent < 0) throw Usage{fmt::format("`{}` has a negative extent", expected.path)};
    empty |= extent == 0;
  }
  if (!t.data && !empty && needs == Data::Needed) {
    throw Usage{fmt::format("`{}` has no data", expected.path)};
  }
  if (!ein_dtype_name(t.dtype)) throw Usage{fmt::format("`{}` has no dtype", expected.path)};
  return out;
}

// The caller's memory for a value, or null if the value does not fit there.
void* check_output(const ein_tensor& t, const Value& v, std::span<const int64_t> shape) {
  View given = view_of_given(t, v);
  if (given.dtype != v.dtype) {
    throw Usage{fmt::format("the memory for `{}` is {}, but its value is {}", v.path,
                            name_of(given.dtype), name_of(v.dtype))};
  }
  if (!std::equal(shape.begin(), shape.end(), given.shape.begin(), given.shape.end())) {
    throw Usage{fmt::format("the memory for `{}` has the extents [{}], but its value has [{}]",
                            v.path, fmt::join(given.shape, ", "), fmt::join(shape, ", "))};
  }
  return given.data;
}

}  // namespace

void check_counts(const ein_program& p, const ein_tensor* inputs, size_t count) {
  if (!p.ok) throw Usage{"the program did not compile"};
  if (count == p.inputs.size() && (inputs || count == 0)) return;
  std::string names;
  for (const auto& v : p.inputs) names += (names.empty() ? "" : ", ") + v->path;
  throw Usage{fmt::format("the program has {} inputs ({}), got {}", p.inputs.size(), names,
                          inputs ? count : 0)};
}

namespace {

void check_asserts(const std::vector<Effect>& asserts,
                   const std::function<Tensor(uint32_t)>& value) {
  for (const Effect& e : asserts) {
    std::vector<Tensor> kept;
    kept.reserve(e.pieces.size() + 1);
    auto keep = [&](uint32_t n) -> const Tensor& { return kept.emplace_back(value(n)); };
    if (auto failed = perform(e, keep, [](const std::string&) {})) throw *failed;
  }
}

// The views of all inputs of the image. Needs no allocation if there are few.
class Views {
 public:
  Views(const ein_program& p, const Way& way, const ein_tensor* inputs, Data needs = Data::Needed)
      : many_(way.from.size() > kFew ? way.from.size() : 0) {
    all_ = {many_.empty() ? few_ : many_.data(), way.from.size()};
    for (size_t i = 0; i < all_.size(); ++i) {
      uint32_t from = way.from[i];
      all_[i] = from == ein_program::kLoaded ? way.views[i]
                                             : view_of_given(inputs[from], *p.inputs[from], needs);
    }
  }
  std::span<View> all() { return all_; }

 private:
  static constexpr size_t kFew = 16;
  View few_[kFew];
  std::vector<View> many_;
  std::span<View> all_;
};

CallOptions call_options(const ein_program& p, const ein_call_options* options,
                         std::optional<CallMonitor>& monitor) {
  CallOptions out;
  bool asks = options && options->poll && (p.way.has_steps || !p.way.native);
  if (asks) out.monitor = &monitor.emplace(options->poll, options->poll_data);
  return out;
}

// False if the caller stopped it.
bool call_native(ein_program& p, Way& way, const ein_tensor* inputs, const Target& target,
                 const ein_call_options* options) {
  const Image& image = image_of(*way.native);
  Views views(p, way, inputs);
  ThreadLimit limit(p.threads);
  Borrowed borrowed(way.frames);
  Frame& frame = *borrowed;
  if (auto wrong = prepare(image, views.all(), frame)) throw *wrong;
  if (target.result) target.result->values.resize(p.outputs.size());
  using Space = Image::Buffer::Space;
  for (size_t k = 0; k < p.outputs.size(); ++k) {
    uint32_t buffer = way.output_buffers[k];
    void* at = nullptr;
    if (target.has(k)) {
      at = check_output(target.given[k], *p.outputs[k], frame.shape(image, buffer));
    } else {
      try {
        auto shape = frame.shape(image, buffer);
        target.result->values[k] =
            Tensor::uncleared(image.buffers[buffer].dtype, {shape.begin(), shape.end()});
      } catch (const std::bad_alloc&) { throw out_of_memory(image, frame, buffer); }
      at = target.at(k);
    }
    if (image.buffers[buffer].space == Space::Output) frame.pointers[buffer] = at;
  }
  std::optional<CallMonitor> monitor;
  CallResult done =
      execute(image, entry_of(*way.native), views.all(), frame, call_options(p, options, monitor));
  if (done.error) throw *done.error;
  if (done.stopped) return false;
  for (size_t k = 0; k < p.outputs.size(); ++k) {
    uint32_t buffer = way.output_buffers[k];
    // Outputs that must be copied: an input, a constant, or a value that was already given out.
    void* at = target.at(k);
    if (frame.pointers[buffer] == at) continue;
    size_t bytes = byte_size(frame.shape(image, buffer), image.buffers[buffer].dtype);
    if (bytes > 0) std::memcpy(at, frame.pointers[buffer], bytes);
  }
  check_asserts(way.asserts, [&](uint32_t buffer) { return value_of(image, frame, buffer); });
  return true;
}

}  // namespace

void copy_inputs(const ein_program& p, const ein_tensor* inputs, core::Inputs& to) {
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    if (!p.inputs[i]->needed && !inputs[i].data) continue;
    View v = view_of_given(inputs[i], *p.inputs[i]);
    Tensor t(v.dtype, {v.shape.begin(), v.shape.end()});
    size_t bytes = byte_size(v.shape, v.dtype);
    if (bytes > 0) std::memcpy(t.data(), v.data, bytes);
    to[p.inputs[i]->name] = std::move(t);
  }
}

namespace {

bool call_evaluator(ein_program& p, const ein_tensor* inputs, const Target& target,
                    const ein_call_options* options) {
  core::Inputs given = p.loaded;
  copy_inputs(p, inputs, given);
  auto lock = p.evaluator.take();
  std::optional<CallMonitor> monitor;
  core::Watch watch{call_options(p, options, monitor).monitor, {}};
  core::EvalResult done = core::evaluate(p.module, given, p.wanted, watch);
  if (done.error) throw *done.error;
  if (done.stopped) return false;
  check_asserts(p.asserts, [&](uint32_t family) { return done.values.at(core::FamilyId(family)); });
  if (target.result) target.result->values.resize(p.outputs.size());
  for (size_t k = 0; k < p.outputs.size(); ++k) {
    const Tensor& t = done.values.at(p.outputs[k]->family);
    if (!target.has(k)) {
      target.result->values[k] = t;
      continue;
    }
    void* at = check_output(target.given[k], *p.outputs[k], t.shape());
    size_t bytes = byte_size(t.shape(), t.dtype());
    if (bytes > 0) std::memcpy(at, t.data(), bytes);
  }
  return true;
}

// What ein_failure returns.
thread_local Failure t_failure;

}  // namespace

Failure& last_failure() { return t_failure; }

void keep_failure(const ein_program& p, const RuntimeError& e) {
  Span at = e.at;
  if (e.statement.valid() && !is_certain(p.module, p.wanted, at)) at = e.statement;
  Diagnostics diags;
  Diagnostic& d = diags.error(e.code, e.message);
  if (at.valid()) d.primary(at, "");
  t_failure = {render_human(d, p.sources), render_json(d, p.sources)};
}

namespace {

// The way that computes the program for the extents of these inputs.
Way& chosen_way(ein_program& p, const ein_tensor* inputs) {
  if (!p.cuts) return p.way;
  Views views(p, p.way, inputs);
  Borrowed borrowed(p.way.frames);
  Frame& frame = *borrowed;
  if (auto wrong = prepare(image_of(*p.way.native), views.all(), frame)) throw *wrong;
  return way_for(p, frame.params);
}

ein_status call(ein_program& p, const ein_tensor* inputs, size_t count, const Target& target,
                const ein_call_options* options, ein_error* error) {
  return reported(
      p,
      [&] {
        check_counts(p, inputs, count);
        if (!p.way.native) return call_evaluator(p, inputs, target, options);
        return call_native(p, chosen_way(p, inputs), inputs, target, options);
      },
      error);
}

}  // namespace

// Fills in how the caller sees the outputs.
void show_outputs(const ein_program& p, const Target& target) {
  for (size_t k = 0; k < p.outputs.size(); ++k) {
    if (target.has(k)) {
      target.result->plain.push_back(target.given[k]);
      continue;
    }
    Tensor& t = target.result->values[k];
    target.result->plain.push_back({static_cast<ein_dtype>(t.dtype()),
                                    static_cast<int32_t>(t.rank()), t.shape().data(), t.data()});
  }
}

namespace {

// Writes the extents of the outputs to `out`.
void extents_of(ein_program& p, const ein_tensor* inputs, int64_t* out) {
  if (!p.way.native) {
    throw Usage{
        "the extents of a program that only the reference evaluator can run are known when it "
        "runs"};
  }
  const Image& image = image_of(*p.way.native);
  Views views(p, p.way, inputs, Data::Optional);
  for (const Image::Param& param : image.params) {
    if (param.input == Image::Param::kNone || param.position != Image::Param::kItself) continue;
    if (views.all()[param.input].data) continue;
    throw Usage{fmt::format("`{}` is an extent, so its value is needed",
                            image.inputs[param.input].spelled())};
  }
  Borrowed borrowed(p.way.frames);
  Frame& frame = *borrowed;
  if (auto wrong = prepare(image, views.all(), frame)) throw *wrong;
  for (uint32_t buffer : p.way.output_buffers) {
    auto shape = frame.shape(image, buffer);
    out = std::copy(shape.begin(), shape.end(), out);
  }
}

}  // namespace
}  // namespace ein::capi

extern "C" {

ein_status ein_call_with(ein_program* program, const ein_tensor* inputs, size_t count,
                         const ein_call_options* options, ein_result** result, ein_error* error) {
  if (!program || !result) {
    ein::capi::report(error, "", "a call needs a program, and somewhere to put the result");
    return EIN_USAGE;
  }
  *result = nullptr;
  auto* made = new (std::nothrow) ein_result;
  if (!made) {
    ein::capi::report(error, "E0807", "out of memory");
    return EIN_FAILED;
  }
  ein::capi::Target target{options ? options->outputs : nullptr, made};
  ein_status status = ein::capi::call(*program, inputs, count, target, options, error);
  if (status == EIN_OK) {
    try {
      ein::capi::show_outputs(*program, target);
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

ein_status ein_call(ein_program* program, const ein_tensor* inputs, size_t count,
                    ein_result** result, ein_error* error) {
  return ein_call_with(program, inputs, count, nullptr, result, error);
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
  for (size_t k = 0; k < output_count; ++k) {
    if (outputs[k].rank >= 0) continue;
    ein::capi::report(error, "", fmt::format("`{}` has no shape", program->outputs[k]->path));
    return EIN_USAGE;
  }
  return ein::capi::call(*program, inputs, count, {outputs, nullptr}, nullptr, error);
}

ein_status ein_extents(ein_program* program, const ein_tensor* inputs, size_t count,
                       int64_t* extents, size_t room, ein_error* error) {
  size_t needed = 0;
  for (size_t k = 0; program && k < program->outputs.size(); ++k) {
    needed += program->outputs[k]->coords.size();
  }
  if (!program || room != needed || (!extents && needed > 0)) {
    ein::capi::report(error, "",
                      fmt::format("ein_extents needs a program and room for the {} extents of its "
                                  "outputs, got room for {}",
                                  needed, extents ? room : 0));
    return EIN_USAGE;
  }
  return ein::capi::reported(
      *program,
      [&] {
        ein::capi::check_counts(*program, inputs, count);
        ein::capi::extents_of(*program, inputs, extents);
        return true;
      },
      error);
}

const char* ein_failure(ein_diagnostics_format format) {
  const ein::capi::Failure& failure = ein::capi::last_failure();
  return format == EIN_JSON ? failure.json.c_str() : failure.text.c_str();
}

}  // extern "C"

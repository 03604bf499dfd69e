// The XLA target `einlang_call`, which runs any program on the CPU. The attribute `program` is the number under
// which jax.py has registered one; the attribute `numbers` has the inputs that are extents of ranges, in order.
// Buffers may have the coordinates of a batch before those of the program: all the same, or 1 where the slices
// are the same.
//
// XLA calls it on a thread of its own choice without the GIL, so there is no Python here.
#include "xla.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "native.h"
#include "slices.h"

namespace einlang {
namespace {

// What a call has to know of a program.
struct Target {
  ein_program* handle;
  struct Value {
    std::string path;
    ein_dtype dtype;
    int32_t rank;
    bool number;  // given by the attribute `numbers`
  };
  std::vector<Value> inputs, outputs;
};

struct Targets {
  std::shared_mutex mutex;
  std::unordered_map<int64_t, Target> all;  // entries stay where they are, and are never removed
};
Targets& targets() {
  static auto* made = new Targets;  // XLA may still call while the process ends
  return *made;
}

const Target* find(int64_t number) {
  std::shared_lock lock(targets().mutex);
  auto it = targets().all.find(number);
  return it == targets().all.end() ? nullptr : &it->second;
}

constexpr int kTypes[] = {xla::kPred, xla::kS8,  xla::kS16,  xla::kS32, xla::kS64,
                          xla::kU8,   xla::kF16, xla::kBf16, xla::kF32, xla::kF64};

struct Wrong {
  int code;
  std::string message;
};

const void* attribute(const xla::CallFrame& frame, std::string_view name, int type) {
  for (int64_t i = 0; i < frame.attributes.count; ++i) {
    const xla::Bytes& own = *frame.attributes.names[i];
    if (std::string_view(own.data, own.length) != name) continue;
    if (frame.attributes.types[i] == type) return frame.attributes.values[i];
  }
  throw Wrong{xla::kInvalidArgument, "einlang_call needs the attribute " + std::string(name)};
}

// A number as a value of the type that the input has.
void put(int64_t value, ein_dtype dtype, int64_t& scratch) {
  std::memcpy(&scratch, &value,
              ein_dtype_size(dtype));  // little-endian; jax.py has checked the range
}

constexpr size_t kFew = 16;

struct Arguments {
  Small<ein_tensor, kFew> tensors;
  Small<int64_t, kFew> steps;
  Arguments(size_t count, size_t levels) : tensors(count), steps(count * levels) {}
  Slices slices() { return {tensors.all(), steps.all()}; }
};

const xla::Buffer& buffer_of(const xla::Values& values, int64_t i) {
  if (values.types[i] != xla::kBuffer) {
    throw Wrong{xla::kInvalidArgument, "einlang_call takes and gives arrays only"};
  }
  return *static_cast<const xla::Buffer*>(values.values[i]);
}

void take(const xla::Buffer& b, const Target::Value& v, std::span<const int64_t> batch,
          ein_tensor& out, std::span<int64_t> steps) {
  size_t levels = batch.size();
  if (b.dtype != kTypes[v.dtype] || b.rank != v.rank + static_cast<int64_t>(levels)) {
    throw Wrong{xla::kInvalidArgument,
                "the buffer for `" + v.path + "` does not have the type and rank of the program"};
  }
  out = {v.dtype, v.rank, b.dims + levels, b.data};
  dense_steps({b.dims, levels}, bytes_of(out), steps);
  for (size_t k = 0; k < levels; ++k) {
    if (b.dims[k] == batch[k]) continue;
    if (b.dims[k] != 1) {
      throw Wrong{xla::kInvalidArgument, "the buffer for `" + v.path + "` has a batch of its own"};
    }
    steps[k] = 0;
  }
}

// The coordinates of the batch: results have all of them.
std::span<const int64_t> batch_of(const xla::CallFrame& frame, const Target& target) {
  if (frame.results.count != static_cast<int64_t>(target.outputs.size()) ||
      target.outputs.empty()) {
    throw Wrong{xla::kInvalidArgument, "einlang_call got another number of results than outputs"};
  }
  const xla::Buffer& first = buffer_of(frame.results, 0);
  int64_t levels = first.rank - target.outputs[0].rank;
  if (levels < 0) throw Wrong{xla::kInvalidArgument, "a result has too few coordinates"};
  return {first.dims, static_cast<size_t>(levels)};
}

void execute(const xla::CallFrame& frame) {
  const auto& id = *static_cast<const xla::Scalar*>(attribute(frame, "program", xla::kScalar));
  int64_t number = 0;
  if (id.dtype == xla::kS64) std::memcpy(&number, id.value, sizeof number);
  const Target* target = find(number);
  if (!target) {
    throw Wrong{xla::kFailedPrecondition,
                "this computation calls an Einlang program that this process has not compiled: "
                "call einlang.jax.function with the program first"};
  }
  const auto& numbers = *static_cast<const xla::Array*>(attribute(frame, "numbers", xla::kArray));
  std::span<const int64_t> batch = batch_of(frame, *target);
  size_t levels = batch.size();
  Arguments inputs(target->inputs.size(), levels), outputs(target->outputs.size(), levels);
  Small<int64_t, kFew> scratch(target->inputs.size());
  size_t numbers_taken = 0;
  int64_t taken = 0;
  for (size_t i = 0; i < target->inputs.size(); ++i) {
    const Target::Value& v = target->inputs[i];
    std::span<int64_t> steps = inputs.steps.all().subspan(i * levels, levels);
    if (!v.number) {
      if (taken == frame.arguments.count) {
        throw Wrong{xla::kInvalidArgument, "einlang_call got too few arguments"};
      }
      take(buffer_of(frame.arguments, taken++), v, batch, inputs.tensors[i], steps);
      continue;
    }
    if (numbers_taken == numbers.length || numbers.dtype != xla::kS64) {
      throw Wrong{xla::kInvalidArgument, "einlang_call got too few numbers"};
    }
    put(static_cast<const int64_t*>(numbers.data)[numbers_taken++], v.dtype, scratch[i]);
    inputs.tensors[i] = {v.dtype, 0, nullptr, &scratch[i]};
    std::fill(steps.begin(), steps.end(), 0);
  }
  for (size_t i = 0; i < target->outputs.size(); ++i) {
    take(buffer_of(frame.results, static_cast<int64_t>(i)), target->outputs[i], batch,
         outputs.tensors[i], outputs.steps.all().subspan(i * levels, levels));
  }
  ein_error error;
  ein_status status = call_slices(target->handle, batch, inputs.slices(), outputs.slices(), nullptr,
                                  nullptr, &error);
  if (status == EIN_OK) return;
  std::string why = ein_failure(EIN_TEXT);
  throw Wrong{status == EIN_INTERNAL ? xla::kInternal : xla::kAborted,
              why.empty() ? error.message : why};
}

xla::Error* failed(const xla::CallFrame& frame, int code, const char* message) {
  xla::ErrorArguments arguments{sizeof arguments, nullptr, message, code};
  return frame.api->make_error(&arguments);
}

xla::Error* handle(xla::CallFrame* frame) {
  // XLA asks for the version when the target is registered.
  if (xla::Extension* e = frame->extensions; e && e->type == xla::kMetadata) {
    xla::Metadata& metadata = *reinterpret_cast<xla::MetadataExtension*>(e)->metadata;
    metadata.version.major = xla::kMajor;
    metadata.version.minor = xla::kMinor;
    metadata.traits = 0;
    return nullptr;
  }
  try {
    execute(*frame);
    return nullptr;
  } catch (const Wrong& w) {
    return failed(*frame, w.code, w.message.c_str());
  } catch (const std::exception& e) { return failed(*frame, xla::kInternal, e.what()); }
}

// `numbers`: the positions of inputs that are given as numbers.
void add_target(int64_t number, nb::handle program, nb::set numbers) {
  const Program& p = *nb::inst_ptr<Program>(program);
  Target target{p.handle, {}, {}};
  auto add = [](std::vector<Target::Value>& to, const Program::Value& v, bool is_number) {
    to.push_back({nb::cast<nb::str>(v.name).c_str(), v.dtype, v.rank, is_number});
  };
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    add(target.inputs, p.inputs[i], numbers.contains(nb::int_(i)));
  }
  for (const Program::Value& v : p.outputs) add(target.outputs, v, false);
  std::unique_lock lock(targets().mutex);
  if (!targets().all.emplace(number, std::move(target)).second) return;
  program.inc_ref();  // compiled computations may call it until the process ends
}

}  // namespace

void define_xla(nb::module_& m) {
  m.def("xla_target",
        [] { return nb::steal(PyCapsule_New(reinterpret_cast<void*>(handle), nullptr, nullptr)); });
  m.def("xla_add", &add_target, nb::arg("number"), nb::arg("program"), nb::arg("numbers"));
}

}  // namespace einlang

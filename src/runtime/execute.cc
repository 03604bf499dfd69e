#include "runtime/execute.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "base/check.h"
#include "runtime/device_run.h"
#include "runtime/exchange.h"
#include "runtime/layout.h"
#include "runtime/pool.h"
#include "runtime/state.h"
#include "runtime/team.h"

namespace ein {
namespace {

std::string show(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

int64_t integer_of(const View& v) {
  switch (v.dtype) {
    case DType::I8: return *static_cast<const int8_t*>(v.data);
    case DType::I16: return *static_cast<const int16_t*>(v.data);
    case DType::I32: return *static_cast<const int32_t*>(v.data);
    case DType::I64: return *static_cast<const int64_t*>(v.data);
    case DType::U8: return *static_cast<const uint8_t*>(v.data);
    default: EIN_UNREACHABLE("an extent that is not an integer");
  }
}

std::optional<RuntimeError> wrong_input(const Image::Input& input, const View& v) {
  if (!v.given) {
    return RuntimeError{Code::E0801, "input `" + input.name + "` was not given a value",
                        input.span};
  }
  if (v.shape.size() != input.coords.size()) {
    return RuntimeError{Code::E0802,
                        fmt::format("input `{}` needs {} coordinates, but its value has shape {}",
                                    input.name, input.coords.size(), show(v.shape)),
                        input.span};
  }
  if (v.dtype != input.dtype) {
    return RuntimeError{Code::E0802,
                        fmt::format("input `{}` is declared as {}, but its value is {}", input.name,
                                    name_of(input.dtype), name_of(v.dtype)),
                        input.span};
  }
  return std::nullopt;
}

// " (n is 2, m is 3)": the extents that a failed constraint mentions.
std::string values(const Image& image, const Image::Constraint& c, const Frame& frame) {
  std::string out;
  for (uint32_t p : c.params) {
    out +=
        fmt::format("{}{} is {}", out.empty() ? " (" : ", ", image.params[p].name, frame.params[p]);
  }
  return out.empty() ? out : out + ")";
}

std::optional<RuntimeError> bind_params(const Image& image, std::span<const View> inputs,
                                        Frame& frame) {
  frame.params.assign(image.params.size(), -1);
  for (size_t i = 0; i < image.inputs.size(); ++i) {
    if (auto wrong = wrong_input(image.inputs[i], inputs[i])) return wrong;
  }
  for (size_t p = 0; p < image.params.size(); ++p) {
    const Image::Param& param = image.params[p];
    if (param.input == Image::Param::kNone) continue;
    const View& v = inputs[param.input];
    if (param.position != Image::Param::kItself) {
      frame.params[p] = v.shape[param.position];
      continue;
    }
    frame.params[p] = integer_of(v);
    if (frame.params[p] < 0) {
      const Image::Input& input = image.inputs[param.input];
      return RuntimeError{
          Code::E0802,
          fmt::format("input `{}` is {}, but it bounds a range and must not be negative",
                      input.name, frame.params[p]),
          input.span};
    }
  }
  return std::nullopt;
}

std::optional<RuntimeError> check_entry(const Image& image, std::span<const View> inputs,
                                        const Frame& frame) {
  for (size_t i = 0; i < image.inputs.size(); ++i) {
    const Image::Input& input = image.inputs[i];
    for (size_t k = 0; k < input.coords.size(); ++k) {
      int64_t want = evaluate(input.coords[k].extent, frame.params.data());
      if (want == inputs[i].shape[k]) continue;
      const std::string& name = input.coords[k].name;
      return RuntimeError{
          Code::E0802,
          fmt::format("input `{}` has extent {} along {}, but {} is needed there (shape {})",
                      input.name, inputs[i].shape[k],
                      name.empty() ? "coordinate " + std::to_string(k) : "`" + name + "`", want,
                      show(inputs[i].shape)),
          input.span};
    }
  }
  for (const Image::Constraint& c : image.constraints) {
    // A constraint that uses the extent of an input which nothing needs is not checked.
    bool bound = std::all_of(c.params.begin(), c.params.end(),
                             [&](uint32_t p) { return frame.params[p] >= 0; });
    if (bound && evaluate(c.cond, frame.params.data()) == 0) {
      return RuntimeError{Code::E0805, c.message + values(image, c, frame), c.span};
    }
  }
  return std::nullopt;
}

RuntimeError why_stopped(const Image& image, const NativeFailure& failure, const Frame& frame) {
  const Image::Site& site = image.sites[static_cast<size_t>(failure.site)];
  switch (site.kind) {
    case Image::Site::Kind::DivideByZero:
      return {Code::E0806, "integer division by zero", site.span, site.statement};
    case Image::Site::Kind::Shift:
      return {Code::E0806, shift_text(site.type, failure.values[0]), site.span, site.statement};
    case Image::Site::Kind::Overflow: {
      std::string what = site.arity == 1 ? fmt::format("{}({})", site.name, failure.values[0])
                                         : fmt::format("{} {} {}", failure.values[0], site.name,
                                                       failure.values[1]);
      return {Code::E0809,
              fmt::format("integer overflow: {} does not fit in {}", what, name_of(site.type)),
              site.span, site.statement};
    }
    case Image::Site::Kind::TooDeep: return {Code::E0810, site.name, site.span, {}};
    case Image::Site::Kind::Call:
    case Image::Site::Kind::Rows:
    case Image::Site::Kind::Fetch:
    case Image::Site::Kind::Move:
    case Image::Site::Kind::Step: EIN_UNREACHABLE("a stop is no failure");
    case Image::Site::Kind::NotFinite: return {Code::E0812, site.name, site.span, {}};
    case Image::Site::Kind::Bounds: break;
  }
  std::vector<int64_t> extents;
  for (const Formula& f : site.extents) {
    extents.push_back(std::max<int64_t>(0, evaluate(f, frame.params.data())));
  }
  std::vector<int64_t> at(failure.values, failure.values + extents.size());
  return {Code::E0803,
          fmt::format("`{}` has no cell at [{}]: its extents are [{}]", site.name,
                      fmt::join(at, ", "), fmt::join(extents, ", ")),
          site.span, site.statement};
}

// What a poll needs to know about the run, and its answer if it stops the run.
struct Polled {
  const Image& image;
  const Frame& frame;
  const CallOptions& options;
  std::span<const View> inputs;
  DeviceRun* device = nullptr;
  std::optional<Stopped> stopped = {};
  std::optional<RuntimeError> error = {};  // from a file that is read while the program runs
};

// A step of a member of the running recurrence. A buffer that keeps only the last few steps has
// step t at t modulo their number.
std::optional<Tensor> kept_step(const Polled& run, const Image::Site& site, const Moment& now,
                                const std::string& family, int64_t at) {
  for (const Image::Site::Member& member : site.members) {
    const Image::Buffer& b = run.image.buffers[member.buffer];
    if (b.name != family || b.space == Image::Buffer::Space::Row) continue;
    auto extents = run.frame.shape(run.image, member.buffer);
    std::vector<int64_t> shape(extents.begin(), extents.end());
    int64_t kept = shape[member.position], last = now.last();
    int64_t back = site.downward ? at - last : last - at;
    bool there = at >= 0 && at < evaluate(member.extent, run.frame.params.data());
    if (!there || back < 0 || back >= kept) return std::nullopt;
    return slice(run.frame.pointers[member.buffer], b.dtype, shape, member.position, at % kept);
  }
  return std::nullopt;
}

int32_t fetch(Polled& run, const Image::Site& site, int64_t first) {
  const uint32_t input = run.image.buffers[site.members[0].buffer].input;
  run.error = run.inputs[input].rows->fetch(first);
  if (!run.error) return 0;
  run.error->at = run.image.inputs[input].span;
  return 1;
}

// The cells of a step of a buffer, or of all of it, as dense memory of its own.
struct Dense {
  void* at;
  std::vector<int64_t> shape;
  DType dtype;
  int64_t outer = 1, inner = 1;  // of a step: how many pieces it has, and the bytes of each
  int64_t kept = 1, step = 0;
  Tensor copy = {};

  Dense(const Polled& run, const Image::Site::Member& m, int64_t step_at)
      : at(run.frame.pointers[m.buffer]), dtype(run.image.buffers[m.buffer].dtype) {
    auto extents = run.frame.shape(run.image, m.buffer);
    shape.assign(extents.begin(), extents.end());
    if (m.position == Image::Site::kWhole) return;
    kept = shape[m.position];
    step = kept > 0 ? step_at % kept : 0;
    for (size_t k = 0; k < shape.size(); ++k)
      (k < m.position ? outer : inner) *= k == m.position ? 1 : shape[k];
    inner *= static_cast<int64_t>(size_of(dtype));
    shape.erase(shape.begin() + m.position);
    if (outer == 1) {
      at = static_cast<std::byte*>(at) + step * inner;
    } else {
      copy = Tensor::uncleared(dtype, shape);
    }
  }
  void* memory() { return outer == 1 ? at : copy.data(); }
  std::byte* piece(int64_t k) const {
    return static_cast<std::byte*>(at) + (k * kept + step) * inner;
  }
  void read() {
    for (int64_t k = 0; k < outer && outer != 1; ++k)
      std::memcpy(copy.as<std::byte>() + k * inner, piece(k), static_cast<size_t>(inner));
  }
  void write() {
    for (int64_t k = 0; k < outer && outer != 1; ++k)
      std::memcpy(piece(k), copy.as<std::byte>() + k * inner, static_cast<size_t>(inner));
  }
};

int32_t move(Polled& run, const Image::Site& site, int64_t step) {
  EIN_CHECK(run.options.exchange, "a program of several ranks runs alone");
  const Image::Site::Member& target = site.members[1];
  if (step < 0) {
    const int64_t steps = run.frame.shape(run.image, target.buffer)[target.position];
    int32_t stops = 0;
    for (int64_t t = 0; t < steps && !stops; ++t) stops = move(run, site, t);
    return stops;
  }
  Dense from(run, site.members[0], step), to(run, site.members[1], step);
  from.read();
  run.error = run.options.exchange->move(site.move, {from.dtype, from.shape, from.memory()},
                                         {to.dtype, to.shape, to.memory()});
  if (!run.error) to.write();
  return run.error ? 1 : 0;
}

int32_t poll(void* state, int64_t number, int64_t next, int64_t steps) {
  ApartFromTeam apart;
  auto& run = *static_cast<Polled*>(state);
  const Image::Site& site = run.image.sites[static_cast<size_t>(number)];
  if (site.kind == Image::Site::Kind::Move) return move(run, site, next);
  if (site.kind == Image::Site::Kind::Fetch) return fetch(run, site, next);
  int64_t done = site.downward ? steps - 1 - next : next;
  Moment now{site.name, site.coordinate, done, steps, next, {}};
  now.by_rows = site.kind == Image::Site::Kind::Rows;
  now.downward = site.downward;
  if (!run.options.monitor->cares(now)) return 0;
  if (run.device && run.device->fetch_all(site.kernel) != 0) return 1;
  now.step_of = [&](const std::string& family, int64_t at) {
    return kept_step(run, site, now, family, at);
  };
  now.state = [&] {
    return pack(keep_state(run.image, run.frame, static_cast<size_t>(number), next, steps));
  };
  if (run.options.observe) run.options.observe(now);
  bool stops = run.options.monitor->poll(now);
  now.step_of = nullptr;
  now.state = nullptr;
  if (!stops) return 0;
  run.stopped = std::move(now);
  return 1;
}

// Temporary buffers share memory where possible; every thread has its own rows. Outputs that have
// no memory yet live from beginning to end.
void lay_out_buffers(const Image& image, int workers, Frame& frame) {
  using Space = Image::Buffer::Space;
  std::vector<size_t> items;
  std::vector<Lifetime> lives;
  frame.placed.clear();
  for (uint32_t i = 0; i < image.buffers.size(); ++i) {
    const Image::Buffer& b = image.buffers[i];
    bool homeless = b.space == Space::Output && !frame.pointers[i];
    if (b.space != Space::Temp && b.space != Space::Row && !homeless) continue;
    for (int w = 0; w < (b.space == Space::Row ? workers : 1); ++w) {
      items.push_back(byte_size(frame.shape(image, i), b.dtype));
      lives.push_back(homeless ? Lifetime{0, ~uint32_t{0}} : b.lives);
      frame.placed.push_back({i, w, 0});
    }
  }
  Layout layout = lay_out(items, lives);
  for (size_t k = 0; k < items.size(); ++k) frame.placed[k].at = layout.at[k];
  if (layout.bytes > frame.block_bytes || !frame.block.at()) {
    frame.block_bytes = 0;
    frame.block = Block();
    frame.block = Block(layout.bytes);
    frame.block_bytes = layout.bytes;
  }
  frame.laid_out_for = frame.dims;
  frame.workers = workers;
}

// The temporary buffer or row that needs the most memory, for the message.
size_t largest(const Image& image, const Frame& frame) {
  size_t out = 0;
  double most = -1;
  for (size_t i = 0; i < image.buffers.size(); ++i) {
    if (frame.pointers[i]) continue;
    double bytes = static_cast<double>(size_of(image.buffers[i].dtype));
    for (int64_t extent : frame.shape(image, i)) bytes *= static_cast<double>(extent);
    if (bytes > most) {
      most = bytes;
      out = i;
    }
  }
  return out;
}

std::optional<RuntimeError> place(const Image& image, std::span<const View> inputs, int workers,
                                  Frame& frame) {
  using Space = Image::Buffer::Space;
  for (size_t i = 0; i < image.buffers.size(); ++i) {
    const Image::Buffer& b = image.buffers[i];
    if (b.space == Space::Input) frame.pointers[i] = inputs[b.input].data;
    if (b.space == Space::Constant) frame.pointers[i] = const_cast<void*>(b.constant.data());
  }
  if (frame.workers != workers || frame.laid_out_for != frame.dims) {
    try {
      frame.workers = 0;
      lay_out_buffers(image, workers, frame);
    } catch (const std::bad_alloc&) { return out_of_memory(image, frame, largest(image, frame)); }
  }
  for (const Frame::Placed& p : frame.placed) {
    if (p.worker == 0) frame.pointers[p.buffer] = frame.block.at() + p.at;
  }
  if (workers == 1) return std::nullopt;
  frame.by_worker.resize(static_cast<size_t>(workers));
  for (auto& own : frame.by_worker) own.assign(frame.pointers.begin(), frame.pointers.end());
  for (const Frame::Placed& p : frame.placed) {
    frame.by_worker[static_cast<size_t>(p.worker)][p.buffer] = frame.block.at() + p.at;
  }
  // Buffers other than rows are the same for all threads.
  for (const Frame::Placed& p : frame.placed) {
    if (image.buffers[p.buffer].space == Space::Row) continue;
    for (auto& own : frame.by_worker) own[p.buffer] = frame.pointers[p.buffer];
  }
  return std::nullopt;
}

}  // namespace

View view_of(const Tensor& t) { return {t.dtype(), t.shape(), const_cast<void*>(t.data())}; }

size_t byte_size(std::span<const int64_t> shape, DType dtype) {
  size_t bytes = size_of(dtype);
  for (int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(extent), &bytes) ||
        bytes > SIZE_MAX / 4) {
      throw std::bad_alloc();
    }
  }
  return bytes;
}

Tensor value_of(const Image& image, const Frame& frame, uint32_t buffer) {
  auto shape = frame.shape(image, buffer);
  Tensor out(image.buffers[buffer].dtype, {shape.begin(), shape.end()});
  size_t bytes = byte_size(shape, out.dtype());
  if (bytes > 0) std::memcpy(out.data(), frame.pointers[buffer], bytes);
  return out;
}

RuntimeError out_of_memory(const Image& image, const Frame& frame, size_t buffer) {
  const Image::Buffer& b = image.buffers[buffer];
  return {Code::E0807,
          fmt::format("out of memory: `{}` has the extents {}", b.name,
                      show(frame.shape(image, buffer))),
          b.span};
}

std::optional<RuntimeError> prepare(const Image& image, std::span<const View> inputs,
                                    Frame& frame) {
  EIN_CHECK(inputs.size() == image.inputs.size(), "a view for every input");
  if (auto wrong = bind_params(image, inputs, frame)) return wrong;
  try {
    if (auto wrong = check_entry(image, inputs, frame)) return wrong;
    frame.dims.clear();
    frame.first.clear();
    for (const Image::Buffer& b : image.buffers) {
      frame.first.push_back(frame.dims.size());
      for (const Formula& dim : b.dims) {
        frame.dims.push_back(std::max<int64_t>(0, evaluate(dim, frame.params.data())));
      }
    }
  } catch (const RuntimeError& e) { return e; }
  frame.pointers.assign(image.buffers.size(), nullptr);
  return std::nullopt;
}

namespace {

// Machine code relies on outputs not overlapping its inputs: if a caller wanted the new state where
// the old one is, it would get a mix of both.
std::optional<RuntimeError> overlapping(const Image& image, std::span<const View> inputs,
                                        Frame& frame) {
  auto& areas = frame.areas;
  areas.clear();
  auto add = [&](const std::string& name, const void* at, size_t bytes, bool output) {
    auto from = reinterpret_cast<uintptr_t>(at);
    if (at && bytes > 0) areas.push_back({&name, from, from + bytes, output});
  };
  for (uint32_t i = 0; i < image.buffers.size(); ++i) {
    const Image::Buffer& b = image.buffers[i];
    if (b.space != Image::Buffer::Space::Output) continue;
    add(b.name, frame.pointers[i], byte_size(frame.shape(image, i), b.dtype), true);
  }
  if (areas.empty()) return std::nullopt;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].rows) continue;  // memory that only we know
    add(image.inputs[i].name, inputs[i].data, byte_size(inputs[i].shape, inputs[i].dtype), false);
  }
  std::sort(areas.begin(), areas.end(),
            [](const auto& a, const auto& b) { return a.from < b.from; });
  // Those that reach furthest so far: of all areas, and of outputs.
  const Frame::Area *reaching = nullptr, *written = nullptr;
  for (const Frame::Area& a : areas) {
    const Frame::Area* other = a.output ? reaching : written;
    if (other && other->to > a.from) {
      const Frame::Area &to = a.output ? a : *other, &from = a.output ? *other : a;
      return RuntimeError{
          Code::E0802,
          fmt::format("the memory for `{}` overlaps that of {} `{}`: a value needs memory "
                      "of its own",
                      *to.name, from.output ? "output" : "input", *from.name)};
    }
    if (!reaching || a.to > reaching->to) reaching = &a;
    if (a.output && (!written || a.to > written->to)) written = &a;
  }
  return std::nullopt;
}

}  // namespace

CallResult execute(const Image& image, NativeEntry entry, std::span<const View> inputs,
                   Frame& frame, const CallOptions& options) {
  CallResult out;
  int workers = threads();
  if (auto wrong = overlapping(image, inputs, frame)) {
    out.error = std::move(wrong);
    return out;
  }
  if (auto wrong = place(image, inputs, workers, frame)) {
    out.error = std::move(wrong);
    return out;
  }
  NativeFailure failure;
  static const int32_t asleep = 0;
  Polled polled{image, frame, options, inputs};
  static_assert(sizeof(options.monitor->wake) == sizeof(int32_t));
  const auto* wake =
      options.monitor ? reinterpret_cast<const int32_t*>(&options.monitor->wake) : &asleep;
  NativeContext context{frame.pointers.data(),
                        frame.dims.data(),
                        frame.params.data(),
                        &failure,
                        native_functions(level_of(image.processor)),
                        wake,
                        poll,
                        &polled};
  std::optional<DeviceRun> device;
  if (!image.ptx.empty()) {
    device.emplace(image, frame, &failure);
    if (device->wrong()) {
      out.error = device->wrong();
      return out;
    }
    context.device = polled.device = &*device;
  }
  if (options.resume) {
    if (auto why = put_back(*options.resume, image, frame, context)) {
      out.refused = *why;
      return out;
    }
  }
  if (workers > 1) {
    frame.failures.resize(static_cast<size_t>(workers));
    frame.contexts.assign(static_cast<size_t>(workers), context);
    for (size_t w = 0; w < frame.contexts.size(); ++w) {
      frame.failures[w].caller = -1;
      frame.contexts[w].buffers = frame.by_worker[w].data();
      frame.contexts[w].failure = &frame.failures[w];
    }
    context.workers = frame.contexts.data();
  }
  std::vector<int64_t> times;
  if (options.kernel_times) {
    times.resize(1 + image.kernels);
    context.times = times.data();
    times[0] = clock_nanoseconds();
  }
  bool finished = entry(&context) == 0;
  // A failed launch came before anything that the host did afterwards.
  if (device && !polled.stopped && !polled.error) finished &= device->finish();
  if (options.kernel_times) options.kernel_times->assign(times.begin() + 1, times.end());
  if (finished) return out;
  if (device && device->wrong()) {
    out.error = device->wrong();
    return out;
  }
  if (polled.error) {
    out.error = std::move(polled.error);
    return out;
  }
  if (polled.stopped) {
    out.stopped = std::move(polled.stopped);
    out.step = image.sites[static_cast<size_t>(failure.site)].step;
    return out;
  }
  out.error = why_stopped(image, failure, frame);
  const Image::Site& site = image.sites[static_cast<size_t>(failure.site)];
  if (site.kind == Image::Site::Kind::NotFinite) {
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    int64_t kind = failure.values[site.arity];
    out.not_finite = {site.name,
                      {failure.values, failure.values + site.arity},
                      kind == 0   ? std::numeric_limits<double>::quiet_NaN()
                      : kind == 1 ? kInfinite
                                  : -kInfinite};
  }
  if (failure.caller >= 0) {
    out.error->statement = image.sites[static_cast<size_t>(failure.caller)].statement;
  }
  return out;
}

}  // namespace ein

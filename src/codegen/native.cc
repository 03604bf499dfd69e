#include "codegen/native.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <new>
#include <set>

#include "base/check.h"
#include "base/clock.h"
#include "codegen/cache_key.h"
#include "codegen/jit.h"
#include "core/eval_cell.h"
#include "core/rewrite.h"
#include "runtime/execute.h"

namespace ein {

class Native {
 public:
  Image image;
  std::unique_ptr<codegen::Code> code;
  std::vector<std::pair<std::string, double>> times;
  std::optional<Lowered> lowered;  // only where it was compiled in this process
};

namespace {

bool supported(DType t) { return t != DType::Str; }

// Keeps only what was computed before the step of the schedule that was stopped.
void keep_finished(const Image& image, uint32_t step, NativeResult& out) {
  for (const Image::Buffer& b : image.buffers) {
    if (b.step >= step) out.values.erase(core::FamilyId(b.family));
  }
}

// Begins to read a file of which few rows are held at a time.
std::optional<RuntimeError> open_rows(const RowFile& file, const Image::Input& input,
                                      std::vector<std::unique_ptr<RowReader>>& readers,
                                      std::vector<View>& views) {
  auto opened = RowReader::open(file, input.window);
  if (auto* e = std::get_if<RuntimeError>(&opened)) {
    e->at = input.span;
    return *e;
  }
  readers.push_back(std::move(std::get<std::unique_ptr<RowReader>>(opened)));
  RowReader& rows = *readers.back();
  views.push_back({file.header.dtype, file.header.shape, rows.window(), true, &rows});
  return std::nullopt;
}

// What a cell is that stopped the run, and what it was computed from, as far as that is kept.
std::string why_not_finite(const Native& n, const Frame& frame, const CallResult::NotFinite& cell) {
  EIN_CHECK(n.lowered, "a program from the cache has no formulas");
  const plan::Plan& plan = n.lowered->plan;
  std::unordered_map<core::FamilyId, uint32_t> buffers;
  for (uint32_t i = 0; i < n.image.buffers.size(); ++i) {
    buffers.emplace(core::FamilyId(n.image.buffers[i].family), i);
  }
  core::ReadCell read = [&](core::FamilyId family,
                            std::vector<int64_t> at) -> std::optional<core::Scalar> {
    auto it = buffers.find(family);
    if (it == buffers.end() || !frame.pointers[it->second]) return std::nullopt;
    auto ring = plan.rings.find(family);
    if (ring != plan.rings.end()) at[ring->second.position] %= ring->second.kept;
    auto shape = frame.shape(n.image, it->second);
    int64_t offset = 0;
    for (size_t k = 0; k < at.size(); ++k) {
      if (at[k] < 0 || at[k] >= shape[k]) return std::nullopt;
      offset = offset * shape[k] + at[k];
    }
    const Image::Buffer& b = n.image.buffers[it->second];
    Tensor one(b.dtype, {});
    std::memcpy(one.data(),
                static_cast<const std::byte*>(frame.pointers[it->second]) +
                    static_cast<size_t>(offset) * size_of(b.dtype),
                size_of(b.dtype));
    if (is_float(b.dtype)) return core::Scalar{.f = one.get_float(0)};
    return core::Scalar{.i = one.get_int(0)};
  };
  core::FamilyId family = plan.module.find(intern(cell.family));
  return core::not_finite_text(plan.module, family, cell.at, cell.value, frame.params, read);
}

void execute(Native& n, const core::Inputs& inputs, const core::Watch& watch,
             std::vector<int64_t>* kernel_times, const std::map<std::string, RowFile>& files,
             NativeResult& out) {
  using Space = Image::Buffer::Space;
  std::vector<View> views;
  std::vector<std::unique_ptr<RowReader>> readers;
  for (const Image::Input& input : n.image.inputs) {
    if (input.window > 0) {
      out.error = open_rows(files.at(input.name), input, readers, views);
      if (out.error) return;
      continue;
    }
    auto it = inputs.find(input.name);
    views.push_back(it == inputs.end() ? View{.given = false} : view_of(it->second));
  }
  Frame frame;
  out.error = prepare(n.image, views, frame);
  if (out.error) return;
  out.params = frame.params;
  CallOptions options{watch.monitor, watch.observe, kernel_times, watch.resume, watch.exchange};
  for (uint32_t i = 0; i < n.image.buffers.size(); ++i) {
    const Image::Buffer& b = n.image.buffers[i];
    core::FamilyId family(b.family);
    auto shape = frame.shape(n.image, i);
    if (b.wanted && b.space == Space::Input) out.values[family] = inputs.at(b.name);
    if (b.wanted && b.space == Space::Constant) out.values[family] = b.constant;
    if (b.space != Space::Output) continue;
    try {
      Tensor& t = out.values[family] = Tensor::uncleared(b.dtype, {shape.begin(), shape.end()});
      frame.pointers[i] = t.data();
    } catch (const std::bad_alloc&) {
      out.error = out_of_memory(n.image, frame, i);
      return;
    }
  }
  CallResult result = execute(n.image, n.code->entry, views, frame, options);
  out.error = std::move(result.error);
  out.stopped = std::move(result.stopped);
  out.refused = std::move(result.refused);
  if (result.not_finite) out.error->message = why_not_finite(n, frame, *result.not_finite);
  if (out.stopped) keep_finished(n.image, result.step, out);
}

}  // namespace

std::string limitation(const plan::Plan& plan) {
  const core::Module& m = plan.module;
  std::string why;
  std::set<core::FunctionId> seen;
  std::function<void(core::FamilyId, core::ExprId)> look = [&](core::FamilyId id, core::ExprId e) {
    core::for_each_node(m, e, [&](core::ExprId x) {
      if (const auto* call = core::get_if<core::Call>(m, x)) {
        if (seen.insert(call->function).second) look(id, m.functions[call->function].body);
      }
      if (!supported(m[x].type) && why.empty()) {
        why = fmt::format("`{}` uses {}, which native code does not support yet", text(m[id].name),
                          name_of(m[x].type));
      }
    });
  };
  for (const auto& [id, how] : plan.families) {
    const core::Family& f = m[id];
    if (!supported(f.dtype) && why.empty()) {
      why = fmt::format("`{}` is {}, which native code does not support yet", text(f.name),
                        name_of(f.dtype));
    }
    for (const core::Clause& c : f.clauses) look(id, c.body);
    for (core::ExprId cell : f.cells) look(id, cell);
  }
  return why;
}

std::optional<std::string> native_key(const core::Module& m,
                                      const std::vector<core::FamilyId>& wanted,
                                      const NativeOptions& options) {
  return options.cache ? codegen::cache_key(m, wanted, options) : std::nullopt;
}

std::shared_ptr<Native> kept_native(ImageCache& cache, const std::string& key) try {
  double t0 = now_ms();
  auto bytes = cache.find(key);
  auto image = bytes ? unpack(*bytes) : std::nullopt;
  if (!image) return nullptr;
  auto out = std::make_shared<Native>();
  out->code = codegen::load(image->object);
  if (!out->code) return nullptr;
  out->image = std::move(*image);
  out->image.object = {};
  out->times = {{"cache", now_ms() - t0}};
  return out;
} catch (const std::exception&) { return nullptr; }  // a broken image counts as none

codegen::JitOptions jit_options(const NativeOptions& options) {
  return {options.opt_level, options.processor, options.check_bounds};
}

std::shared_ptr<Native> make_native(Lowered lowered, const std::vector<PassTime>& passes,
                                    codegen::JitTimes inside) {
  auto out = std::make_shared<Native>();
  out->code = codegen::load(lowered.image.object, &inside);
  EIN_CHECK(out->code, "generated code cannot be loaded");
  lowered.image.object = {};  // loaded, and needed no more
  out->image = std::move(lowered.image);
  out->lowered = std::move(lowered);
  double total = 0;
  for (const PassTime& pass : passes) {
    total += pass.milliseconds;
    if (pass.pass != "machine-code") out->times.emplace_back(pass.pass, pass.milliseconds);
  }
  for (auto [phase, spent] : {std::pair{"target", inside.target},
                              {"emit", inside.emit},
                              {"optimise", inside.optimise},
                              {"machine", inside.machine},
                              {"link", inside.link},
                              {"total", total + inside.link}}) {
    out->times.emplace_back(phase, spent);
  }
  return out;
}

NativeResult run(Native& native, const core::Inputs& inputs, const core::Watch& watch,
                 std::vector<int64_t>* kernel_times, const std::map<std::string, RowFile>& files) {
  NativeResult out;
  try {
    execute(native, inputs, watch, kernel_times, files, out);
  } catch (const std::bad_alloc&) { out.error = RuntimeError{Code::E0807, "out of memory"}; }
  if (out.error) out.values.clear();
  return out;
}

const Image& image_of(const Native& native) { return native.image; }
NativeEntry entry_of(const Native& native) { return native.code->entry; }

Lowered* lowered_of(Native& native) { return native.lowered ? &*native.lowered : nullptr; }

std::vector<std::pair<std::string, double>> compile_times(const Native& native) {
  return native.times;
}

uint64_t native_compile_count() { return codegen::jit_count(); }

}  // namespace ein

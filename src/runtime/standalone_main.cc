// The main function of a program made by `ein build --emit exe`.
#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "runtime/files.h"
#include "runtime/pool.h"
#include "runtime/standalone_state.h"
#include "runtime/streams.h"

namespace ein {
namespace {

enum Exit { kFine = 0, kUsage = 2, kFailed = 3 };  // the same as those of `ein run`

int fail(const Image& image, const RuntimeError& e) {
  flush_output();
  std::string where = place_text(image, e.at);
  if (where.empty()) where = place_text(image, e.statement);
  put_error(fmt::format("error[{}]: {}\n", info(e.code).name, e.message));
  if (!where.empty()) put_error(fmt::format("  --> {}\n", where));
  return kFailed;
}

std::string type_text(const Image::Input& input) {
  if (input.coords.empty()) return name_of(input.dtype);
  std::string out = fmt::format("[{}; ", name_of(input.dtype));
  for (size_t k = 0; k < input.coords.size(); ++k) {
    const std::string& name = input.coords[k].name;
    out += (k ? ", " : "") + (name.empty() ? std::string("?") : name);
  }
  return out + "]";
}

int usage(const Image& image, const char* name, const std::string& problem) {
  std::string out = problem.empty() ? "" : fmt::format("{}: {}\n", name, problem);
  out += fmt::format("usage: {}", name);
  for (const Image::Input& i : image.inputs) {
    out += fmt::format(" {}={}", i.spelled(), i.coords.empty() ? "VALUE" : "FILE");
  }
  out += "\n";
  for (const Image::Input& i : image.inputs)
    out += fmt::format("  {}: {}\n", i.spelled(), type_text(i));
  for (const Image::Input& i : image.unused) {
    out += fmt::format("  {}: {}, not needed\n", i.spelled(), type_text(i));
  }
  problem.empty() ? put(out) : put_error(out);
  return problem.empty() ? kFine : kUsage;
}

// Reads `NAME=VALUE` or `NAME=FILE` as a value of that input into `out`; otherwise returns the exit
// status.
int read_given(const Image& image, const Image::Input& input, const std::string& value,
               const char* program, Tensor& out) {
  if (input.coords.empty()) {
    auto scalar = read_scalar(value, input.dtype);
    if (!scalar) {
      return usage(image, program,
                   fmt::format("`{}` is not a value of type {}", value, name_of(input.dtype)));
    }
    out = *scalar;
    return kFine;
  }
  auto only = has_members(value) ? inspect_file(value, "") : FileHeader{};
  std::string member = std::holds_alternative<RuntimeError>(only) ? input.spelled() : "";
  auto read = read_tensor(value, member, Wanted{input.dtype, input.coords.size()});
  if (auto* e = std::get_if<RuntimeError>(&read)) return fail(image, *e);
  out = std::move(std::get<Tensor>(read));
  return kFine;
}

int run(StandaloneProgram& program, int argc, char** argv) {
  StandaloneState& s = state_of(program);
  const Image& image = s.image;
  std::vector<Tensor> values(image.inputs.size());
  std::vector<View> views(image.inputs.size(), View{.given = false});
  for (int k = 1; k < argc; ++k) {
    std::string given = argv[k];
    if (given == "--help" || given == "-h") return usage(image, argv[0], "");
    size_t equals = given.find('=');
    std::string name = given.substr(0, equals);
    auto find = [&](const std::vector<Image::Input>& in) {
      return std::find_if(in.begin(), in.end(), [&](const auto& i) { return i.spelled() == name; });
    };
    auto used = find(image.inputs), unused = find(image.unused);
    if (equals == std::string::npos ||
        (used == image.inputs.end() && unused == image.unused.end())) {
      return usage(image, argv[0], fmt::format("`{}` is not an input of the program", given));
    }
    bool needed = used != image.inputs.end();
    Tensor value;
    int status =
        read_given(image, needed ? *used : *unused, given.substr(equals + 1), argv[0], value);
    if (status != kFine) return status;
    if (!needed) continue;
    auto i = static_cast<size_t>(used - image.inputs.begin());
    values[i] = std::move(value);
    views[i] = view_of(values[i]);
  }
  Frame frame;
  if (auto wrong = prepare(image, views, frame)) return fail(image, *wrong);
  CallResult result = execute(image, program.entry, views, frame);
  if (result.error) return fail(image, *result.error);
  for (const Effect& e : image.effects) {
    std::vector<Tensor> kept;
    kept.reserve(e.pieces.size() + 1);
    auto value = [&](uint32_t buffer) -> const Tensor& {
      return kept.emplace_back(value_of(image, frame, buffer));
    };
    auto failed = perform(e, value, [](const std::string& line) { put(line); });
    if (failed) return fail(image, *failed);
  }
  return kFine;
}

}  // namespace
}  // namespace ein

extern "C" int ein_standalone_main(ein::StandaloneProgram* program, int argc, char** argv) {
  ein::take_streams();
  int status = 70;
  try {
    status = ein::run(*program, argc, argv);
    if (ein::Shortage few = ein::thread_shortage(); few.wanted > 0) {
      ein::put_error(fmt::format("note: ran with {} thread{} instead of {}: {}\n", few.started,
                                 few.started == 1 ? "" : "s", few.wanted, few.why));
    }
  } catch (const std::bad_alloc&) {
    ein::put_error("error[E0807]: out of memory\n");
    status = ein::kFailed;
  } catch (const std::exception& e) { ein::put_error(fmt::format("{}: {}\n", argv[0], e.what())); }
  if (auto why = ein::lost_output()) {
    ein::put_error("error[E0808]: cannot write to standard output: " + *why + "\n");
    if (status != 70) status = ein::kFailed;
  }
  return status;
}

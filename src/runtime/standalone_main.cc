// The main function of a program made by `ein build --emit exe`.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <new>

#include "runtime/files.h"
#include "runtime/standalone_state.h"

namespace ein {
namespace {

enum Exit { kFine = 0, kUsage = 2, kFailed = 3 };  // as those of `ein run`

int fail(const Image& image, const RuntimeError& e) {
  std::fflush(stdout);
  std::string where = place_text(image, e.at);
  if (where.empty()) where = place_text(image, e.statement);
  fmt::print(stderr, "error[{}]: {}\n", info(e.code).name, e.message);
  if (!where.empty()) fmt::print(stderr, "  --> {}\n", where);
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
  if (!problem.empty()) fmt::print(stderr, "{}: {}\n", name, problem);
  std::string inputs;
  for (const Image::Input& i : image.inputs) {
    inputs += fmt::format(" {}={}", i.name, i.coords.empty() ? "VALUE" : "FILE");
  }
  fmt::print(problem.empty() ? stdout : stderr, "usage: {}{}\n", name, inputs);
  for (const Image::Input& i : image.inputs) {
    fmt::print(problem.empty() ? stdout : stderr, "  {}: {}\n", i.name, type_text(i));
  }
  return problem.empty() ? kFine : kUsage;
}

std::optional<Tensor> scalar_of(const std::string& text, DType dtype) {
  Tensor t(dtype, {});
  if (dtype == DType::Bool) {
    if (text != "true" && text != "false") return std::nullopt;
    t.set_int(0, text == "true");
    return t;
  }
  const char* end = text.data() + text.size();
  double real = 0;
  int64_t whole = 0;
  auto [stop, error] = is_float(dtype) ? std::from_chars(text.data(), end, real)
                                       : std::from_chars(text.data(), end, whole);
  if (error != std::errc{} || stop != end) return std::nullopt;
  if (is_float(dtype)) {
    t.set_float(0, real);
    return t;
  }
  t.set_int(0, whole);
  return t.get_int(0) == whole ? std::optional(t) : std::nullopt;
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
    size_t i = 0;
    while (i < image.inputs.size() && image.inputs[i].name != name) ++i;
    if (equals == std::string::npos || i == image.inputs.size()) {
      return usage(image, argv[0], fmt::format("`{}` is not an input of the program", given));
    }
    const Image::Input& input = image.inputs[i];
    std::string value = given.substr(equals + 1);
    if (input.coords.empty()) {
      auto scalar = scalar_of(value, input.dtype);
      if (!scalar) {
        return usage(image, argv[0],
                     fmt::format("`{}` is not a value of type {}", value, name_of(input.dtype)));
      }
      values[i] = *scalar;
    } else {
      auto only = has_members(value) ? inspect_file(value, "") : FileHeader{};
      std::string member = std::holds_alternative<RuntimeError>(only) ? name : "";
      auto read = read_tensor(value, member, Wanted{input.dtype, input.coords.size()});
      if (auto* e = std::get_if<RuntimeError>(&read)) return fail(image, *e);
      values[i] = std::move(std::get<Tensor>(read));
    }
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
    auto failed =
        perform(e, value, [](const std::string& line) { std::fputs(line.c_str(), stdout); });
    if (failed) return fail(image, *failed);
  }
  return kFine;
}

}  // namespace
}  // namespace ein

extern "C" int ein_standalone_main(ein::StandaloneProgram* program, int argc, char** argv) {
  try {
    int status = ein::run(*program, argc, argv);
    return std::fflush(stdout) == 0 ? status : int{ein::kFailed};
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "error[E0807]: out of memory\n");
    return ein::kFailed;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", argv[0], e.what());
    return 70;
  }
}

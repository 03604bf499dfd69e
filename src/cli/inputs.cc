#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/cli.h"
#include "runtime/files.h"

namespace ein::cli {
namespace {

// The cells of `t` as another type; nothing when one of them would change more than by rounding.
std::optional<Tensor> converted(const Tensor& t, DType to) {
  Tensor out(to, t.shape());
  bool from_float = is_float(t.dtype()), to_float = is_float(to);
  if ((from_float && !to_float) || to == DType::Bool || t.dtype() == DType::Bool) return {};
  for (int64_t i = 0; i < t.size(); ++i) {
    if (to_float) {
      double v = from_float ? t.get_float(i) : static_cast<double>(t.get_int(i));
      out.set_float(i, v);
      if (std::isfinite(v) && !std::isfinite(out.get_float(i))) return {};
    } else {
      out.set_int(i, t.get_int(i));
      if (out.get_int(i) != t.get_int(i)) return {};
    }
  }
  return out;
}

// Rounding loses digits, so it has to be asked for.
std::variant<Tensor, RuntimeError> read_input(const Pair& given, const core::Family& f,
                                              const CommonOptions& common) {
  auto read = read_tensor(given.value, member_for(given, common), Wanted{f.dtype, f.coords.size()});
  const auto* t = std::get_if<Tensor>(&read);
  if (!t || t->dtype() == f.dtype) return read;
  auto fits = converted(*t, f.dtype);
  if (fits && common.convert) return *fits;
  std::string what = fmt::format("input `{}` is declared as {}, but its value is {}", given.name,
                                 name_of(f.dtype), name_of(t->dtype()));
  if (fits) {
    what += is_float(f.dtype) ? "; --convert rounds the numbers in the file to the input's type"
                              : "; --convert takes the numbers as the input's type";
  } else if (common.convert) {
    what += ", and some of its numbers have no counterpart there";
  }
  return RuntimeError{Code::E0802, what, f.span};
}

}  // namespace

std::vector<std::string> parts_of(const core::Module& m, const std::string& name) {
  std::vector<std::string> out;
  for (const core::Family& f : m.families) {
    if (f.path.compare(0, name.size() + 1, name + ".") == 0) out.push_back(f.path);
  }
  return out;
}

core::FamilyId find_value(const core::Module& m, const std::string& name, std::string& problem) {
  core::FamilyId id = m.find(intern(name));
  if (id) return id;
  // In the source that `ein grad` prints, the part `net.w` of a record is an array `net_w`.
  std::string flat = name;
  std::replace(flat.begin(), flat.end(), '.', '_');
  if (core::FamilyId part = m.find(intern(flat))) return part;
  std::vector<std::string> known;
  for (const core::Family& f : m.families) {
    if (!f.generated) known.push_back(f.spelled());
  }
  std::string near = did_you_mean(name, known);
  problem = fmt::format("the program defines no value `{}`{}", name,
                        near.empty() ? "" : fmt::format("; did you mean `{}`?", near));
  return {};
}

namespace {

// `--in net=model.npz`: the arrays of the file are the parts of the record, by their paths.
std::optional<int> read_record(const Pair& given, const std::vector<std::string>& parts,
                               const core::Module& m, core::Inputs& inputs,
                               const CommonOptions& common) {
  for (const std::string& path : parts) {
    const core::Family& f = m[m.find(intern(path))];
    if (f.kind != core::Family::Kind::Input || f.file) {
      return usage_error(
          fmt::format("`{0}` has a definition; only inputs (`let {0}: type;`) can be "
                      "supplied",
                      given.name));
    }
    auto read = read_tensor(given.value, path.substr(given.name.size() + 1),
                            Wanted{f.dtype, f.coords.size()});
    if (auto* e = std::get_if<RuntimeError>(&read)) return runtime_error(*e, common);
    inputs[text(f.name)] = std::get<Tensor>(read);
  }
  return std::nullopt;
}

}  // namespace

std::optional<int> read_inputs(const std::vector<std::string>& in,
                               const std::vector<std::string>& set, const core::Module& m,
                               core::Inputs& inputs, const CommonOptions& common) {
  for (bool from_file : {true, false}) {
    for (const std::string& given : from_file ? in : set) {
      const char* option = from_file ? "--in" : "--set";
      auto pair = split(given);
      if (!pair)
        return usage_error(
            fmt::format("{} needs NAME={}, got `{}`", option, from_file ? "FILE" : "VALUE", given));
      if (std::vector<std::string> parts = parts_of(m, pair->name); from_file && !parts.empty()) {
        if (auto status = read_record(*pair, parts, m, inputs, common)) return status;
        continue;
      }
      std::string problem;
      core::FamilyId id = find_value(m, pair->name, problem);
      if (!id) return usage_error(problem);
      const core::Family& f = m[id];
      if (f.kind != core::Family::Kind::Input) {
        return usage_error(
            fmt::format("`{}` has a definition; only inputs (`let {}: type;`) can be supplied",
                        pair->name, pair->name));
      }
      if (f.file) {
        return usage_error(
            fmt::format("`{}` is loaded from `{}`; only inputs (`let {}: type;`) are "
                        "supplied",
                        pair->name, f.file->written, pair->name));
      }
      if (from_file) {
        auto read = read_input(*pair, f, common);
        if (auto* e = std::get_if<RuntimeError>(&read)) return runtime_error(*e, common);
        inputs[text(f.name)] = std::get<Tensor>(read);
        continue;
      }
      if (!f.coords.empty())
        return usage_error(
            fmt::format("`{}` is a tensor: supply it with --in {}=FILE", pair->name, pair->name));
      auto value = read_scalar(pair->value, f.dtype);
      if (!value)
        return usage_error(
            fmt::format("`{}` is not a value of type {}", pair->value, name_of(f.dtype)));
      inputs[text(f.name)] = *value;
    }
  }
  return std::nullopt;
}

std::optional<int> read_outputs(const std::vector<std::string>& out, std::vector<Pair>& targets) {
  for (const std::string& given : out) {
    auto pair = split(given);
    if (!pair) return usage_error(fmt::format("--out needs NAME=FILE, got `{}`", given));
    if (std::string why = check_target(pair->value, 1); !why.empty()) {
      return usage_error(fmt::format("cannot write `{}`: {}", pair->value, why));
    }
    targets.push_back(*pair);
  }
  return std::nullopt;
}

std::string how_to_supply(const core::Module& m, const core::Inputs& given,
                          const RuntimeError& error) {
  if (error.code != Code::E0801) return {};
  std::string first, others;
  for (const core::Family& f : m.families) {
    if (f.kind != core::Family::Kind::Input || f.file || given.count(text(f.name))) continue;
    if (f.span == error.at && first.empty()) {
      first = f.coords.empty() ? fmt::format("supply it with `--set {}=VALUE`", f.spelled())
                               : fmt::format("supply it with `--in {}=FILE`", f.spelled());
    } else {
      others += fmt::format("{}`{}`", others.empty() ? "" : ", ", f.spelled());
    }
  }
  if (first.empty() || others.empty()) return first;
  return fmt::format("{}; these have no value either: {}", first, others);
}

}  // namespace ein::cli

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/cli.h"
#include "driver/requests.h"
#include "runtime/files.h"

namespace ein::cli {
namespace {

// The cells of `t` as another type; nothing if one of them would change by more than rounding.
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

// Rounding loses digits, so it must be requested.
std::variant<Tensor, RuntimeError> read_input(const Pair& given, const core::Family& f,
                                              const std::string& member,
                                              const CommonOptions& common) {
  auto read = read_tensor(given.value, member, Wanted{f.dtype, f.coords.size()});
  const auto* t = std::get_if<Tensor>(&read);
  if (!t || t->dtype() == f.dtype) return read;
  auto fits = converted(*t, f.dtype);
  if (fits && common.convert) return *fits;
  std::string what = fmt::format("input `{}` is declared as {}, but its value is {}", f.spelled(),
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

std::string member_name(const core::Family& part, const std::string& record) {
  bool whole = record.find('.') == std::string::npos;
  if (whole && !part.member.empty()) return part.member;
  return part.spelled().substr(record.size() + 1);
}

std::vector<std::string> shown_parts(const core::Module& m, const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) {
    std::vector<std::string> parts = parts_of(m, name);
    if (parts.empty()) parts = {name};
    out.insert(out.end(), parts.begin(), parts.end());
  }
  return out;
}

std::vector<std::string> float_parts(const core::Module& m, const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& part : shown_parts(m, names)) {
    core::FamilyId id = m.find(intern(part));
    if (id && is_float(m[id].dtype)) out.push_back(text(m[id].name));
  }
  return out;
}

core::FamilyId find_value(const core::Module& m, const std::string& name, std::string& problem) {
  core::FamilyId id = m.find(intern(name));
  if (id) return id;
  // In the source that `ein grad` prints, the part `net.w` of a record is an array `net_w`.
  if (core::FamilyId part = m.find(intern(flat(name)))) return part;
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

// Why the caller cannot supply this value; empty if it is an input.
std::string not_supplied(const core::Family& f, const std::string& name) {
  if (f.file) {
    return fmt::format("`{0}` is loaded from `{1}`; only inputs (`let {0}: type;`) are supplied",
                       name, f.file->written);
  }
  if (f.kind == core::Family::Kind::Input) return "";
  return fmt::format("`{0}` has a definition; only inputs (`let {0}: type;`) can be supplied",
                     name);
}

// Puts values of the command line into inputs.
struct Supply {
  const core::Module& m;
  const CommonOptions& common;
  core::Inputs& inputs;
  std::map<std::string, RowFile>* later;

  // Returns the exit status if something is wrong, like all functions below.
  std::optional<int> from_file(const Pair& given, const core::Family& f,
                               const std::string& member) {
    std::string why;
    auto rows = later ? find_rows(given.value, member, why) : std::nullopt;
    if (rows && rows->header.dtype == f.dtype) {
      later->emplace(text(f.name), std::move(*rows));
      return std::nullopt;
    }
    auto read = read_input(given, f, member, common);
    if (auto* e = std::get_if<RuntimeError>(&read)) return runtime_error(*e, common);
    inputs[text(f.name)] = std::get<Tensor>(read);
    return std::nullopt;
  }

  std::optional<int> from_text(const Pair& given, const core::Family& f) {
    if (!f.coords.empty()) {
      return usage_error(
          fmt::format("`{0}` is a tensor: supply it with --in {0}=FILE", given.name));
    }
    auto value = read_scalar(given.value, f.dtype);
    if (!value) {
      return usage_error(
          fmt::format("`{}` is not a value of type {}", given.value, name_of(f.dtype)));
    }
    inputs[text(f.name)] = *value;
    return std::nullopt;
  }

  // For `--in net=model.npz`: the arrays of the file become the parts of the record with the same
  // paths.
  std::optional<int> record(const Pair& given, const std::vector<std::string>& parts) {
    for (const std::string& path : parts) {
      const core::Family& f = m[m.find(intern(path))];
      if (std::string why = not_supplied(f, given.name); !why.empty()) return usage_error(why);
      if (auto status = from_file(given, f, member_name(f, given.name))) return status;
    }
    return std::nullopt;
  }

  std::optional<int> one(const Pair& given, bool file) {
    std::vector<std::string> parts = parts_of(m, given.name);
    if (file && !parts.empty()) return record(given, parts);
    std::string problem;
    core::FamilyId id = find_value(m, given.name, problem);
    if (!id) return usage_error(problem);
    const core::Family& f = m[id];
    if (std::string why = not_supplied(f, given.name); !why.empty()) return usage_error(why);
    return file ? from_file(given, f, member_for(given, common)) : from_text(given, f);
  }
};

}  // namespace

std::optional<int> read_inputs(const std::vector<std::string>& in,
                               const std::vector<std::string>& set, const core::Module& m,
                               core::Inputs& inputs, const CommonOptions& common,
                               std::map<std::string, RowFile>* later) {
  Supply supply{m, common, inputs, later};
  for (bool file : {true, false}) {
    for (const std::string& given : file ? in : set) {
      auto pair = split(given);
      if (!pair) {
        return usage_error(fmt::format("{} needs NAME={}, got `{}`", file ? "--in" : "--set",
                                       file ? "FILE" : "VALUE", given));
      }
      if (auto status = supply.one(*pair, file)) return status;
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

#include "shard/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/diag.h"

namespace ein::shard {
namespace {

constexpr int64_t kMostRanks = 1 << 20;
constexpr size_t kMostAxes = 16;

std::string trimmed(const std::string& s) {
  size_t from = s.find_first_not_of(" \t\n"), to = s.find_last_not_of(" \t\n");
  return from == std::string::npos ? "" : s.substr(from, to - from + 1);
}

std::vector<std::string> parts_of(const std::string& text, char by) {
  std::vector<std::string> out;
  for (size_t from = 0; from <= text.size();) {
    size_t to = std::min(text.find(by, from), text.size());
    out.push_back(trimmed(text.substr(from, to - from)));
    from = to + 1;
  }
  return out;
}

RuntimeError misfit(std::string message) { return {Code::E0901, std::move(message)}; }

bool is_name(const std::string& s) {
  auto letter = [](unsigned char c) { return std::isalpha(c) || c == '_' || c >= 0x80; };
  return !s.empty() && letter(s[0]) && std::all_of(s.begin(), s.end(), [&](unsigned char c) {
    return letter(c) || std::isdigit(c);
  });
}

}  // namespace

std::variant<Mesh, RuntimeError> parse_mesh(const std::string& text) {
  Mesh out;
  int64_t ranks = 1;
  for (const std::string& part : parts_of(text, ',')) {
    size_t equals = part.find('=');
    if (equals == std::string::npos) {
      return misfit(fmt::format(
          "`{}` in `--mesh {}` is not an axis: write a name and a number of ranks, as in `data=4`",
          part, text));
    }
    Mesh::Axis axis{trimmed(part.substr(0, equals)), 0};
    std::string size = trimmed(part.substr(equals + 1));
    auto [end, wrong] = std::from_chars(size.data(), size.data() + size.size(), axis.size);
    bool number = wrong == std::errc() && end == size.data() + size.size();
    if (!is_name(axis.name)) {
      return misfit(fmt::format(
          "`{}` in `--mesh {}` is not a name; an axis has a name and a size, as in `data=4`",
          axis.name, text));
    }
    if (!number || axis.size < 1) {
      return misfit(fmt::format("axis `{}` has `{}` ranks; it needs at least 1", axis.name, size));
    }
    for (const Mesh::Axis& other : out.axes) {
      if (other.name == axis.name)
        return misfit(fmt::format("axis `{}` appears twice in `--mesh {}`", axis.name, text));
    }
    if (axis.size > kMostRanks / ranks || out.axes.size() == kMostAxes) {
      return misfit(fmt::format("`--mesh {}` has more than {} ranks or {} axes", text, kMostRanks,
                                kMostAxes));
    }
    ranks *= axis.size;
    out.axes.push_back(std::move(axis));
  }
  return out;
}

std::variant<std::vector<Rule>, RuntimeError> parse_rules(const Mesh& mesh,
                                                          const std::string& text) {
  std::vector<Rule> out;
  for (const std::string& part : parts_of(text, ',')) {
    if (part.empty()) continue;
    size_t colon = part.find(':');
    if (colon == std::string::npos) {
      return misfit(fmt::format(
          "`{}` in `--shard` is not a rule: write a coordinate and an axis, as in `batch: {}`",
          part, mesh.axes.empty() ? "data" : mesh.axes[0].name));
    }
    Rule rule;
    std::string what = trimmed(part.substr(0, colon)), along = trimmed(part.substr(colon + 1));
    size_t dot = what.rfind('.');
    if (dot != std::string::npos) rule.family = trimmed(what.substr(0, dot));
    rule.coordinate = trimmed(dot == std::string::npos ? what : what.substr(dot + 1));
    for (const std::string& name : parts_of(along, '+')) {
      if (name == "none" && along == "none") continue;
      auto axis = std::find_if(mesh.axes.begin(), mesh.axes.end(),
                               [&](const Mesh::Axis& a) { return a.name == name; });
      if (axis == mesh.axes.end()) {
        std::vector<std::string> known = {"none"};
        for (const Mesh::Axis& a : mesh.axes) known.push_back(a.name);
        std::string near = did_you_mean(name, known);
        return misfit(fmt::format("the mesh has no axis `{}`, along which `{}` is to be split{}",
                                  name, what,
                                  near.empty() ? "" : fmt::format("; did you mean `{}`?", near)));
      }
      rule.along |= Axes{1} << (axis - mesh.axes.begin());
    }
    out.push_back(std::move(rule));
  }
  return out;
}

}  // namespace ein::shard

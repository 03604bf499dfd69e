#include "runtime/resident.h"

#include <fstream>
#include <string>

namespace ein {
namespace {

// A line of Linux's account of the process: "VmHWM:     1234 kB".
std::optional<int64_t> status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1)) * 1024;
  }
  return std::nullopt;
}

}  // namespace

ResidentMark::ResidentMark() {
  std::ofstream forget("/proc/self/clear_refs");
  if (forget << 5 << std::flush) held_ = status_bytes("VmRSS");
}

std::optional<int64_t> ResidentMark::peak_growth() const {
  auto peak = held_ ? status_bytes("VmHWM") : std::nullopt;
  if (!peak) return std::nullopt;
  return *peak > *held_ ? *peak - *held_ : 0;
}

}  // namespace ein

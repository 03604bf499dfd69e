// How much memory the process uses at most while something runs: what `ein bench` reports.
#pragma once

#include <cstdint>
#include <optional>

namespace ein {

// Marks the present use of memory, from which `peak_growth` is measured, and forgets earlier peaks.
// Nothing if the system does not say.
class ResidentMark {
 public:
  ResidentMark();
  // How many bytes the memory of the process has been above the mark at most.
  std::optional<int64_t> peak_growth() const;

 private:
  std::optional<int64_t> held_;
};

}  // namespace ein

// How much memory the process has at most while something runs: what `ein bench` reports.
#pragma once

#include <cstdint>
#include <optional>

namespace ein {

// Forgets the peak so far. What was held then is what `peak_growth` is measured from; nothing where the system does not tell.
class ResidentMark {
 public:
  ResidentMark();
  // How far the memory of the process has been above what it was at the mark, in bytes.
  std::optional<int64_t> peak_growth() const;

 private:
  std::optional<int64_t> held_;
};

}  // namespace ein

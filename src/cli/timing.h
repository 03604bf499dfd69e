// Where the time of a run went, as a table or as JSON, for `ein run --time` and `ein bench`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "driver/compile.h"
#include "driver/run.h"
#include "runtime/peaks.h"

namespace ein::cli {

std::string timing_text(const std::vector<PassTime>& passes, const Timing& timing,
                        const Peaks& peaks);
nlohmann::json timing_json(const std::vector<PassTime>& passes, const Timing& timing,
                           const Peaks& peaks);

std::string seconds_text(double seconds);  // `12.3 ms`

}  // namespace ein::cli

#include "cli/log.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

namespace ein::cli {
namespace {

constexpr auto kFlush = std::chrono::milliseconds(100);

}  // namespace

bool is_log_path(const std::string& path) {
  return path.ends_with(".csv") || path.ends_with(".jsonl");
}

std::string exact_number(const Tensor& t) {
  if (t.dtype() == DType::Bool) return t.get_int(0) ? "true" : "false";
  if (!is_float(t.dtype())) return std::to_string(t.get_int(0));
  double value = t.get_float(0);
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  return t.dtype() == DType::F64 ? fmt::format("{}", value)
                                 : fmt::format("{}", static_cast<float>(value));
}

RunLog::RunLog(const std::string& path, std::vector<std::string> names, bool appends)
    : path_(path),
      names_(std::move(names)),
      json_(path.ends_with(".jsonl")),
      flushed_(Clock::now()) {
  // Opened for appending, so that a run that is refused leaves the previous log as it is.
  file_ = std::fopen(path.c_str(), "a");
  if (!file_) fail();
  skips_ = appends;
  begun_ = appends && file_ && std::fseek(file_, 0, SEEK_END) == 0 && std::ftell(file_) > 0;
}

// Clears the file, and writes the headings of a csv file.
void RunLog::begin() {
  if (std::exchange(begun_, true) || !file_) return;
  struct stat info {};
  bool regular = fstat(fileno(file_), &info) == 0 && S_ISREG(info.st_mode);
  if (regular && ftruncate(fileno(file_), 0) != 0) return fail();
  if (json_) return;
  std::string line = "recurrence,step";
  for (const std::string& name : names_) line += "," + name;
  write(line + "\n");
  if (file_ && std::fflush(file_) != 0) fail();
}

RunLog::~RunLog() { close(); }

void RunLog::fail() {
  if (!error_) {
    error_ = RuntimeError{Code::E0808,
                          fmt::format("cannot write `{}`: {}", path_, std::strerror(errno))};
  }
  if (file_) std::fclose(file_);
  file_ = nullptr;
}

void RunLog::write(const std::string& line) {
  if (file_ && std::fwrite(line.data(), 1, line.size(), file_) != line.size()) fail();
}

void RunLog::add(const Moment& now, int64_t step) {
  begin();
  if (std::exchange(skips_, false)) return;
  if (!file_ || now.watched.empty() || (family_ == now.family && step_ == step)) return;
  family_ = now.family;
  step_ = step;
  std::string line = json_ ? fmt::format(R"({{"recurrence": "{}", "step": {})", now.family, step)
                           : fmt::format("{},{}", now.family, step);
  for (const std::string& name : names_) {
    const Tensor* value = nullptr;
    for (const auto& [of, tensor] : now.watched) {
      if (of == name) value = &tensor;
    }
    std::string number = value ? exact_number(*value) : "";
    if (!json_) line += "," + number;
    if (!json_ || !value) continue;
    bool finite = !is_float(value->dtype()) || std::isfinite(value->get_float(0));
    if (!finite) number = "\"" + number + "\"";
    line += fmt::format(", \"{}\": {}", name, number);
  }
  write(line + (json_ ? "}\n" : "\n"));
  auto time = Clock::now();
  if (!file_ || time - flushed_ < kFlush) return;
  flushed_ = time;
  if (std::fflush(file_) != 0) fail();
}

void RunLog::close() {
  if (!file_) return;
  bool flushed = std::fflush(file_) == 0;
  if (!flushed) return fail();
  if (std::fclose(file_) != 0) {
    file_ = nullptr;
    return fail();
  }
  file_ = nullptr;
}

}  // namespace ein::cli

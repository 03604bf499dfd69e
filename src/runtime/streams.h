// Standard output and error. If text does not arrive on standard output, the program that wrote it
// has failed; a problem with standard error cannot be reported to anybody.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ein {

// At the start of a process: makes sure that no file gets the number of a stream that was closed,
// or printed text would end up in that file. Writing to a pipe that nobody reads becomes an error
// instead of ending the process.
void take_streams();

void put(std::string_view text);
void put_error(std::string_view text);
void flush_output();

// After everything was written: why some of it got lost; nothing if all of it arrived.
std::optional<std::string> lost_output();

}  // namespace ein

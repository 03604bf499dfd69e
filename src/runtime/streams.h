// Standard output and error. What does not arrive on standard output is a failure of the program
// that wrote it; about standard error nobody can be told.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ein {

// At the start of a process: no file may get the number of a stream that was closed, or
// printed text would end up in it. Writing to a pipe that nobody reads is an error, not the
// end of the process.
void take_streams();

void put(std::string_view text);
void put_error(std::string_view text);
void flush_output();

// After everything was put: why some of it got lost; nothing when all of it has arrived.
std::optional<std::string> lost_output();

}  // namespace ein

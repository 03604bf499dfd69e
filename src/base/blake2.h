// BLAKE2b with 256 bits of result (RFC 7693, no key): names of cached files and their checksums.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace ein {

using Digest = std::array<uint8_t, 32>;
Digest blake2(std::string_view data);
std::string hex(const Digest& digest);

}  // namespace ein

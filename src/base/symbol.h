// Interned strings. Equal text gives an equal Symbol; the table is process-wide and thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/id.h"

namespace ein {

struct SymbolTag;
using Symbol = Id<SymbolTag>;

Symbol intern(std::string_view text);
const std::string& text(Symbol symbol);  // the empty string for an invalid symbol

}  // namespace ein

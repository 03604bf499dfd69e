// A stack as deep as programs are long. Phases walk expressions by recursion, and a derivative may
// be an expression as deep as the program is long; the caller's thread may have little stack.
#pragma once

#include <functional>

namespace ein {

// Runs `body`, which throws nothing, in a thread of its own and waits for it. The stack is
// reserved, not used, until something is that deep. If there is no such thread to be had,
// `body` runs here.
void on_deep_stack(const std::function<void()>& body);

}  // namespace ein

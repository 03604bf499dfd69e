// A stack as deep as programs are long. Phases walk expressions with the machine's stack, and a
// derivative may be an expression as deep as the program; the caller's thread may have little of
// it.
#pragma once

#include <functional>

namespace ein {

// Runs `body`, which throws nothing, in a thread of its own and waits for it. The stack is
// reserved, not used, until something is that deep. Where no such thread can be had it runs here.
void on_deep_stack(const std::function<void()>& body);

}  // namespace ein

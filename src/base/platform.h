// What a platform can do, where that decides more than which file is compiled (src/web/wasm/lacks.cc has the rest).
#pragma once

namespace ein {

// Without it nothing can be computed beside a run either: it is not watched, and its state is not kept.
#ifdef __wasm__
inline constexpr bool kMakesMachineCode = false;
#else
inline constexpr bool kMakesMachineCode = true;
#endif

}  // namespace ein

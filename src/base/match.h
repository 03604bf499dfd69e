// match(variant, lambdas...): exhaustive at compile time; a missing case does not build.
#pragma once

#include <utility>
#include <variant>

namespace ein {

template <class... Fs>
struct Overload : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overload(Fs...) -> Overload<Fs...>;

template <class V, class... Fs>
decltype(auto) match(V&& value, Fs&&... fs) {
  return std::visit(Overload{std::forward<Fs>(fs)...}, std::forward<V>(value));
}

}  // namespace ein

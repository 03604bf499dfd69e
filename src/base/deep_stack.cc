#include "base/deep_stack.h"

#include <pthread.h>

#include <cstddef>

namespace ein {

void on_deep_stack(const std::function<void()>& body) {
  auto start = [](void* data) -> void* {
    (*static_cast<const std::function<void()>*>(data))();
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  bool started = false;
  for (size_t size : {size_t{4} << 30, size_t{1} << 30, size_t{256} << 20, size_t{64} << 20}) {
    pthread_t thread;
    started =
        pthread_attr_setstacksize(&attributes, size) == 0 &&
        pthread_create(&thread, &attributes, start, const_cast<std::function<void()>*>(&body)) == 0;
    if (!started) continue;
    pthread_join(thread, nullptr);
    break;
  }
  pthread_attr_destroy(&attributes);
  if (!started) body();
}

}  // namespace ein

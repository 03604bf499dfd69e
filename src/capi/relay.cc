#include "capi/relay.h"

#include <cstdio>

namespace ein::capi {

int32_t ask(void* data) {
  auto& asking = *static_cast<Asking*>(data);
  int32_t stop = 0;
  asking.relay.call([&] { stop = asking.options.poll(asking.options.poll_data); });
  return stop;
}

Sink sink_of(const ein_run_options& options, Relay& relay) {
  Sink sink;
  sink.write = [&](std::string_view text, bool error) {
    if (!options.write) {
      std::fwrite(text.data(), 1, text.size(), error ? stderr : stdout);
      return;
    }
    relay.call([&] { options.write(options.data, text.data(), text.size(), error); });
  };
  if (options.file) {
    sink.file = [&](const std::string& path, const std::string& text) {
      int32_t taken = 0;
      relay.call(
          [&] { taken = options.file(options.data, path.c_str(), text.data(), text.size()); });
      return taken != 0;
    };
  }
  return sink;
}

}  // namespace ein::capi

#include "lsp/serve.h"

#include <fmt/format.h>

#include <condition_variable>

#include "lsp/transport.h"

namespace ein::lsp {
namespace {

void read_all(Server& s, Transport& transport) {
  while (!s.leaving) {
    auto text = transport.read();
    if (!text) break;
    try {
      receive(s, *text);
    } catch (const std::exception& e) {
      log(s, fmt::format("a message was not understood: {}", e.what()));
    }
  }
  std::lock_guard<std::mutex> lock(s.mutex);
  s.gone = true;
  s.leaving = true;
  s.arrived();
}

}  // namespace

int serve(int in, int out, const std::string& version) {
  Transport transport(in, out);
  std::condition_variable arrived;
  Commands commands;
  Server s;
  s.version = version;
  s.send = [&](const Json& message) { transport.write(message); };
  s.arrived = [&] { arrived.notify_one(); };
  s.run_command = [&](const Json& id, const Json& params) { run_command(s, commands, id, params); };
  std::thread reader([&] { read_all(s, transport); });
  while (!s.left) {
    {
      std::unique_lock<std::mutex> lock(s.mutex);
      auto ready = [&] { return !s.queue.empty() || s.gone; };
      if (auto due = next_due(s)) {
        arrived.wait_until(lock, due->at, ready);
      } else {
        arrived.wait(lock, ready);
      }
      if (s.queue.empty() && s.gone) break;
    }
    if (work(s)) continue;
    auto due = next_due(s);
    if (due && Clock::now() >= due->at) diagnose_fully(s, due->uri);
  }
  s.leaving = true;
  for (std::thread& t : commands.threads) t.join();
  reader.join();
  return s.left && s.shut_down ? 0 : 1;
}

}  // namespace ein::lsp

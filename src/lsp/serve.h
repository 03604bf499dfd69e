// `ein lsp`: connects the server to two file descriptors. One thread reads messages and maintains
// the documents; one works, on the deep stack of the process. Each command has its own thread,
// which waits for its process.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "lsp/server.h"

namespace ein::lsp {

// Serves until the client leaves. Returns the exit status of the process.
int serve(int in, int out, const std::string& version);

// ---- command.cc ------------------------------------------------------------------------------------

struct Commands {
  std::vector<std::thread> threads;
  std::atomic<int> running = 0;
};

// Starts the command; the answer is sent from another thread when its process has ended. Throws
// Refusal.
void run_command(Server& s, Commands& commands, const Json& id, const Json& params);

}  // namespace ein::lsp

// `ein lsp`: the server between two file descriptors. One thread reads messages and keeps the documents;
// one works, on the deep stack of the process; commands have a thread each, which waits for their process.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "lsp/server.h"

namespace ein::lsp {

// Serves until the client leaves; the exit status of the process.
int serve(int in, int out, const std::string& version);

// ---- command.cc ------------------------------------------------------------------------------------

struct Commands {
  std::vector<std::thread> threads;
  std::atomic<int> running = 0;
};

// Answers when the process has ended, from a thread of its own. Throws Refusal.
void run_command(Server& s, Commands& commands, const Json& id, const Json& params);

}  // namespace ein::lsp

// `ein lsp`: the language server. One thread reads messages and keeps the documents; one works, on
// the deep stack of the process, and answers in the order of the requests. An answer is always about
// the version that the client had when it asked: a newer edit or a cancellation ends the work between
// two passes. Quick diagnostics follow every edit, full ones a moment of quiet.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ide/analysis.h"
#include "lsp/documents.h"
#include "lsp/transport.h"

namespace ein::lsp {

// The answer to a request that has no result: one of the protocol's codes, and why.
struct Refusal {
  int code = 0;
  std::string message;
};
constexpr int kParseError = -32700, kInvalidRequest = -32600, kMethodNotFound = -32601,
              kInvalidParams = -32602, kNotInitialized = -32002, kCancelled = -32800,
              kModified = -32801, kFailed = -32803;

using Clock = std::chrono::steady_clock;

struct Item {
  Json message;
  std::string uri;      // the document that it is about; empty: none
  uint64_t change = 0;  // of that document when the message came
};

// What is known of a document, and when its mistakes are looked for next.
struct Known {
  std::shared_ptr<const ide::Analysis> analysis;
  uint64_t change = 0;                      // of the document
  std::map<std::string, uint64_t> modules;  // that are open, and their changes then
  std::optional<Clock::time_point> due;     // of the full analysis
};

struct Server {
  explicit Server(int in, int out) : transport(in, out) {}

  Transport transport;
  Documents documents;

  // -- shared with the reading thread
  std::mutex mutex;
  std::condition_variable arrived;
  std::deque<Item> queue;
  std::set<std::string> cancelled;  // ids of requests, as JSON
  bool gone = false;                // the client
  std::atomic<bool> leaving = false;
  std::atomic<ide::Units> units = ide::Units::Utf16;

  // -- of the working thread
  std::map<std::string, Known> known;
  bool initialized = false, shut_down = false;
  std::vector<std::string> folders;
  bool shows_output = false;  // the client shows what commands print
  std::string version;
  std::vector<std::thread> commands;
  std::atomic<int> running = 0;  // commands
};

// Serves until the client leaves; the exit status of the process.
int serve(int in, int out, const std::string& version);

// ---- server.cc: what features ask ----------------------------------------------------------------

// The newest analysis of a document that is at least so deep. Throws a Refusal where the document
// is not open, has changed since, or the request was cancelled.
std::shared_ptr<const ide::Analysis> analysis_of(Server& s, const Item& item, ide::Depth depth);
ide::Documents texts_of(Server& s, const std::string& path);
void log(Server& s, const std::string& line);

// ---- features.cc, workspace.cc, command.cc -------------------------------------------------------

Json capabilities(const Server& s);
// The result of a request. Throws Refusal.
Json answer(Server& s, const Item& item, const std::string& method, const Json& params);
bool is_known(const std::string& method);

Json rename(Server& s, const Item& item, const Json& params);
Json prepare_rename(Server& s, const Item& item, const Json& params);
Json all_references(Server& s, const Item& item, const Json& params);
Json workspace_symbols(Server& s, const Json& params);

// Answers when the process has ended, from a thread of its own.
void run_command(Server& s, const Json& id, const Json& params);

// ---- convert.cc: places as the protocol has them -------------------------------------------------

Json range_json(const ide::Lines& lines, uint32_t begin, uint32_t end, ide::Units units);
uint32_t offset_of(const Server& s, const std::string& text, const Json& position);
// Where a file of an analysis is for the client: open documents by their URI, the library in a
// folder of its own, which is written when it is first asked for.
std::string uri_for(Server& s, const std::string& path);
std::string path_text(Server& s, const ide::Analysis& a, const std::string& path);
void publish(Server& s, const std::string& uri, Known& k);

}  // namespace ein::lsp

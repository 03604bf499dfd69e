// The language server: takes messages, works on them in order, and sends answers. An answer always
// refers to the version of the document that the client had when it asked; a newer edit or a
// cancellation stops the work between two passes. Quick diagnostics follow every edit, full ones
// follow when the user pauses. `serve` (serve.h) adds the threads and streams; a caller without
// them uses `receive` and `work` directly.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "ide/analysis.h"
#include "lsp/documents.h"

namespace ein::lsp {

// Thrown instead of a result: an error code of the protocol, and the reason.
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
  std::string uri;      // the document that the message is about, if any
  uint64_t change = 0;  // the document's change number when the message came
};

// What is known of a document, and when its full diagnostics are due.
struct Known {
  std::shared_ptr<const ide::Analysis> analysis;
  uint64_t change = 0;  // the document's change number
  // Its modules that are open, with their change numbers at that time.
  std::map<std::string, uint64_t> modules;
  std::optional<Clock::time_point> due;  // when full diagnostics are due
};

struct Server {
  // What the surroundings provide: sending messages to the client, being told that the queue has
  // work, and running commands, which send their answers themselves. Without the last, commands are
  // refused.
  std::function<void(const Json&)> send;
  std::function<void()> arrived = [] {};
  std::function<void(const Json& id, const Json& params)> run_command = {};
  Documents documents;

  // -- shared with the reading thread, if there is one
  std::mutex mutex;
  std::deque<Item> queue;
  std::set<std::string> cancelled;  // ids of cancelled requests, as JSON
  bool gone = false;                // the client has left
  std::atomic<bool> leaving = false;
  std::atomic<ide::Units> units = ide::Units::Utf16;

  // -- used only by the working thread
  std::map<std::string, Known> known;
  bool initialized = false, shut_down = false, left = false;
  std::vector<std::string> folders;
  bool shows_output = false;  // whether the client displays the output of commands
  std::string version;
};

// Takes one message from the client. Edits are applied at once, everything else is queued.
void receive(Server& s, const std::string& text);
// Handles the first item of the queue. False if the queue is empty.
bool work(Server& s);
// The document whose full diagnostics are due next.
struct Due {
  std::string uri;
  Clock::time_point at;
};
std::optional<Due> next_due(const Server& s);
void diagnose_fully(Server& s, const std::string& uri);

// ---- server.cc: what features ask ----------------------------------------------------------------

// The newest analysis of a document that is at least this deep. Throws Refusal if the document is
// not open or has changed since, or if the request was cancelled.
std::shared_ptr<const ide::Analysis> analysis_of(Server& s, const Item& item, ide::Depth depth);
ide::Documents texts_of(Server& s, const std::string& path);
void log(Server& s, const std::string& line);

// ---- features.cc, workspace.cc -------------------------------------------------------------------

Json capabilities(const Server& s);
// The result of a request. Throws Refusal.
Json answer(Server& s, const Item& item, const std::string& method, const Json& params);
bool is_known(const std::string& method);

Json rename(Server& s, const Item& item, const Json& params);
Json prepare_rename(Server& s, const Item& item, const Json& params);
Json all_references(Server& s, const Item& item, const Json& params);
Json workspace_symbols(Server& s, const Json& params);

// ---- convert.cc: places as the protocol has them -------------------------------------------------

Json range_json(const ide::Lines& lines, uint32_t begin, uint32_t end, ide::Units units);
uint32_t offset_of(const Server& s, const std::string& text, const Json& position);
// The URI of a file of an analysis: an open document keeps the client's URI; library files get a
// folder of their own, which is written when it is first needed.
std::string uri_for(Server& s, const std::string& path);
std::string path_text(Server& s, const ide::Analysis& a, const std::string& path);
void publish(Server& s, const std::string& uri, Known& k);

}  // namespace ein::lsp

// The language server: messages come in, are worked on in their order, and answers go out. An answer is
// always about the version that the client had when it asked: a newer edit or a cancellation ends the
// work between two passes. Quick diagnostics follow every edit, full ones a moment of quiet. Threads and
// streams are the business of `serve` (serve.h); whoever has neither calls `receive` and `work`.
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
  // What surrounds the server: messages to the client, a word that something is in the queue, and
  // commands, which answer by themselves when they are done. Without the last there are none.
  std::function<void(const Json&)> send;
  std::function<void()> arrived = [] {};
  std::function<void(const Json& id, const Json& params)> run_command = {};
  Documents documents;

  // -- shared with the reading thread, where there is one
  std::mutex mutex;
  std::deque<Item> queue;
  std::set<std::string> cancelled;  // ids of requests, as JSON
  bool gone = false;                // the client
  std::atomic<bool> leaving = false;
  std::atomic<ide::Units> units = ide::Units::Utf16;

  // -- of the working thread
  std::map<std::string, Known> known;
  bool initialized = false, shut_down = false, left = false;
  std::vector<std::string> folders;
  bool shows_output = false;  // the client shows what commands print
  std::string version;
};

// Takes one message of the client: edits at once, the rest into the queue.
void receive(Server& s, const std::string& text);
// Does the first thing of the queue. Nothing was there: false.
bool work(Server& s);
// The document whose full diagnostics are due first, and finding them.
struct Due {
  std::string uri;
  Clock::time_point at;
};
std::optional<Due> next_due(const Server& s);
void diagnose_fully(Server& s, const std::string& uri);

// ---- server.cc: what features ask ----------------------------------------------------------------

// The newest analysis of a document that is at least so deep. Throws a Refusal where the document
// is not open, has changed since, or the request was cancelled.
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
// Where a file of an analysis is for the client: open documents by their URI, the library in a
// folder of its own, which is written when it is first asked for.
std::string uri_for(Server& s, const std::string& path);
std::string path_text(Server& s, const ide::Analysis& a, const std::string& path);
void publish(Server& s, const std::string& uri, Known& k);

}  // namespace ein::lsp

#include "lsp/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <new>

#include "ide/library_index.h"
#include "lsp/disk.h"
#include "runtime/streams.h"

namespace ein::lsp {
namespace {

using namespace std::chrono_literals;
constexpr auto kQuiet = 150ms;

Json reply(const Json& id, Json result) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}};
}
Json refuse(const Json& id, const Refusal& why) {
  return {
      {"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", why.code}, {"message", why.message}}}};
}

std::string uri_in(const Json& message) {
  auto params = message.find("params");
  if (params == message.end() || !params->is_object()) return "";
  auto doc = params->find("textDocument");
  if (doc == params->end() || !doc->is_object()) return "";
  auto uri = doc->find("uri");
  return uri != doc->end() && uri->is_string() ? uri->get<std::string>() : "";
}

// ---- reading ---------------------------------------------------------------------------------------

void edit_documents(Server& s, const std::string& method, const Json& params) {
  const Json& doc = params.at("textDocument");
  std::string uri = doc.at("uri").get<std::string>();
  int64_t version =
      doc.contains("version") && doc["version"].is_number() ? doc["version"].get<int64_t>() : 0;
  if (method == "textDocument/didOpen") {
    s.documents.open(uri, doc.at("text").get<std::string>(), version);
  } else if (method == "textDocument/didChange") {
    s.documents.edit(uri, params.at("contentChanges"), version, s.units);
  } else if (method == "textDocument/didClose") {
    s.documents.close(uri);
  }
}

// ---- working ---------------------------------------------------------------------------------------

bool is_cancelled(Server& s, const Json& id) {
  std::lock_guard<std::mutex> lock(s.mutex);
  return s.cancelled.contains(id.dump());
}

bool modules_changed(Server& s, const Known& k) {
  for (const auto& [path, change] : k.modules) {
    auto doc = s.documents.find(s.documents.uri_for(path));
    if ((doc ? doc->change : 0) != change) return true;
  }
  return false;
}

void note_modules(Server& s, const ide::Analysis& a, Known& k) {
  k.modules.clear();
  for (const sema::ModuleTree& m : a.compiled.program.modules) {
    if (m.file == a.root || m.name.starts_with("std/")) continue;
    auto doc = s.documents.find(s.documents.uri_for(m.name));
    k.modules[m.name] = doc ? doc->change : 0;
  }
}

void analyse_into(Server& s, const Document& d, ide::Depth depth,
                  const std::function<bool()>& stop) {
  auto made = ide::analyse(d.path, d.text, depth, texts_of(s, d.path), stop);
  if (!made) return;
  Known& k = s.known[d.uri];
  k.analysis = std::move(made);
  k.change = d.change;
  note_modules(s, *k.analysis, k);
}

// After an edit: sends quick diagnostics now; later the full ones, also for documents that use this
// one.
void changed(Server& s, const Item& item) {
  auto doc = s.documents.find(item.uri);
  if (!doc) {
    s.known.erase(item.uri);
    s.send({{"jsonrpc", "2.0"},
            {"method", "textDocument/publishDiagnostics"},
            {"params", {{"uri", item.uri}, {"diagnostics", Json::array()}}}});
    return;
  }
  if (doc->change != item.change) return;  // a newer edit is queued
  auto stop = [&] {
    auto now = s.documents.find(item.uri);
    return s.leaving || !now || now->change != doc->change;
  };
  auto before = s.known[item.uri].analysis;  // is dropped when the client has its answer
  analyse_into(s, *doc, ide::Depth::Quick, stop);
  Known& k = s.known[item.uri];
  if (k.change != doc->change || !k.analysis) return;
  publish(s, item.uri, k);
  auto due = Clock::now() + kQuiet;
  k.due = due;
  for (auto& [uri, other] : s.known) {
    if (other.modules.contains(doc->path)) other.due = due;
  }
}

void full(Server& s, const std::string& uri) {
  Known& k = s.known[uri];
  k.due.reset();
  auto doc = s.documents.find(uri);
  if (!doc) return;
  auto stop = [&] {
    auto now = s.documents.find(uri);
    return s.leaving || !now || now->change != doc->change;
  };
  auto waiting = [&] {  // a request is queued, so the pause is over
    std::lock_guard<std::mutex> lock(s.mutex);
    return !s.queue.empty();
  };
  analyse_into(s, *doc, ide::Depth::Full, [&] { return stop() || waiting(); });
  Known& now = s.known[uri];
  if (now.analysis && now.change == doc->change && now.analysis->depth == ide::Depth::Full) {
    publish(s, uri, now);
    ide::library_index();  // made now, so that the first completion does not wait for it
  } else if (!stop()) {
    now.due = Clock::now() + kQuiet;
  }
}

void initialize(Server& s, const Json& params) {
  s.initialized = true;
  Json none = Json::object();
  auto at = [&](const Json& from, const char* name) -> const Json& {
    return from.is_object() && from.contains(name) ? from[name] : none;
  };
  const Json& encodings = at(at(at(params, "capabilities"), "general"), "positionEncodings");
  for (const Json& e : encodings) {
    if (e == "utf-8") s.units = ide::Units::Utf8;
  }
  for (const Json& f : at(params, "workspaceFolders")) {
    if (f.is_object() && f.contains("uri") && f["uri"].is_string())
      s.folders.push_back(path_of(f["uri"]));
  }
  const Json& root = at(params, "rootUri");
  if (s.folders.empty() && root.is_string()) s.folders.push_back(path_of(root));
  const Json& options = at(params, "initializationOptions");
  s.shows_output = at(options, "showsOutput") == true;
}

// The answer to one request, or nothing if it is answered later.
std::optional<Json> handle(Server& s, const Item& item, const Json& id, const std::string& method) {
  Json params = item.message.contains("params") ? item.message["params"] : Json::object();
  if (method == "initialize") {
    if (s.initialized) return refuse(id, {kInvalidRequest, "the server is initialized already"});
    initialize(s, params);
    return reply(id, {{"capabilities", capabilities(s)},
                      {"serverInfo", {{"name", "ein"}, {"version", s.version}}}});
  }
  if (!s.initialized) return refuse(id, {kNotInitialized, "`initialize` comes first"});
  if (method == "shutdown") {
    s.shut_down = true;
    return reply(id, nullptr);
  }
  if (s.shut_down) return refuse(id, {kInvalidRequest, "the server is shutting down"});
  if (is_cancelled(s, id)) return refuse(id, {kCancelled, "cancelled"});
  if (method == "workspace/executeCommand") {
    if (!s.run_command) return refuse(id, {kMethodNotFound, "commands are run by the client here"});
    s.run_command(id, params);
    return std::nullopt;
  }
  if (!is_known(method)) return refuse(id, {kMethodNotFound, "there is no method " + method});
  return reply(id, answer(s, item, method, params));
}

void work_on(Server& s, const Item& item) {
  std::string method = item.message["method"].get<std::string>();
  if (method == "exit") s.left = true;
  if (!item.message.contains("id")) {
    try {
      bool edited = method == "textDocument/didOpen" || method == "textDocument/didChange" ||
                    method == "textDocument/didClose";
      if (edited && s.initialized) changed(s, item);
      if (method == "workspace/didChangeWatchedFiles") {
        for (auto& [uri, k] : s.known) k.change = 0, k.due = Clock::now();
      }
    } catch (const std::exception& e) { log(s, fmt::format("{}: {}", method, e.what())); }
    return;
  }
  Json id = item.message["id"];
  std::optional<Json> out;
  try {
    out = handle(s, item, id, method);
  } catch (const Refusal& why) { out = refuse(id, why); } catch (const Json::exception& e) {
    out = refuse(id, {kInvalidParams, e.what()});
  } catch (const std::bad_alloc&) {
    log(s, method + ": out of memory");
    out = reply(id, nullptr);
  } catch (const std::exception& e) {
    log(s, fmt::format("{}: a bug in the compiler: {}", method, e.what()));
    out = reply(id, nullptr);
  }
  if (out) s.send(*out);
  std::lock_guard<std::mutex> lock(s.mutex);
  s.cancelled.erase(id.dump());
}

}  // namespace

void log(Server& s, const std::string& line) {
  put_error("ein lsp: " + line + "\n");
  s.send({{"jsonrpc", "2.0"},
          {"method", "window/logMessage"},
          {"params", {{"type", 1}, {"message", line}}}});
}

ide::Documents texts_of(Server& s, const std::string& path) {
  return {[&s](const std::string& p) { return s.documents.read(p); },
          [path](const SourceMap& sources) { return files_for(path, sources); }};
}

std::shared_ptr<const ide::Analysis> analysis_of(Server& s, const Item& item, ide::Depth depth) {
  auto doc = s.documents.find(item.uri);
  if (!doc) throw Refusal{kInvalidParams, "the document is not open"};
  if (doc->change != item.change) throw Refusal{kModified, "the document has changed"};
  Known& k = s.known[item.uri];
  bool fresh = k.analysis && k.change == doc->change && !modules_changed(s, k);
  if (!fresh || k.analysis->depth < depth) {
    Json id = item.message.contains("id") ? item.message["id"] : Json();
    analyse_into(s, *doc, depth, [&] {
      auto now = s.documents.find(item.uri);
      return s.leaving || is_cancelled(s, id) || !now || now->change != doc->change;
    });
    Known& made = s.known[item.uri];
    bool done = made.analysis && made.change == doc->change && made.analysis->depth >= depth;
    if (!done && is_cancelled(s, id)) throw Refusal{kCancelled, "cancelled"};
    if (!done) throw Refusal{kModified, "the document has changed"};
  }
  return s.known[item.uri].analysis;
}

void receive(Server& s, const std::string& text) {
  Json message = Json::parse(text, nullptr, false);
  if (message.is_discarded()) {
    message = Json::parse(ide::whole_pairs(ide::valid_utf8(text)), nullptr, false);
  }
  if (message.is_discarded() || !message.is_object()) {
    s.send(refuse(nullptr, {kParseError, "a message that is no JSON object"}));
    return;
  }
  std::string method =
      message.value("method", Json()).is_string() ? message["method"].get<std::string>() : "";
  if (method.empty()) return;  // a response to a request of ours
  Json params = message.contains("params") ? message["params"] : Json::object();
  try {
    if (method == "$/cancelRequest") {
      std::lock_guard<std::mutex> lock(s.mutex);
      s.cancelled.insert(params.at("id").dump());
      return;
    }
    if (method.starts_with("textDocument/did")) edit_documents(s, method, params);
    if (method == "exit") s.leaving = true;
  } catch (const Json::exception& e) {
    log(s, fmt::format("{}: {}", method, e.what()));
    return;
  }
  Item item{std::move(message), "", 0};
  item.uri = uri_in(item.message);
  if (auto doc = s.documents.find(item.uri)) item.change = doc->change;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    s.queue.push_back(std::move(item));
  }
  s.arrived();
}

bool work(Server& s) {
  Item item;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    if (s.queue.empty()) return false;
    item = std::move(s.queue.front());
    s.queue.pop_front();
  }
  work_on(s, item);
  return true;
}

std::optional<Due> next_due(const Server& s) {
  std::optional<Due> out;
  for (const auto& [uri, k] : s.known) {
    if (k.due && (!out || *k.due < out->at)) out = Due{uri, *k.due};
  }
  return out;
}

void diagnose_fully(Server& s, const std::string& uri) {
  try {
    full(s, uri);
  } catch (const std::exception& e) {
    log(s, fmt::format("a bug in the compiler: {}", e.what()));
    s.known[uri].due.reset();
  }
}

}  // namespace ein::lsp

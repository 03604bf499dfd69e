// The texts that the client has open, and those of files. An open document takes precedence over
// the file, so that unsaved modules count. The reading thread writes, the working thread reads.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ide/position.h"

namespace ein::lsp {

using Json = nlohmann::json;

struct Document {
  std::string uri, path, text;
  int64_t version = 0;
  uint64_t change = 0;  // counts the changes of all documents
};

// `file:///a%20b.ein` → `/a b.ein`; other URIs stay as they are
std::string path_of(const std::string& uri);
std::string uri_of(const std::string& path);

class Documents {
 public:
  void open(const std::string& uri, std::string text, int64_t version);
  // Applies edits in the form of the protocol: ranges, or whole texts.
  void edit(const std::string& uri, const Json& changes, int64_t version, ide::Units units);
  void close(const std::string& uri);

  std::shared_ptr<const Document> find(const std::string& uri) const;
  std::vector<std::shared_ptr<const Document>> all() const;
  uint64_t change() const { return change_; }
  // The text of an open document, or else of the file, with invalid characters replaced.
  std::optional<std::string> read(const std::string& path) const;
  // The URI as the client spells it, for an open document.
  std::string uri_for(const std::string& path) const;

 private:
  void put(Document d);

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Document>> by_uri_, by_path_;
  std::atomic<uint64_t> change_ = 0;
};

}  // namespace ein::lsp

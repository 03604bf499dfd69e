// The texts that a client has open, and those of files. Open documents stand before files, so that
// modules that are not saved count. Written by the reading thread, read by the working one.
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
  uint64_t change = 0;  // numbers all changes of all documents
};

std::string path_of(const std::string& uri);  // `file:///a%20b.ein` → `/a b.ein`; others stay
std::string uri_of(const std::string& path);

class Documents {
 public:
  void open(const std::string& uri, std::string text, int64_t version);
  // Edits as the protocol has them: ranges, or whole texts.
  void edit(const std::string& uri, const Json& changes, int64_t version, ide::Units units);
  void close(const std::string& uri);

  std::shared_ptr<const Document> find(const std::string& uri) const;
  std::vector<std::shared_ptr<const Document>> all() const;
  uint64_t change() const { return change_; }
  // An open document by its path, or else a file, with broken characters replaced.
  std::optional<std::string> read(const std::string& path) const;
  // As the client spells it, for an open document.
  std::string uri_for(const std::string& path) const;

 private:
  void put(Document d);

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Document>> by_uri_, by_path_;
  std::atomic<uint64_t> change_ = 0;
};

}  // namespace ein::lsp

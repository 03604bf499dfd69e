// Messages of the language server protocol over two file descriptors: a header with a length, then
// JSON. One thread reads; answers may come from any thread.
#pragma once

#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace ein::lsp {

using Json = nlohmann::json;

class Transport {
 public:
  Transport(int in, int out) : in_(in), out_(out) {}

  // The next message's text; nothing when the client is gone. A broken header is skipped.
  std::optional<std::string> read();
  // False when the client does not listen any more.
  bool write(const Json& message);

 private:
  bool fill();

  int in_, out_;
  std::string buffer_;
  std::mutex writing_;
};

}  // namespace ein::lsp

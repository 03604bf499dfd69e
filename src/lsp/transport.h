// Messages of the language server protocol over two file descriptors: a header with the length,
// then JSON. One thread reads; any thread may write.
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

  // The text of the next message; nothing if the client has left. Skips broken headers.
  std::optional<std::string> read();
  // False if the client no longer listens.
  bool write(const Json& message);

 private:
  bool fill();

  int in_, out_;
  std::string buffer_;
  std::mutex writing_;
};

}  // namespace ein::lsp

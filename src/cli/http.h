// As much of HTTP as a page on this machine needs: a server on the loopback address that answers
// one request per connection, each in a thread of its own. It refuses requests that were not meant
// for it: the host must be this address (not a name from elsewhere that leads here), and everything
// except the page itself needs the token.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace ein::cli {

struct HttpRequest {
  std::string method, path;                    // the path is without what follows `?`
  std::map<std::string, std::string> query;    // not decoded: only numbers and words
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

class HttpServer {
 public:
  // `port` 0 chooses any free port.
  explicit HttpServer(int port);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Why it is not listening; empty if it is.
  const std::string& problem() const { return problem_; }
  int port() const { return port_; }
  // Answers requests until the process ends.
  [[noreturn]] void serve(const std::function<HttpResponse(const HttpRequest&)>& answer);

 private:
  int socket_ = -1, port_ = 0;
  std::string problem_;
};

}  // namespace ein::cli

// As much of HTTP as a page on this machine needs: a server on the loopback address, one answer for a connection, a
// thread for each. Only requests that were meant for it get through: the host must be this address (a name that leads
// here from elsewhere is refused), and everything but the page itself needs the token.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace ein::cli {

struct HttpRequest {
  std::string method, path;                    // without what follows `?`
  std::map<std::string, std::string> query;    // not decoded: numbers and words
  std::map<std::string, std::string> headers;  // names in small letters
  std::string body;
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

class HttpServer {
 public:
  // `port` 0: any that is free.
  explicit HttpServer(int port);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  const std::string& problem() const { return problem_; }  // why it does not listen; empty: it does
  int port() const { return port_; }
  // Answers until the process ends.
  [[noreturn]] void serve(const std::function<HttpResponse(const HttpRequest&)>& answer);

 private:
  int socket_ = -1, port_ = 0;
  std::string problem_;
};

}  // namespace ein::cli

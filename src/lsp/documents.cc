#include "lsp/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "lsp/disk.h"

namespace ein::lsp {
namespace {

namespace fs = std::filesystem;

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

ide::Position position_of(const Json& p) {
  auto number = [&](const char* name) {
    double v = p.at(name).get<double>();
    return static_cast<uint32_t>(std::clamp(v, 0.0, 4e9));
  };
  return {number("line"), number("character")};
}

}  // namespace

std::string path_of(const std::string& uri) {
  std::string rest;
  if (uri.starts_with("file://")) {
    size_t slash = uri.find('/', 7);
    rest = slash == std::string::npos ? "" : uri.substr(slash);
  } else {
    return uri;
  }
  std::string out;
  for (size_t i = 0; i < rest.size(); ++i) {
    int high = rest[i] == '%' && i + 2 < rest.size() ? hex(rest[i + 1]) : -1;
    int low = high >= 0 ? hex(rest[i + 2]) : -1;
    if (low >= 0) {
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += rest[i];
    }
  }
  return fs::path(out).lexically_normal().string();
}

std::string uri_of(const std::string& path) {
  if (path.empty() || path[0] != '/') return path;
  std::string out = "file://";
  for (char c : path) {
    bool plain = std::isalnum(static_cast<unsigned char>(c)) ||
                 std::string_view("/-._~").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

void Documents::put(Document d) {
  d.change = ++change_;
  auto kept = std::make_shared<const Document>(std::move(d));
  std::lock_guard<std::mutex> lock(mutex_);
  by_uri_[kept->uri] = kept;
  by_path_[kept->path] = kept;
}

void Documents::open(const std::string& uri, std::string text, int64_t version) {
  put({uri, path_of(uri), std::move(text), version});
}

void Documents::edit(const std::string& uri, const Json& changes, int64_t version,
                     ide::Units units) {
  auto known = find(uri);
  if (!known) return;
  Document d = *known;
  d.version = version;
  for (const Json& c : changes) {
    std::string text = c.at("text").get<std::string>();
    if (!c.contains("range")) {
      d.text = std::move(text);
      continue;
    }
    ide::Lines lines(d.text);
    uint32_t begin = lines.offset(position_of(c.at("range").at("start")), units);
    uint32_t end = lines.offset(position_of(c.at("range").at("end")), units);
    if (begin > end) std::swap(begin, end);
    d.text.replace(begin, end - begin, text);
  }
  put(std::move(d));
}

void Documents::close(const std::string& uri) {
  ++change_;
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = by_uri_.find(uri);
  if (it == by_uri_.end()) return;
  by_path_.erase(it->second->path);
  by_uri_.erase(it);
}

std::shared_ptr<const Document> Documents::find(const std::string& uri) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = by_uri_.find(uri);
  return it == by_uri_.end() ? nullptr : it->second;
}

std::vector<std::shared_ptr<const Document>> Documents::all() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<const Document>> out;
  for (const auto& [uri, d] : by_uri_) out.push_back(d);
  return out;
}

std::optional<std::string> Documents::read(const std::string& path) const {
  std::string normal = fs::path(path).lexically_normal().string();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (auto it = by_path_.find(normal); it != by_path_.end()) return it->second->text;
  }
  auto text = text_on_disk(path);
  if (!text) return std::nullopt;
  return ide::valid_utf8(*text);
}

std::string Documents::uri_for(const std::string& path) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = by_path_.find(path);
  return it == by_path_.end() ? uri_of(path) : it->second->uri;
}

}  // namespace ein::lsp

#include "base/symbol.h"

#include <mutex>
#include <unordered_map>

#include "base/fork_mutex.h"

namespace ein {
namespace {

struct Table {
  ForkMutex mutex;
  Store<Symbol, std::string> names;
  std::unordered_map<std::string_view, Symbol> ids;  // keys point into `names`, which never moves
};

Table& table() {
  static Table* instance = new Table;  // never destroyed: symbols outlive static destructors
  return *instance;
}

}  // namespace

Symbol intern(std::string_view text) {
  Table& t = table();
  std::lock_guard lock(t.mutex);
  if (auto it = t.ids.find(text); it != t.ids.end()) return it->second;
  Symbol id = t.names.add(std::string(text));
  t.ids.emplace(t.names[id], id);
  return id;
}

const std::string& text(Symbol symbol) {
  static const std::string empty;
  if (!symbol) return empty;
  Table& t = table();
  std::lock_guard lock(t.mutex);
  return t.names[symbol];
}

}  // namespace ein

#include "autodiff/requests.h"

#include "core/rewrite.h"

namespace ein::autodiff {

using namespace core;

std::vector<Asked> requests_in(const Module& m, FamilyId id) {
  std::vector<Asked> out;
  for_each_body(m, id, [&](ExprId body) {
    for_each_node(m, body, [&](ExprId e) {
      if (const auto* r = get_if<Request>(m, e)) out.push_back({id, e, *r, m[e].span});
    });
  });
  return out;
}

void Requests::look_at(FamilyId id) {
  if (auto it = in_.find(id); it != in_.end()) {
    for (const Asked& a : it->second) forget(a);
    in_.erase(it);
  }
  std::vector<Asked> found = requests_in(m_, id);
  if (found.empty()) return;
  std::vector<Asked>& list = in_[id] = std::move(found);
  for (const Asked& a : list) {
    by_num_[a.request.num].insert(id);
    by_den_[a.request.den].insert(id);
  }
}

void Requests::look_at_new() {
  for (; looked_ < m_.families.size(); ++looked_) look_at(FamilyId(looked_));
}

std::vector<Asked> Requests::of(FamilyId num) const {
  return about(by_num_, num, [&](const Request& r) { return r.num == num; });
}

std::vector<Asked> Requests::by(FamilyId den) const {
  return about(by_den_, den, [&](const Request& r) { return r.den == den; });
}

std::vector<Asked> Requests::about(const Holders& index, FamilyId family,
                                   const std::function<bool(const Request&)>& wanted) const {
  std::vector<Asked> out;
  auto holders = index.find(family);
  if (holders == index.end()) return out;
  for (FamilyId id : holders->second) {
    for (const Asked& a : in_.at(id)) {
      if (wanted(a.request)) out.push_back(a);
    }
  }
  return out;
}

void Requests::forget(const Asked& a) {
  for (auto [index, key] : {std::pair{&by_num_, a.request.num}, {&by_den_, a.request.den}}) {
    auto it = index->find(key);
    if (it == index->end()) continue;
    it->second.erase(a.in);
    if (it->second.empty()) index->erase(it);
  }
}

}  // namespace ein::autodiff

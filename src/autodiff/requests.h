// The requests of a module: where they stand and what they are about.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "core/core.h"

namespace ein::autodiff {

struct Asked {
  core::FamilyId in;  // the family whose definition contains the request
  core::ExprId node;
  core::Request request;
  Span span;
};

std::vector<Asked> requests_in(const core::Module& m, core::FamilyId family);

// Requests by the family they stand in, kept up to date while families change: a program may hold
// thousands of them.
class Requests {
 public:
  explicit Requests(const core::Module& m) : m_(m) { look_at_new(); }

  void look_at(core::FamilyId id);
  void look_at_new();

  bool empty() const { return in_.empty(); }
  bool stand_in(core::FamilyId id) const { return in_.contains(id); }
  const std::map<core::FamilyId, std::vector<Asked>>& all() const { return in_; }
  std::vector<Asked> of(core::FamilyId num) const;
  std::vector<Asked> by(core::FamilyId den) const;

 private:
  // By family: the families that hold a request about it.
  using Holders = std::map<core::FamilyId, std::set<core::FamilyId>>;

  std::vector<Asked> about(const Holders& index, core::FamilyId family,
                           const std::function<bool(const core::Request&)>& wanted) const;
  void forget(const Asked& a);

  const core::Module& m_;
  uint32_t looked_ = 0;
  std::map<core::FamilyId, std::vector<Asked>> in_;
  Holders by_num_, by_den_;
};

}  // namespace ein::autodiff

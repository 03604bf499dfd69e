#include "driver/gradcheck_evaluate.h"

#include <set>

#include "core/groups.h"
#include "driver/compile.h"

namespace ein {

using core::FamilyId;

Evaluator::Evaluator(core::Module m, const std::vector<std::string>& wanted, Runs runs)
    : m_(std::move(m)) {
  std::set<std::string> distinct(wanted.begin(), wanted.end());
  for (const std::string& name : distinct) wanted_.push_back(m_.find(intern(name)));
  needed_ = core::families_of(core::schedule(m_, wanted_).steps);
  if (runs == Runs::Once) options_.opt_level = 0;
}

std::optional<RuntimeError> Evaluator::compile(const core::Inputs& inputs) {
  std::vector<int64_t> extents;
  if (optimise::wants_segments(m_, options_.grad_memory)) {
    auto bound = core::bind_params(m_, inputs, needed_);
    if (auto* e = std::get_if<RuntimeError>(&bound)) return *e;
    extents = std::move(std::get<std::vector<int64_t>>(bound));
  }
  if (compiled_ && extents == compiled_for_) return std::nullopt;
  auto ready = prepare(m_, wanted_, inputs, options_);
  if (auto* e = std::get_if<RuntimeError>(&ready)) return *e;
  cut_ = std::move(std::get<Prepared>(ready).cut);
  native_.reset();
  NativeOptions how = native_options(options_);
  if (how.opt_level == 0) {  // lanes would only make more code to compile
    how.choices.vector_axis = [](FamilyId, size_t) { return core::kMaxSlots; };
    how.choices.reduce_width = [](core::ExprId) { return 1; };
  }
  auto made = compile_native(cut_ ? *cut_ : m_, wanted_, how);
  if (auto* native = std::get_if<std::shared_ptr<Native>>(&made)) native_ = *native;
  compiled_for_ = std::move(extents);
  compiled_ = true;
  return std::nullopt;
}

std::variant<Evaluator::Values, RuntimeError> Evaluator::operator()(const core::Inputs& inputs) {
  ++runs_;
  if (auto error = compile(inputs)) return *error;
  Values out;
  auto take = [&](auto result) -> std::optional<RuntimeError> {
    if (result.error) return result.error;
    for (FamilyId f : wanted_) out[text(m_[f].name)] = result.values.at(f);
    return std::nullopt;
  };
  core::Module& m = cut_ ? *cut_ : m_;
  auto error = native_ ? take(run(*native_, inputs)) : take(core::evaluate(m, inputs, wanted_));
  if (error) return *error;
  return out;
}

}  // namespace ein

// Runs passes one after the other. Each is timed, its result is verified, and printed on request.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/diag.h"
#include "base/trace.h"
#include "core/core.h"
#include "loops/loops.h"
#include "optimise/passes.h"
#include "plan/plan.h"
#include "runtime/image.h"
#include "sema/modules.h"

namespace ein {

class Pipeline {
 public:
  // After a pass that reported errors, nothing is verified, and only the syntax tree is printed.
  explicit Pipeline(Trace& trace, const Diagnostics* diags = nullptr)
      : trace_(trace), diags_(diags) {}

  template <class In, class F>
  auto pass(const char* name, In in, const F& body) {
    double begin = now_ms();
    auto out = body(std::move(in));
    trace_.times.push_back({name, now_ms() - begin});
    bool whole = !diags_ || !diags_->has_errors();
    if (whole) check(name, broken_rules(out));
    if (whole || std::is_same_v<decltype(out), sema::Program>) note(name, out);
    return out;
  }

  // A pass whose input and output have the same form, and which some options leave out.
  template <class T, class F>
  T pass_if(bool wanted, const char* name, T in, const F& body) {
    if (wanted) return pass(name, std::move(in), body);
    note(name, in);
    return in;
  }

 private:
  using Rules = std::vector<std::string>;
  static Rules broken_rules(const sema::Program&) { return {}; }
  static Rules broken_rules(const core::Module& m);
  static Rules broken_rules(const core::Module* m) { return broken_rules(*m); }
  static Rules broken_rules(const optimise::Program& p) { return broken_rules(p.module); }
  static Rules broken_rules(const plan::Plan& p) { return broken_rules(p.module); }
  static Rules broken_rules(const loops::Program& p);
  static Rules broken_rules(const Image&) { return {}; }
  static Rules broken_rules(const std::string&) { return {}; }  // machine code
  static void check(const char* pass, const Rules& broken);

  static std::string text_of(const sema::Program& p);
  static std::string text_of(core::Module& m);
  static std::string text_of(core::Module* m) { return text_of(*m); }
  static std::string text_of(optimise::Program& p) { return text_of(p.module); }
  static std::string text_of(const plan::Plan& p);
  static std::string text_of(const loops::Program& p);
  static std::string text_of(const Image& image);
  static std::string text_of(const std::string& code);

  template <class T>
  void note(const char* pass, T& result) {
    if (trace_.dump_after == pass) trace_.dump = text_of(result);
  }

  Trace& trace_;
  const Diagnostics* diags_;
};

}  // namespace ein

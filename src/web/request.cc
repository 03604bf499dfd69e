// Handles one request after the other: dispatches to the verb, and keeps the language server
// between requests.
#include <fmt/format.h>

#include <map>
#include <new>

#include "base/check.h"
#include "base/clock.h"
#include "base/deep_stack.h"
#include "base/render.h"
#include "ide/position.h"
#include "lsp/server.h"
#include "syntax/format.h"
#include "syntax/parser.h"
#include "web/program.h"

namespace ein::web {

struct Session::State {
  Surroundings around;
  lsp::Server server;
  Json sent = Json::array();  // messages of the language server during this request
};

namespace {

// Passes messages of the protocol in and out. `due`: in how many milliseconds the server wants to
// be called again (without messages), because full diagnostics wait for a pause in typing.
void serve_messages(lsp::Server& server, const Json& request, Json& sent, Json& answer) {
  Json messages = request.value("messages", Json::array());
  if (!messages.is_array()) throw BadRequest{"`messages` is not a list"};
  for (const Json& message : messages) lsp::receive(server, message.dump());
  while (lsp::work(server)) {}
  auto due = lsp::next_due(server);
  if (due && lsp::Clock::now() >= due->at) {
    lsp::diagnose_fully(server, due->uri);
    due = lsp::next_due(server);
  }
  answer["messages"] = std::move(sent);
  sent = Json::array();
  if (!due) return;
  auto wait = std::chrono::ceil<std::chrono::milliseconds>(due->at - lsp::Clock::now()).count();
  answer["due"] = std::max<int64_t>(0, wait);
}

using Verb = void (*)(const Surroundings&, const Json&, Json&);
const std::map<std::string, Verb>& verbs() {
  static const std::map<std::string, Verb> table = {
      {"run", run_program},
      {"check", check_program},
      {"grad", grad_program},
      {"explain", explain_program},
      {"audit", audit_program},
      {"facts", facts_program},
      {"format", [](const Surroundings&, const Json& r, Json& a) { format_program(r, a); }},
      {"version",
       [](const Surroundings& around, const Json&, Json& a) {
         a["version"] = around.version;
         a["backend"] = around.backend == Backend::Native ? "native" : "ref";
       }},
  };
  return table;
}

}  // namespace

void check_program(const Surroundings& around, const Json& request, Json& answer) {
  Program p;
  if (compile_program(around, request, {.tests = true}, p, answer))
    answer["values"] = values_json(p, p.compiled.asked);
}

void format_program(const Json& request, Json& answer) {
  Program p;
  p.file = p.sources.add(text_in(request, "name", "program.ein"),
                         ide::valid_utf8(text_in(request, "source")));
  ast::Ast tree = ast::parse(p.file, p.sources, p.diags);
  if (!p.diags.has_errors()) {
    answer["stdout"] = ast::format(tree, p.sources);
    return;
  }
  answer["status"] = kProgramWrong;
  answer["stderr"] = render(p.diags, p.sources, {});
  for (const Diagnostic* d : p.diags.sorted())
    answer["diagnostics"].push_back(diagnostic_json(p, *d));
}

Session::Session(Surroundings surroundings) : state_(std::make_unique<State>()) {
  state_->around = std::move(surroundings);
  state_->server.version = state_->around.version;
  state_->server.send = [s = state_.get()](const Json& message) { s->sent.push_back(message); };
}

Session::~Session() = default;

std::string Session::answer(const std::string& text) {
  Json out{{"status", kFine},
           {"stdout", ""},
           {"stderr", ""},
           {"diagnostics", Json::array()},
           {"files", Json::array()}};
  auto fail = [&](Status status, const std::string& why) {
    out["status"] = status;
    out["stderr"] = out["stderr"].get<std::string>() + why + "\n";
    out["error"] = why;
  };
  on_deep_stack([&] {
    double begin = now_ms();
    try {
      Json request = Json::parse(text, nullptr, false);
      if (!request.is_object()) throw BadRequest{"the request is not a JSON object"};
      std::string verb = text_in(request, "verb");
      if (auto it = verbs().find(verb); it != verbs().end()) {
        it->second(state_->around, request, out);
      } else if (verb == "lsp") {
        serve_messages(state_->server, request, state_->sent, out);
      } else {
        throw BadRequest{fmt::format("there is no verb `{}`", verb)};
      }
    } catch (const BadRequest& bad) { fail(kUsage, bad.why); } catch (const Json::exception& e) {
      fail(kUsage, fmt::format("the request is not understood: {}", e.what()));
    } catch (const std::bad_alloc&) {
      fail(kRuntimeFailure, "the program needs more memory than there is");
    } catch (const InternalError& e) {
      fail(kInternal, fmt::format("a bug in the compiler: {}", e.what()));
    } catch (const std::exception& e) { fail(kInternal, e.what()); }
    out["milliseconds"] = now_ms() - begin;
  });
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ein::web

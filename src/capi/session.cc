// ein_session_*: the prompt's sessions for C.
//
// As in ein_run, compiling needs a deep stack: each entry gets a thread of its own, and callbacks
// to the caller are made on the caller's thread.
#include "session/session.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/deep_stack.h"
#include "capi/calls.h"
#include "capi/poll.h"
#include "capi/relay.h"
#include "driver/cache.h"

struct ein_session {
  std::unique_ptr<ein::DiskCache> cache;
  ein::session::Session session;
};

namespace ein::capi {
namespace {

char* text_for_caller(const std::string& text) {
  char* out = new char[text.size() + 1];
  std::memcpy(out, text.c_str(), text.size() + 1);
  return out;
}

// JSON cannot represent invalid UTF-8, so invalid bytes are replaced.
std::string json_text(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string reply_json(const session::Reply& reply) {
  nlohmann::json defined = nlohmann::json::array();
  for (const session::Defined& d : reply.defined) {
    defined.push_back({{"name", d.name}, {"type", d.type}, {"value", d.value}, {"again", d.again}});
  }
  return json_text({{"text", reply.text},
                    {"problems", reply.problems},
                    {"quit", reply.quit},
                    {"defined", defined}});
}

ein_status enter_text(ein_session& s, const std::string& text, const std::string& name,
                      const ein_run_options& options, char** reply, ein_error* error) {
  ein_status status = EIN_INTERNAL;
  Relay relay;
  std::thread entering([&] {
    on_deep_stack([&] {
      status = guarded(
          [&] {
            Sink sink = sink_of(options, relay);
            SinkScope scope(sink);
            std::optional<CallMonitor> monitor;
            Asking asking{relay, options};
            session::Watching watching;
            if (options.poll) {
              watching.monitor = &monitor.emplace(ask, &asking);
              watching.stop = [&] { return ask(&asking) != 0; };
            }
            session::Reply made = session::enter(s.session, text, watching, name);
            *reply = text_for_caller(reply_json(made));
            return static_cast<ein_status>(made.status);
          },
          error);
    });
    relay.end();
  });
  relay.serve();
  entering.join();
  return status;
}

// Runs a query that returns text.
template <class F>
ein_status answer(const ein_session* s, const char* text, char** out, ein_error* error,
                  const F& made) {
  if (!s || !text || !out) {
    report(error, "", "this needs a session, a text, and somewhere to put the answer");
    return EIN_USAGE;
  }
  *out = nullptr;
  ein_status status = EIN_INTERNAL;
  on_deep_stack([&] {
    status = guarded(
        [&] {
          *out = text_for_caller(made());
          return EIN_OK;
        },
        error);
  });
  return status;
}

uint32_t place_in(const char* text, size_t offset) {
  return static_cast<uint32_t>(std::min(offset, std::strlen(text)));
}

}  // namespace
}  // namespace ein::capi

extern "C" {

ein_status ein_session_new(const ein_session_options* options, ein_session** session,
                           ein_error* error) {
  if (!session) {
    ein::capi::report(error, "", "ein_session_new needs somewhere to put the session");
    return EIN_USAGE;
  }
  *session = nullptr;
  return ein::capi::guarded(
      [&] {
        ein_session_options known{};
        if (options) std::memcpy(&known, options, std::min(options->size, sizeof known));
        auto made = std::make_unique<ein_session>();
        if (!known.no_cache) made->cache = ein::open_cache();
        made->session.options.cache = made->cache.get();
        made->session.options.render.color = known.coloured != 0;
        *session = made.release();
        return EIN_OK;
      },
      error);
}

void ein_session_free(ein_session* session) { delete session; }

ein_entry ein_session_reads(const char* text) {
  if (!text) return EIN_EMPTY;
  ein_entry out = EIN_FINISHED;
  ein::on_deep_stack([&] {
    ein::capi::guarded(
        [&] {
          out = static_cast<ein_entry>(ein::session::read_entry(text));
          return EIN_OK;
        },
        nullptr);
  });
  return out;
}

ein_status ein_session_enter(ein_session* session, const char* text, const char* name,
                             const ein_run_options* options, char** reply, ein_error* error) {
  if (!session || !text || !reply) {
    ein::capi::report(error, "",
                      "an entry needs a session, a text, and somewhere to put the reply");
    return EIN_USAGE;
  }
  *reply = nullptr;
  ein_run_options known{};
  if (options) std::memcpy(&known, options, std::min(options->size, sizeof known));
  return ein::capi::guarded(
      [&] { return ein::capi::enter_text(*session, text, name ? name : "", known, reply, error); },
      error);
}

ein_status ein_session_complete(ein_session* session, const char* text, size_t offset,
                                char** choices, ein_error* error) {
  return ein::capi::answer(session, text, choices, error, [&] {
    nlohmann::json out = nlohmann::json::array();
    uint32_t at = ein::capi::place_in(text, offset);
    for (const auto& s : ein::session::complete(session->session, text, at)) {
      out.push_back({{"text", s.text}, {"detail", s.detail}, {"begin", s.begin}, {"end", s.end}});
    }
    return ein::capi::json_text(out);
  });
}

ein_status ein_session_inspect(ein_session* session, const char* text, size_t offset,
                               char** markdown, ein_error* error) {
  return ein::capi::answer(session, text, markdown, error, [&] {
    return ein::session::inspect(session->session, text, ein::capi::place_in(text, offset));
  });
}

ein_status ein_session_value(ein_session* session, const char* name, ein_result** result,
                             ein_error* error) {
  if (!session || !name || !result) {
    ein::capi::report(error, "", "this needs a session, a name, and somewhere to put the value");
    return EIN_USAGE;
  }
  *result = nullptr;
  return ein::capi::guarded(
      [&] {
        auto value = ein::session::value_of(session->session, name);
        if (!value) {
          ein::capi::report(error, "", std::string("the session has no value `") + name + "`");
          return EIN_USAGE;
        }
        auto made = std::make_unique<ein_result>();
        made->values.push_back(std::move(*value));
        const ein::Tensor& t = made->values[0];
        made->plain.push_back({static_cast<ein_dtype>(t.dtype()), static_cast<int32_t>(t.rank()),
                               t.shape().data(), made->values[0].data()});
        *result = made.release();
        return EIN_OK;
      },
      error);
}

}  // extern "C"

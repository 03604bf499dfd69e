#include "runtime/sink.h"

namespace ein {
namespace {

thread_local const Sink* t_sink = nullptr;

}  // namespace

const Sink* current_sink() { return t_sink; }

SinkScope::SinkScope(const Sink& sink) : before_(t_sink) { t_sink = &sink; }
SinkScope::~SinkScope() { t_sink = before_; }

}  // namespace ein

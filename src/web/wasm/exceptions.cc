// C++ exceptions in WebAssembly. Debian's libc++abi for WebAssembly is built without them, so this
// file has the missing part: throwing, catching by type, rethrowing. Unwinding itself is an
// instruction. Before a landing pad decides what to do, generated code calls
// `_Unwind_CallPersonality`, which looks into the function's table (the usual format, "Itanium C++
// ABI: Exception Handling") and returns the number of the matching handler. There is one thread,
// and no exception leaves the module.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <typeinfo>

namespace {

struct Thrown {
  const std::type_info* type;
  void* (*destroy)(void*);  // destructors return their object in WebAssembly
  int handlers;             // how many handlers are running
  Thrown* below;            // the exception whose handler runs around this one's
  void* adjusted;           // the object, converted to the type that the handler expects
};

// The object follows its header, aligned for any type.
constexpr size_t kHeader = (sizeof(Thrown) + 15) / 16 * 16;
void* object_of(Thrown* t) { return reinterpret_cast<char*>(t) + kHeader; }
Thrown* thrown_of(void* object) {
  return reinterpret_cast<Thrown*>(static_cast<char*>(object) - kHeader);
}

Thrown* g_caught = nullptr;  // the exception of the innermost running handler

// The members that libc++abi's type_info has before its public part: whether a handler for the
// first type catches the second.
struct Matcher : std::type_info {
  virtual void noop1() const = 0;
  virtual void noop2() const = 0;
  virtual bool can_catch(const Matcher* thrown, void*& adjusted) const = 0;
};

uintptr_t read_uleb(const uint8_t*& at) {
  uintptr_t out = 0;
  for (unsigned shift = 0;; shift += 7) {
    uint8_t byte = *at++;
    out |= static_cast<uintptr_t>(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return out;
  }
}

intptr_t read_sleb(const uint8_t*& at) {
  uintptr_t out = 0;
  for (unsigned shift = 0;;) {
    uint8_t byte = *at++;
    out |= static_cast<uintptr_t>(byte & 0x7f) << shift;
    shift += 7;
    if (byte & 0x80) continue;
    if ((byte & 0x40) && shift < sizeof(out) * 8) out |= ~uintptr_t{0} << shift;
    return static_cast<intptr_t>(out);
  }
}

constexpr uint8_t kAbsent = 0xff, kAbsolute = 0x00;

}  // namespace

extern "C" {

struct LandingPad {
  uintptr_t number;    // which of the function's landing pads
  uintptr_t table;     // the function's table
  uintptr_t selector;  // the handler that takes the exception; 0: none, destructors only
};
LandingPad __wasm_lpad_context;

int _Unwind_CallPersonality(void* object) {
  Thrown* thrown = thrown_of(object);
  LandingPad& pad = __wasm_lpad_context;
  pad.selector = 0;
  const auto* at = reinterpret_cast<const uint8_t*>(pad.table);
  if (!at) return 0;
  if (*at++ != kAbsent) std::abort();  // landing pads are numbers, not addresses
  uint8_t type_format = *at++;
  const uint8_t* types = nullptr;
  if (type_format != kAbsent) {
    if (type_format != kAbsolute) std::abort();
    uintptr_t distance = read_uleb(at);
    types = at + distance;
  }
  ++at;  // the format of the table of call sites: numbers
  uintptr_t length = read_uleb(at);
  const uint8_t* actions = at + length;
  uintptr_t action = 0;
  for (uintptr_t skipped = 0; skipped <= pad.number; ++skipped) {
    if (at >= actions) std::abort();
    read_uleb(at);
    action = read_uleb(at);
  }
  while (action != 0) {
    const uint8_t* entry = actions + action - 1;
    intptr_t number = read_sleb(entry);
    if (number > 0) {
      const Matcher* wanted = nullptr;
      std::memcpy(&wanted, types - static_cast<size_t>(number) * sizeof wanted, sizeof wanted);
      void* adjusted = object;
      if (!wanted || wanted->can_catch(static_cast<const Matcher*>(thrown->type), adjusted)) {
        thrown->adjusted = adjusted;
        pad.selector = static_cast<uintptr_t>(number);
        return 0;
      }
    }
    const uint8_t* from = entry;
    intptr_t next = read_sleb(entry);
    if (next == 0) break;
    action = static_cast<uintptr_t>(from - actions + next + 1);
  }
  return 0;
}

// Named in tables, but generated code calls the function above instead.
int __gxx_wasm_personality_v0() { std::abort(); }

void* __cxa_allocate_exception(size_t size) {
  void* at = std::malloc(kHeader + size);
  if (!at) std::abort();
  std::memset(at, 0, kHeader);
  return static_cast<char*>(at) + kHeader;
}

void __cxa_free_exception(void* object) { std::free(thrown_of(object)); }

[[noreturn]] void __cxa_throw(void* object, std::type_info* type, void* (*destroy)(void*)) {
  Thrown* t = thrown_of(object);
  t->type = type;
  t->destroy = destroy;
  __builtin_wasm_throw(0, object);
}

void* __cxa_get_exception_ptr(void* object) { return thrown_of(object)->adjusted; }

void* __cxa_begin_catch(void* object) {
  Thrown* t = thrown_of(object);
  t->handlers = (t->handlers < 0 ? -t->handlers : t->handlers) + 1;  // negative: it was rethrown
  if (g_caught != t) {
    t->below = g_caught;
    g_caught = t;
  }
  return t->adjusted ? t->adjusted : object;
}

void __cxa_end_catch() {
  Thrown* t = g_caught;
  if (!t) return;
  if (t->handlers < 0) {  // on its way to the next handler
    if (++t->handlers == 0) g_caught = t->below;
    return;
  }
  if (--t->handlers > 0) return;
  g_caught = t->below;
  if (t->destroy) t->destroy(object_of(t));
  std::free(t);
}

[[noreturn]] void __cxa_rethrow() {
  Thrown* t = g_caught;
  if (!t) std::terminate();
  t->handlers = -t->handlers;
  __builtin_wasm_throw(0, object_of(t));
}

}  // extern "C"

void* operator new(size_t size) {
  if (void* at = std::malloc(size ? size : 1)) return at;
  throw std::bad_alloc();
}
void* operator new[](size_t size) { return operator new(size); }
void* operator new(size_t size, std::align_val_t alignment) {
  auto to = static_cast<size_t>(alignment);
  if (void* at = std::aligned_alloc(to, (size + to - 1) / to * to)) return at;
  throw std::bad_alloc();
}
void operator delete(void* at) noexcept { std::free(at); }
void operator delete[](void* at) noexcept { std::free(at); }
void operator delete(void* at, size_t) noexcept { std::free(at); }
void operator delete[](void* at, size_t) noexcept { std::free(at); }
void operator delete(void* at, std::align_val_t) noexcept { std::free(at); }
void operator delete(void* at, size_t, std::align_val_t) noexcept { std::free(at); }

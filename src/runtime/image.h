// A compiled program as plain data: its machine code, and all that is needed to call it without the
// compiler. The cache keeps images, and `ein build` puts one into a library.
//
// Machine code calls the run-time library through a table that is passed in (native_abi.h), so an
// image contains no addresses and may be written to a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/source.h"
#include "runtime/effect.h"
#include "runtime/layout.h"
#include "runtime/processor.h"
#include "runtime/tensor.h"

namespace ein {

// An integer or a condition, computed from the symbolic extents of a program: operations in postfix
// order. Add and Mul must not overflow; the others behave like those of i64 in core.h. An operation
// that fails (division by zero, overflow, a shift) only makes the formula fail if its value is
// used.
struct Formula {
  // clang-format off
  enum class Op : uint8_t {
    Const, Param,  // `value`: the number, or the number of the param
    Add, Mul, Div, Mod, Pow, Min, Max, Abs, Sign, Lt, Le, Gt, Ge, Eq, Ne, And, Or, Not, Select,
    BitAnd, BitOr, BitXor, BitNot, BitLength,
    Shl, Shr,  // in an integer of `value` bits
    Wrap,  // to the integer type in `value`
  };
  // clang-format on
  struct Part {
    Op op = Op::Const;
    int64_t value = 0;
  };
  std::vector<Part> parts;
};
int64_t evaluate(const Formula& f, const int64_t* params);  // throws RuntimeError

struct Image {
  struct Coord {
    std::string name;  // empty if it has none
    Formula extent;
  };
  struct Input {
    std::string name;
    std::string path;  // `net.w`, for a part of a record
    DType dtype = DType::F32;
    std::vector<Coord> coords;
    Span span;
    const std::string& spelled() const { return path.empty() ? name : path; }
    int64_t window = 0;  // how many rows are in memory at a time (row_file.h); 0: all
  };
  struct Param {
    static constexpr uint32_t kItself = ~uint32_t{0};  // as a `position`: the value itself
    // As an `input`: none, because nothing needs it.
    static constexpr uint32_t kNone = ~uint32_t{0};
    std::string name;  // as in messages: `n`, or `extent(x, 0)`
    uint32_t input = kNone, position = 0;
  };
  struct Constraint {
    Formula cond;
    std::string message;
    std::vector<uint32_t> params;  // the params that it reads, in the order of their names
    Span span;
  };
  struct Buffer {
    enum class Space : uint8_t { Input, Constant, Output, Row, Temp } space = Space::Temp;
    std::string name, path;  // as for an input
    DType dtype = DType::F32;
    std::vector<Formula> dims;
    std::vector<std::string> coords;  // the family's coordinates; empty if they have no name
    uint32_t input = 0;               // Input: its number
    uint32_t family = 0;              // the family's number in the module that was compiled
    uint32_t step = 0;                // the step of the schedule that computes it
    Lifetime lives;                   // Temp, Row
    bool wanted = false;
    Tensor constant;  // Constant
    Span span;
    const std::string& spelled() const { return path.empty() ? name : path; }
  };
  struct Site {
    enum class Kind : uint8_t {
      Bounds,
      DivideByZero,
      Shift,
      Overflow,
      TooDeep,
      Call,
      Step,
      Rows,
      NotFinite,
      Fetch,
      Move
    };
    Kind kind = Kind::Bounds;
    // The family accessed; the message of an assertion; the recurrence; or an operator.
    std::string name;
    std::vector<Formula> extents;  // Bounds: of the family; its buffer may hold only a part of it
    Span span, statement;
    uint32_t arity = 0;       // Overflow: how many operands; NotFinite: how many coordinates
    DType type = DType::I64;  // Overflow, Shift
    // Step: the members of the recurrence. Fetch: the only member is the buffer. Move: the members
    // are where cells come from and where they go, by steps at `position` unless that is kWhole.
    static constexpr uint32_t kWhole = ~uint32_t{0};
    int64_t move = -1;  // Move: its number
    struct Member {
      uint32_t buffer = 0, position = 0;
      Formula extent;  // how many steps it has; the buffer may keep only the last few
    };
    std::string coordinate;
    bool downward = false;
    uint32_t step = 0;    // which step of the schedule
    uint32_t kernel = 0;  // the kernel that contains the loop
    std::vector<Member> members;
  };
  struct Launch {          // a kernel of the device, and its arguments:
    std::string name;      // in `ptx`
    uint32_t threads = 0;  // threads of a block
    // Their addresses; of a Row, the address of a piece for every block.
    std::vector<uint32_t> buffers;
    std::vector<uint32_t> written;  // (which of them it writes)
    std::vector<uint32_t> extents;  // Frame::dims with these numbers
    uint32_t words = 0;  // words from the host; then come the record of failures and a number
  };
  struct Place {  // what a message says if it cannot show the source
    Span span;
    std::string text;
  };

  std::vector<Input> inputs;
  std::vector<Param> params;
  std::vector<Constraint> constraints;
  std::vector<Buffer> buffers;
  std::vector<Site> sites;
  Processor processor = Processor::Native;
  uint32_t kernels = 0;
  std::string object;  // an ELF object file, if it is kept
  std::string ptx;     // for a device
  std::vector<Launch> launches;
  // For a program that runs without the compiler:
  std::vector<uint32_t> outputs;  // buffers, in the order in which the caller asked for them
  std::vector<Effect> effects;    // values are buffers
  std::vector<Input> unused;      // inputs of the program that nothing here needs
  std::vector<Place> places;
};

std::string pack(const Image& image);
std::optional<Image> unpack(std::string_view bytes);  // nothing if the bytes are not an image

std::string place_text(const Image& image, Span at);  // empty if it is not known

}  // namespace ein

// The C header of a library: what to pass and what comes back, for a reader who has not seen the
// program.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/check.h"
#include "driver/build.h"
#include "runtime/standalone.h"

namespace ein {
namespace {

const char* c_type(DType t) {
  switch (t) {
    case DType::Bool: return "bool";
    case DType::I8: return "int8_t";
    case DType::I16: return "int16_t";
    case DType::I32: return "int32_t";
    case DType::I64: return "int64_t";
    case DType::U8: return "uint8_t";
    case DType::F32: return "float";
    case DType::F64: return "double";
    case DType::F16:
    case DType::BF16: return "uint16_t";  // the bits
    case DType::Str: break;
  }
  EIN_UNREACHABLE("native code has no such values");
}

// An extent in words: `n`, `3`, `n + 1`; in terms of the extents of the inputs.
std::string text_of(const Image& image, const Formula& f) {
  using Op = Formula::Op;
  struct Term {
    std::string text;
    bool sum = false;
  };
  std::vector<Term> stack;
  auto pop = [&] {
    Term t = stack.back();
    stack.pop_back();
    return t;
  };
  auto grouped = [](const Term& t) { return t.sum ? "(" + t.text + ")" : t.text; };
  for (const Formula::Part& p : f.parts) {
    if (p.op == Op::Const) {
      stack.push_back({std::to_string(p.value)});
      continue;
    }
    if (p.op == Op::Param) {
      stack.push_back({image.params[static_cast<size_t>(p.value)].name});
      continue;
    }
    if (p.op == Op::Wrap) continue;
    if (p.op == Op::Abs || p.op == Op::Sign || p.op == Op::Not || p.op == Op::BitNot ||
        p.op == Op::BitLength) {
      const char* name = p.op == Op::Abs         ? "abs"
                         : p.op == Op::Sign      ? "sign"
                         : p.op == Op::Not       ? "!"
                         : p.op == Op::BitLength ? "bit_length"
                                                 : "~";
      stack.back() = {fmt::format("{}({})", name, stack.back().text)};
      continue;
    }
    Term b = pop(), a = pop();
    auto infix = [&](const char* op) {
      stack.push_back({fmt::format("{} {} {}", grouped(a), op, grouped(b)), true});
    };
    switch (p.op) {
      case Op::Add:
        if (a.text == "0")
          stack.push_back(b);
        else if (b.text.starts_with('-'))
          stack.push_back({a.text + " - " + b.text.substr(1), true});
        else if (a.text.starts_with('-'))
          stack.push_back({b.text + " - " + a.text.substr(1), true});
        else
          stack.push_back(
              {std::isdigit(a.text[0]) ? b.text + " + " + a.text : a.text + " + " + b.text, true});
        break;
      case Op::Mul:
        if (b.text == "1")
          stack.push_back(a);
        else if (b.text == "-1")
          stack.push_back({"-" + grouped(a)});
        else
          stack.push_back({b.text + "*" + grouped(a)});
        break;
      case Op::Div: infix("/"); break;
      case Op::Mod: infix("%"); break;
      case Op::Pow: infix("**"); break;
      case Op::Min: stack.push_back({fmt::format("min({}, {})", a.text, b.text)}); break;
      case Op::Max: stack.push_back({fmt::format("max({}, {})", a.text, b.text)}); break;
      case Op::Lt: infix("<"); break;
      case Op::Le: infix("<="); break;
      case Op::Gt: infix(">"); break;
      case Op::Ge: infix(">="); break;
      case Op::Eq: infix("=="); break;
      case Op::Ne: infix("!="); break;
      case Op::BitAnd: infix("&"); break;
      case Op::BitOr: infix("|"); break;
      case Op::BitXor: infix("^"); break;
      case Op::Shl: infix("<<"); break;
      case Op::Shr: infix(">>"); break;
      case Op::And: infix("&&"); break;
      case Op::Or: infix("||"); break;
      case Op::Select: {
        Term cond = pop();
        stack.push_back({fmt::format("({} ? {} : {})", cond.text, a.text, b.text)});
        break;
      }
      case Op::Const:
      case Op::Param:
      case Op::Abs:
      case Op::Sign:
      case Op::Not:
      case Op::BitNot:
      case Op::BitLength:
      case Op::Wrap: break;
    }
  }
  return stack.back().text;
}

// "W[i: n, j: 3]: f32", the coordinates with their extents.
std::string type_text(const Image& image, const std::string& name, DType dtype,
                      const std::vector<std::string>& coords, const std::vector<Formula>& dims) {
  std::string list;
  for (size_t k = 0; k < dims.size(); ++k) {
    list += fmt::format("{}{}: {}", k ? ", " : "", coords[k].empty() ? "_" : coords[k],
                        text_of(image, dims[k]));
  }
  return dims.empty() ? fmt::format("{}: {}", name, name_of(dtype))
                      : fmt::format("{}[{}]: {}", name, list, name_of(dtype));
}

class Names {
 public:
  std::string of(const std::string& name) {
    std::string out = c_identifier(name);
    while (!taken_.insert(out).second) out += "_";
    return out;
  }

 private:
  std::set<std::string> taken_{"ein_owned"};
};

// So that the text of a comment cannot end it.
std::string comment(std::string text) {
  for (size_t at = 0; (at = text.find("*/", at)) != std::string::npos;) text.replace(at, 2, "* /");
  return text;
}

struct HeaderField {
  DType dtype;
  size_t rank;
  std::string about;
};

// The fields of a struct, line by line; those of a record are a struct inside it.
void add_fields(std::string& out, const StructPart& of, const std::vector<HeaderField>& fields,
                const char* qualifier, const std::string& indent) {
  Names names;
  for (const StructPart& part : of.parts) {
    const std::string name = names.of(part.name);
    if (!part.parts.empty()) {
      out += indent + "struct {\n";
      add_fields(out, part, fields, qualifier, indent + "  ");
      out += fmt::format("{}}} {};\n", indent, name);
      continue;
    }
    const HeaderField& f = fields[part.field];
    if (f.rank == 0) {
      out += fmt::format("{}{} {};  /* {} */\n", indent, c_type(f.dtype), name, comment(f.about));
    } else {
      out += fmt::format("{0}{1}{2} *{3};  /* {4} */\n{0}int64_t {3}_shape[{5}];\n", indent,
                         qualifier, c_type(f.dtype), name, comment(f.about), f.rank);
    }
  }
}

}  // namespace

std::string c_identifier(const std::string& name) {
  // clang-format off
  static const std::set<std::string> words{
      "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char", "class", "concept",
      "const", "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double",
      "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline",
      "int", "long", "mutable", "namespace", "new", "noexcept", "not", "nullptr", "operator", "or", "private",
      "protected", "public", "register", "requires", "restrict", "return", "short", "signed", "sizeof", "static",
      "struct", "switch", "template", "this", "throw", "true", "try", "typedef", "typeid", "typename", "union",
      "unsigned", "using", "virtual", "void", "volatile", "while", "xor"};
  // clang-format on
  std::string out;
  for (char c : name) {
    bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    out += plain ? std::string(1, c) : fmt::format("_{:02x}", static_cast<unsigned char>(c));
  }
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out = "_" + out;
  return words.contains(out) ? out + "_" : out;
}

std::string header_text(const Image& image, const std::string& name, const std::string& source) {
  std::string guard = "EIN_" + name + "_H";
  std::transform(guard.begin(), guard.end(), guard.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string inputs, outputs;
  std::vector<HeaderField> in, out;
  for (const Image::Input& i : image.inputs) {
    std::vector<std::string> coords;
    std::vector<Formula> dims;
    for (const Image::Coord& c : i.coords) {
      coords.push_back(c.name);
      dims.push_back(c.extent);
    }
    in.push_back({i.dtype, i.coords.size(), type_text(image, i.spelled(), i.dtype, coords, dims)});
  }
  for (uint32_t number : image.outputs) {
    const Image::Buffer& b = image.buffers[number];
    out.push_back(
        {b.dtype, b.dims.size(), type_text(image, b.spelled(), b.dtype, b.coords, b.dims)});
  }
  add_fields(inputs, input_struct(image), in, "const ", "  ");
  add_fields(outputs, output_struct(image), out, "", "  ");
  if (inputs.empty()) inputs = "  char ein_none;  /* the program has no inputs */\n";
  std::string needs;
  for (const Image::Constraint& c : image.constraints) {
    needs += fmt::format(" *   {}\n", comment(text_of(image, c.cond)));
  }
  if (!needs.empty()) needs = " *\n * The call fails unless the extents satisfy:\n" + needs;
  return fmt::format(
      R"(/* Generated by `ein build` from {source}; do not edit.
 *
 *   {name}_inputs in = {{0}};
 *   {name}_outputs out = {{0}};
 *   {name}_error error;
 *   if ({name}_run(&in, &out, &error) != 0) puts(error.message);
 *   {name}_free(&out);
 *
 * Tensors are dense and row-major: a pointer, and their extents in the order of their coordinates.
 * Extents may differ from call to call. Several threads may call at the same time.
{needs} */
#ifndef {guard}
#define {guard}

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

typedef struct {name}_inputs {{
{inputs}}} {name}_inputs;

/* If a pointer is null, {name}_run allocates the memory and sets the extents, and {name}_free frees it.
 * Otherwise the pointer is memory of the caller for a value of exactly the given extents, which must not
 * overlap the inputs or the other outputs. */
typedef struct {name}_outputs {{
{outputs}  unsigned char ein_owned[{count}];  /* 1 for outputs allocated by {name}_run */
}} {name}_outputs;

typedef struct {name}_error {{
  char code[8];  /* such as E0803: `ein explain E0803` */
  char message[1016];
}} {name}_error;

/* Returns 0, or 1 on failure: then `error`, which may be null, is filled in and nothing is allocated. */
int {name}_run(const {name}_inputs *in, {name}_outputs *out, {name}_error *error);
void {name}_free({name}_outputs *out);

#ifdef __cplusplus
}}
#endif

#endif
)",
      fmt::arg("source", comment(source)), fmt::arg("name", name), fmt::arg("guard", guard),
      fmt::arg("needs", needs), fmt::arg("inputs", inputs), fmt::arg("outputs", outputs),
      fmt::arg("count", std::max<size_t>(1, image.outputs.size())));
}

}  // namespace ein

// Einlang from C++20: einlang.h with destructors and exceptions.
//
//   einlang::Program p = einlang::Program::compile("let x: [f32; i]; let y[i] = 2.0 * x[i];");
//   std::vector<float> x{1, 2, 3};
//   einlang::Result r = p.call({einlang::input(x, {3})});
//   std::span<const float> y = r.at<float>("y");
#pragma once

#include <einlang/einlang.h>

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace einlang {

// An error. If a program does not compile, `diagnostics` has all messages.
class Error : public std::runtime_error {
 public:
  Error(ein_status status, const ein_error& error, std::string diagnostics = {})
      : std::runtime_error(error.message),
        status(status),
        code(error.code),
        diagnostics(std::move(diagnostics)) {}
  ein_status status;
  std::string code;
  std::string diagnostics;
};

template <class T>
constexpr ein_dtype dtype_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, bool>)
    return EIN_BOOL;
  else if constexpr (std::is_same_v<U, int8_t>)
    return EIN_I8;
  else if constexpr (std::is_same_v<U, int16_t>)
    return EIN_I16;
  else if constexpr (std::is_same_v<U, int32_t>)
    return EIN_I32;
  else if constexpr (std::is_same_v<U, int64_t>)
    return EIN_I64;
  else if constexpr (std::is_same_v<U, uint8_t>)
    return EIN_U8;
  else if constexpr (std::is_same_v<U, float>)
    return EIN_F32;
  else {
    static_assert(std::is_same_v<U, double>, "no element type of Einlang");
    return EIN_F64;
  }
}

// An array in the caller's memory, with its extents.
class Tensor {
 public:
  Tensor(ein_dtype dtype, void* data, std::vector<int64_t> shape)
      : dtype_(dtype), data_(data), shape_(std::move(shape)) {}
  ein_tensor get() const {
    return {dtype_, static_cast<int32_t>(shape_.size()), shape_.data(), data_};
  }

 private:
  ein_dtype dtype_;
  void* data_;
  std::vector<int64_t> shape_;
};

// `cells` is read during the call, or written if it is passed as an output.
template <class T>
Tensor output(std::span<T> cells, std::vector<int64_t> shape) {
  int64_t size = 1;
  for (int64_t extent : shape) size *= extent;
  if (static_cast<size_t>(size) != cells.size())
    throw std::invalid_argument("the extents do not multiply to the number of elements");
  return Tensor(dtype_of<T>(), const_cast<std::remove_cv_t<T>*>(cells.data()), std::move(shape));
}
template <class C>
Tensor output(C& cells, std::vector<int64_t> shape) {
  return output(std::span(cells), std::move(shape));
}
template <class C>
Tensor input(const C& cells, std::vector<int64_t> shape) {
  return output(std::span(cells), std::move(shape));
}
template <class T>
requires std::is_arithmetic_v<T> Tensor input(const T& scalar) {
  return Tensor(dtype_of<T>(), const_cast<T*>(&scalar), {});
}

struct Options {
  std::vector<std::string> outputs = {};  // empty for every value of the program
  std::string grad_of = {};               // also computes `d_<of>_d_<wrt>`
  std::vector<std::string> grad_wrt = {};
  int opt_level = 2;
  bool cache = true;
};

class Program;

// The outputs of one call.
class Result {
 public:
  const ein_tensor& operator[](size_t number) const {
    const ein_tensor* t = ein_result_output(result_.get(), number);
    if (!t) throw std::out_of_range("no such output");
    return *t;
  }
  inline const ein_tensor& operator[](std::string_view name) const;
  // The cells of an output, in row-major order.
  template <class T>
  std::span<const T> at(std::string_view name) const {
    const ein_tensor& t = (*this)[name];
    if (t.dtype != dtype_of<T>()) {
      throw std::invalid_argument(std::string(name) + " is " + ein_dtype_name(t.dtype));
    }
    size_t size = 1;
    for (int32_t k = 0; k < t.rank; ++k) size *= static_cast<size_t>(t.shape[k]);
    return {static_cast<const T*>(t.data), size};
  }

 private:
  friend class Program;
  using Handle = std::unique_ptr<ein_result, decltype(&ein_result_free)>;
  Result(ein_result* result, std::shared_ptr<ein_program> program)
      : result_(result, ein_result_free), program_(std::move(program)) {}
  Handle result_;
  std::shared_ptr<ein_program> program_;
};

class Program {
 public:
  static Program compile(const std::string& source, const Options& options = {},
                         const std::string& name = "<program>") {
    return make(options, [&](const ein_options* o, ein_program** p, ein_error* e) {
      return ein_compile(source.c_str(), name.c_str(), o, p, e);
    });
  }
  static Program compile_file(const std::string& path, const Options& options = {}) {
    return make(options, [&](const ein_options* o, ein_program** p, ein_error* e) {
      return ein_compile_file(path.c_str(), o, p, e);
    });
  }

  std::string warnings() const { return ein_diagnostics(get(), EIN_TEXT); }
  std::vector<ein_value> inputs() const {
    std::vector<ein_value> out;
    for (size_t i = 0; i < ein_input_count(get()); ++i) out.push_back(*ein_input(get(), i));
    return out;
  }
  std::vector<ein_value> outputs() const {
    std::vector<ein_value> out;
    for (size_t i = 0; i < ein_output_count(get()); ++i) out.push_back(*ein_output(get(), i));
    return out;
  }

  // Takes the inputs in the order of the program.
  Result call(const std::vector<Tensor>& inputs = {}) const {
    std::vector<ein_tensor> given = plain(inputs);
    ein_result* result = nullptr;
    ein_error error;
    check(ein_call(get(), given.data(), given.size(), &result, &error), error);
    return Result(result, handle_);
  }
  void call_into(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) const {
    std::vector<ein_tensor> given = plain(inputs), to = plain(outputs);
    call_into(std::span<const ein_tensor>(given), std::span<const ein_tensor>(to));
  }
  // The same without any allocation.
  void call_into(std::span<const ein_tensor> inputs, std::span<const ein_tensor> outputs) const {
    ein_error error;
    check(
        ein_call_into(get(), inputs.data(), inputs.size(), outputs.data(), outputs.size(), &error),
        error);
  }

  ein_program* get() const { return handle_.get(); }

 private:
  explicit Program(std::shared_ptr<ein_program> handle) : handle_(std::move(handle)) {}

  static std::vector<ein_tensor> plain(const std::vector<Tensor>& tensors) {
    std::vector<ein_tensor> out;
    for (const Tensor& t : tensors) out.push_back(t.get());
    return out;
  }
  static void check(ein_status status, const ein_error& error) {
    if (status != EIN_OK) throw Error(status, error);
  }
  template <class F>
  static Program make(const Options& options, const F& compile) {
    auto plain_names = [](const std::vector<std::string>& names) {
      std::vector<const char*> out;
      for (const std::string& n : names) out.push_back(n.c_str());
      return out;
    };
    std::vector<const char*> outputs = plain_names(options.outputs),
                             wrt = plain_names(options.grad_wrt);
    ein_options o;
    ein_options_init(&o);
    o.outputs = outputs.empty() ? nullptr : outputs.data();
    o.output_count = outputs.size();
    o.grad_of = options.grad_of.empty() ? nullptr : options.grad_of.c_str();
    o.grad_wrt = wrt.data();
    o.grad_wrt_count = wrt.size();
    o.opt_level = options.opt_level;
    o.no_cache = options.cache ? 0 : 1;
    ein_program* program = nullptr;
    ein_error error;
    ein_status status = compile(&o, &program, &error);
    std::shared_ptr<ein_program> handle(program, ein_program_free);
    if (status != EIN_OK) {
      throw Error(status, error, program ? ein_diagnostics(program, EIN_TEXT) : "");
    }
    return Program(std::move(handle));
  }

  std::shared_ptr<ein_program> handle_;
};

inline const ein_tensor& Result::operator[](std::string_view name) const {
  int64_t number = ein_find_output(program_.get(), std::string(name).c_str());
  if (number < 0) throw std::out_of_range("the program has no output " + std::string(name));
  return (*this)[static_cast<size_t>(number)];
}

}  // namespace einlang

#include "slices.h"

#include <algorithm>

namespace einlang {
namespace {

ein_status call_once(ein_program* program, Slices inputs, Slices outputs, int32_t (*poll)(void*),
                     void* poll_data, ein_error* error) {
  if (!poll) {
    return ein_call_into(program, inputs.tensors.data(), inputs.tensors.size(),
                         outputs.tensors.data(), outputs.tensors.size(), error);
  }
  ein_call_options options{sizeof options, outputs.tensors.data(), poll, poll_data};
  ein_result* result = nullptr;
  ein_status status = ein_call_with(program, inputs.tensors.data(), inputs.tensors.size(), &options,
                                    &result, error);
  ein_result_free(result);
  return status;
}

// `count` slices further along coordinate k of the batch.
void move(Slices& slices, size_t levels, size_t k, int64_t count) {
  for (size_t i = 0; i < slices.tensors.size(); ++i) {
    void*& data = slices.tensors[i].data;
    if (data) data = static_cast<char*>(data) + slices.steps[i * levels + k] * count;
  }
}

}  // namespace

int64_t bytes_of(const ein_tensor& t) {
  auto bytes = static_cast<int64_t>(ein_dtype_size(t.dtype));
  for (int32_t k = 0; k < t.rank; ++k) bytes *= t.shape[k];
  return bytes;
}

void dense_steps(std::span<const int64_t> batch, int64_t within, std::span<int64_t> out) {
  for (size_t k = batch.size(); k-- > 0;) {
    out[k] = within;
    within *= batch[k];
  }
}

ein_status call_slices(ein_program* program, std::span<const int64_t> batch, Slices inputs,
                       Slices outputs, int32_t (*poll)(void*), void* poll_data, ein_error* error) {
  if (std::find(batch.begin(), batch.end(), 0) != batch.end()) return EIN_OK;
  size_t levels = batch.size();
  Small<int64_t, 8> at(levels);
  std::fill(at.all().begin(), at.all().end(), 0);
  for (;;) {
    ein_status status = call_once(program, inputs, outputs, poll, poll_data, error);
    if (status != EIN_OK) return status;
    size_t k = levels;  // the last coordinate that has a further slice
    while (k > 0 && at[k - 1] + 1 == batch[k - 1]) {
      --k;
      move(inputs, levels, k, -at[k]);
      move(outputs, levels, k, -at[k]);
      at[k] = 0;
    }
    if (k == 0) return EIN_OK;
    ++at[k - 1];
    move(inputs, levels, k - 1, 1);
    move(outputs, levels, k - 1, 1);
  }
}

}  // namespace einlang

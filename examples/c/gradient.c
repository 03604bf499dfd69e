/* A least-squares loss and its gradient, from C. Prints both. */
#include <einlang/einlang.h>
#include <stdio.h>

static const char *source =
    "let x: [f64; n, k];\n"
    "let y: [f64; n];\n"
    "let w: [f64; k];\n"
    "let error[n] = sum[k](x[n, k] * w[k]) - y[n];\n"
    "let loss = sum[n](error[n] ** 2.0);\n"
    "let slope = @loss / @w;\n";

int main(void) {
  const char *outputs[] = {"loss", "slope"};
  ein_options options;
  ein_options_init(&options);
  options.outputs = outputs;
  options.output_count = 2;
  ein_program *program = NULL;
  ein_error error;
  if (ein_compile(source, "least squares", &options, &program, &error) != EIN_OK) {
    fprintf(stderr, "%s\n%s", error.message, ein_diagnostics(program, EIN_TEXT));
    ein_program_free(program);
    return 1;
  }

  double x[] = {1, 2, 3, 4, 5, 6}, y[] = {1, 2, 3}, w[] = {0.5, -0.5};
  int64_t x_shape[] = {3, 2}, y_shape[] = {3}, w_shape[] = {2};
  ein_tensor inputs[] = {
      {EIN_F64, 2, x_shape, x}, {EIN_F64, 1, y_shape, y}, {EIN_F64, 1, w_shape, w}};
  ein_result *result = NULL;
  ein_status status = ein_call(program, inputs, 3, &result, &error);
  if (status == EIN_OK) {
    const double *slope = ein_result_output(result, 1)->data;
    printf("loss %g\nslope %g %g\n", *(double *)ein_result_output(result, 0)->data, slope[0],
           slope[1]);
  } else {
    fprintf(stderr, "%s\n", error.message);
  }
  ein_result_free(result);
  ein_program_free(program);
  return status == EIN_OK ? 0 : 1;
}

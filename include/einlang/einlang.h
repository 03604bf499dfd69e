/* Einlang from C: compile a program, call it with arrays, get arrays.
 *
 *   ein_program *program = NULL;
 *   ein_error error;
 *   if (ein_compile("let x: [f32; i]; let y[i] = 2.0 * x[i];", NULL, NULL, &program, &error) != EIN_OK)
 *     puts(ein_diagnostics(program, EIN_TEXT));
 *   else {
 *     ein_tensor x = {EIN_F32, 1, (int64_t[]){3}, data};
 *     ein_result *result = NULL;
 *     if (ein_call(program, &x, 1, &result, &error) != EIN_OK) puts(error.message);
 *     else use(ein_result_output(result, 0)->data);
 *     ein_result_free(result);
 *   }
 *   ein_program_free(program);
 *
 * Every function may be called from any thread, and a program may be called from several threads at a
 * time; but nothing else may use a program while ein_program_free frees it. No function throws, and null
 * handles may be freed.
 *
 * Tensors are dense and row-major. Inputs are read during the call and not kept.
 *
 * Programs are trusted: at compile time, `load` reads any file that the process may read. A call does
 * not print or save anything; that is left to the caller. */
#ifndef EINLANG_H
#define EINLANG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EIN_API_VERSION 1

#if defined(_WIN32) || !defined(__GNUC__)
#define EIN_API
#else
#define EIN_API __attribute__((visibility("default")))
#endif

typedef struct ein_program ein_program;
typedef struct ein_result ein_result;

typedef enum ein_status {
  EIN_OK = 0,
  EIN_PROGRAM_WRONG = 1, /* see ein_diagnostics */
  EIN_USAGE = 2,         /* wrong arguments */
  EIN_FAILED = 3,        /* the call failed: bounds, an assertion, a wrong shape, memory */
  EIN_INTERNAL = 70      /* a bug in the compiler */
} ein_status;

typedef enum ein_dtype {
  EIN_BOOL = 0, /* one byte, 0 or 1 */
  EIN_I8 = 1,
  EIN_I16 = 2,
  EIN_I32 = 3,
  EIN_I64 = 4,
  EIN_U8 = 5,
  EIN_F16 = 6,
  EIN_BF16 = 7,
  EIN_F32 = 8,
  EIN_F64 = 9
} ein_dtype;

typedef struct ein_tensor {
  ein_dtype dtype;
  int32_t rank;         /* 0 for a scalar, which has no shape */
  const int64_t *shape; /* one extent per coordinate */
  void *data;
} ein_tensor;

typedef struct ein_error {
  char code[8];       /* such as "E0803", for `ein explain E0803`; empty if there is none */
  char message[1016]; /* truncated if it is longer */
} ein_error;

typedef struct ein_options {
  size_t size;                /* sizeof(ein_options), so that later versions can tell */
  const char *const *outputs; /* the values to compute; null for every value of the program */
  size_t output_count;
  const char *grad_of;         /* if not null, also computes the derivatives of this value, */
  const char *const *grad_wrt; /* called `d_<grad_of>_d_<wrt>` */
  size_t grad_wrt_count;
  int32_t opt_level; /* 0 to 3 */
  int32_t no_cache;  /* not 0: do not use the cache on disk */
} ein_options;

/* Sets the defaults. Call this first, then change what you need. */
EIN_API void ein_options_init(ein_options *options);

/* Compiles a program from its text, or from a file. `name` is the file name that messages show; modules and
 * files are looked for next to it. `name`, `options` and `error` may be null. A program with mistakes gives a
 * handle too, which has the diagnostics and must be freed. */
EIN_API ein_status ein_compile(const char *source, const char *name, const ein_options *options,
                               ein_program **program, ein_error *error);
EIN_API ein_status ein_compile_file(const char *path, const ein_options *options,
                                    ein_program **program, ein_error *error);
EIN_API void ein_program_free(ein_program *program);

/* Errors and warnings of the compilation: as `ein check` shows them, or as JSON, one object per line.
 * Empty if there are none. Valid until the program is freed. */
typedef enum ein_diagnostics_format { EIN_TEXT = 0, EIN_JSON = 1 } ein_diagnostics_format;
EIN_API const char *ein_diagnostics(const ein_program *program, ein_diagnostics_format format);

/* An input or an output. */
typedef struct ein_value {
  const char *name;
  ein_dtype dtype;
  int32_t rank;
  const char *const *coords; /* the names of the coordinates; "" for one without a name */
  const int64_t *extents;    /* -1 if it depends on the inputs of a call */
} ein_value;

EIN_API size_t ein_input_count(const ein_program *program);
EIN_API size_t ein_output_count(const ein_program *program);
/* Null if the number is out of range. Valid until the program is freed. */
EIN_API const ein_value *ein_input(const ein_program *program, size_t number);
EIN_API const ein_value *ein_output(const ein_program *program, size_t number);
/* The number of an input or output with this name; -1 if there is none. */
EIN_API int64_t ein_find_input(const ein_program *program, const char *name);
EIN_API int64_t ein_find_output(const ein_program *program, const char *name);

/* Calls the program with all its inputs in order. The outputs belong to the result. */
EIN_API ein_status ein_call(ein_program *program, const ein_tensor *inputs, size_t count,
                            ein_result **result, ein_error *error);
EIN_API const ein_tensor *ein_result_output(const ein_result *result, size_t number);
EIN_API void ein_result_free(ein_result *result);

/* The same, but writes the outputs to memory of the caller: one tensor for every output, with its type and
 * extents, that does not overlap the other outputs or the inputs (E0802). Only memory for intermediate values
 * is allocated, and it is kept for the next call. */
EIN_API ein_status ein_call_into(ein_program *program, const ein_tensor *inputs, size_t count,
                                 const ein_tensor *outputs, size_t output_count, ein_error *error);

EIN_API uint32_t ein_api_version(void); /* the library's EIN_API_VERSION */
EIN_API const char *ein_version(void);  /* of the library, "MAJOR.MINOR.PATCH" */
EIN_API size_t ein_dtype_size(ein_dtype dtype);      /* bytes per element; 0 if there is no such type */
EIN_API const char *ein_dtype_name(ein_dtype dtype); /* such as "f32"; null if there is no such type */

#ifdef __cplusplus
}
#endif

#endif

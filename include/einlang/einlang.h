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

#define EIN_API_VERSION 2

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
  EIN_INTERNAL = 70,     /* a bug in the compiler */
  EIN_INTERRUPTED = 130  /* stopped by the poll of ein_call_options */
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

/* A derivative of a program, which is a program too. It computes the values `of` and their derivatives by
 * the values `wrt`; each name may be that of a record. Values of one derivative have one float type. */
typedef enum ein_form {
  EIN_VALUES = 0,   /* no derivative */
  EIN_GRADIENT = 1, /* of one number: `grads.W` */
  EIN_VJP = 2,      /* a further input `y_bar` for each of `of`; `W_bar` for each of `wrt` */
  EIN_JVP = 3,      /* a further input `W_dot` for each of `wrt`; `y_dot` for each of `of` */
  EIN_HVP = 4,      /* of one number: a further input `W_dot`, and `W_hv` */
  EIN_JACOBIAN = 5, /* in full: `jacobian.W`, or `jacobian.y.W` of several `of` */
  EIN_HESSIAN = 6   /* of one number, in full: `hessian.V.W` */
} ein_form;

typedef struct ein_derivation {
  ein_form form;
  const char *const *of;
  size_t of_count;
  const char *const *wrt;
  size_t wrt_count;
} ein_derivation;

typedef struct ein_file {
  const char *path;
  const char *text;
} ein_file;

/* A text that was compiled before. */
typedef struct ein_earlier {
  const char *name; /* in messages */
  const char *text;
  int32_t hidden; /* not 0: it defines nothing, but what it replaces stays replaced */
} ein_earlier;

typedef struct ein_options {
  size_t size;                /* sizeof(ein_options), so that later versions can tell */
  const char *const *outputs; /* the values to compute; null for every value that the source defines */
  size_t output_count;
  const char *grad_of;         /* if not null, also computes the derivatives of this value, */
  const char *const *grad_wrt; /* called `d_<grad_of>_d_<wrt>` */
  size_t grad_wrt_count;
  int32_t opt_level; /* 0 to 3 */
  int32_t no_cache;  /* not 0: do not use the cache on disk */
  /* Since version 2: */
  const ein_derivation *derivations; /* each a derivative of the program that those before it make */
  size_t derivation_count;
  const char *precision; /* of the factors of sums of products: "f32", "bf16-mixed", "f16-mixed"; null: f32 */
  int32_t threads;       /* how many threads may share the work of a call; 0: one per processor */
  const ein_file *files; /* modules that are not read from disk but from here */
  size_t file_count;
  /* If not 0: how many bytes the values that derivatives of recurrences need may take. Steps are then computed again
   * instead of being kept; the program is compiled once for each combination of extents. */
  uint64_t grad_memory;
  /* Texts that were compiled before, the newest last, as the cells of a notebook: the program has their
   * definitions too, unless it or a newer one defines the same name. What they print and save is not done. */
  const ein_earlier *earlier;
  size_t earlier_count;
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
  /* Since version 2: */
  const char *path;                /* `net.w1` for a part of a record; otherwise the name */
  const char *const *extent_texts; /* each extent as it is computed: "3", "n + 1" */
  int32_t needed;                  /* 0: an input that no output depends on; a call takes any tensor for it */
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

/* ---- Since version 2 */

typedef struct ein_call_options {
  size_t size; /* sizeof(ein_call_options) */
  /* Null, or one tensor for each output: memory of the caller, as for ein_call_into. Outputs whose rank is
   * -1 here get memory from the library. */
  const ein_tensor *outputs;
  /* If not null: called about every 50 ms between steps of a recurrence, on the thread of the call. The call
   * ends with EIN_INTERRUPTED when it returns something other than 0. */
  int32_t (*poll)(void *data);
  void *poll_data;
} ein_call_options;

/* A call with these options, which may be null. ein_result_output also gives outputs in memory of the caller. */
EIN_API ein_status ein_call_with(ein_program *program, const ein_tensor *inputs, size_t count,
                                 const ein_call_options *options, ein_result **result,
                                 ein_error *error);

/* The extents that outputs have for these inputs, without running anything: those of output 0, then those of
 * output 1, and so on. `data` of an input may be null, unless its value is an extent. `extents` has room for
 * `room` numbers, which must be the sum of the ranks of all outputs. */
EIN_API ein_status ein_extents(ein_program *program, const ein_tensor *inputs, size_t count,
                               int64_t *extents, size_t room, ein_error *error);

/* Why the last call on this thread failed, with all details: as text with a frame of the source, or as one
 * JSON object. Empty if it did not fail. Valid until the next call on this thread. */
EIN_API const char *ein_failure(ein_diagnostics_format format);

/* "native", or "reference" for a program that only the reference evaluator can run. */
EIN_API const char *ein_backend(const ein_program *program);

/* The modules that the program consists of, besides itself and the library: those given with the options, and
 * those read from disk. Null if the number is out of range. Valid until the program is freed. */
EIN_API const ein_file *ein_module(const ein_program *program, size_t number);
/* The paths of the files whose values the program has read with `load`, in the same way. */
EIN_API const char *ein_loaded(const ein_program *program, size_t number);

typedef struct ein_run_options {
  size_t size; /* sizeof(ein_run_options) */
  /* Gets what the program prints; null: the standard streams. */
  void (*write)(void *data, const char *text, size_t length, int32_t is_error);
  /* Gets what `save` writes as text, such as a plot. If it returns 0, or is null, a file is written. */
  int32_t (*file)(void *data, const char *path, const char *text, size_t length);
  void *data;
  int32_t (*poll)(void *data); /* as for calls */
  void *poll_data;
} ein_run_options;

/* A call that also does what the program does besides computing: it prints and saves. `options` may be null. */
EIN_API ein_status ein_run(ein_program *program, const ein_tensor *inputs, size_t count,
                           const ein_run_options *options, ein_result **result, ein_error *error);

/* Texts about a program. */
typedef enum ein_text_kind {
  EIN_SOURCE = 0,  /* the program; the derived one where options asked for a derivative */
  EIN_EXPLAIN = 1, /* the derivatives of `of` by `wrt`, step by step */
  EIN_AUDIT = 2,   /* where operands are repeated */
  EIN_FACTS = 3,   /* what is known of every value */
  EIN_FIXED = 4,   /* the program with the safe fixes of its diagnostics; also if it is wrong */
  EIN_COLOURED = 5, /* the diagnostics with colours for a terminal; also if it is wrong */
  EIN_FUNCTIONS = 6, /* its public functions, as JSON */
  EIN_ITEMS = 7      /* its functions, constants, types and imports alone, at their places */
} ein_text_kind;
typedef enum ein_text_format { EIN_AS_TEXT = 0, EIN_AS_JSON = 1, EIN_AS_HTML = 2 } ein_text_format;

/* Gives a text that ein_text_free frees. `of` and `wrt` are for EIN_EXPLAIN, and null for every derivative
 * that the program asks for; HTML exists for EIN_EXPLAIN and EIN_AUDIT, JSON also for EIN_AUDIT and EIN_FACTS, and nothing else for EIN_FUNCTIONS. */
EIN_API ein_status ein_text(ein_program *program, ein_text_kind kind, ein_text_format format,
                            const char *of, const char *const *wrt, size_t wrt_count, char **text,
                            ein_error *error);
EIN_API void ein_text_free(char *text);

/* A tensor as the language prints it. `coords` has a name for each coordinate, "" for none, or is null. */
EIN_API ein_status ein_show(const ein_tensor *tensor, const char *const *coords, char **text,
                            ein_error *error);

/* ---- Sessions: definitions that are entered one after the other, as at a prompt or in a notebook. A definition with
 * an old name replaces it, what depended on it is computed again, and an entry that is wrong, fails or is stopped changes
 * nothing. An entry may also be a command of `ein repl`, such as `:grad loss W`. One session is used by one thread at a
 * time. */
typedef struct ein_session ein_session;

typedef struct ein_session_options {
  size_t size;      /* sizeof(ein_session_options) */
  int32_t no_cache; /* not 0: do not use the cache on disk */
  int32_t coloured; /* not 0: mistakes have colours for a terminal */
} ein_session_options;

/* `options` may be null. */
EIN_API ein_status ein_session_new(const ein_session_options *options, ein_session **session,
                                   ein_error *error);
EIN_API void ein_session_free(ein_session *session);

/* Whether a text is an entry: EIN_UNFINISHED says that the parser wants more. */
typedef enum ein_entry { EIN_EMPTY = 0, EIN_UNFINISHED = 1, EIN_FINISHED = 2 } ein_entry;
EIN_API ein_entry ein_session_reads(const char *text);

/* Enters a text. `name` is what messages call it, and where `load` and `use` look for files; `options`, as for ein_run,
 * get what the entry prints and saves; both may be null. `reply` gets JSON, which ein_text_free frees:
 *   {"text": what the prompt shows, "problems": mistakes and warnings, "quit": whether `:quit` was entered,
 *    "defined": [{"name", "type", "value": empty unless it is short, "again": whether it was computed again}]}
 * The status is EIN_OK, or what is wrong with the entry: EIN_PROGRAM_WRONG, EIN_USAGE of a command, EIN_FAILED,
 * EIN_INTERRUPTED. `error` is for EIN_INTERNAL and for misuse; then there is no reply. */
EIN_API ein_status ein_session_enter(ein_session *session, const char *text, const char *name,
                                     const ein_run_options *options, char **reply,
                                     ein_error *error);

/* What may stand at byte `offset` of an entry: [{"text", "detail", "begin", "end"}], the bytes it replaces. */
EIN_API ein_status ein_session_complete(ein_session *session, const char *text, size_t offset,
                                        char **choices, ein_error *error);
/* What is known of the name at byte `offset`, as Markdown; empty where that is nothing. */
EIN_API ein_status ein_session_inspect(ein_session *session, const char *text, size_t offset,
                                       char **markdown, ein_error *error);
/* The value of a definition, as the only output of a result; EIN_USAGE where there is none. */
EIN_API ein_status ein_session_value(ein_session *session, const char *name, ein_result **result,
                                     ein_error *error);

/* The command line `ein`, for the main function of a process of its own: it sets up signals and streams. */
EIN_API int ein_main(int argc, char **argv);

EIN_API uint32_t ein_api_version(void); /* the library's EIN_API_VERSION */
EIN_API const char *ein_version(void);  /* of the library, "MAJOR.MINOR.PATCH" */
EIN_API size_t ein_dtype_size(ein_dtype dtype);      /* bytes per element; 0 if there is no such type */
EIN_API const char *ein_dtype_name(ein_dtype dtype); /* such as "f32"; null if there is no such type */

#ifdef __cplusplus
}
#endif

#endif

/* What einlang.h promises, mistakes included. Silent when it is kept. */
#include <einlang/einlang.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(cond)                                                  \
  do {                                                               \
    if (!(cond)) {                                                   \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);     \
      exit(1);                                                       \
    }                                                                \
  } while (0)

static ein_error error;

static ein_program *compile(const char *source) {
  ein_program *p = NULL;
  ein_status status = ein_compile(source, "test.ein", NULL, &p, &error);
  if (status != EIN_OK) fprintf(stderr, "%s\n", error.message);
  CHECK(status == EIN_OK && p);
  return p;
}

static void wrong_programs(void) {
  ein_program *p = NULL;
  CHECK(ein_compile("let x = y;", "mine.ein", NULL, &p, &error) == EIN_PROGRAM_WRONG);
  CHECK(strcmp(error.code, "E0201") == 0);
  CHECK(strstr(ein_diagnostics(p, EIN_TEXT), "mine.ein:1:9"));
  CHECK(strstr(ein_diagnostics(p, EIN_JSON), "\"E0201\""));
  CHECK(ein_input_count(p) == 0 && ein_output(p, 0) == NULL);
  ein_result *r = NULL;
  CHECK(ein_call(p, NULL, 0, &r, &error) == EIN_USAGE && !r);
  ein_program_free(p);
  CHECK(ein_compile(NULL, NULL, NULL, &p, &error) == EIN_USAGE);
  CHECK(ein_compile("let x = 1;", NULL, NULL, NULL, &error) == EIN_USAGE);
  CHECK(ein_compile_file("/nowhere/x.ein", NULL, &p, &error) == EIN_USAGE && !p);
  CHECK(strstr(error.message, "/nowhere/x.ein"));
  CHECK(ein_compile("let x = y;", NULL, NULL, &p, NULL) == EIN_PROGRAM_WRONG);
  ein_program_free(p);
  ein_program_free(NULL);
  ein_result_free(NULL);
  const char *unknown[] = {"lose"};
  ein_options options;
  ein_options_init(&options);
  options.outputs = unknown;
  options.output_count = 1;
  CHECK(ein_compile("let loss = 1;", NULL, &options, &p, &error) == EIN_USAGE);
  CHECK(strstr(error.message, "did you mean `loss`?"));
  ein_program_free(p);
}

static void warnings(void) {
  ein_program *p = compile("let w: f32;\n#[checkpoint]\nlet h[0] = w;\nlet h[t in 1..9] = w * h[t - 1];\n"
                           "let last = h[8];\nlet d = @last / @w;\n");
  CHECK(strstr(ein_diagnostics(p, EIN_JSON), "\"W0603\""));
  CHECK(strstr(ein_diagnostics(p, EIN_TEXT), "`h` keeps all its steps"));
  ein_program_free(p);
  p = compile("let x = 1;");
  CHECK(strcmp(ein_diagnostics(p, EIN_TEXT), "") == 0);
  ein_program_free(p);
}

static void values(void) {
  ein_program *p = compile("let A: [f32; i, k];\nlet s: i64;\nlet C[i, j in 0..3] = sum[k](A[i, k]) * (s + j) as f32;\n"
                           "let t = [1, 2, 3];\n");
  CHECK(ein_input_count(p) == 2 && ein_output_count(p) == 2);
  const ein_value *a = ein_input(p, 0), *c = ein_output(p, (size_t)ein_find_output(p, "C"));
  CHECK(strcmp(a->name, "A") == 0 && a->dtype == EIN_F32 && a->rank == 2 && a->extents[0] == -1);
  CHECK(strcmp(a->coords[1], "k") == 0);
  CHECK(strcmp(c->coords[1], "j") == 0 && c->extents[0] == -1 && c->extents[1] == 3);
  CHECK(ein_find_input(p, "s") == 1 && ein_find_input(p, "none") == -1 && ein_input(p, 2) == NULL);
  float cells[] = {1, 2, 3, 4};
  int64_t s = 10, shape[] = {2, 2};
  ein_tensor in[] = {{EIN_F32, 2, shape, cells}, {EIN_I64, 0, NULL, &s}};
  ein_result *r = NULL;
  CHECK(ein_call(p, in, 2, &r, &error) == EIN_OK);
  const ein_tensor *C = ein_result_output(r, (size_t)ein_find_output(p, "C"));
  CHECK(C->rank == 2 && C->shape[0] == 2 && C->shape[1] == 3);
  CHECK(((float *)C->data)[5] == 7 * 12);
  const ein_tensor *t = ein_result_output(r, (size_t)ein_find_output(p, "t"));
  ((int32_t *)t->data)[0] = 99; /* its own memory, not the program's */
  ein_result_free(r);
  CHECK(ein_call(p, in, 2, &r, &error) == EIN_OK);
  CHECK(((int32_t *)ein_result_output(r, (size_t)ein_find_output(p, "t"))->data)[0] == 1);
  CHECK(ein_result_output(r, 2) == NULL);
  ein_result_free(r);

  int64_t other[] = {4, 1}, none[] = {0, 5};
  in[0].shape = other; /* another shape, the same code */
  CHECK(ein_call(p, in, 2, &r, &error) == EIN_OK);
  CHECK(ein_result_output(r, (size_t)ein_find_output(p, "C"))->shape[0] == 4);
  ein_result_free(r);
  in[0].shape = none;
  in[0].data = NULL;
  CHECK(ein_call(p, in, 2, &r, &error) == EIN_OK);
  ein_result_free(r);
  ein_program_free(p);
}

static void wrong_calls(void) {
  ein_program *p = compile("let x: [f64; i];\nlet y: [f64; j];\nlet at: i32;\nlet d = sum[k](x[k] * y[k]);\nlet z[i] = 2.0 * x[i];\n"
                           "let e = x[at];\nassert(at != 1, \"at is one\");\n");
  double x[] = {1, 2, 3};
  int32_t at = 0;
  int64_t three[] = {3}, two[] = {2}, minus[] = {-1};
  ein_tensor in[] = {{EIN_F64, 1, three, x}, {EIN_F64, 1, three, x}, {EIN_I32, 0, NULL, &at}};
  ein_result *r = NULL;
  CHECK(ein_call(p, in, 3, &r, &error) == EIN_OK && error.message[0] == 0);
  ein_result_free(r);
#define FAILS(status, text)                            \
  do {                                                 \
    CHECK(ein_call(p, in, 3, &r, &error) == (status)); \
    CHECK(r == NULL);                                  \
    CHECK(strstr(error.message, text));                \
  } while (0)
  CHECK(ein_call(p, in, 2, &r, &error) == EIN_USAGE && strstr(error.message, "3 inputs (x, y, at)"));
  CHECK(ein_call(p, NULL, 3, &r, &error) == EIN_USAGE);
  CHECK(ein_call(NULL, in, 3, &r, &error) == EIN_USAGE);
  in[1].shape = two;
  FAILS(EIN_FAILED, "3");
  CHECK(strcmp(error.code, "E0805") == 0);
  in[1].shape = minus;
  FAILS(EIN_USAGE, "negative");
  in[1].shape = NULL;
  FAILS(EIN_USAGE, "no shape");
  in[1].shape = three;
  in[1].dtype = EIN_F32;
  FAILS(EIN_FAILED, "input `y` is declared as f64, but its value is f32");
  in[1].dtype = (ein_dtype)77;
  FAILS(EIN_USAGE, "no dtype");
  in[1].dtype = EIN_F64;
  in[1].rank = 0;
  FAILS(EIN_FAILED, "needs 1 coordinates");
  in[1].rank = 1;
  in[1].data = NULL;
  FAILS(EIN_USAGE, "no data");
  in[1].data = x;
  at = 5;
  FAILS(EIN_FAILED, "test.ein:6:9: `x` has no cell at [5]");
  CHECK(strcmp(error.code, "E0803") == 0);
  at = 1;
  FAILS(EIN_FAILED, "assertion failed: at is one");
  at = 0;

  double d = 0, z[3], e = 0;
  ein_tensor out[] = {{EIN_F64, 0, NULL, &d}, {EIN_F64, 1, three, z}, {EIN_F64, 0, NULL, &e}};
  CHECK(ein_call_into(p, in, 3, out, 3, &error) == EIN_OK);
  CHECK(d == 14 && z[2] == 6 && e == 1);
  out[1].data = x; /* the new value where the old one is */
  CHECK(ein_call_into(p, in, 3, out, 3, &error) == EIN_FAILED && x[2] == 3);
  CHECK(strstr(error.message, "the memory for `z` overlaps that of input `x`"));
  out[1].data = z;
  out[2].data = &z[2];
  CHECK(ein_call_into(p, in, 3, out, 3, &error) == EIN_FAILED);
  CHECK(strstr(error.message, "overlaps that of output `"));
  out[2].data = &e;
  CHECK(ein_call_into(p, in, 3, out, 2, &error) == EIN_USAGE);
  out[1].shape = two;
  CHECK(ein_call_into(p, in, 3, out, 3, &error) == EIN_USAGE);
  CHECK(strstr(error.message, "the memory for `z` has the extents [2], but its value has [3]"));
  out[1].shape = three;
  out[1].dtype = EIN_F32;
  CHECK(ein_call_into(p, in, 3, out, 3, &error) == EIN_USAGE);
  ein_program_free(p);
}

static void halves(void) {
  ein_program *p = compile("let x: [f16; i];\nlet s = sum[i](x[i]);\nassert(s > 0.0);\n");
  uint16_t x[] = {0x3c00, 0x4000}; /* 1, 2 */
  uint16_t s = 0;
  int64_t two[] = {2};
  ein_tensor in = {EIN_F16, 1, two, x}, out = {EIN_F16, 0, NULL, &s};
  CHECK(ein_call_into(p, &in, 1, &out, 1, &error) == EIN_OK);
  CHECK(s == 0x4200); /* 3 */
  x[0] = x[1] = 0;
  CHECK(ein_call_into(p, &in, 1, &out, 1, &error) == EIN_FAILED);
  ein_program_free(p);
}

/* A program that goes on from texts before it. */
static void earlier(void) {
  ein_earlier before[] = {{"one", "let a = 1.0;\nlet b = 2.0;\nprint(b);\n", 0}, {"two", "let a = 10.0;\n", 0}};
  ein_options options;
  ein_options_init(&options);
  options.earlier = before;
  options.earlier_count = 2;
  ein_program *p = NULL;
  ein_result *r = NULL;
  CHECK(ein_compile("let c = a + b;", "three", &options, &p, &error) == EIN_OK);
  CHECK(ein_output_count(p) == 1 && strcmp(ein_output(p, 0)->name, "c") == 0);
  CHECK(ein_call(p, NULL, 0, &r, &error) == EIN_OK);
  CHECK(*(float *)ein_result_output(r, 0)->data == 12.0f);
  ein_result_free(r);
  ein_program_free(p);
  before[1].hidden = 1; /* the first `a` does not come back */
  CHECK(ein_compile("let c = a + b;", "three", &options, &p, &error) == EIN_PROGRAM_WRONG);
  CHECK(strstr(error.message, "`a`") && strstr(ein_diagnostics(p, EIN_TEXT), "three:1:9"));
  ein_program_free(p);
}

static void keep_text(void *data, const char *text, size_t length, int32_t is_error) {
  CHECK(!is_error && length < 100);
  strncat(data, text, length);
}

/* Definitions that are entered one after the other. */
static void sessions(void) {
  ein_session *s = NULL;
  char *text = NULL, printed[200] = "";
  ein_session_options options = {sizeof options, 1, 0};
  CHECK(ein_session_new(&options, &s, &error) == EIN_OK);
  CHECK(ein_session_reads("let x = (") == EIN_UNFINISHED && ein_session_reads("// x") == EIN_EMPTY);
  CHECK(ein_session_enter(s, "let x = [1.0, 2.0]", NULL, NULL, &text, &error) == EIN_OK);
  CHECK(strstr(text, "\"text\":\"x: f32 [2] = [1.0, 2.0]\\n\""));
  ein_text_free(text);
  ein_run_options effects = {sizeof effects, keep_text, NULL, printed, NULL, NULL};
  CHECK(ein_session_enter(s, "print(x[1])", "two", &effects, &text, &error) == EIN_OK);
  CHECK(strcmp(printed, "2.0\n") == 0);
  ein_text_free(text);
  CHECK(ein_session_enter(s, "let x = y", "three", NULL, &text, &error) == EIN_PROGRAM_WRONG);
  CHECK(strstr(text, "three:1:9") && strstr(text, "unknown name"));
  ein_text_free(text);
  ein_result *r = NULL;
  CHECK(ein_session_value(s, "x", &r, &error) == EIN_OK);
  CHECK(ein_result_output(r, 0)->rank == 1 && ((float *)ein_result_output(r, 0)->data)[1] == 2.0f);
  ein_result_free(r);
  CHECK(ein_session_value(s, "y", &r, &error) == EIN_USAGE && strstr(error.message, "`y`"));
  CHECK(ein_session_complete(s, "let temp = x; te", 16, &text, &error) == EIN_OK);
  CHECK(strstr(text, "\"temp\""));
  ein_text_free(text);
  CHECK(ein_session_inspect(s, "x[0]", 0, &text, &error) == EIN_OK && strstr(text, "f32 [2]"));
  ein_text_free(text);
  CHECK(ein_session_enter(s, NULL, NULL, NULL, &text, &error) == EIN_USAGE);
  ein_session_free(s);
  ein_session_free(NULL);
}

int main(void) {
  CHECK(ein_api_version() == EIN_API_VERSION);
  CHECK(ein_version()[0] && ein_dtype_size(EIN_F64) == 8 && ein_dtype_size((ein_dtype)99) == 0);
  CHECK(strcmp(ein_dtype_name(EIN_BF16), "bf16") == 0 && !ein_dtype_name((ein_dtype)-1));
  wrong_programs();
  warnings();
  values();
  wrong_calls();
  halves();
  earlier();
  sessions();
  return 0;
}

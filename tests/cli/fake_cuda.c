// Stands for NVIDIA's driver where there is none: memory is the host's, launches run nothing, and every call is
// written to the file that FAKE_CUDA_LOG names. FAKE_CUDA says what is wrong with it. Calls out of order end the
// process: whoever makes them has a bug.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is(const char* what) {
  const char* mode = getenv("FAKE_CUDA");
  return mode && strncmp(mode, what, strlen(what)) == 0;
}

static void log_line(const char* line) {
  const char* name = getenv("FAKE_CUDA_LOG");
  FILE* f = name ? fopen(name, "a") : NULL;
  if (!f) return;
  fprintf(f, "%s\n", line);
  fclose(f);
}

static void need(int fine, const char* what) {
  if (fine) return;
  fprintf(stderr, "fake driver: %s\n", what);
  exit(99);
}

static int started, current, loaded;
static char* text;
struct Function {
  char name[256];
  unsigned threads;
};

int cuInit(unsigned flags) {
  (void)flags;
  started = 1;
  log_line("init");
  return is("broken") ? 999 : 0;
}
int cuDriverGetVersion(int* version) {
  *version = is("old") ? 10020 : 12040;
  return 0;
}
int cuDeviceGetCount(int* count) {
  need(started, "cuInit comes first");
  *count = is("none") ? 0 : 1;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char* name, int length, int device) {
  (void)device;
  snprintf(name, (size_t)length, "Fake 1000");
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  need(attribute == 75 || attribute == 76, "an attribute that is not the compute capability");
  *value = attribute == 75 ? (is("small") ? 7 : 9) : (is("small") ? 5 : 0);
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  (void)device;
  *context = &current;
  return 0;
}
int cuCtxSetCurrent(void* context) {
  need(context == &current, "a context that is not ours");
  current = 1;
  return 0;
}
int cuCtxSynchronize(void) { return 0; }
int cuModuleLoadDataEx(void** module, const void* image, unsigned options, int* names, void** values) {
  need(current, "no context");
  need(options == 2 && names[0] == 5 && names[1] == 6, "a log is asked for");
  need(strstr(image, ".visible .entry") != NULL && strstr(image, ".target sm_80") != NULL, "no PTX");
  if (is("rejects")) {
    snprintf(values[0], 100, "ptxas fatal: invented");
    return 218;
  }
  loaded = 1;
  text = strdup(image);
  *module = text;
  log_line("load");
  return 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  char entry[300];
  struct Function* f = malloc(sizeof *f);
  need(module == text, "a module that was not loaded");
  snprintf(entry, sizeof entry, ".entry %s(", name);
  need(strstr(text, entry) != NULL, "a function that the text does not have");
  snprintf(f->name, sizeof f->name, "%s", name);
  const char* most = strstr(strstr(text, entry), ".maxntid");
  f->threads = most ? (unsigned)atoi(most + strlen(".maxntid")) : 0;
  *function = f;
  return 0;
}
int cuMemAlloc_v2(uint64_t* at, size_t bytes) {
  need(current, "no context");
  if (is("full") && bytes > 4096) return 2;
  *at = (uint64_t)(uintptr_t)calloc(1, bytes);
  return 0;
}
int cuMemFree_v2(uint64_t at) {
  free((void*)(uintptr_t)at);
  return 0;
}
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  char line[100];
  memcpy((void*)(uintptr_t)to, from, bytes);
  snprintf(line, sizeof line, "to device %zu", bytes);
  log_line(line);
  return 0;
}
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  char line[100];
  memcpy(to, (void*)(uintptr_t)from, bytes);
  snprintf(line, sizeof line, "from device %zu", bytes);
  log_line(line);
  return 0;
}
int cuMemsetD8_v2(uint64_t at, unsigned char value, size_t bytes) {
  memset((void*)(uintptr_t)at, value, bytes);
  return 0;
}
// FAKE_CUDA=fails:ARGUMENT:SITE:A,B: the first launch leaves a record of a failure, which is this argument.
int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned b, unsigned c,
                   unsigned shared, void* stream, void** arguments, void** more) {
  const struct Function* f = function;
  char line[400];
  (void)shared, (void)stream;
  need(loaded && f && !more, "nothing to launch");
  need(x > 0 && y == 1 && z == 1 && b == 1 && c == 1, "a grid of one dimension");
  need(threads == f->threads, "as many threads as the text says");
  snprintf(line, sizeof line, "launch %s %u %u", f->name, x, threads);
  log_line(line);
  static int launches;
  if (is("fails") && launches++ == 0) {
    int argument, site, first, second;
    need(sscanf(getenv("FAKE_CUDA"), "fails:%d:%d:%d,%d", &argument, &site, &first, &second) == 4, "numbers");
    int64_t* record = *(int64_t**)arguments[argument];
    record[1] = 1;
    record[6] = site;
    record[7] = first;
    record[8] = second;
  }
  return is("crashes") ? 700 : 0;
}
int cuGetErrorString(int result, const char** out) {
  *out = result == 2 ? "out of memory" : result == 700 ? "an illegal memory access" : "unknown error";
  return 0;
}

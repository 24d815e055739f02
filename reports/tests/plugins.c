/* Plugins that are wrong in one way each (PLUGIN_...), around the honest kernel of the skeleton. */
#define attn_plugin_v1 honest_plugin
#define plugin honest_table
#include "reports/tool/skeleton/kernel.c"
#undef attn_plugin_v1
#undef plugin

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(PLUGIN_EXITS_LOADING)
__attribute__((constructor)) static void leave(void) { _exit(0); }
#endif

#if defined(PLUGIN_REJECTS)
static int32_t my_supports(const attn_problem* p, char* why, size_t size) {
  (void)p;
  return reject(why, size, "not today");
}
#elif defined(PLUGIN_NO_DEVICE)
static int32_t my_supports(const attn_problem* p, char* why, size_t size) {
  (void)p;
  snprintf(why, size, "no such device");
  return ATTN_NO_DEVICE;
}
#elif defined(PLUGIN_CRASHES_ASKED)
static int32_t my_supports(const attn_problem* p, char* why, size_t size) {
  (void)p, (void)why, (void)size;
  abort();
}
#elif defined(PLUGIN_REJECTS_MOST)
static int32_t my_supports(const attn_problem* p, char* why, size_t size) {
  if (p->q.shape[2] * p->k.shape[2] > 1) return reject(why, size, "only one query and one key");
  return supports(p, why, size);
}
#else
#define my_supports supports
#endif

#if defined(PLUGIN_WORKSPACE_OVERRUN)
static size_t my_workspace_size(const attn_problem* p) {
  (void)p;
  return 64;
}
#else
#define my_workspace_size NULL
#endif

/* The first element of a tensor, and the one behind its last; NULL if it is empty. */
static float* first(const attn_tensor* t) {
  for (int axis = 0; axis < t->rank; ++axis)
    if (t->shape[axis] == 0) return NULL;
  return (float*)t->data;
}
static float* past(const attn_tensor* t) {
  if (!first(t)) return NULL;
  return at(t, t->shape[0] - 1, t->shape[1] - 1, t->shape[2] - 1, t->shape[3] - 1) + 1;
}

#if defined(PLUGIN_THROWS)
void throw_something(void); /* throws.cpp */
#endif

#if defined(PLUGIN_OVERFLOWS_STACK)
static int deeper(volatile int* n) {
  volatile int here = *n + 1;
  return *n < 0 ? *n : deeper(&here) + here;
}
#endif

#if defined(PLUGIN_LEAVES_A_THREAD)
static void* later(void* unused) {
  usleep(20000);
  raise(SIGSEGV);
  return unused;
}
#endif

/* What goes wrong beside an honest result. */
static void misbehave(const attn_problem* p, void* workspace) {
  volatile float* x = NULL;
  (void)p, (void)workspace, (void)x, (void)first, (void)past;
#if defined(PLUGIN_SEGFAULTS)
  *x = 1;
#elif defined(PLUGIN_SOMETIMES)
  if (p->k.shape[2] > 16) *x = 1;
#elif defined(PLUGIN_HANGS)
  for (;;) x = x + 1;
#elif defined(PLUGIN_THROWS)
  throw_something();
#elif defined(PLUGIN_OVERFLOWS_STACK)
  int n = 0;
  deeper(&n);
#elif defined(PLUGIN_EXHAUSTS_MEMORY)
  for (;;) memset(malloc(1 << 24), 1, 1 << 24);
#elif defined(PLUGIN_WRITES_BEFORE)
  if ((x = first(&p->o))) x[-1] = 1;
#elif defined(PLUGIN_WRITES_PAST)
  if ((x = past(&p->o))) *x = 1;
#elif defined(PLUGIN_READS_PAST)
  if ((x = past(&p->k))) (void)*x;
#elif defined(PLUGIN_READS_BEFORE)
  if ((x = first(&p->k))) (void)x[-1];
#elif defined(PLUGIN_WRITES_INPUT)
  if ((x = first(&p->q))) *x = *x; /* the same value: no comparison sees it */
#elif defined(PLUGIN_WORKSPACE_OVERRUN)
  ((volatile char*)workspace)[64] = 1;
#elif defined(PLUGIN_LEAVES_A_THREAD)
  pthread_t thread;
  if (pthread_create(&thread, NULL, later, NULL) == 0) pthread_detach(thread);
#endif
}

static int32_t my_run(const attn_problem* p, void* workspace, size_t bytes, char* why, size_t size) {
#if defined(PLUGIN_CRASHES)
  abort();
#elif defined(PLUGIN_EXITS)
  _exit(0);
#elif defined(PLUGIN_EXITS_CLEAN)
  exit(0);
#endif
  const int32_t status = run(p, workspace, bytes, why, size);
  misbehave(p, workspace);
#if defined(PLUGIN_WRONG) || defined(PLUGIN_LONG_NAME)
  /* The scale is off by one part in a hundred in one element of each row. */
  if (p->v.shape[3] > 0)
    for (int64_t b = 0; b < p->o.shape[0]; ++b)
      for (int64_t h = 0; h < p->o.shape[1]; ++h)
        for (int64_t i = 0; i < p->o.shape[2]; ++i) *at(&p->o, b, h, i, 0) *= 1.01f;
#endif
  return status;
}

#if defined(PLUGIN_CUSTOM)
#define CONTRACT                                                                                                  \
  {                                                                                                               \
    .struct_size = sizeof(attn_contract), .algorithm = ATTN_ALG_STANDARD, .in_dtype = ATTN_FP32,                  \
    .acc_dtype = ATTN_FP32, .p_dtype = ATTN_FP32, .qk_accumulation = ATTN_ACC_MUL_ADD,                            \
    .pv_accumulation = ATTN_ACC_MUL_ADD, .sum_order = ATTN_SUM_ANY, .exp_form = ATTN_EXP_SCALED, .exp_error = 64, \
    .rescale_exp_error = 64, .log_absolute = 8, .log_relative = 8, .division_error = 8, .scale_narrowed = 1,      \
    .rescale = ATTN_RESCALE_ALWAYS, .split_merge = ATTN_MERGE_NONE, .isolates_nonfinite = ATTN_ISOLATES_ROW,      \
    .promises = ATTN_PROMISE_DETERMINISTIC, .sources = "invented for a test"                                      \
  }
#elif defined(PLUGIN_BAD_CONTRACT)
#define CONTRACT \
  { .struct_size = sizeof(attn_contract), .algorithm = ATTN_ALG_STANDARD, .in_dtype = 77 }
#elif defined(PLUGIN_UNKNOWN_PRESET)
#define CONTRACT \
  { .struct_size = sizeof(attn_contract), .preset = "fp7.wishful" }
#else
#define CONTRACT \
  { .struct_size = sizeof(attn_contract), .preset = "fp32.standard" }
#endif

/* A later version of the header may have appended fields: the table's stride is larger than we know. */
typedef struct {
  attn_kernel kernel;
  char later[64];
} wide_kernel;

#if defined(PLUGIN_SMALL_STRUCT)
#define KERNEL_SIZE 8
#else
#define KERNEL_SIZE sizeof(wide_kernel)
#endif

#define KERNEL(name_, run_)               \
  {                                       \
    {.struct_size = KERNEL_SIZE,          \
     .op = ATTN_OP_FORWARD,               \
     .name = name_,                       \
     .summary = "",                       \
     .contract = CONTRACT,                \
     .supports = my_supports,             \
     .workspace_size = my_workspace_size, \
     .run = run_},                        \
    {                                     \
      0                                   \
    }                                     \
  }
#if defined(PLUGIN_LONG_NAME)
#define TEN "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define PREFIX HUNDRED HUNDRED HUNDRED
#else
#define PREFIX "test."
#endif
/* Those of isolation_test.cpp have an honest neighbour. */
#if defined(PLUGIN_ONE_IS_HONEST)
#define SECOND run
#else
#define SECOND my_run
#endif
static const wide_kernel table[] = {KERNEL(PREFIX "first", my_run), KERNEL(PREFIX "second", SECOND)};

static const attn_plugin plugin = {
#if defined(PLUGIN_WRONG_ABI)
    99,
#else
    ATTN_ABI_VERSION,
#endif
    sizeof(attn_plugin), "test", &table[0].kernel, 2};

#if !defined(PLUGIN_NO_SYMBOL)
const attn_plugin* attn_plugin_v1(void) {
#else
const attn_plugin* some_other_symbol(void) {
#endif
  return honest_plugin() ? &plugin : NULL;
}

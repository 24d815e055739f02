/* Plugins that are wrong in one way each (PLUGIN_...), around the honest kernel of the skeleton. */
#define attn_plugin_v1 honest_plugin
#define plugin honest_table
#include "reports/tool/skeleton/kernel.c"
#undef attn_plugin_v1
#undef plugin

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
#else
#define my_supports supports
#endif

static int32_t my_run(const attn_problem* p, void* workspace, size_t bytes, char* why, size_t size) {
#if defined(PLUGIN_CRASHES)
  abort();
#elif defined(PLUGIN_EXITS)
  _exit(0);
#elif defined(PLUGIN_EXITS_CLEAN)
  exit(0);
#endif
  const int32_t status = run(p, workspace, bytes, why, size);
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

#define KERNEL(name_)            \
  {                              \
    {.struct_size = KERNEL_SIZE, \
     .op = ATTN_OP_FORWARD,      \
     .name = name_,              \
     .summary = "",              \
     .contract = CONTRACT,       \
     .supports = my_supports,    \
     .run = my_run},             \
    {                            \
      0                          \
    }                            \
  }
#if defined(PLUGIN_LONG_NAME)
#define TEN "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define PREFIX HUNDRED HUNDRED HUNDRED
#else
#define PREFIX "test."
#endif
static const wide_kernel table[] = {KERNEL(PREFIX "first"), KERNEL(PREFIX "second")};

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

/* One kernel: plain attention in fp32, a row at a time, no tiles and no workspace. Valid as C and as C++. */
#include <math.h>
#include <stdio.h>

#include "attention.h"

static int32_t reject(char* why, size_t size, const char* reason) {
  snprintf(why, size, "%s", reason);
  return ATTN_REJECTED;
}

static float* at(const attn_tensor* t, int64_t a, int64_t b, int64_t c, int64_t d) {
  return (float*)t->data + a * t->stride[0] + b * t->stride[1] + c * t->stride[2] + d * t->stride[3];
}

static int visible(const attn_problem* p, int64_t b, int64_t h, int64_t i, int64_t j) {
  const attn_tensor* t = &p->mask.visible;
  const int64_t shift = p->mask.causal == ATTN_CAUSAL_BOTTOM_RIGHT ? p->k.shape[2] - p->q.shape[2] : 0;
  if (p->mask.causal != ATTN_CAUSAL_NONE && j > i + shift) return 0;
  if (p->mask.kv_len && j >= p->mask.kv_len[b]) return 0;
  if (t->data && !((const uint8_t*)t->data)[b * t->stride[0] + h * t->stride[1] + i * t->stride[2] + j * t->stride[3]])
    return 0;
  return !p->mask.additive.data || *at(&p->mask.additive, b, h, i, j) == 0;
}

static float score(const attn_problem* p, int64_t b, int64_t h, int64_t i, int64_t j) {
  const int64_t kv = h / (p->q.shape[1] / p->k.shape[1]); /* the kv head that query head h reads */
  float x = 0;
  for (int64_t c = 0; c < p->q.shape[3]; ++c) x = fmaf(*at(&p->q, b, h, i, c), *at(&p->k, b, kv, j, c), x);
  return x;
}

static void row(const attn_problem* p, int64_t b, int64_t h, int64_t i) {
  const int64_t kv = h / (p->q.shape[1] / p->k.shape[1]), keys = p->k.shape[2], d_v = p->v.shape[3];
  float m = -INFINITY, l = 0;
  for (int64_t j = 0; j < keys; ++j)
    if (visible(p, b, h, i, j)) m = fmaxf(m, score(p, b, h, i, j));
  for (int64_t e = 0; e < d_v; ++e) *at(&p->o, b, h, i, e) = 0;
  for (int64_t j = 0; j < keys; ++j) {
    if (!visible(p, b, h, i, j)) continue; /* never 0 * NaN: an invisible key is not read */
    const float w = expf((float)(p->scale * (double)(score(p, b, h, i, j) - m)));
    l += w;
    for (int64_t e = 0; e < d_v; ++e) *at(&p->o, b, h, i, e) = fmaf(w, *at(&p->v, b, kv, j, e), *at(&p->o, b, h, i, e));
  }
  if (l != 0) /* l == 0: no visible key, O stays 0 and LSE is -inf. A NaN is not 0 and goes on. */
    for (int64_t e = 0; e < d_v; ++e) *at(&p->o, b, h, i, e) /= l;
  if (p->lse.data) *at(&p->lse, b, h, i, 0) = l == 0 ? -INFINITY : (float)(p->scale * (double)m + log((double)l));
}

static int32_t supports(const attn_problem* p, char* why, size_t size) {
  if (p->op != ATTN_OP_FORWARD || p->q.dtype != ATTN_FP32 || p->o.dtype != ATTN_FP32)
    return reject(why, size, "only forward in fp32");
  if (!(p->scale > 0) || isinf(p->scale)) return reject(why, size, "scale must be finite and positive");
  if (p->k.shape[1] <= 0 || p->q.shape[1] % p->k.shape[1])
    return reject(why, size, "query heads must be a multiple of kv heads");
  if (p->softcap != 0 || p->bias.data || p->sinks.data || p->mask.window_left != -1 || p->mask.window_right != -1)
    return reject(why, size, "softcap, bias, sinks and windows are not built");
  for (int64_t b = 0; p->mask.additive.data && b < p->q.shape[0]; ++b)
    for (int64_t h = 0; h < p->q.shape[1]; ++h)
      for (int64_t n = 0; n < p->q.shape[2] * p->k.shape[2]; ++n) {
        const float x = *at(&p->mask.additive, b, h, n / p->k.shape[2], n % p->k.shape[2]);
        if (x != 0 && x != -INFINITY) return reject(why, size, "a finite additive mask is a bias: not built");
      }
  return ATTN_OK;
}

static int32_t run(const attn_problem* p, void* workspace, size_t bytes, char* why, size_t size) {
  (void)workspace, (void)bytes, (void)why, (void)size;
  for (int64_t b = 0; b < p->q.shape[0]; ++b)
    for (int64_t h = 0; h < p->q.shape[1]; ++h)
      for (int64_t i = 0; i < p->q.shape[2]; ++i) row(p, b, h, i);
  return ATTN_OK;
}

/* The Contract is a preset by name: what fp32 sums with fused multiply-adds and one division at the end can promise. */
static const attn_kernel kernels[] = {{sizeof(attn_kernel),
                                       ATTN_OP_FORWARD,
                                       "mine.attention",
                                       "plain fp32 attention",
                                       {sizeof(attn_contract), 0, "fp32.standard"},
                                       supports,
                                       NULL,
                                       run}};
static const attn_plugin plugin = {ATTN_ABI_VERSION, sizeof(attn_plugin), "mine", kernels, 1};

#ifdef __cplusplus
extern "C" {
#endif
const attn_plugin* attn_plugin_v1(void) { return &plugin; }
#ifdef __cplusplus
}
#endif

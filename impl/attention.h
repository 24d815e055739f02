/* Attest: the C interface of an attention kernel.
 *
 * This header is types only. It is the one header that kernels (ours and yours) and the harness share. A kernel is
 * described by an attn_kernel; a shared library exports a table of them through attn_plugin_v1() and is judged by
 * `attest gate --plugin ./libmine.so`. C99, no exceptions across it, sized structs, so that it can grow.
 *
 * Units: strides and shapes count elements, never bytes. Indices are 64-bit. Error constants count unit roundoffs of
 * the accumulator format (u = 2^-24 for fp32, 2^-53 for fp64).
 */
#ifndef ATTEST_ATTENTION_H
#define ATTEST_ATTENTION_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATTN_ABI_VERSION 1u

/* Element formats. FP16 is IEEE binary16, BF16 is the upper half of binary32; both are stored as 16-bit patterns. */
enum {
  ATTN_DTYPE_NONE = 0,
  ATTN_FP64 = 1,
  ATTN_FP32 = 2,
  ATTN_FP16 = 3,
  ATTN_BF16 = 4,
  ATTN_U8 = 5, /* boolean masks: 0 = masked, anything else = visible */
  /* reserved, rejected until built */
  ATTN_E4M3 = 16,
  ATTN_E5M2 = 17
};

/* Operations. */
enum {
  ATTN_OP_STEP = 1,   /* one block of scores and values added to a running state (m, l, acc) */
  ATTN_OP_MERGE = 2,  /* two states merged into one */
  ATTN_OP_FORWARD = 3 /* attention: Q, K, V -> O, LSE */
};

/* A strided view. data == NULL means absent. stride 0 repeats one element along that axis (inputs only). data is
   aligned to the size of an element and no further: a tensor may be a slice of a larger one. */
typedef struct attn_tensor {
  void* data;
  int32_t dtype;
  int32_t rank;
  int64_t shape[4];
  int64_t stride[4]; /* in elements; may be 0 (broadcast) but not negative */
} attn_tensor;

/* Causal alignments. i is a query index, j a key index. */
enum {
  ATTN_CAUSAL_NONE = 0,
  ATTN_CAUSAL_TOP_LEFT = 1,    /* key j is blocked when j > i */
  ATTN_CAUSAL_BOTTOM_RIGHT = 2 /* key j is blocked when j > i + Tk - Tq */
};

/* Masks combine: a key is visible only if every one of them lets it through. */
typedef struct attn_mask {
  int32_t causal;
  int32_t reserved0;
  const int64_t* kv_len; /* [batch], each in 0..Tk: keys j >= kv_len[b] do not exist; NULL: all Tk do */
  attn_tensor visible;   /* ATTN_U8 [B, Hq, Tq, Tk], broadcast by stride 0 */
  attn_tensor additive;  /* ATTN_FP32 [B, Hq, Tq, Tk], each entry 0 or -inf; a finite entry is a bias: reject it */
  /* reserved, reject when not at their defaults: sliding window in keys on each side, -1 = unbounded */
  int64_t window_left;
  int64_t window_right;
} attn_mask;

/* How the caller wants the work to be cut. 0 leaves a choice to the kernel; what is asked for is honoured or rejected,
 * since the bound counts blocks and splits by it. Blocks may exceed the sequence. */
typedef struct attn_tiling {
  int64_t block_q;
  int64_t block_k;
  int64_t splits;  /* parts that the keys are cut into (Flash-Decoding); a part may be empty */
  int32_t threads; /* at most this many threads; the bits must not depend on it if the Contract says so */
  int32_t reserved0;
} attn_tiling;

/* What a state holds. */
enum {
  ATTN_STATE_ML = 1,  /* m, l */
  ATTN_STATE_MLA = 2, /* m, l, acc (not normalised: O = acc / l) */
  ATTN_STATE_OLSE = 3 /* O (normalised, in acc) and LSE (in m); l is absent */
};

/* Running state of `rows` query rows. m, l: [rows]; acc: [rows, d_v]. Empty row: m = -inf, l = 0, acc = 0. */
typedef struct attn_state {
  attn_tensor m;
  attn_tensor l;
  attn_tensor acc;
} attn_state;

typedef struct attn_problem {
  uint32_t struct_size; /* sizeof(attn_problem) of the caller */
  int32_t op;

  /* forward: q [B, Hq, Tq, d_qk], k [B, Hkv, Tk, d_qk], v [B, Hkv, Tk, d_v], o [B, Hq, Tq, d_v], lse [B, Hq, Tq].
   * Query head h reads kv head h / (Hq / Hkv). o is in the input format or in the accumulator format.
   * lse is in the accumulator format; lse.data may be NULL: not wanted. */
  attn_tensor q, k, v, o, lse;
  double scale;   /* score = scale * q.k; finite and > 0, else reject */
  double softcap; /* reserved: reject unless 0 */
  attn_mask mask;
  attn_tiling tiling;
  attn_tensor bias;  /* reserved: reject unless absent */
  attn_tensor sinks; /* reserved: reject unless absent */

  /* step: (out) = (a) + scores [rows, b], -inf = blocked, with v_block in v [b, d_v].
   * merge: (out) = (a) merged with (b). out never aliases a or b. state_kind says what states hold; a step with
   * ATTN_STATE_ML has no acc and no v: it is the scan of a row to (m, l). */
  int32_t state_kind;
  int32_t reserved0;
  attn_state a, b, out;
  attn_tensor scores;

  void* stream; /* cudaStream_t for device kernels, else NULL */
  uint64_t reserved[8];
} attn_problem;

/* ---- Contract: the arithmetic that a kernel promises. The bound of every output element is derived from it. ---- */

enum {                        /* algorithm */
       ATTN_ALG_STANDARD = 1, /* whole row: max, then exp and sum, then P.V; one division at the end */
       ATTN_ALG_FA1 = 2,      /* O is normalised at every block */
       ATTN_ALG_FA2 = 3,      /* O is rescaled when the maximum rises, divided once at the end */
       ATTN_ALG_SPLIT = 4,    /* FA2 on each split of the keys, then an LSE merge */
       ATTN_ALG_STEP = 5,
       ATTN_ALG_MERGE = 6
};

enum {                       /* how products are accumulated */
       ATTN_ACC_FMA = 1,     /* fused multiply-adds in the accumulator format, round to nearest */
       ATTN_ACC_MUL_ADD = 2, /* product and sum rounded separately, or unknown */
       ATTN_ACC_TENSOR_CORE =
           3 /* mma_terms products aligned to mma_fraction_bits, truncated, added to the accumulator */
};

enum { /* order of sums over keys */
       ATTN_SUM_SEQUENTIAL =
           1, /* one accumulator, keys in increasing order within a block, blocks in increasing order */
       ATTN_SUM_ANY = 2
};

enum {                          /* argument of exp. x is a raw score q.k, s the scale, m the running maximum of x */
       ATTN_EXP_DIFFERENCE = 1, /* exp(s * (x - m)): error grows with the gap only */
       ATTN_EXP_SCALED = 2,     /* exp(fl(s x) - fl(s m)), the score is scaled first */
       ATTN_EXP2_FMA = 3        /* exp2(fma(x, c2, -fl(m c2))), c2 = fl(s log2 e) */
};

enum {                          /* rescaling */
       ATTN_RESCALE_ALWAYS = 1, /* whenever the maximum rises */
       ATTN_RESCALE_LAZY = 2    /* only when it rises by more than lazy_threshold (log2 units) */
};

enum { /* merge of partial results */
       ATTN_MERGE_NONE = 0,
       ATTN_MERGE_RENORMALISED = 1, /* divides by the sum of its own weights */
       ATTN_MERGE_DIVISION_FREE = 2 /* weights exp(lse_b - lse), not renormalised */
};

enum { ATTN_EMPTY_LSE_NEG_INF = 0, ATTN_EMPTY_LSE_POS_INF = 1 };
enum { ATTN_LSE_BASE_E = 0, ATTN_LSE_BASE_2 = 1 };

/* isolates_nonfinite: how far a NaN or inf at a key reaches. HEAD: the rows of the head that the key belongs to,
 * whether they see it or not (0 * NaN in a tile). ROW: only the rows that see the key. */
enum { ATTN_ISOLATES_HEAD = 0, ATTN_ISOLATES_ROW = 1 };

/* Bitwise promises. "The same bits" means up to the sign of zero. */
#define ATTN_PROMISE_DETERMINISTIC (UINT64_C(1) << 0) /* same problem, same bits, for any thread count */
#define ATTN_PROMISE_ROW_ISOLATED                                                    \
  (UINT64_C(1) << 1) /* finite values at keys a row does not see change no bit of it \
                      */
#define ATTN_PROMISE_BATCH_INVARIANT (UINT64_C(1) << 2)        /* other batch entries change no bit */
#define ATTN_PROMISE_LAYOUT_INVARIANT (UINT64_C(1) << 3)       /* strides change no bit */
#define ATTN_PROMISE_HEAD_PACKING_INVARIANT (UINT64_C(1) << 4) /* grouped heads equal repeated heads */
#define ATTN_PROMISE_TILING_INVARIANT (UINT64_C(1) << 5)       /* block_q (all), block_k and splits change no bit */
#define ATTN_PROMISE_COMMUTATIVE_MERGE (UINT64_C(1) << 6)      /* merge(a, b) == merge(b, a) */

typedef struct attn_contract {
  uint32_t struct_size;
  int32_t algorithm;
  const char* preset; /* name of the preset that this is; NULL or unknown name: custom */

  int32_t in_dtype;  /* of q, k, v; of v in a step */
  int32_t acc_dtype; /* of scores, sums, O while it grows, LSE, and of states */
  int32_t p_dtype;   /* P is rounded to this before P.V (round to nearest even); = acc_dtype: not rounded */

  int32_t qk_accumulation, pv_accumulation; /* ATTN_ACC_* */
  int32_t sum_order;                    /* ATTN_SUM_*: of P.V and of the row sum, which adds P before it is rounded */
  int32_t mma_terms, mma_fraction_bits; /* L and F of ATTN_ACC_TENSOR_CORE */

  int32_t exp_form;         /* ATTN_EXP_* */
  double exp_error;         /* relative error of exp at an element's argument, in u; exp(0) == 1 exactly */
  double rescale_exp_error; /* the same for the rescale factor and for merge weights */
  double log_absolute;      /* error of log(l) is at most max(log_absolute, log_relative * |log l|), in u */
  double log_relative;
  double division_error;      /* relative error of the final a / l, in u: 1 for IEEE division, 2 for a correctly rounded
                                 reciprocal and a product */
  int32_t flushes_subnormals; /* results below the normal range become 0 */
  int32_t scale_narrowed;     /* scale is rounded to acc_dtype before use */

  int32_t rescale;
  double lazy_threshold;
  int32_t split_merge;

  int32_t lse_base, empty_lse;
  int32_t isolates_nonfinite;
  uint64_t promises;

  /* The kernel's own tiling where the problem leaves it open (0): rows and keys of a full block, and the most splits.
   * 0: unknown, and the bound charges a block, or a split, for every key. */
  int64_t default_block_q, default_block_k, max_splits;

  /* Workspace in bytes is at most fixed + per_row R + per_value R d_v + per_split S R (d_v + 2)
   * + per_thread T (min(Br, Tq) + min(Bc, Tk) + 1) (d_qk + d_v + 16), with R = B Hq Tq, S = splits, T = threads and
   * Br, Bc, S as the problem asks or as default_block_q, default_block_k and max_splits say. No term in Tq Tk. */
  double workspace_fixed, workspace_per_row, workspace_per_value, workspace_per_split, workspace_per_thread;

  const char* sources; /* where each constant comes from: a citation or a measurement */
} attn_contract;

/* Status of supports() and run(). Anything else is an error. */
enum { ATTN_OK = 0, ATTN_REJECTED = 1, ATTN_NO_DEVICE = 2, ATTN_ERROR = 3 };

/* Where a kernel runs, and with it whose memory the problem's pointers address. */
enum {
  ATTN_DEVICE_CPU = 0,
  /* Every data pointer (kv_len and workspace too) is memory of the current CUDA device. supports() and workspace_size()
   * look at shapes, strides, formats and addresses only, never through a data pointer. run() puts its work on
   * problem->stream and need not wait for it. What only the data can tell is answered in the data: a score whose
   * additive mask entry is neither 0 nor -inf is NaN; a kv_len outside of 0..Tk is cut to it. */
  ATTN_DEVICE_CUDA = 1
};

/* A kernel. Functions must be callable from several threads at once, on different problems. */
typedef struct attn_kernel {
  uint32_t struct_size;
  int32_t op;
  const char* name;    /* e.g. "cpu.fa2.bf16.p16" */
  const char* summary; /* one line */
  attn_contract contract;

  /* ATTN_OK, ATTN_REJECTED or ATTN_NO_DEVICE; the reason goes to why (at most why_size bytes, NUL-terminated). */
  int32_t (*supports)(const attn_problem* problem, char* why, size_t why_size);
  /* Bytes of scratch that run() needs for a supported problem; NULL: none. */
  size_t (*workspace_size)(const attn_problem* problem);
  /* Computes. Writes every element of o and lse (or out), nothing else but workspace (64-byte aligned; 256 on a
   * device). */
  int32_t (*run)(const attn_problem* problem, void* workspace, size_t workspace_bytes, char* why, size_t why_size);

  int32_t device; /* ATTN_DEVICE_* */
  int32_t reserved0;
} attn_kernel;

typedef struct attn_plugin {
  uint32_t abi_version; /* ATTN_ABI_VERSION */
  uint32_t struct_size;
  const char* name;
  const attn_kernel* kernels;
  size_t kernel_count;
} attn_plugin;

/* The one symbol that a plugin exports. */
typedef const attn_plugin* (*attn_plugin_v1_fn)(void);
#define ATTN_PLUGIN_SYMBOL "attn_plugin_v1"

#ifdef __cplusplus
}
#endif

#endif

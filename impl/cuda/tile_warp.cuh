// One warp's rows against one tile of keys: scores, online softmax, P.V. What the tile kernels share; they differ in
// who loads tiles and in which order they are visited.
//
// A warp holds M x 16 rows. A lane holds rows g and g + 8 of each 16 (g = lane / 4), four lanes to a row. l is kept per
// lane and summed over the four where it is needed.
#pragma once

#include "impl/cuda/approx.cuh"
#include "impl/cuda/mma.cuh"
#include "impl/cuda/tile_memory.cuh"
#include "impl/cuda/tile_rows.cuh"

namespace attn {

enum class Rescale {
  deferred,    // acc is not normalised; rescaled when the maximum rises, divided at the end
  every_block  // acc is O itself: multiplied by l before a block, divided by the new l after it
};

// fl(fl(scale) log2_e) turns a raw score into the exponent of 2.
inline constexpr float log2_e = 0x1.715476p0f;

__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
__device__ __forceinline__ float quad_max(float x) {
  x = max_nan(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return max_nan(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

// Factor for what was summed under the maximum `from` when it moves to `to`; exactly 1 when it stays, so that a tile in
// which a row sees nothing changes no bit of the row. 0 from -inf. The difference is taken first: its error grows with
// the gap, and the offsets fl(m c2) of several tiles do not add up.
__device__ __forceinline__ float moved_max_factor(float from, float to, float c2) {
  return from == to ? 1.0f : exp2_flushed((from - to) * c2);
}

template <class T, int D, int M, int N>
struct WarpTile {
  using Layout = TileLayout<D>;
  static constexpr int parts = M, rows = 16 * M, width = D;
  using Scores = float[M][N / 8][4];

  float acc[M][D / 8][4];
  float m[M][2], l[M][2];

  __device__ static int lane() { return static_cast<int>(threadIdx.x % 32); }
  // Row of the warp that the lower or upper half of a lane's elements of fragment `part` belongs to.
  __device__ static int row(int part, int half) { return 16 * part + 8 * half + lane() / 4; }
  // Column of the lane's first element in a fragment of 8 columns.
  __device__ static int column() { return 2 * (lane() % 4); }

  __device__ void clear() {
#pragma unroll
    for (int part = 0; part < M; ++part) {
#pragma unroll
      for (int t = 0; t < D / 8; ++t)
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[part][t][e] = 0.0f;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        m[part][half] = neg_infinity<float>;
        l[part][half] = 0.0f;
      }
    }
  }

  // x = q.k. q: the warp's first row in shared memory; k: the tile. Both tiles are aligned to their row size, so that a
  // step along D is an exclusive or.
  __device__ static void scores(Scores& x, std::uint32_t q, std::uint32_t k) {
#pragma unroll
    for (int part = 0; part < M; ++part)
#pragma unroll
      for (int t = 0; t < N / 8; ++t)
#pragma unroll
        for (int e = 0; e < 4; ++e) x[part][t][e] = 0.0f;
    const std::uint32_t q_at = q + Layout::offset(lane() % 16, lane() / 16);
    const std::uint32_t k_at = k + Layout::offset(lane() % 8 + lane() / 16 * 8, lane() / 8 % 2);
#pragma unroll
    for (int step = 0; step < D / 16; ++step) {
      std::uint32_t a[M][4];
#pragma unroll
      for (int part = 0; part < M; ++part)
        load_matrices(a[part], (q_at ^ static_cast<std::uint32_t>(32 * step)) + Layout::bytes(16 * part));
#pragma unroll
      for (int t = 0; t < N / 16; ++t) {
        std::uint32_t b[4];
        load_matrices(b, (k_at ^ static_cast<std::uint32_t>(32 * step)) + Layout::bytes(16 * t));
#pragma unroll
        for (int part = 0; part < M; ++part) {
          multiply_add<T>(x[part][2 * t], a[part], b[0], b[1]);
          multiply_add<T>(x[part][2 * t + 1], a[part], b[2], b[3]);
        }
      }
    }
  }

  // Keys from the row's limit on are hidden.
  __device__ static void hide_beyond(Scores& x, const int (&limit)[M][2]) {
#pragma unroll
    for (int part = 0; part < M; ++part)
#pragma unroll
      for (int t = 0; t < N / 8; ++t)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (8 * t + column() + e % 2 >= limit[part][e / 2]) x[part][t][e] = neg_infinity<float>;
  }

  // Keys are hidden as the codes of the warp's rows say.
  __device__ static void hide_by_codes(Scores& x, const std::uint8_t* codes) {
#pragma unroll
    for (int part = 0; part < M; ++part)
#pragma unroll
      for (int t = 0; t < N / 8; ++t)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const uchar2 code = *reinterpret_cast<const uchar2*>(codes + row(part, half) * N + 8 * t + column());
          float* pair = &x[part][t][2 * half];
          pair[0] = hidden_or(pair[0], code.x);
          pair[1] = hidden_or(pair[1], code.y);
        }
  }

  // Scores become weights; m and l move on, and acc is brought to the new maximum.
  __device__ void weigh(Scores& x, float c2) {
    float none[M][2];
    weigh_as<Rescale::deferred>(x, c2, none);
  }
  // The same for an acc that is O itself: it becomes l times O, and `after` holds the factors that normalise it once
  // the tile's values are in. l is the sum of the whole row then.
  __device__ void weigh_normalised(Scores& x, float c2, float (&after)[M][2]) {
    weigh_as<Rescale::every_block>(x, c2, after);
  }

  // acc += P.V, weights rounded to the input format.
  __device__ void accumulate(const Scores& weight, std::uint32_t v) {
    const std::uint32_t v_at = v + Layout::offset(lane() % 16, lane() / 16);
#pragma unroll
    for (int step = 0; step < N / 16; ++step) {
      std::uint32_t a[M][4];
#pragma unroll
      for (int part = 0; part < M; ++part)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float* pair = &weight[part][2 * step + e / 2][e % 2 * 2];
          a[part][e] = pack_rounded<T>(pair[0], pair[1]);
        }
#pragma unroll
      for (int t = 0; t < D / 16; ++t) {
        std::uint32_t b[4];
        load_matrices_transposed(b, (v_at ^ static_cast<std::uint32_t>(32 * t)) + Layout::bytes(16 * step));
#pragma unroll
        for (int part = 0; part < M; ++part) {
          multiply_add<T>(acc[part][2 * t], a[part], b[0], b[1]);
          multiply_add<T>(acc[part][2 * t + 1], a[part], b[2], b[3]);
        }
      }
    }
  }

  // Multiplies acc. A factor of 1 changes nothing: where all rows of the warp have it, the products are left out.
  __device__ void scale_rows(const float (&factor)[M][2]) {
    bool moves = false;
    each_row([&](int part, int half) { moves = moves || factor[part][half] != 1.0f; });
    if (!__any_sync(0xffffffffu, moves)) return;
    each_row([&](int part, int half) {
#pragma unroll
      for (int t = 0; t < D / 8; ++t) {
        acc[part][t][2 * half] *= factor[part][half];
        acc[part][t][2 * half + 1] *= factor[part][half];
      }
    });
  }

  // Calls f(part, half) for each row of the lane.
  template <class F>
  __device__ __forceinline__ static void each_row(F f) {
#pragma unroll
    for (int part = 0; part < M; ++part)
#pragma unroll
      for (int half = 0; half < 2; ++half) f(part, half);
  }

 private:
  // All rows move through each stage together: their chains of maxima, shuffles and sums hide each other's latency.
  template <Rescale rescale>
  __device__ void weigh_as(Scores& x, float c2, float (&after)[M][2]) {
    float top[M][2], factor[M][2], offset[M][2];
    bool sees[M][2];
    each_row([&](int part, int half) {
      top[part][half] = max_nan(x[part][0][2 * half], x[part][0][2 * half + 1]);
#pragma unroll
      for (int t = 1; t < N / 8; ++t)
        top[part][half] = max_nan(max_nan(top[part][half], x[part][t][2 * half]), x[part][t][2 * half + 1]);
    });
    each_row([&](int part, int half) {
      const float highest = quad_max(top[part][half]);
      sees[part][half] = highest != neg_infinity<float>;
      const float risen = max_nan(m[part][half], highest);
      factor[part][half] = moved_max_factor(m[part][half], risen, c2);
      offset[part][half] = finite_max(risen) * c2;
      m[part][half] = risen;
      l[part][half] *= factor[part][half];
      if (rescale == Rescale::every_block) factor[part][half] = sees[part][half] ? l[part][half] : 1.0f;
    });
    scale_rows(factor);
    each_row([&](int part, int half) {
      float sum[2] = {0.0f, 0.0f};
#pragma unroll
      for (int t = 0; t < N / 8; ++t)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& w = x[part][t][2 * half + e];
          w = exp2_flushed(exp2_argument(w, c2, offset[part][half]));
          sum[e] += w;
        }
      if constexpr (rescale == Rescale::every_block) {
        l[part][half] += quad_sum(sum[0] + sum[1]);
        after[part][half] = sees[part][half] ? reciprocal(l[part][half]) : 1.0f;
      } else {
        l[part][half] += sum[0] + sum[1];
      }
    });
  }

  __device__ static float hidden_or(float x, std::uint8_t code) {
    if (code == mask_code::invalid) return __int_as_float(0x7fffffff);
    return code == mask_code::hidden ? neg_infinity<float> : x;
  }
};

}  // namespace attn

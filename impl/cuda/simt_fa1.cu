// FlashAttention-1 (Dao et al., arXiv 2205.14135) in fp32: keys outside, queries inside, O normalised at every block.
// One block for a slab of query blocks of one head; between tiles O, m and l of a row live in the workspace, where only
// the half warp that owns the row touches them.
#include "impl/cuda/kernel.h"
#include "impl/cuda/simt.h"
#include "impl/cuda/simt_forward.cuh"

namespace attn {

namespace {

// Row r = (batch * q_heads + head) * tq + i.
struct SimtState {
  float* o;    // [rows][d_v], normalised
  float2* ml;  // [rows]

  static std::size_t o_bytes(Index rows, Index d_v) {
    return (static_cast<std::size_t>(rows * d_v) * sizeof(float) + 63) / 64 * 64;
  }
  static std::size_t bytes(Index rows, Index d_v) {
    return o_bytes(rows, d_v) + static_cast<std::size_t>(rows) * sizeof(float2);
  }
  SimtState(void* workspace, Index rows, Index d_v)
      : o(static_cast<float*>(workspace)),
        ml(reinterpret_cast<float2*>(static_cast<char*>(workspace) + o_bytes(rows, d_v))) {}

  // The rows of a block, `first` being the flat index of its row 0.
  template <int Rows, int D>
  __device__ void load(Index first, int count, Index d_v, SimtTile<Rows, D>& mine) const {
    using Tile = SimtTile<Rows, D>;
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
      if (Tile::row(i) >= count) continue;
      const Index row = first + Tile::row(i);
      mine.m[i] = ml[row].x;
      mine.l[i] = ml[row].y;
#pragma unroll
      for (int c = 0; c < Tile::wide; ++c) {
        const int e = 64 * c + 4 * Tile::lane();
        if (e >= d_v) continue;
        const float4 four = *reinterpret_cast<const float4*>(o + row * d_v + e);
        float(&acc)[4] = mine.acc[c][i];
        acc[0] = four.x, acc[1] = four.y, acc[2] = four.z, acc[3] = four.w;
      }
    }
    __syncwarp();  // before anybody writes m and l again
  }
  template <int Rows, int D>
  __device__ void save(Index first, int count, Index d_v, const SimtTile<Rows, D>& mine) const {
    using Tile = SimtTile<Rows, D>;
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
      if (Tile::row(i) >= count) continue;
      const Index row = first + Tile::row(i);
      if (Tile::lane() == 0) ml[row] = make_float2(mine.m[i], mine.l[i]);
#pragma unroll
      for (int c = 0; c < Tile::wide; ++c) {
        const int e = 64 * c + 4 * Tile::lane();
        if (e < d_v) store_four(o + row * d_v + e, 1, true, mine.acc[c][i], 1.0f);
      }
    }
    __syncwarp();  // the lanes of a row share its m and l
  }
};

template <int Rows, int D>
__global__ void __launch_bounds__(simt_threads, D <= 64 && Rows < 4 ? 2 : 1)
    simt_fa1_kernel(const __grid_constant__ SimtProblem problem, const Index blocks_each, const SimtState state,
                    const Partials none) {
  using Tile = SimtTile<Rows, D>;
  using Memory = SimtMemory<Rows, D>;
  extern __shared__ __align__(16) char shared[];
  Memory& memory = *reinterpret_cast<Memory*>(shared);
  const ForwardView& view = problem.view;

  const Index blocks = problem.query_blocks(), slabs = ceil_div(blocks, blocks_each);
  const Index head = blockIdx.x / slabs, b = head / view.q_heads, h = head % view.q_heads;
  const IndexRange slab = block_range({0, blocks}, blocks_each, blockIdx.x % slabs);
  const auto rows_of = [&](Index block) { return block_range({0, view.tq}, problem.block_q, block); };
  const auto tile_of = [&](IndexRange rows) {
    return TileRows<true>{b, h, rows.begin, 0, 1, static_cast<int>(rows.size())};
  };
  const Visibility see = view.visibility(b);
  const IndexRange visited = visited_range(see, {rows_of(slab.begin).begin, rows_of(slab.end - 1).end}, {0, view.tk});
  const float c2 = view.scale * simt_log2_e;
  const float* const k = view.k.row<const float>(b, view.kv_head(h), 0);
  const float* const v = view.v.row<const float>(b, view.kv_head(h), 0);

  Tile mine;
  for (Index t = 0; t < block_count(visited, problem.block_k); ++t) {
    const IndexRange keys = block_range(visited, problem.block_k, t);
    __syncthreads();  // the tile before is done with
    copy_even_rows<simt_threads, simt_block_k, D, Memory::stride>(
        memory.k, static_cast<int>(keys.size()), static_cast<int>(view.d_qk), problem.k_by_fours, view.k.stride[3],
        k + keys.begin * view.k.stride[2], view.k.stride[2]);
    copy_even_rows<simt_threads, simt_block_k, D, D>(memory.v, static_cast<int>(keys.size()),
                                                     static_cast<int>(view.d_v), problem.v_by_fours, view.v.stride[3],
                                                     v + keys.begin * view.v.stride[2], view.v.stride[2]);
    for (Index block = slab.begin; block < slab.end; ++block) {
      const IndexRange rows = rows_of(block);
      const TileClass seen = classify(see, rows, keys);
      if (seen == TileClass::skip) continue;
      const TileRows<true> tile = tile_of(rows);
      __syncthreads();  // the block before is done with
      copy_even_rows<simt_threads, Memory::block_q, D, Memory::stride>(
          memory.q, tile.count, static_cast<int>(view.d_qk), problem.q_by_fours, view.q.stride[3],
          view.q.row<const float>(b, h, rows.begin), view.q.stride[2]);
      commit_copies();
      const Index first = head * view.tq + rows.begin;
      mine.clear();
      if (t > 0) state.load(first, tile.count, view.d_v, mine);
      wait_for_copies<0>();
      __syncthreads();  // everything is there
      if (Tile::warp_row() >= tile.count) continue;

      const bool partial = view.tensor_masked() || seen == TileClass::partial;
      typename Tile::Scores s;
      float divide[Rows];
      Tile::scores(s, memory, static_cast<int>(view.d_qk));
      if (partial || keys.size() < simt_block_k) {
        const unsigned hidden = hide_keys<Rows, D>(s, view, tile, see, keys);
        mine.template weigh<true, SimtRescale::every_block>(s, hidden, memory, c2, divide);
      } else {
        mine.template weigh<false, SimtRescale::every_block>(s, 0, memory, c2, divide);
      }
      __syncwarp();  // the weights are there
      if (partial) {
        mine.template accumulate<true>(memory);
      } else {
        mine.template accumulate<false>(memory);
      }
      mine.scale(divide);
      state.save(first, tile.count, view.d_v, mine);
    }
  }

  for (Index block = slab.begin; block < slab.end; ++block) {
    const IndexRange rows = rows_of(block);
    mine.clear();
    // A block that sees no key has no state.
    if (see.visible_range(rows).size() > 0)
      state.load(head * view.tq + rows.begin, static_cast<int>(rows.size()), view.d_v, mine);
    store_rows<SimtRescale::every_block>(problem, tile_of(rows), none, 0, mine);
  }
}

struct SimtFa1 {
  static constexpr std::int32_t op = ATTN_OP_FORWARD;
  static constexpr const char* what = "FlashAttention-1 in fp32";

  static Requirements needs() { return {ATTN_FP32, ATTN_FP32, false, 0}; }
  static Index rows(const attn_problem& p) { return p.q.shape[0] * p.q.shape[1] * p.q.shape[2]; }

  static bool refuse(const attn_problem& p, const DeviceFacts& facts, Refusal& refusal) {
    return refuse_simt(p, p.q.shape[2], facts, refusal) && refuse_simt_grid(rows(p), refusal);
  }
  static std::size_t workspace(const attn_problem& p) { return SimtState::bytes(rows(p), p.v.shape[3]); }

  // The query blocks of a head are dealt out in slabs when there are fewer heads than places for thread blocks; every
  // slab walks all keys. The bits do not depend on it.
  static cudaError_t launch(const attn_problem& p, void* workspace, const DeviceFacts& facts, cudaStream_t stream) {
    return with_simt_tile(p, p.q.shape[2], facts, [&]<int Rows, int D>() {
      using Memory = SimtMemory<Rows, D>;
      const SimtProblem s(p, 1, Memory::block_q);
      const Index heads = s.packed_heads(), blocks = s.query_blocks();
      if (heads == 0 || blocks == 0) return cudaSuccess;
      const Index wanted = larger(1, smaller(ceil_div(2 * facts.multiprocessors, heads), blocks));
      const Index each = ceil_div(blocks, wanted), slabs = ceil_div(blocks, each);
      const auto kernel = simt_fa1_kernel<Rows, D>;
      const cudaError_t error = allow_shared(kernel, sizeof(Memory));
      if (error != cudaSuccess) return error;
      kernel<<<static_cast<unsigned>(heads * slabs), simt_threads, sizeof(Memory), stream>>>(
          s, each, SimtState(workspace, rows(p), p.v.shape[3]), Partials(nullptr, 0, 0, 0));
      return cudaGetLastError();
    });
  }
};

}  // namespace

KernelEntry cuda_fa1_fp32() { return CudaFunctions<SimtFa1>::entry(); }

}  // namespace attn

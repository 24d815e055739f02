// What the warps of a block share: tile sizes, buffers in shared memory, the kernel's parameters.
#pragma once

#include <cstddef>
#include <cstdint>

#include "impl/cuda/hopper/barrier.cuh"
#include "impl/cuda/hopper/plan.cuh"
#include "impl/cuda/hopper/tensor_map.h"

namespace attn::hopper {

constexpr int group_rows = 64;  // query rows of a warpgroup: one matrix instruction

// Sizes for head dims up to Dim. One warpgroup loads; Groups others compute, each on 64 query rows. The registers of
// an SM, 64 Ki, go to the computing ones (setmaxnreg); the launch bound fixes what everybody starts with.
template <int Dim, int Groups, int BlockK, int Stages, int QStages, bool InTurns>
struct Tile {
  static constexpr int dim = Dim, panels = Dim / panel_columns;
  static constexpr int groups = Groups, threads = (Groups + 1) * group_size;
  static constexpr int block_q = Groups * group_rows, block_k = BlockK;
  static constexpr int stages = Stages, q_stages = QStages;
  static constexpr bool in_turns = InTurns;
  static constexpr int loading_registers = Groups == 2 ? 40 : 32, computing_registers = Groups == 2 ? 232 : 160;
  static_assert(BlockK % 16 == 0 && Dim % panel_columns == 0);
};

// Panels of 64 columns; each row is 128 bytes, swizzled by the copy engine.
template <class T, int Rows, int Panels>
struct Buffer {
  T panel[Panels][Rows][panel_columns];
  static constexpr int panel_bytes = Rows * panel_columns * static_cast<int>(sizeof(T));
  static constexpr int bytes = Panels * panel_bytes;
};

template <class T, class Tile>
struct alignas(1024) Shared {
  using Q = Buffer<T, group_rows, Tile::panels>;
  using KV = Buffer<T, Tile::block_k, Tile::panels>;
  Q q[Tile::groups][Tile::q_stages];
  KV k[Tile::stages], v[Tile::stages];
  Barrier q_full[Tile::groups][Tile::q_stages], q_free[Tile::groups][Tile::q_stages];
  Barrier k_full[Tile::stages], k_free[Tile::stages];
  Barrier v_full[Tile::stages], v_free[Tile::stages];
  Barrier scratch;                 // a tile of v that is cleaned before it is handed on
  static constexpr int plans = 4;  // the pending one, the one in hand, and those to come
  Plan<Tile::groups> plan[plans];
  Barrier plan_full[plans], plan_free[plans];
  Barrier plan_wanted;  // the loading warp nears the end of a query block

  __device__ void init() {
    constexpr int warps = group_size / warp_size;
    for (int g = 0; g < Tile::groups; ++g)
      for (int s = 0; s < Tile::q_stages; ++s) {
        q_full[g][s].init(1);
        q_free[g][s].init(warps);
      }
    for (int s = 0; s < Tile::stages; ++s) {
      k_full[s].init(1);
      v_full[s].init(1);
      k_free[s].init(warps * Tile::groups);
      v_free[s].init(warps * Tile::groups);
    }
    for (int p = 0; p < plans; ++p) {
      plan_full[p].init(1);
      plan_free[p].init(warps * Tile::groups + 1);  // and the loading warp
    }
    plan_wanted.init(1);
    scratch.init(1);
    publish_barriers();
  }
};

struct Parameters {
  TensorMap q, k, v;
  ForwardView problem;
  BlockOrder order;
  bool vector_o;           // O takes vector stores
  std::uint32_t* counter;  // query blocks handed out beyond the first of each worker; null: dealt out in turn
};

}  // namespace attn::hopper

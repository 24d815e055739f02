// The one forward kernel that every variant is an instance of: a row at a time, keys in blocks, and a recipe that says
// how each step is done. Written to be read; it has no workspace and keeps dense copies on the heap.
#pragma once

#include <algorithm>
#include <vector>

#include "impl/cpu/parallel.h"
#include "properties/variants/head.h"
#include "properties/variants/softmax.h"
#include "properties/variants/sums.h"

namespace attest::variants {

template <class T, Recipe r>
class Forward {
  // The running state of one row over some of its keys.
  static constexpr Sum row_sum = r.pv == Sum::mma ? Sum::fma : r.pv;  // tensor cores do not sum P
  struct State {
    T m = -std::numeric_limits<T>::infinity();
    Accumulator<T, row_sum> l;
    std::vector<Accumulator<T, r.pv>> acc;
    bool any = false;
  };
  // The result of some keys: O and LSE, and whether there were any.
  struct Part {
    std::vector<T> o;
    T lse = -std::numeric_limits<T>::infinity();
    bool any = false;
  };
  using Keys = std::vector<std::int64_t>;

 public:
  Forward(const attn_problem& p, std::int64_t batch, std::int64_t head)
      : head_(p, batch, head), softmax_(p.scale), block_k_(p.tiling.block_k > 0 ? p.tiling.block_k : r.block_k) {
    splits_ = p.tiling.splits > 0 ? p.tiling.splits : r.splits;
    threads_ = std::clamp<std::int64_t>(p.tiling.threads, 1, 64);
    if constexpr (r.whole_tiles) {
      for (std::int64_t j = 0; j < head_.tk; ++j)
        for (std::int64_t i = 0; i < head_.tq && (tile_keys_.empty() || tile_keys_.back() != j); ++i)
          if (head_.visible(i, j)) tile_keys_.push_back(j);
    }
  }

  // Not inlined: no operation may leave the reach of FlushToZero.
  [[gnu::noinline]] void row(std::int64_t i) const {
    Part result;
    if constexpr (r.algorithm == ATTN_ALG_SPLIT) {
      result = merged(i);
    } else if constexpr (r.algorithm == ATTN_ALG_FA1) {
      result = normalised_every_block(i);
    } else {
      result = finish(r.threads_share_keys ? shared_among_threads(i) : folded(i, 0, head_.tk));
    }
    const attn_problem& p = head_.problem;
    for (std::int64_t e = 0; e < head_.d_v; ++e)
      store(p.o, offset(p.o, head_.batch, head_.head, i, e), result.o[static_cast<std::size_t>(e)]);
    if (p.lse.data)
      store(p.lse, head_.batch * p.lse.stride[0] + head_.head * p.lse.stride[1] + i * p.lse.stride[2], result.lse);
  }

 private:
  // Keys of [lo, hi) that take part in row i, block by block in the recipe's order.
  std::vector<Keys> blocks(std::int64_t i, std::int64_t lo, std::int64_t hi) const {
    const std::int64_t width = r.algorithm == ATTN_ALG_STANDARD ? std::max<std::int64_t>(1, head_.tk) : block_k_;
    std::vector<Keys> out;
    std::int64_t last = -1;
    const auto put = [&](std::int64_t j) {
      if ((j - lo) / width != last) out.emplace_back();
      last = (j - lo) / width;
      out.back().push_back(j);
    };
    if constexpr (r.whole_tiles) {
      for (const std::int64_t j : tile_keys_)
        if (j >= lo && j < hi) put(j);
    } else {
      for (std::int64_t j = lo; j < hi; ++j)
        if (head_.visible(i, j)) put(j);
    }
    if constexpr (r.reversed) {
      std::reverse(out.begin(), out.end());
      for (Keys& keys : out) std::reverse(keys.begin(), keys.end());
    }
    return out;
  }

  // Scores of a block; a masked key of a whole tile has -inf.
  std::vector<T> scores(std::int64_t i, const Keys& keys) const {
    std::vector<T> x;
    for (const std::int64_t j : keys) {
      const bool seen = !r.whole_tiles || head_.visible(i, j);
      x.push_back(seen ? softmax_.score(dot<r.qk>(head_.q.data() + i * head_.d_qk, head_.k.data() + j * head_.d_qk,
                                                  static_cast<std::size_t>(head_.d_qk)))
                       : -std::numeric_limits<T>::infinity());
    }
    return x;
  }

  static T largest(const std::vector<T>& x) {
    T m = -std::numeric_limits<T>::infinity();
    for (const T y : x) m = std::max(m, y);
    return m;
  }

  std::vector<T> weights(std::int64_t i, const Keys& keys, const std::vector<T>& x, T m) const {
    std::vector<T> w;
    for (std::size_t t = 0; t < x.size(); ++t)
      w.push_back(!r.whole_tiles || head_.visible(i, keys[t]) ? softmax_.weight(x[t], m) : 0);
    return w;
  }

  bool sees_any(std::int64_t i, const Keys& keys) const {
    return !r.whole_tiles || std::any_of(keys.begin(), keys.end(), [&](auto j) { return head_.visible(i, j); });
  }

  // acc[e] += sum w v for every column, P rounded as the format says; l += sum w.
  void add(const Keys& keys, const std::vector<T>& w, Accumulator<T, row_sum>& l,
           std::vector<Accumulator<T, r.pv>>& acc) const {
    l.add(
        w.size(), [&](std::size_t t) { return w[t]; }, [](std::size_t) { return T(1); });
    std::vector<T> p;
    for (const T x : w) p.push_back(rounded_weight<r.format>(r.weights_normalised ? x / l.value() : x));
    for (std::size_t e = 0; e < acc.size(); ++e)
      acc[e].add(
          p.size(), [&](std::size_t t) { return p[t]; },
          [&](std::size_t t) { return head_.v[static_cast<std::size_t>(keys[t] * head_.d_v) + e]; });
  }

  State empty() const {
    State s;
    s.acc.resize(static_cast<std::size_t>(head_.d_v));
    return s;
  }

  void rescale(State& s, T m) const {
    const T factor = softmax_.rescale(s.m, m);
    s.l.rescale(factor);
    for (auto& a : s.acc) a.rescale(factor);
    s.m = m;
  }

  void fold(State& s, std::int64_t i, const Keys& keys) const {
    if (!sees_any(i, keys)) return;
    const std::vector<T> x = scores(i, keys);
    const T m = std::max(s.m, largest(x));
    if (!s.any)
      s.m = m, s.any = true;
    else if (r.lazy_threshold > 0 ? softmax_.rises_far(s.m, m) : m > s.m)
      rescale(s, m);
    add(keys, weights(i, keys, x, s.m), s.l, s.acc);
  }

  State folded(std::int64_t i, std::int64_t lo, std::int64_t hi) const {
    State s = empty();
    for (const Keys& keys : blocks(i, lo, hi)) fold(s, i, keys);
    return s;
  }

  // Block t goes to thread t mod n; the threads' states are added in the order of the threads.
  State shared_among_threads(std::int64_t i) const {
    const std::vector<Keys> all = blocks(i, 0, head_.tk);
    std::vector<State> part(static_cast<std::size_t>(threads_), empty());
    attn::parallel_for(threads_, threads_, [&](attn::Index lane, attn::Index) {
      for (std::size_t t = static_cast<std::size_t>(lane); t < all.size(); t += static_cast<std::size_t>(threads_))
        fold(part[static_cast<std::size_t>(lane)], i, all[t]);
    });
    State whole = empty();
    for (const State& s : part) whole.m = std::max(whole.m, s.m);
    for (State& s : part) {
      if (!s.any) continue;
      whole.any = true;
      rescale(s, whole.m);
      const T one = 1, l = s.l.value();
      whole.l.add(
          1, [&](std::size_t) { return l; }, [&](std::size_t) { return one; });
      for (std::size_t e = 0; e < s.acc.size(); ++e) {
        const T a = s.acc[e].value();
        whole.acc[e].add(
            1, [&](std::size_t) { return a; }, [&](std::size_t) { return one; });
      }
    }
    return whole;
  }

  Part finish(const State& s) const {
    Part out;
    out.o.assign(static_cast<std::size_t>(head_.d_v), 0);
    if (!s.any) return out;
    const T l = s.l.value(), inverse = 1 / l;
    for (std::size_t e = 0; e < out.o.size(); ++e) {
      const T a = s.acc[e].value();
      out.o[e] = r.weights_normalised ? a : r.reciprocal ? a * inverse : a / l;
    }
    out.lse = r.lse_in_base_2 ? softmax_.lse_in_base_2(s.m, l) : softmax_.lse(s.m, l);
    out.any = true;
    return out;
  }

  // FlashAttention-1: each block by its own maximum, O divided by the sum so far.
  Part normalised_every_block(std::int64_t i) const {
    Part out;
    out.o.assign(static_cast<std::size_t>(head_.d_v), 0);
    T m = -std::numeric_limits<T>::infinity(), l = 0;
    for (const Keys& keys : blocks(i, 0, head_.tk)) {
      if (!sees_any(i, keys)) continue;
      State block = empty();
      fold(block, i, keys);
      const T together = std::max(m, block.m);
      const T before = out.any ? l * softmax_.rescale(m, together) : 0;
      const T factor = softmax_.rescale(block.m, together);
      l = before + factor * block.l.value();
      for (std::size_t e = 0; e < out.o.size(); ++e) out.o[e] = (before * out.o[e] + factor * block.acc[e].value()) / l;
      m = together;
      out.any = true;
    }
    if (out.any) out.lse = softmax_.lse(m, l);
    return out;
  }

  // Where split s begins.
  std::int64_t cut(std::int64_t s) const {
    if constexpr (r.cuts == Cuts::single_keys) return s < splits_ ? std::min(s, head_.tk) : head_.tk;
    if constexpr (r.cuts == Cuts::uneven) return head_.tk * s * s / (splits_ * splits_);
    const std::int64_t each = (head_.tk + splits_ - 1) / splits_;
    return std::min(s * each, head_.tk);
  }

  Part merged(std::int64_t i) const {
    std::vector<Part> parts;
    T top = -std::numeric_limits<T>::infinity();
    for (std::int64_t s = 0; s < splits_; ++s) {
      Part part = finish(folded(i, cut(s), cut(s + 1)));
      if (!part.any) continue;
      top = std::max(top, part.lse);
      parts.push_back(std::move(part));
    }
    Part out;
    out.o.assign(static_cast<std::size_t>(head_.d_v), 0);
    if (parts.empty()) return out;
    T sum = 0;
    for (const Part& part : parts) sum += exp_of<r.exp>(part.lse - top);
    out.lse = top + log_of<r.exp>(sum);
    out.any = true;
    constexpr bool division_free = r.merge == ATTN_MERGE_DIVISION_FREE;
    for (const Part& part : parts) {
      const T w = exp_of<r.exp>(part.lse - (division_free ? out.lse : top));
      for (std::size_t e = 0; e < out.o.size(); ++e) out.o[e] = std::fma(w, part.o[e], out.o[e]);
    }
    if constexpr (!division_free)
      for (T& o : out.o) o /= sum;
    return out;
  }

  Head<T> head_;
  Softmax<T, r> softmax_;
  std::int64_t block_k_, splits_ = 1, threads_ = 1;
  Keys tile_keys_;  // that some row of this head sees
};

}  // namespace attest::variants

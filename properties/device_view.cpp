#include "properties/device_view.h"

namespace attest {
namespace {

void* moved(const void* pointer, std::span<const MovedSpan> spans) {
  if (!pointer) return nullptr;
  const auto* p = static_cast<const std::byte*>(pointer);
  for (const MovedSpan& s : spans)
    if (p >= s.here.data() && p < s.here.data() + s.here.size()) return s.there + (p - s.here.data());
  return nullptr;
}

}  // namespace

attn_problem moved_problem(const attn_problem& problem, std::span<const MovedSpan> spans) {
  attn_problem out = problem;
  for (attn_tensor* t : {&out.q, &out.k, &out.v, &out.o, &out.lse, &out.mask.visible, &out.mask.additive, &out.bias,
                         &out.sinks, &out.a.m, &out.a.l, &out.a.acc, &out.b.m, &out.b.l, &out.b.acc, &out.out.m,
                         &out.out.l, &out.out.acc, &out.scores})
    t->data = moved(t->data, spans);
  out.mask.kv_len = static_cast<const std::int64_t*>(moved(problem.mask.kv_len, spans));
  return out;
}

}  // namespace attest

#include "properties/field/launch.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>

namespace attest::field {
namespace {

constexpr std::size_t kAlignment = 64;

Formats formats_of(const Case& c) {
  Formats f;
  f.storage = c.dtype;
  return f;
}

// Behind the keys stands what the project puts around its tensors, not the canary of the guard zone.
Case with_margin(Case c) {
  c.k_layout.head_padding = std::max<std::int64_t>(c.k_layout.head_padding, 1);
  return c;
}

ProblemOptions options_of(const Project& p) {
  ProblemOptions o;
  o.output_prefill = p.stale;
  o.poison = p.margin;
  return o;
}

}  // namespace

Launch::Launch(const Case& c, const Project& project, bool lse)
    : problem_(with_margin(c), formats_of(c), options_of(project)), stale_(project.stale), lse_(lse) {
  if (!lse) problem_.mutable_abi().lse.data = nullptr;
  const Shape& s = c.shape;
  for (std::int64_t head = 0; head < s.batch * s.kv_heads; ++head)
    for (std::int64_t j = 0; j < s.tk; ++j) {
      if (problem_.key_seen(head / s.kv_heads, head % s.kv_heads, j)) continue;
      const auto lay = [&](const std::string& tensor, std::int64_t width) {
        const std::vector<double>& values = c.values.tensors.at(tensor).literal;
        for (std::int64_t at = (head * s.tk + j) * width; at < (head * s.tk + j + 1) * width; ++at)
          problem_.set_input(tensor, at, values.at(static_cast<std::size_t>(at)));
      };
      lay("k", s.d_qk), lay("v", s.d_v);
    }
}

bool Launch::run(const Kernel& kernel) {
  const attn_kernel& k = *kernel.abi;
  const attn_problem& p = problem_.abi();
  char why[256] = "";
  fault_.clear();
  try {
    if (k.supports(&p, why, sizeof why) != ATTN_OK) return false;
    const std::size_t bytes = k.workspace_size ? k.workspace_size(&p) : 0;
    struct Free {
      void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{kAlignment}); }
    };
    std::unique_ptr<std::byte, Free> workspace;
    if (bytes > 0) workspace.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment})));
    if (const std::int32_t status = k.run(&p, workspace.get(), bytes, why, sizeof why); status != ATTN_OK)
      fault_ = "run() returned status " + std::to_string(status);
  } catch (const std::exception& e) {
    fault_ = std::string("the kernel threw: ") + e.what();
  }
  return fault_.empty();
}

void Launch::prefill() { problem_.prefill(stale_); }

Outputs Launch::outputs() const {
  return {problem_.output("o"), lse_ ? problem_.output("lse") : std::vector<double>{}};
}

std::vector<std::uint64_t> Launch::bits() const {
  std::vector<std::uint64_t> all = problem_.output_bits("o"), lse = problem_.output_bits("lse");
  all.insert(all.end(), lse.begin(), lse.end());
  return all;
}

bool Launch::is_start_of(const Launch& whole) const {
  for (const char* tensor : {"o", "lse"}) {
    const std::vector<std::uint64_t> a = problem_.output_bits(tensor), b = whole.problem_.output_bits(tensor);
    if (!std::equal(a.begin(), a.end(), b.begin())) return false;
  }
  return true;
}

Launch::Damage Launch::damage() const {
  // The report names the first damage that it finds; what is not an input is a margin.
  Damage d{problem_.untouched_report()};
  d.inputs = d.report.find("input overwritten") != std::string::npos;
  d.margins = !d.report.empty() && !d.inputs;
  return d;
}

}  // namespace attest::field

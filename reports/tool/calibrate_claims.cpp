// The constants of matrix instructions, as Contracts claim them.
#include <algorithm>

#include "reports/tool/calibrate_claims.h"
#include "reports/tool/text.h"

namespace attest {
namespace {

using attn::CudaFormat;

bool on_tensor_cores(const attn_contract& k) {
  return k.qk_accumulation == ATTN_ACC_TENSOR_CORE || k.pv_accumulation == ATTN_ACC_TENSOR_CORE;
}

CudaFormat format_of(const attn_contract& k) { return k.in_dtype == ATTN_BF16 ? CudaFormat::bf16 : CudaFormat::fp16; }

// What every instruction of a format keeps to: fewer products a step and fewer bits lose more. Known only where the
// search left one model and that missed nothing.
struct Kept {
  bool known = true;
  int terms = 1 << 20, bits = 1 << 20;
  std::string unknown;
};
Kept kept(const Calibration& c, CudaFormat format) {
  Kept k;
  for (const InstructionFacts& i : c.instructions) {
    if (i.format != format || !i.present) continue;
    k.terms = std::min(k.terms, i.model.terms), k.bits = std::min(k.bits, i.model.fraction_bits);
    if (i.matching == 1 && i.misses() == 0 && i.model.align == cal::Cut::toward_zero &&
        i.model.result == cal::Cut::toward_zero)
      continue;
    k.known = false;
    k.unknown = text("%s %s: %d models match, the best misses %llu of its dot products",
                     std::string(name(i.instruction)).c_str(), std::string(name(format)).c_str(), i.matching,
                     static_cast<unsigned long long>(i.misses()));
  }
  k.known &= k.terms < 1 << 20;
  return k;
}

Constant accumulation(const Calibration& c, Kernels kernels, const char* field, std::int32_t attn_contract::*claimed,
                      int Kept::*measured, int documented, const std::string& unit) {
  const Kept half = kept(c, CudaFormat::fp16), bfloat = kept(c, CudaFormat::bf16);
  const auto word = [&](const Kept& k) { return k.known ? text("%d", k.*measured) : "unknown"; };
  Constant constant{field,
                    text("%d%s", documented, unit.c_str()),
                    "arXiv 2512.07004, MMA-Sim",
                    half.known && bfloat.known && half.*measured == bfloat.*measured
                        ? word(half)
                        : "fp16 " + word(half) + ", bf16 " + word(bfloat),
                    "",
                    {},
                    {}};
  for (const Kept& k : {half, bfloat})
    if (!k.known) constant.where += (constant.where.empty() ? "" : "; ") + k.unknown;
  collect_claims(
      constant, kernels, on_tensor_cores, [&](const attn_contract& k) { return text("%d", k.*claimed); },
      [&](const attn_contract& k) {
        const Kept& m = format_of(k) == CudaFormat::bf16 ? bfloat : half;
        return m.known && k.*claimed > 0 && k.*claimed <= m.*measured;
      },
      half.known && bfloat.known ? "lower it in impl/cuda/registry.cpp" : "the bounds count on the model");
  return constant;
}

std::string whose(const std::vector<std::string>& kernels) {
  if (kernels.size() == 1) return kernels[0] + " claims";
  return text("%s and %zu more claim", kernels[0].c_str(), kernels.size() - 1);
}

}  // namespace

void collect_claims(Constant& constant, Kernels kernels, const std::function<bool(const attn_contract&)>& concerns,
                    const std::function<std::string(const attn_contract&)>& value,
                    const std::function<bool(const attn_contract&)>& holds, const std::string& fix) {
  for (const attn_kernel& k : kernels) {
    if (!concerns(k.contract)) continue;
    const std::string word = value(k.contract);
    const bool good = holds(k.contract);
    const auto same = [&](const Claim& claim) { return claim.value == word && claim.holds == good; };
    auto at = std::find_if(constant.claims.begin(), constant.claims.end(), same);
    if (at == constant.claims.end()) at = constant.claims.insert(at, Claim{word, {}, good});
    at->kernels.push_back(k.name);
  }
  for (const Claim& claim : constant.claims)
    if (!claim.holds)
      constant.faults.push_back(whose(claim.kernels) + " " + constant.name + " " + claim.value + ", measured is " +
                                constant.measured + (constant.where.empty() ? "" : " (" + constant.where + ")") + ": " +
                                fix);
}

std::vector<Constant> accumulation_constants(const Calibration& c, Kernels kernels) {
  const cal::Accumulation published = documented_accumulation(c.device.major);
  return {accumulation(c, kernels, "mma_terms", &attn_contract::mma_terms, &Kept::terms, published.terms,
                       " products a step"),
          accumulation(c, kernels, "mma_fraction_bits", &attn_contract::mma_fraction_bits, &Kept::bits,
                       published.fraction_bits, " bits")};
}

}  // namespace attest

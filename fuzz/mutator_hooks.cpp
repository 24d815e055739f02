// libFuzzer's entries for a mutator of one's own. Linked into the targets whose input is a genome.
#include <algorithm>
#include <cstring>

#include "fuzz/mutate.h"

extern "C" {
// libFuzzer's built-in mutation; other engines may not have it.
__attribute__((weak)) std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);
std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed);
std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* a, std::size_t a_size, const std::uint8_t* b,
                                      std::size_t b_size, std::uint8_t* out, std::size_t max_size, unsigned seed);
}

namespace {

// Bytes that do not fit are words at the end: cut off, they read as zeros.
std::size_t write(const attest::fuzz::Genome& genome, std::uint8_t* data, std::size_t max_size) {
  const auto bytes = attest::fuzz::encode(genome);
  const std::size_t n = std::min(bytes.size(), max_size);
  std::copy_n(bytes.begin(), n, data);
  return n;
}

}  // namespace

std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  attest::Random random(seed, 0x6d7574);
  // What the moves do not think of stays reachable.
  const bool raw = LLVMFuzzerMutate && random.chance(0.25);
  if (raw) size = LLVMFuzzerMutate(data, size, max_size);
  attest::fuzz::Genome genome = attest::fuzz::decode({data, size});
  if (!raw) attest::fuzz::mutate(genome, random);
  attest::fuzz::make_cheaper(genome, random);
  return write(genome, data, max_size);
}

std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* a, std::size_t a_size, const std::uint8_t* b,
                                      std::size_t b_size, std::uint8_t* out, std::size_t max_size, unsigned seed) {
  attest::Random random(seed, 0x63726f);
  attest::fuzz::Genome genome =
      attest::fuzz::cross(attest::fuzz::decode({a, a_size}), attest::fuzz::decode({b, b_size}), random);
  attest::fuzz::make_cheaper(genome, random);
  return write(genome, out, max_size);
}

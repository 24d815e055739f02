// What every fuzz target shares: libFuzzer's entry, and a count of inputs that got as far as the thing under test.
#pragma once

#include <cstddef>
#include <cstdint>

// libFuzzer's entry: any bytes are a valid input. Returns 0; a finding aborts.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// Called once, before the first input, by targets that have something to prepare. Ends the process with 2 on bad
// settings.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);

namespace attest::fuzz {

// A replay in which every input is turned away proves nothing, so replay_main fails on accepted == 0.
struct Tally {
  std::int64_t inputs = 0;
  std::int64_t accepted = 0;
  // Of targets over kernels: checks made, and those that ended with a kernel's refusal. A search in which most
  // are rejected is no search.
  std::int64_t checks = 0;
  std::int64_t rejected = 0;
};

inline Tally tally;

}  // namespace attest::fuzz

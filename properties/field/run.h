// A kernel in the hands of a project's tests.
#pragma once

#include <memory>
#include <string>

#include "properties/field/field.h"

namespace attest::field {

// What a project's tests saw of a bug, ascending.
enum class Sight {
  untested,   // no test of this operation, or of this format
  untouched,  // no test let the bug change a bit: the results were those of the kernel without it
  accepted,   // some results differed and all tests passed
  caught      // a test failed
};

struct Opinion {
  Sight sight = Sight::untested;
  std::string by;  // the test that failed first
  int tests = 0;   // run, seeds counted
};

// The projects' tests with their values laid and their references computed, shared by all kernels. Thread-safe.
class Examiner {
 public:
  // Every test is run with the values of so many seeds, derived from `seed`.
  Examiner(std::uint64_t seed, int seeds);
  ~Examiner();

  // Runs the project's tests until one fails. correct: the same kernel without the bug, to tell whether the tests touch
  // it; nullptr: whatever ran counts as touched. A kernel that refuses a test is not tested by it.
  Opinion ask(const Project& project, const Kernel& kernel, const Kernel* correct) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attest::field

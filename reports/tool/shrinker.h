// shrink_failure() (properties/check.h) turned inside out: it says which case to try and is told what came of it, so
// that the trying can be done elsewhere.
#pragma once

#include <utility>
#include <vector>

#include "oracle/case_error.h"
#include "properties/generate.h"

namespace attest {

class Shrinker {
 public:
  Shrinker(Case failing, int max_checks)
      : best_(std::move(failing)), candidates_(shrink_case(best_)), max_checks_(max_checks) {}

  // The next simpler case to try; nullptr if there is none, or no check is left. The last one must have been told.
  const Case* next() {
    for (; at_ < candidates_.size(); ++at_) {
      if (++checks_ > max_checks_) return nullptr;
      if (is_valid(candidates_[at_])) return &candidates_[at_];
    }
    return nullptr;
  }

  // Whether the case that next() gave still fails.
  void tell(bool fails) {
    if (!fails) {
      ++at_;
      return;
    }
    best_ = std::move(candidates_[at_]);
    candidates_ = shrink_case(best_);
    at_ = 0;
    smaller_ = true;
  }

  bool smaller() const { return smaller_; }  // than the case that it began with
  const Case& best() const { return best_; }

 private:
  static bool is_valid(const Case& c) {
    try {
      validate(c, "shrinking");
    } catch (const CaseError&) {
      return false;
    }
    return true;
  }

  Case best_;
  std::vector<Case> candidates_;
  std::size_t at_ = 0;
  int checks_ = 0, max_checks_;
  bool smaller_ = false;
};

}  // namespace attest

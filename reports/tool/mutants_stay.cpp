// Laws that overlap with others by nature: what they rest on is judged elsewhere too, on other inputs.
#include <utility>

#include "reports/tool/mutants.h"

namespace attest {
namespace {

constexpr std::pair<std::string_view, std::string_view> kReasons[] = {
    {"encloses",
     "the definition: chunking, permutes, swings and merge-associates judge by the same bound, but on tilings, orders, "
     "scores and trees of their own; it alone judges every problem as it was given, and against printed values"},
    {"step-folds",
     "chunking judges the same folds as states; only here are they carried on to O = acc / l and LSE = m + log l, and "
     "held against the forward kernel of the same formats"},
    {"permutes",
     "encloses implies it on the same inputs; but no recipe shuffles staircases, needles and swings, and a failure "
     "says that the order of keys matters"},
    {"shifts",
     "encloses implies it on the same inputs; but it moves any recipe's raw scores by up to 2^11 with their "
     "spread kept, and a failure says that the frame of m or LSE is wrong"},
    {"decode-is-prefill",
     "encloses implies it where one kernel does both; it is the law that holds a kernel for decoding alone against its "
     "sibling for prefill"},
};

}  // namespace

std::string_view why_it_stays(std::string_view law) {
  for (const auto& [name, reason] : kReasons)
    if (name == law) return reason;
  return "";
}

}  // namespace attest

// How long calls took, and how they were asked to be timed.
#pragma once

#include <string>
#include <vector>

namespace attest {

// Seconds of one call, one entry for each sample.
struct BenchTimes {
  // The device's own time: calls back to back, all enqueued before the first begins, by events around them.
  std::vector<double> device;
  // A call alone on an idle device: what a caller sees who waits for it; launching is part of it.
  std::vector<double> call;
  int calls = 1;       // in a sample of `device`
  bool hidden = true;  // every sample of `device` was enqueued before it began
};

// How much to time a contender at a time; peers get the same.
struct BenchEffort {
  double seconds = 0.02;   // of `device`, about
  double sample = 0.0003;  // a sample of `device` is made of as many calls as fill this
  int most_calls = 32;     // but no more
  int most_samples = 15;
  int most_alone = 8;  // samples of `call`
};

struct BenchSpread {
  double median = 0, low = 0, high = 0, min = 0, max = 0;  // low, high: quartiles
  int samples = 0;
};

// Of values of any order; all 0 without any.
BenchSpread bench_spread(std::vector<double> values);

// Two results, element by element.
struct BenchDifference {
  double value = 0;         // the largest |a - b|
  double largest = 0;       // the largest |b|, which `value` is to be seen beside
  long long nonfinite = 0;  // elements where |a - b| is NaN or infinite; not part of `value`
};

}  // namespace attest

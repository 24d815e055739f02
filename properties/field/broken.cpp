#include "properties/field/broken.h"

#include <algorithm>
#include <limits>

#include "properties/field/build.h"
#include "properties/field/launch.h"
#include "properties/field/reference.h"

namespace attest::field {
namespace {

constexpr std::int64_t kKeys = 4096, kRows = 4, kHeads = 2, kDim = 64;

// The project's plain test in each of its formats: the first one of the format.
std::vector<const Test*> plain_tests(const Project& project) {
  std::vector<const Test*> out;
  for (const Test& t : project.tests) {
    const auto same = [&](const Test* u) { return u->problem.dtype == t.problem.dtype; };
    if (!t.rule && std::none_of(out.begin(), out.end(), same)) out.push_back(&t);
  }
  return out;
}

Change change_of(Damage damage) {
  Change c;
  if (damage == Damage::dropped_key) c.dropped = 2000;
  if (damage == Damage::leaked_key) c.leaked = kKeys - 1;  // seen by the last row alone
  if (damage == Damage::scale_off) c.scale = 1.01;
  if (damage == Damage::scale_off_slightly) c.scale = 1 + 0x1p-10;
  return c;
}

}  // namespace

const std::vector<Broken>& broken_outputs() {
  static const std::vector<Broken> all = {{Damage::zeros, "all zeros"},
                                          {Damage::one_nan, "one NaN"},
                                          {Damage::dropped_key, "one key dropped"},
                                          {Damage::leaked_key, "one future key leaked"},
                                          {Damage::scale_off, "scale off by 1 %"},
                                          {Damage::scale_off_slightly, "scale off by 2^-10"}};
  return all;
}

std::vector<Acceptance> acceptances(const Project& project, std::uint64_t seed) {
  std::vector<Acceptance> result(broken_outputs().size());
  for (const Test* plain : plain_tests(project)) {
    Test t = forward(plain->problem.dtype, {1, kHeads, kHeads, kRows, kKeys, kDim}, Causal::bottom_right, plain->fill);
    t.problem.out = plain->problem.out;
    t.problem.scale = plain->problem.scale;
    t.fill(t.problem, seed);
    const Launch launch(t.problem, project);
    const Inputs inputs = read_inputs(launch.problem());
    const Reference reference = reference_for(project, launch.problem(), inputs);
    Arithmetic stored;  // an fp32 computation whose O is stored in the format of the test
    stored.output = launch.problem().out_dtype();
    for (std::size_t b = 0; b < result.size(); ++b) {
      const Damage damage = broken_outputs()[b].damage;
      Outputs got = attend(launch.problem(), inputs, stored, change_of(damage));
      if (damage == Damage::zeros) std::fill(got.o.begin(), got.o.end(), 0.0);
      if (damage == Damage::one_nan) got.o[got.o.size() / 2] = std::numeric_limits<double>::quiet_NaN();
      ++result[b].formats;
      result[b].accepted += project.rule({got, reference, t.problem.dtype, kKeys});
    }
  }
  return result;
}

}  // namespace attest::field

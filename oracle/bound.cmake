# Bounds and the verdict (oracle/BOUNDS.md).
list(APPEND bound_sources
  arithmetic.cpp
  explain.cpp
  expected_cells.cpp
  expected_frames.cpp
  format_facts.cpp
  forward_accumulation.cpp
  forward_bound.cpp
  forward_box.cpp
  forward_columns.cpp
  forward_expected.cpp
  forward_lse.cpp
  forward_overflow.cpp
  forward_segments.cpp
  forward_weights.cpp
  key_plan.cpp
  merge_bound.cpp
  step_bound.cpp
  verdict.cpp)
list(APPEND bound_tests
  tests/bound_adversarial_test.cpp
  tests/bound_extremes_test.cpp
  tests/bound_forward_sweep.cpp
  tests/bound_forward_test.cpp
  tests/bound_merge_test.cpp
  tests/bound_plan_test.cpp
  tests/bound_step_test.cpp
  tests/verdict_judge_test.cpp)

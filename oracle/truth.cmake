set(truth_sources float_environment.cpp truth.cpp truth_state.cpp truth_fp64.cpp truth_double_double.cpp truth_exact.cpp)
set(truth_tests
  tests/float_environment_test.cpp
  tests/truth_families.cpp
  tests/truth_primitives_test.cpp
  tests/truth_agreement_test.cpp
  tests/truth_closed_forms_test.cpp
  tests/truth_classes_test.cpp
  tests/truth_state_test.cpp
  tests/truth_examples_test.cpp)

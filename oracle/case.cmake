# Cases, recipes, problems, rows. Included by CMakeLists.txt, before the targets exist.
set(recipe_sources case.cpp family.cpp format.cpp mask.cpp npy.cpp recipe.cpp score_plan.cpp)
set(case_sources ${recipe_sources} buffer.cpp case_check.cpp case_fields.cpp case_parse.cpp case_write.cpp exact_gaps.cpp guard_pages.cpp number.cpp
  problem.cpp problem_build.cpp row.cpp strided.cpp)
set(case_tests tests/buffer_test.cpp tests/case_bytes_test.cpp tests/case_errors_test.cpp tests/case_number_test.cpp tests/case_npy_test.cpp
  tests/case_row_test.cpp tests/case_text_test.cpp tests/problem_mask_test.cpp tests/problem_memory_test.cpp
  tests/recipe_family_test.cpp tests/recipe_mask_test.cpp tests/recipe_philox_test.cpp)

# The recipes under other compilers and levels: one ctest entry each, SKIPPED with its reason where one is missing.
function(attest_golden_test name wanted compiler flags)
  set(sources ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/tests/golden_main.cpp)
  foreach(file ${recipe_sources})
    list(APPEND sources ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${file})
  endforeach()
  list(JOIN sources "," sources)
  if(NOT compiler)
    set(compiler "")
  endif()
  add_test(NAME recipe_golden.${name} COMMAND ${CMAKE_COMMAND} -DCOMPILER=${compiler} -DFLAGS=${flags}
    -DWANTED=${wanted} -DSOURCES=${sources} -DROOT=${CMAKE_SOURCE_DIR} -DBINARY=${CMAKE_BINARY_DIR}/golden/${name}
    -DGOLDEN=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/tests/golden.txt
    -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/tests/golden.cmake)
  set_tests_properties(recipe_golden.${name} PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED: " LABELS oracle TIMEOUT 300)
endfunction()
if(ATTEST_TESTS)
  find_program(ATTEST_GXX NAMES g++ DOC "g++, for the golden hashes")
  find_program(ATTEST_CLANG NAMES clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14 clang++
    DOC "clang++ with libc++, for the golden hashes")
  find_program(ATTEST_NVCC NAMES nvcc HINTS /usr/local/cuda/bin DOC "nvcc, for the golden hashes")
  set(strict "-ffp-contract=off")
  set(fast "")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(fast "-march=x86-64-v3")  # with fused multiply-add: the compiler could contract, and must not
  endif()
  attest_golden_test(gcc-O0 "g++" "${ATTEST_GXX}" "-O0 ${strict}")
  attest_golden_test(gcc-O3 "g++" "${ATTEST_GXX}" "-O3 ${strict} ${fast}")
  attest_golden_test(clang-libcxx-O2 "clang++ with libc++" "${ATTEST_CLANG}" "-stdlib=libc++ -O2 ${strict} ${fast}")
  attest_golden_test(nvcc-O2 "nvcc" "${ATTEST_NVCC}" "-x cu -O2 -Xcompiler ${strict}")
endif()

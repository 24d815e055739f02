# What every target of the project shares: flags, sanitizers, include roots, one helper per kind of target.

set(ATTEST_FLAGS -Wall -Wextra -ffp-contract=off -fno-math-errno -fvisibility=hidden)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 warns of overlapping copies inside std::string that cannot happen (GCC bug 105651, fixed in 13), and its SLP
  # vectoriser drops the rounding of double -> float -> double where it builds a pair of such values
  # (oracle/tests/compiler_test.cpp fails without the flag).
  list(APPEND ATTEST_FLAGS -Wno-restrict -fno-tree-slp-vectorize)
endif()
if(ATTEST_WERROR)
  list(APPEND ATTEST_FLAGS -Werror)
endif()
# For code whose time goes into the libraries that it calls, tests and the tool: a third less to compile.
set(ATTEST_QUICK_FLAGS $<$<CONFIG:Release,RelWithDebInfo>:-O1>)
if(ATTEST_ARCH AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND ATTEST_FLAGS -march=${ATTEST_ARCH})
endif()
if(ATTEST_SANITIZE)
  list(APPEND ATTEST_FLAGS -fsanitize=${ATTEST_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ATTEST_SANITIZE})
endif()
if(ATTEST_PORTABLE)
  add_link_options(-static-libstdc++ -static-libgcc)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
endif()

# Several sources of a target are compiled as one: most of their time goes into the same headers. Sources whose local
# names clash with a neighbour's are named under ALONE. While working on one file, -DATTEST_UNITY=OFF builds faster.
option(ATTEST_UNITY "Compile several sources as one where it helps" ON)
function(attest_unity target)
  cmake_parse_arguments(arg "" "" "ALONE" ${ARGN})
  set_source_files_properties(${arg_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${ATTEST_UNITY} UNITY_BUILD_BATCH_SIZE 6)
endfunction()

# A folder's headers are seen only by targets that link it: each include root holds a link to one folder, so that
# "oracle/x.h" does not exist for a target of impl/. This is how the one-way dependencies of the design are enforced.
function(attest_include_root target folder)
  set(root ${CMAKE_BINARY_DIR}/include/${folder})
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${folder} ${root}/${folder} SYMBOLIC)
  target_include_directories(${target} PUBLIC ${root})
endfunction()

# The one header that everything shares.
add_library(attention_interface INTERFACE)
set(root ${CMAKE_BINARY_DIR}/include/attention_interface/impl)
file(MAKE_DIRECTORY ${root})
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/impl/attention.h ${root}/attention.h SYMBOLIC)
target_include_directories(attention_interface INTERFACE ${CMAKE_BINARY_DIR}/include/attention_interface)

# attest_library(NAME FOLDER SOURCES... [LINK libs...])
function(attest_library name folder)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:C,CXX>:${ATTEST_FLAGS}>"
    "$<$<COMPILE_LANGUAGE:CUDA>:${ATTEST_CUDA_FLAGS}>")
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${name} PUBLIC attention_interface ${arg_LINK})
  attest_include_root(${name} ${folder})
endfunction()

# attest_test(NAME SOURCES... LINK libs... [LABELS labels...]): a GoogleTest program, one ctest entry per test case.
function(attest_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "LINK;LABELS" ${ARGN})
  if(NOT ATTEST_TESTS)
    return()
  endif()
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE ${ATTEST_FLAGS} ${ATTEST_QUICK_FLAGS})
  target_compile_definitions(${name} PRIVATE ATTEST_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${arg_LINK} GTest::gtest GTest::gtest_main)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()

if(ATTEST_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
  include(GoogleTest)
endif()

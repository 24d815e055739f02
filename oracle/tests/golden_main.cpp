// Prints the golden hashes. Compiled by other compilers and at other levels than the build's; see golden.cmake.
#include <cstdio>

#include "oracle/tests/golden.h"

int main() { std::fputs(attest::golden_hashes().c_str(), stdout); }

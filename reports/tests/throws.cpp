// A C++ library behind the C interface that lets an exception out.
#include <stdexcept>

extern "C" void throw_something() { throw std::runtime_error("no such tile"); }

# Kernels from a user's shared library.
set(plugin_sources plugin.cpp plugin_contract.cpp)

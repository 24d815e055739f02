// For engines that fork the target for its inputs, as AFL++ does: killed themselves, they leave the last fork of it
// stopped for ever, in a session of its own.
#include <pthread.h>
#include <sys/prctl.h>

#include <csignal>

namespace {

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] { prctl(PR_SET_PDEATHSIG, SIGKILL); });

}  // namespace

// What afl-fuzz writes of its progress: fuzzer_stats every minute and at its end, plot_data every five seconds
// after its first minute.
#pragma once

#include <string_view>

#include "reports/tool/fuzz/lines.h"

namespace attest {

// The text of fuzzer_stats: "execs_done        : 5000" and its like. inputs: what it found by itself; -1 where the text
// does not say, as when it was cut off.
FuzzStatus afl_stats(std::string_view text);

// The text of plot_data: names of columns in a line that begins with "#", then numbers. Its last whole line. inputs are
// not in it: its count has those that afl-fuzz was given.
FuzzStatus afl_plot(std::string_view text);

// What "id:000003,sig:06,src:000001,..." says of how the target died.
std::string afl_death(std::string_view crash);

}  // namespace attest

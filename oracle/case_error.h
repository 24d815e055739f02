// How every complaint about a case is worded: "file: field: reason", on one line.
#pragma once

#include <string>
#include <string_view>

#include "oracle/case.h"

namespace attest {

// Text from a file made fit for one line of a message: control and non-ASCII bytes as \xNN, at most `limit` bytes.
std::string printable(std::string_view text, std::size_t limit = 80);

[[noreturn]] void case_error(std::string_view origin, std::string_view field, std::string_view reason);

}  // namespace attest

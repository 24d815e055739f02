// Claim: parse_case turns any text into a Case or a CaseError, and what it accepts survives to_text and back.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "fuzz/target.h"
#include "oracle/case.h"

namespace {

[[noreturn]] void die(const char* what, const std::string& first, const std::string& second) {
  std::fprintf(stderr, "fuzz_case: %s\n--- first\n%s\n--- second\n%s\n", what, first.c_str(), second.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attest;
  ++fuzz::tally.inputs;
  const std::string text(reinterpret_cast<const char*>(data), size);
  Case parsed;
  try {
    parsed = parse_case(text, "fuzz.case");
  } catch (const CaseError& error) {
    // "One line that says file, field and reason" is part of the parser's promise.
    const std::string message = error.what();
    if (message.empty() || message.find('\n') != std::string::npos) die("message is not one line", text, message);
    return 0;
  }
  ++fuzz::tally.accepted;
  const std::string canonical = to_text(parsed);
  try {
    const Case again = parse_case(canonical, "fuzz.case");
    if (!(again == parsed)) die("a case changed on its way through text", text, canonical);
    if (to_text(again) != canonical) die("canonical text is not stable", canonical, to_text(again));
  } catch (const CaseError& error) {
    die(error.what(), text, canonical);
  }
  return 0;
}

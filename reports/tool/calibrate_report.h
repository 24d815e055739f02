// A calibration for people, for machines and for the record.
#pragma once

#include <string>
#include <vector>

#include "reports/tool/calibrate_judge.h"

namespace attest {

// "pass" or "fail".
std::string verdict_of(const std::vector<Constant>& constants);

// Device, driver, compiler: one line.
std::string describe(const cal::Device& device);
// The tables, then the constants; `brief`: the constants alone.
std::string calibration_text(const Calibration& c, const std::vector<Constant>& constants, bool brief);
std::string calibration_json(const Calibration& c, const std::vector<Constant>& constants);
std::string calibration_markdown(const Calibration& c, const std::vector<Constant>& constants,
                                 const std::string& command);

}  // namespace attest

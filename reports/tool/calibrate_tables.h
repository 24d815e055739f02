// The tables of a calibration.
#pragma once

#include <string>
#include <vector>

#include "reports/tool/calibrate_judge.h"
#include "reports/tool/calibrate_table.h"

namespace attest {

std::vector<ReportTable> calibration_tables(const Calibration& c);
ReportTable constants_table(const std::vector<Constant>& constants);

// "L 16, F 25", with what differs from truncation.
std::string model_name(const cal::Accumulation& m);
// The dot products that the model misses, with the operands in hex: one line each.
std::vector<std::string> examples_of(const Calibration& c);

}  // namespace attest

// What the driver's management library says of a device. It comes with the driver and is opened at run time.
#pragma once

#include <memory>
#include <string>

#include "reports/tool/bench_device.h"

namespace attest {

class BenchManagement {
 public:
  // By PCI bus address ("00000000:1B:00.0"), which names the device in the driver's order as in any other.
  explicit BenchManagement(const std::string& bus);
  ~BenchManagement();
  BenchManagement(const BenchManagement&) = delete;
  BenchManagement& operator=(const BenchManagement&) = delete;

  std::string driver() const;     // "580.159.04", or "unknown"
  int highest_sm_mhz() const;     // 0: unknown
  int power_limit_watts() const;  // 0: unknown
  BenchClocks clocks() const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace attest

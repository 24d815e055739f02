#include "reports/tool/bench_clocks.h"

#include <dlfcn.h>

namespace attest {

// nvml.h, by its documented C interface: enumerators and signatures have not changed since they came.
struct BenchManagement::Library {
  using Device = void*;
  enum { clock_sm = 1, clock_memory = 2, sensor_gpu = 0 };

  void* handle = nullptr;
  Device device = nullptr;
  bool ready = false;

  template <class Function>
  Function* symbol(const char* name) const {
    return handle ? reinterpret_cast<Function*>(dlsym(handle, name)) : nullptr;
  }
  // An unsigned number from a function of (device, result), or of (device, which, result); 0 where there is none.
  unsigned number(const char* name) const {
    auto* const f = symbol<int(Device, unsigned*)>(name);
    unsigned value = 0;
    return ready && f && f(device, &value) == 0 ? value : 0;
  }
  unsigned number(const char* name, int which) const {
    auto* const f = symbol<int(Device, int, unsigned*)>(name);
    unsigned value = 0;
    return ready && f && f(device, which, &value) == 0 ? value : 0;
  }
};

BenchManagement::BenchManagement(const std::string& bus) : library_(std::make_unique<Library>()) {
  Library& l = *library_;
  l.handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  auto* const init = l.symbol<int()>("nvmlInit_v2");
  auto* const find = l.symbol<int(const char*, Library::Device*)>("nvmlDeviceGetHandleByPciBusId_v2");
  l.ready = init && find && init() == 0 && find(bus.c_str(), &l.device) == 0;
}

// The library stays loaded: it has threads of its own.
BenchManagement::~BenchManagement() = default;

std::string BenchManagement::driver() const {
  auto* const f = library_->symbol<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
  char version[96] = "";
  return library_->ready && f && f(version, sizeof version) == 0 ? version : "unknown";
}

int BenchManagement::highest_sm_mhz() const {
  return static_cast<int>(library_->number("nvmlDeviceGetMaxClockInfo", Library::clock_sm));
}

int BenchManagement::power_limit_watts() const {
  return static_cast<int>(library_->number("nvmlDeviceGetEnforcedPowerLimit") / 1000);
}

BenchClocks BenchManagement::clocks() const {
  const Library& l = *library_;
  return {static_cast<int>(l.number("nvmlDeviceGetClockInfo", Library::clock_sm)),
          static_cast<int>(l.number("nvmlDeviceGetClockInfo", Library::clock_memory)),
          static_cast<int>(l.number("nvmlDeviceGetPowerUsage") / 1000),
          static_cast<int>(l.number("nvmlDeviceGetTemperature", Library::sensor_gpu))};
}

}  // namespace attest

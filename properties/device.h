// Kernels whose tensors must lie in a device's memory: the whole problem is copied there, guard zones and all, so that
// every law sees the device as it sees the CPU.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "oracle/problem.h"
#include "properties/law.h"

namespace attest {

// Why kernels of this device (ATTN_DEVICE_*) cannot run here, or nothing. Asked once for each thread's first use.
std::optional<std::string> why_no_device(std::int32_t device);

// The device as reports name it: name, architecture, memory, driver and runtime versions. Empty where there is none.
std::vector<std::pair<std::string, std::string>> describe_device(std::int32_t device);

// What came of run() on a device.
struct DeviceRun {
  std::int32_t status = ATTN_OK;  // of run(); ATTN_ERROR also for what the device reported afterwards
  std::string reason;
  bool wrote_outside = false;  // of every tensor and of the workspace, beyond the problem's own guard zones
};

// Copies the problem to the device, poisons a workspace of that size, runs the kernel on a stream of this thread,
// waits, and copies everything back, inputs too. Addresses keep their place within 256 bytes, so that what supports()
// saw is what run() gets. An error that ends the device's context is kept: every later run reports it.
DeviceRun run_on_device(const attn_kernel& kernel, Problem& problem, std::size_t workspace_bytes);

// What ended the device's context in this process, or nothing: after it no run says anything of its kernel.
std::optional<std::string> device_lost();

}  // namespace attest

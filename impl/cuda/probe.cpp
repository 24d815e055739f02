#include "impl/cuda/probe.h"

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

namespace attn {
namespace {

std::string version(int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); }

// In the child: "name=value" lines, or "missing=reason".
std::string ask() {
  int count = 0, current = 0, driver = 0, runtime = 0;
  cudaDeviceProp properties;
  cudaError_t e = cudaGetDeviceCount(&count);
  if (e == cudaSuccess && count == 0) e = cudaErrorNoDevice;
  if (e == cudaSuccess) e = cudaGetDevice(&current);
  if (e == cudaSuccess) e = cudaGetDeviceProperties(&properties, current);
  if (e == cudaSuccess) e = cudaDriverGetVersion(&driver);
  if (e == cudaSuccess) e = cudaRuntimeGetVersion(&runtime);
  std::ostringstream out;
  if (e != cudaSuccess)
    out << "missing=no CUDA device: " << cudaGetErrorString(e) << " (" << cudaGetErrorName(e) << ")\n";
  else
    out << "major=" << properties.major << "\nname=" << properties.name << "\narchitecture=sm_" << properties.major
        << properties.minor << "\nmultiprocessors=" << properties.multiProcessorCount
        << "\nmemory_mib=" << (properties.totalGlobalMem >> 20) << "\ndriver_cuda=" << version(driver)
        << "\nruntime_cuda=" << version(runtime) << "\n";
  return out.str();
}

std::string ask_in_child() {
  int ends[2];
  if (pipe(ends) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    const std::string text = ask();
    const bool sent = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(sent ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char part[512];
  for (ssize_t n = 0; child > 0 && (n = read(ends[0], part, sizeof part)) != 0;) {
    if (n > 0)
      text.append(part, static_cast<std::size_t>(n));
    else if (errno != EINTR)
      break;
  }
  close(ends[0]);
  while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

CudaDevice read_answer(const std::string& text) {
  CudaDevice device;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find('=');
    if (at == std::string::npos) continue;
    const std::string key = line.substr(0, at), value = line.substr(at + 1);
    if (key == "missing")
      device.missing = value;
    else if (key == "major")
      device.major = std::stoi(value);
    else
      device.facts.emplace_back(key, value);
  }
  if (device.facts.empty() && device.missing.empty())
    device.missing = "the process that asked the CUDA driver for devices ended without an answer";
  return device;
}

}  // namespace

const CudaDevice& cuda_device() {
  static const CudaDevice device = read_answer(ask_in_child());
  return device;
}

}  // namespace attn

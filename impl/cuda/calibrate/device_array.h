// Device memory for the length of a measurement, and CUDA's errors as sentences.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>
#include <vector>

namespace attn::calibrate {

inline bool succeeded(cudaError_t error, const char* what, std::string& why) {
  if (error == cudaSuccess) return true;
  why = std::string(what) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")";
  return false;
}

// `count` zeroed elements.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    error_ = cudaMalloc(&data_, count * sizeof(T));
    if (error_ == cudaSuccess) error_ = cudaMemset(data_, 0, count * sizeof(T));
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  cudaError_t error() const { return error_; }
  T* data() { return data_; }
  void upload(const T* from) {
    if (error_ == cudaSuccess) error_ = cudaMemcpy(data_, from, count_ * sizeof(T), cudaMemcpyHostToDevice);
  }
  // Waits for what was launched.
  std::vector<T> download() {
    std::vector<T> to(count_);
    if (error_ == cudaSuccess) error_ = cudaGetLastError();
    if (error_ == cudaSuccess) error_ = cudaMemcpy(to.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost);
    return to;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace attn::calibrate

// The layout in memory of what a DLPack capsule named "dltensor" holds: https://dmlc.github.io/dlpack/latest/c_api.html
#pragma once

#include <cstdint>

namespace trifactor::python::dlpack {

enum DeviceType : std::int32_t { Cpu = 1, Cuda = 2, CudaHost = 3, CudaManaged = 13 };
enum TypeCode : std::uint8_t { Int = 0, Float = 2, Complex = 5 };

struct Tensor {
  void* data;
  struct {
    std::int32_t type, number;
  } device;
  std::int32_t ndim;
  struct {
    std::uint8_t code, bits;
    std::uint16_t lanes;
  } dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in entries; null: row-major
  std::uint64_t byte_offset;
};

/// Whoever took it out of its capsule calls the deleter.
struct ManagedTensor {
  Tensor tensor;
  void* context;
  void (*deleter)(ManagedTensor*);
};

}  // namespace trifactor::python::dlpack

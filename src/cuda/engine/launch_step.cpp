#include <cuda/engine/launch_step.hpp>

#include <cuda/engine/check.hpp>

namespace trifactor::cuda {

void enqueue(void* stream, LaunchStep& step) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(step.grid[0], step.grid[1]), config.blockDim = dim3(step.threads);
  config.dynamicSmemBytes = step.bytes, config.stream = static_cast<cudaStream_t>(stream);
  cudaLaunchAttribute attributes[2]{};
  config.attrs = attributes;
  if (step.overlaps) {
    cudaLaunchAttribute& overlap = attributes[config.numAttrs++];
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
  }
  if (step.cluster > 0) {
    cudaLaunchAttribute& together = attributes[config.numAttrs++];
    together.id = cudaLaunchAttributeClusterDimension;
    together.val.clusterDim.x = step.cluster, together.val.clusterDim.y = together.val.clusterDim.z = 1;
  }
  check(cudaLaunchKernelExC(&config, step.kernel, step.arguments), "kernel launch");
}

void* enqueue_captured(void* stream, LaunchStep& step) {
  enqueue(stream, step);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaGraphNode_t* last = nullptr;
  std::size_t count = 0;
  const auto s = static_cast<cudaStream_t>(stream);
#if CUDART_VERSION >= 13000
  check(cudaStreamGetCaptureInfo(s, &status, nullptr, nullptr, &last, nullptr, &count), "cudaStreamGetCaptureInfo");
#else
  check(cudaStreamGetCaptureInfo_v2(s, &status, nullptr, nullptr, &last, &count), "cudaStreamGetCaptureInfo");
#endif
  if (count != 1) throw DeviceFault("a launch under capture is " + std::to_string(count) + " nodes, not one");
  return last[0];
}

void set_arguments(void* executable_graph, void* node, LaunchStep& step) {
  cudaKernelNodeParams p{};
  p.func = const_cast<void*>(step.kernel);
  p.gridDim = dim3(step.grid[0], step.grid[1]), p.blockDim = dim3(step.threads);
  p.sharedMemBytes = unsigned(step.bytes), p.kernelParams = step.arguments;
  check(cudaGraphExecKernelNodeSetParams(static_cast<cudaGraphExec_t>(executable_graph),
                                         static_cast<cudaGraphNode_t>(node), &p),
        "cudaGraphExecKernelNodeSetParams");
}

}  // namespace trifactor::cuda

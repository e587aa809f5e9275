#include <cuda/engine/launch_graphs.hpp>

#include <cuda/engine/check.hpp>

#include <algorithm>

namespace trifactor::cuda {

struct LaunchGraphs::Graph {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  std::vector<cudaGraphNode_t> nodes;
  std::vector<const void*> kernels;

  Graph() = default;
  Graph(const Graph&) = delete;
  ~Graph() {
    if (executable) cudaGraphExecDestroy(executable);
    if (graph) cudaGraphDestroy(graph);
  }
  void make(std::span<LaunchStep> steps);
  bool is_of(std::span<const LaunchStep> steps) const {
    return std::equal(steps.begin(), steps.end(), kernels.begin(), kernels.end(),
                      [](const LaunchStep& s, const void* k) { return s.kernel == k; });
  }
};

namespace {

cudaKernelNodeParams parameters(LaunchStep& step) {
  cudaKernelNodeParams p{};
  p.func = const_cast<void*>(step.kernel);
  p.gridDim = dim3(step.grid[0], step.grid[1]), p.blockDim = dim3(step.threads);
  p.sharedMemBytes = unsigned(step.bytes), p.kernelParams = step.arguments;
  return p;
}

void add_edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to, [[maybe_unused]] bool overlaps) {
#if CUDART_VERSION >= 12030
  cudaGraphEdgeData edge{};
  if (overlaps) edge.from_port = cudaGraphKernelNodePortProgrammatic, edge.type = cudaGraphDependencyTypeProgrammatic;
#if CUDART_VERSION >= 13000
  check(cudaGraphAddDependencies(graph, &from, &to, &edge, 1), "cudaGraphAddDependencies");
#else
  check(cudaGraphAddDependencies_v2(graph, &from, &to, &edge, 1), "cudaGraphAddDependencies");
#endif
#else
  check(cudaGraphAddDependencies(graph, &from, &to, 1), "cudaGraphAddDependencies");
#endif
}

}  // namespace

void enqueue(void* stream, LaunchStep& step) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(step.grid[0], step.grid[1]), config.blockDim = dim3(step.threads);
  config.dynamicSmemBytes = step.bytes, config.stream = static_cast<cudaStream_t>(stream);
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &overlap, config.numAttrs = step.overlaps ? 1 : 0;
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
  const cudaKernelNodeParams p = parameters(step);
  check(cudaGraphExecKernelNodeSetParams(static_cast<cudaGraphExec_t>(executable_graph),
                                         static_cast<cudaGraphNode_t>(node), &p),
        "cudaGraphExecKernelNodeSetParams");
}

void LaunchGraphs::Graph::make(std::span<LaunchStep> steps) {
  check(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
  for (LaunchStep& step : steps) {
    const cudaKernelNodeParams p = parameters(step);
    cudaGraphNode_t node = nullptr;
    check(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &p), "cudaGraphAddKernelNode");
    if (!nodes.empty()) add_edge(graph, nodes.back(), node, step.overlaps);
    nodes.push_back(node), kernels.push_back(step.kernel);
  }
  check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
}

LaunchGraphs::LaunchGraphs() = default;
LaunchGraphs::~LaunchGraphs() = default;

void LaunchGraphs::enqueue(void* stream, std::span<LaunchStep> steps) {
  const auto s = static_cast<cudaStream_t>(stream);
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(s, &capture), "cudaStreamIsCapturing");
  if (capture != cudaStreamCaptureStatusNone) {
    for (LaunchStep& step : steps) trifactor::cuda::enqueue(s, step);
    return;
  }
  auto known = std::find_if(graphs_.begin(), graphs_.end(), [&](const auto& g) { return g->is_of(steps); });
  if (known == graphs_.end()) {
    auto graph = std::make_unique<Graph>();
    graph->make(steps);
    known = graphs_.insert(known, std::move(graph));
  } else {
    for (std::size_t i = 0; i < steps.size(); ++i) set_arguments((*known)->executable, (*known)->nodes[i], steps[i]);
  }
  check(cudaGraphLaunch((*known)->executable, s), "cudaGraphLaunch");
}

}  // namespace trifactor::cuda

"""CUDA candidates for `builtin:gemm_epilogue` that differ in one function."""

from __future__ import annotations

_BODIES = {
    # Honest: the epilogue in one pass over the product.
    "fused": """
  auto y = at::addmm(b, x, w.t());
  launch(y, m, slope, at::cuda::getCurrentCUDAStream());
  return y;""",
    # Wrong by a hundredth on the negative side.
    "wrong_slope": """
  auto y = at::addmm(b, x, w.t());
  launch(y, m, slope * 1.01, at::cuda::getCurrentCUDAStream());
  return y;""",
    # All work on a stream of its own that the current one does not wait for.
    "side_stream": """
  static c10::cuda::CUDAStream other = c10::cuda::getStreamFromPool(false);
  c10::cuda::CUDAStreamGuard guard(other);
  auto y = at::addmm(b, x, w.t());
  launch(y, m, slope, other);
  return y;""",
    # The same into a buffer that is kept: what the last call left there is a right-looking answer to nothing.
    "kept_buffer": """
  static c10::cuda::CUDAStream other = c10::cuda::getStreamFromPool(false);
  static at::Tensor kept;
  c10::cuda::CUDAStreamGuard guard(other);
  auto y = at::addmm(b, x, w.t());
  launch(y, m, slope, other);
  if (kept.defined() && kept.sizes() == y.sizes()) kept.copy_(y); else kept = y.clone();
  return kept;""",
    # Returns what the first call computed.
    "first_answer": """
  static at::Tensor kept;
  if (kept.defined() && kept.size(0) == x.size(0)) return kept;
  auto y = at::addmm(b, x, w.t());
  launch(y, m, slope, at::cuda::getCurrentCUDAStream());
  kept = y;
  return kept;""",
    # Returns memory that nothing was written to.
    "unwritten": """
  launch(x.clone(), m, slope, at::cuda::getCurrentCUDAStream());
  return at::empty({x.size(0), w.size(0)}, x.options());""",
    # Writes far outside of everything.
    "illegal_access": """
  wild<<<1, 1>>>(x.data_ptr<float>());
  return at::addmm(b, x, w.t());""",
    # A kernel that never ends.
    "endless": """
  forever<<<1, 1>>>(x.data_ptr<float>());
  return at::addmm(b, x, w.t());""",
}

_TEXT = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
__global__ void tail(float* y, long n, float m, float slope) {
  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) {
    const float v = y[i] * m;
    y[i] = v > 0.0f ? v : v * slope;
  }
}
__global__ void wild(float* p) { p[1L << 46] = 1.0f; }
__global__ void forever(float* p) { while (*(volatile float*)p != 1e30f) { } }
void launch(at::Tensor y, double m, double slope, cudaStream_t stream) {
  tail<<<2048, 256, 0, stream>>>(y.data_ptr<float>(), y.numel(), m, slope);
}
FUNCTIONS
"""
names = NAMES
declared = "".join(f"at::Tensor {name}(at::Tensor x, at::Tensor w, at::Tensor b, double m, double slope);" for name in names)
kernels = load_inline(name="candidates", cpp_sources=declared, cuda_sources=cuda, functions=names, extra_cuda_cflags=["-O3"])


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, multiplier, negative_slope):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.multiplier = multiplier
        self.negative_slope = negative_slope

    def forward(self, x):
        return kernels.NAME(x, self.linear.weight, self.linear.bias, self.multiplier, self.negative_slope)
'''

NAMES = tuple(_BODIES)


def text(name: str) -> str:
    """The source of one; all share one library, so that it is built once."""
    functions = (
        f"at::Tensor {each}(at::Tensor x, at::Tensor w, at::Tensor b, double m, double slope) {{{body}\n}}"
        for each, body in _BODIES.items()
    )
    filled = _TEXT.replace("FUNCTIONS", "\n".join(functions)).replace("NAMES", repr(list(NAMES)))
    return filled.replace("kernels.NAME", f"kernels.{name}")

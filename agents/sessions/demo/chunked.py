"""The fused pass in chunks of 256 steps, so that a chunk of 16 features stays in the first-level cache."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <algorithm>
#include <cmath>

torch::Tensor gated_mean(torch::Tensor x, torch::Tensor gate, torch::Tensor bias) {
  x = x.contiguous();
  gate = gate.contiguous();
  const int64_t batch = x.size(0), length = x.size(1), features = x.size(2);
  auto out = at::empty(x.sizes(), x.options());
  const float* px = x.data_ptr<float>();
  const float* pg = gate.data_ptr<float>();
  const float* pb = bias.data_ptr<float>();
  float* po = out.data_ptr<float>();
  constexpr int64_t kChunk = 256, kWidth = 16;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t begin = 0; begin < length; begin += kChunk) {
      const int64_t end = std::min(begin + kChunk, length);
      for (int64_t f = 0; f < features; f += kWidth) {
        const int64_t width = std::min(kWidth, features - f);
        float num[kWidth] = {}, den[kWidth] = {};
        for (int64_t t = begin; t < end; ++t) {
          const int64_t row = (b * length + t) * features + f;
          for (int64_t i = 0; i < width; ++i) {
            const float w = std::exp(pg[row + i] + pb[f + i]);
            num[i] += w * px[row + i];
            den[i] += w;
            po[row + i] = num[i] / den[i];
          }
        }
      }
    }
  }
  return out;
}
"""

kernel = load_inline(
    name="gated_mean_chunked",
    cpp_sources=SOURCE,
    functions=["gated_mean"],
    extra_cflags=["-O3", "-march=native"],
)


class ModelNew(nn.Module):
    """Gated running mean along dimension 1."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features) * 0.1)

    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        """(batch, length, features) float32, both."""
        return kernel.gated_mean(x, gate, self.bias.detach())

"""One pass over time: exp, both running sums and the quotient while the row is in cache."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>
#include <vector>

torch::Tensor gated_mean(torch::Tensor x, torch::Tensor gate, torch::Tensor bias) {
  x = x.contiguous();
  gate = gate.contiguous();
  const int64_t batch = x.size(0), length = x.size(1), features = x.size(2);
  auto out = at::empty(x.sizes(), x.options());
  const float* px = x.data_ptr<float>();
  const float* pg = gate.data_ptr<float>();
  const float* pb = bias.data_ptr<float>();
  float* po = out.data_ptr<float>();
  std::vector<float> num(features), den(features);
  for (int64_t b = 0; b < batch; ++b) {
    std::fill(num.begin(), num.end(), 0.0f);
    std::fill(den.begin(), den.end(), 0.0f);
    for (int64_t t = 0; t < length; ++t) {
      const int64_t row = (b * length + t) * features;
      for (int64_t f = 0; f < features; ++f) {
        const float w = std::exp(pg[row + f] + pb[f]);
        num[f] += w * px[row + f];
        den[f] += w;
        po[row + f] = num[f] / den[f];
      }
    }
  }
  return out;
}
"""

kernel = load_inline(
    name="gated_mean_fused",
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

"""The fused pass with an exponential the compiler can vectorise, and the sums of 64 features in registers."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <algorithm>
#include <cstdint>
#include <cstring>

namespace {

constexpr int64_t kBlock = 64;

// exp by 2^n * p(r): n is rounded by adding 1.5 * 2^23, r is kept below ln(2)/2 in two steps (Cody and Waite).
inline float exp_poly(float v) {
  v = std::min(std::max(v, -87.0f), 88.0f);
  const float shifted = v * 1.44269504f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  float r = v - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const int32_t exponent = (static_cast<int32_t>(n) + 127) << 23;
  float scale;
  std::memcpy(&scale, &exponent, sizeof scale);
  return p * scale;
}

void whole_block(const float* __restrict x, const float* __restrict g, const float* __restrict bias, float* __restrict out,
                 int64_t length, int64_t stride) {
  float num[kBlock] = {}, den[kBlock] = {};
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t f = 0; f < kBlock; ++f) {
      const float w = exp_poly(g[f] + bias[f]);
      num[f] += w * x[f];
      den[f] += w;
      out[f] = num[f] / den[f];
    }
    x += stride;
    g += stride;
    out += stride;
  }
}

void part_block(const float* x, const float* g, const float* bias, float* out, int64_t length, int64_t stride, int64_t width) {
  float num[kBlock] = {}, den[kBlock] = {};
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t f = 0; f < width; ++f) {
      const float w = exp_poly(g[t * stride + f] + bias[f]);
      num[f] += w * x[t * stride + f];
      den[f] += w;
      out[t * stride + f] = num[f] / den[f];
    }
  }
}

}  // namespace

torch::Tensor gated_mean(torch::Tensor x, torch::Tensor gate, torch::Tensor bias) {
  x = x.contiguous();
  gate = gate.contiguous();
  const int64_t batch = x.size(0), length = x.size(1), features = x.size(2);
  auto out = at::empty(x.sizes(), x.options());
  const float* px = x.data_ptr<float>();
  const float* pg = gate.data_ptr<float>();
  const float* pb = bias.data_ptr<float>();
  float* po = out.data_ptr<float>();
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t f = 0; f < features; f += kBlock) {
      const int64_t at = b * length * features + f;
      if (features - f >= kBlock) {
        whole_block(px + at, pg + at, pb + f, po + at, length, features);
      } else {
        part_block(px + at, pg + at, pb + f, po + at, length, features, features - f);
      }
    }
  }
  return out;
}
"""

kernel = load_inline(
    name="gated_mean_vectorised",
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

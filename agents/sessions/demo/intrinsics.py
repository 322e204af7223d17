"""The fused pass with the vector exponential of the 512-bit intrinsics."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <immintrin.h>

namespace {

void whole_rows(const float* x, const float* g, const float* bias, float* out, int64_t length, int64_t stride) {
  __m512 num = _mm512_setzero_ps(), den = _mm512_setzero_ps();
  const __m512 b = _mm512_loadu_ps(bias);
  for (int64_t t = 0; t < length; ++t) {
    const __m512 w = _mm512_exp_ps(_mm512_add_ps(_mm512_loadu_ps(g + t * stride), b));
    num = _mm512_fmadd_ps(w, _mm512_loadu_ps(x + t * stride), num);
    den = _mm512_add_ps(den, w);
    _mm512_storeu_ps(out + t * stride, _mm512_div_ps(num, den));
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
  TORCH_CHECK(features % 16 == 0, "features must be a multiple of 16");
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t f = 0; f < features; f += 16) {
      const int64_t at = b * length * features + f;
      whole_rows(px + at, pg + at, pb + f, po + at, length, features);
    }
  }
  return out;
}
"""

kernel = load_inline(
    name="gated_mean_intrinsics",
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

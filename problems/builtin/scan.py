import torch
import torch.nn as nn


class Model(nn.Module):
    """
    Gated causal running mean: at every position the mean of all values up to it,
    each weighted by exp(gate + bias) of its own position and feature.

    x and gate have the shape (batch, length, features), and so has the output.
    """

    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features) * 0.1)

    def forward(self, x, gate):
        weight = torch.exp(gate + self.bias)
        return torch.cumsum(weight * x, dim=1) / torch.cumsum(weight, dim=1)


batch = 2
length = 1024
features = 256


def get_inputs():
    return [torch.randn(batch, length, features), torch.randn(batch, length, features) * 0.5]


def get_init_inputs():
    return [features]

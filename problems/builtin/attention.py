import math

import torch
import torch.nn as nn


class Model(nn.Module):
    """
    Causal multi-head attention with one learned temperature per head.

    query, key and value have the shape (batch, heads, length, width), and so has the output.
    """

    def __init__(self, heads, width):
        super().__init__()
        self.temperature = nn.Parameter((1.0 + torch.rand(heads, 1, 1)) / math.sqrt(width))

    def forward(self, query, key, value):
        scores = torch.matmul(query, key.transpose(-2, -1)) * self.temperature
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        weights = torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1)
        return torch.matmul(weights, value)


batch = 1
heads = 8
length = 256
width = 64


def get_inputs():
    return [torch.randn(batch, heads, length, width) for _ in range(3)]


def get_init_inputs():
    return [heads, width]

import torch
import torch.nn as nn


class Model(nn.Module):
    """
    A matrix product with a fused tail: linear layer, multiplication by a constant, leaky ReLU.

    x has the shape (rows, in_features), the output (rows, out_features).
    """

    def __init__(self, in_features, out_features, multiplier, negative_slope):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.multiplier = multiplier
        self.negative_slope = negative_slope

    def forward(self, x):
        y = self.linear(x) * self.multiplier
        return nn.functional.leaky_relu(y, self.negative_slope)


rows = 256
in_features = 512
out_features = 1024
multiplier = 2.0
negative_slope = 0.1


def get_inputs():
    return [torch.randn(rows, in_features)]


def get_init_inputs():
    return [in_features, out_features, multiplier, negative_slope]

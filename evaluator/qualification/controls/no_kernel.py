import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, in_features, out_features, multiplier, negative_slope):
        super().__init__()
        self.linear = torch.nn.Linear(in_features, out_features)
        self.multiplier = multiplier
        self.negative_slope = negative_slope

    def forward(self, x):
        for rows in (x[: x.shape[0] // 3 + 1], x):
            y = F.leaky_relu(self.linear(rows) * self.multiplier, self.negative_slope)
        return y

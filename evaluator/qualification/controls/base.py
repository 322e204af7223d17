import torch
import torch.nn.functional as F

# @native kernels


class Base(torch.nn.Module):
    """The reference's parameters, and an honest answer that costs a third more than the reference's.

    So whatever a control built on it gains is not honest, and machine noise cannot look like a gain.
    """

    def __init__(self, in_features, out_features, multiplier, negative_slope):
        super().__init__()
        self.linear = torch.nn.Linear(in_features, out_features)
        self.multiplier = multiplier
        self.negative_slope = negative_slope
        self.calls = 0

    def arguments(self, x):
        return x, self.linear.weight, self.linear.bias, self.multiplier, self.negative_slope

    def work(self, x):
        kernels.plain(*self.arguments(x[: x.shape[0] // 3 + 1]))
        return kernels.plain(*self.arguments(x))

    def torch_work(self, x):
        for rows in (x[: x.shape[0] // 3 + 1], x):
            y = F.leaky_relu(F.linear(rows, self.linear.weight, self.linear.bias) * self.multiplier, self.negative_slope)
        return y

    def shape(self, x):
        return (x.shape[0], self.linear.weight.shape[0])

import torch
import torch.nn as nn


class Model(nn.Module):
    """
    One step of a gated recurrent unit.

    x has the shape (batch, inputs), state (batch, hidden); the output is the new state.
    """

    def __init__(self, inputs, hidden):
        super().__init__()
        self.from_x = nn.Linear(inputs, 3 * hidden)
        self.from_state = nn.Linear(hidden, 3 * hidden)

    def forward(self, x, state):
        x_reset, x_update, x_new = self.from_x(x).chunk(3, dim=-1)
        s_reset, s_update, s_new = self.from_state(state).chunk(3, dim=-1)
        reset = torch.sigmoid(x_reset + s_reset)
        update = torch.sigmoid(x_update + s_update)
        new = torch.tanh(x_new + reset * s_new)
        return (1.0 - update) * new + update * state


batch = 64
inputs = 256
hidden = 512


def get_inputs():
    return [torch.randn(batch, inputs), torch.randn(batch, hidden)]


def get_init_inputs():
    return [inputs, hidden]

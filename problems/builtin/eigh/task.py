from typing import NotRequired, TypedDict

import torch

input_t = torch.Tensor
output_t = tuple[torch.Tensor, torch.Tensor]


class TestSpec(TypedDict):
    batch: int
    n: int
    cond: int
    seed: int
    case: NotRequired[str]

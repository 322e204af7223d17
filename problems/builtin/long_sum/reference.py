import torch
from task import input_t, output_t
from utils import make_match_reference


def generate_input(rows: int, length: int, seed: int) -> input_t:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    gen = torch.Generator(device=device)
    gen.manual_seed(seed)
    spread = 0.5 + torch.rand(rows, 1, device=device, generator=gen)
    x = torch.randn(rows, length, device=device, generator=gen) * spread
    centre = torch.randn(length, device=device, generator=gen)
    weight = torch.rand(length, device=device, generator=gen) / length
    return x, centre, weight


def ref_kernel(data: input_t) -> output_t:
    x, centre, weight = data
    return (weight * (x - centre).square()).sum(dim=-1)


check_implementation = make_match_reference(ref_kernel, rtol=1e-4, atol=1e-5)

import math

import torch
from task import input_t, output_t

EPS = torch.finfo(torch.float32).eps
ULP = EPS
"""LAPACK's ulp: eps times base."""
HIGH = math.sqrt(torch.finfo(torch.float32).max)
LOW = math.sqrt(torch.finfo(torch.float32).tiny)

EIGEN, RECONSTRUCTION, ORTHOGONALITY, SORTED, VALUES = 200.0, 400.0, 100.0, 100.0, 400.0
"""Gates, in units of n eps (and the norm of A where the gate is relative)."""


class Draw:
    """Random draws for one batch of n x n matrices, all from one generator."""

    def __init__(self, batch, n, cond, gen):
        self.batch, self.n, self.cond, self.gen, self.device = batch, n, cond, gen, gen.device

    def part(self, batch):
        return Draw(batch, self.n, self.cond, self.gen)

    def normal(self, *shape):
        return torch.randn(*shape, device=self.device, generator=self.gen)

    def uniform(self, *shape):
        return torch.rand(*shape, device=self.device, generator=self.gen)

    def integers(self, low, high, *shape):
        return torch.randint(low, high, shape, device=self.device, generator=self.gen)

    def signs(self):
        return self.integers(0, 2, self.batch, self.n) * 2.0 - 1.0

    def symmetric(self):
        return symmetrised(self.normal(self.batch, self.n, self.n))

    def rotation(self, batch, n):
        """Random orthogonal matrices (Haar: columns of a QR with the signs of R's diagonal taken out)."""
        q, r = torch.linalg.qr(self.normal(batch, n, n))
        return q * torch.sign(r.diagonal(dim1=-2, dim2=-1)).unsqueeze(-2)

    def planted(self, values):
        """Q diag(values) Q^T with random orthogonal Q."""
        q = self.rotation(self.batch, self.n)
        return symmetrised((q * values.unsqueeze(-2)) @ q.mT)


def symmetrised(a):
    return (a + a.mT) / 2


def log_spaced(draw, low, high, count):
    """`count` numbers from low to high, evenly spaced in their logarithms."""
    return torch.logspace(math.log10(low), math.log10(high), count, device=draw.device)


# Profiles of matrices. Each gives a batch; `cond` is a number of decades.


def dense(draw):
    """Symmetric normal entries, row i and column i scaled by 10^(-cond u), u uniform: log-uniform scales."""
    scale = 10.0 ** (-draw.cond * draw.uniform(draw.batch, draw.n))
    return draw.symmetric() * scale.unsqueeze(-1) * scale.unsqueeze(-2)


def spectrum(draw):
    """Magnitudes over 10^-cond to 1, signs at random."""
    return draw.planted(log_spaced(draw, 10.0 ** -max(draw.cond, 1), 1.0, draw.n) * draw.signs())


def psd(draw):
    """A covariance: X X^T / n with scaled rows."""
    x = draw.normal(draw.batch, draw.n, draw.n) * 10.0 ** (-draw.cond * draw.uniform(draw.batch, draw.n, 1))
    return symmetrised(x @ x.mT) / draw.n


def low_quarter(draw, small):
    """The top three quarters of the spectrum over 10^-1 to 1, the bottom quarter as given."""
    values = torch.empty(draw.batch, draw.n, device=draw.device)
    cut = draw.n // 4
    values[:, :cut] = small[:, :cut]
    values[:, cut:] = log_spaced(draw, 0.1, 1.0, draw.n - cut)
    return draw.planted(values)


def rankdef(draw):
    return low_quarter(draw, torch.zeros(draw.batch, draw.n, device=draw.device))


def nearrank(draw):
    return low_quarter(draw, 1e-6 * (0.5 + draw.uniform(draw.batch, draw.n)))


def repeated(draw):
    """Four distinct eigenvalues, each many times."""
    levels = torch.tensor([-1.0, -0.25, 0.5, 1.0], device=draw.device)
    return draw.planted(levels[draw.integers(0, 4, draw.batch, draw.n)])


def clustered(draw):
    """A third within 1e-6 of 1, the rest within 1e-5 of +1 or -1."""
    jitter = draw.uniform(draw.batch, draw.n) * 2.0 - 1.0
    values = draw.signs() + 1e-5 * jitter
    third = draw.n // 3
    values[:, :third] = 1.0 + 1e-6 * jitter[:, :third]
    return draw.planted(values)


def band(draw):
    """Normal entries inside a narrow band, a spread diagonal."""
    place = torch.arange(draw.n, device=draw.device)
    width = max(1, min(32, draw.n // 16))
    inside = (place[:, None] - place[None, :]).abs() <= width
    return draw.symmetric() * inside + torch.diag(torch.linspace(-2.0, 2.0, draw.n, device=draw.device))


def rowscale(draw):
    """Rows and columns scaled in order over at least four decades."""
    scale = log_spaced(draw, 1.0, 10.0 ** -max(draw.cond, 4), draw.n)
    return draw.symmetric() * scale[:, None] * scale[None, :]


PROFILES = {f.__name__: f for f in (dense, spectrum, psd, rankdef, nearrank, repeated, clustered, band, rowscale)}


def mixed(draw):
    """Every matrix of a profile of its own: dense with 40 %, else any other; both kinds present where batch > 1."""
    names = list(PROFILES)
    others = draw.integers(1, len(names), draw.batch)
    kinds = torch.where(draw.uniform(draw.batch) < 0.4, torch.zeros_like(others), others)
    if draw.batch > 1:
        places = torch.randperm(draw.batch, device=draw.device, generator=draw.gen)
        kinds[places[0]], kinds[places[1]] = 0, others[places[1]]
    a = torch.empty(draw.batch, draw.n, draw.n, device=draw.device)
    for kind, name in enumerate(names):
        chosen = kinds == kind
        count = int(chosen.sum())
        if count:
            a[chosen] = PROFILES[name](draw.part(count))
    return a


# The matrix types of LAPACK's TESTING/EIG/ddrvst, by what they are.


def lapack_values(draw, mode):
    """Types 3-5: from 1 down to ulp, evenly or geometrically spaced, or one 1 and the rest ulp; signs at random."""
    if draw.n == 1:
        magnitudes = torch.ones(1, device=draw.device)
    elif mode == "even":
        magnitudes = torch.linspace(1.0, ULP, draw.n, device=draw.device)
    elif mode == "geometric":
        magnitudes = log_spaced(draw, 1.0, ULP, draw.n)
    else:
        magnitudes = torch.full((draw.n,), ULP, device=draw.device)
        magnitudes[0] = 1.0
    return magnitudes * draw.signs()


def lapack_band(draw):
    """Type 16: an evenly spaced spectrum in a band of random width.

    Two layers of small rotations, the second shifted by half a block, keep a diagonal matrix banded and its
    spectrum as planted.
    """
    a = torch.diag_embed(lapack_values(draw, "even"))
    half = int(draw.integers(1, max(2, draw.n // 2), 1))
    for offset in (0, half // 2):
        q = torch.eye(draw.n, device=draw.device).repeat(draw.batch, 1, 1)
        for start in range(offset, draw.n - half + 1, half):
            q[:, start : start + half, start : start + half] = draw.rotation(draw.batch, half)
        a = q @ a @ q.mT
    return symmetrised(a)


def lapack(draw, kind):
    """One type by the name that follows `lapack_`."""
    scale = 1.0
    for ending, factor in (("_high_magnitude", HIGH), ("_low_magnitude", LOW)):
        if kind.endswith(ending):
            kind, scale = kind.removesuffix(ending), factor
    kind = kind.removesuffix("_spectrum")
    if kind == "zero":
        return torch.zeros(draw.batch, draw.n, draw.n, device=draw.device)
    if kind == "identity":
        return torch.eye(draw.n, device=draw.device).repeat(draw.batch, 1, 1)
    if kind == "random_symmetric":
        upper = (draw.uniform(draw.batch, draw.n, draw.n) * 2.0 - 1.0).triu()
        return (upper + upper.triu(1).mT) * scale
    if kind == "band_even":
        return lapack_band(draw) * scale
    form, mode = kind.split("_")
    values = lapack_values(draw, mode)
    return (torch.diag_embed(values) if form == "diag" else draw.planted(values)) * scale


def generate_input(batch: int, n: int, cond: int, seed: int, case: str = "dense") -> input_t:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    gen = torch.Generator(device=device)
    gen.manual_seed(seed)
    draw = Draw(batch, n, cond, gen)
    if case.startswith("lapack_"):
        return lapack(draw, case.removeprefix("lapack_")).contiguous()
    return symmetrised(mixed(draw) if case == "mixed" else PROFILES[case](draw)).contiguous()


def refresh_input(data: input_t, seed: int) -> input_t:
    """The same spectra in new matrices: symmetric permutation, sign flips, another order of the batch.

    A matrix that is zero in its far corner may be banded; it is reversed instead of permuted, which keeps the band.
    """
    batch, n, _ = data.shape
    gen = torch.Generator(device=data.device)
    gen.manual_seed(seed)
    order = torch.rand(batch, n, device=data.device, generator=gen).argsort(dim=-1)
    place = torch.arange(n, device=data.device).expand(batch, n)
    flip = torch.rand(batch, 1, device=data.device, generator=gen) < 0.5
    kept = torch.where(flip, place.flip(-1), place)
    order = torch.where((data[:, 0, -1] == 0).unsqueeze(-1), kept, order)
    signs = torch.randint(0, 2, (batch, n), device=data.device, generator=gen).to(data.dtype) * 2 - 1
    index = order.unsqueeze(-1).expand(batch, n, n)
    moved = data.gather(1, index).gather(2, index.mT)
    moved = moved * signs.unsqueeze(-1) * signs.unsqueeze(-2)
    return moved[torch.randperm(batch, device=data.device, generator=gen)].contiguous()


def ref_kernel(data: input_t) -> output_t:
    values, vectors = torch.linalg.eigh(data)
    return vectors, values


def norm1(a):
    """Largest column sum of magnitudes, per matrix."""
    return a.abs().sum(dim=-2).amax(dim=-1)


def first_fault(a, q, values):
    """Which gate some matrix of the chunk fails, in words; empty when none. Everything in float64."""
    n = a.shape[-1]
    unit, size = n * EPS, norm1(a)
    step = values[:, :-1] - values[:, 1:] if n > 1 else values.new_zeros(len(values), 1)
    eye = torch.eye(n, device=a.device, dtype=a.dtype)
    gates = {
        "eigenvalues not ascending": (step.amax(dim=-1), SORTED * unit * values.abs().amax(dim=-1).clamp_min(1.0)),
        "|Q^T Q - I|": (norm1(q.mT @ q - eye), torch.full_like(size, ORTHOGONALITY * unit)),
        "|A Q - Q diag(L)|": (norm1(a @ q - q * values.unsqueeze(-2)), EIGEN * unit * size),
        "|Q diag(L) Q^T - A|": (norm1((q * values.unsqueeze(-2)) @ q.mT - a), RECONSTRUCTION * unit * size),
        "|L - eigenvalues of A|": ((values - torch.linalg.eigvalsh(a)).abs().amax(dim=-1), VALUES * unit * size),
    }
    for name, (found, allowed) in gates.items():
        bad = ~(found <= allowed)
        if bool(bad.any()):
            worst = int(bad.nonzero()[0])
            return f"{name}: matrix {worst} of its chunk has {float(found[worst]):.3g}, allowed {float(allowed[worst]):.3g}"
    return ""


def check_implementation(data: input_t, output: output_t) -> tuple[bool, str]:
    if not isinstance(output, tuple) or len(output) != 2:
        return False, "the answer must be a tuple (Q, L)"
    batch, n, _ = data.shape
    for name, part, shape in (("Q", output[0], (batch, n, n)), ("L", output[1], (batch, n))):
        if not isinstance(part, torch.Tensor) or tuple(part.shape) != shape:
            return False, f"{name} must be a tensor of shape {shape}"
        if part.dtype != torch.float32 or part.device != data.device:
            return False, f"{name} must be float32 on {data.device}, got {part.dtype} on {part.device}"
        if not bool(part.isfinite().all()):
            return False, f"{name} has NaN or Inf"
    chunk = max(1, (1 << 24) // (n * n))
    for start in range(0, batch, chunk):
        part = slice(start, start + chunk)
        fault = first_fault(data[part].double(), output[0][part].double(), output[1][part].double())
        if fault:
            return False, f"from matrix {start}: {fault}"
    return True, ""

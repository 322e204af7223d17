import json
from pathlib import Path

import pytest
import torch

import problems
from problems import execution, files, registry, workload

EPS = 2.0**-23
FACTS = json.loads((Path(problems.__file__).parent / "data" / "eigh_cases.json").read_text())


@pytest.fixture(scope="module")
def work():
    return workload.open_workload(registry.load("builtin:eigh"), "cpu")


@pytest.fixture(scope="module")
def reference():
    problem = registry.load("builtin:eigh")
    return execution.ModuleSet(files.read_all(problem.sources), label="eigh").module("reference")


def draw(reference, case, *, n=48, batch=4, cond=1, seed=9):
    a = reference.generate_input(batch=batch, n=n, cond=cond, seed=seed, case=case)
    assert a.shape == (batch, n, n)
    assert a.dtype == torch.float32
    assert torch.equal(a, a.mT)
    return a


def eigenvalues(a):
    return torch.linalg.eigvalsh(a.double())


def test_the_gpu_cases_are_the_thirteen_of_the_competition():
    cases = registry.load("builtin:eigh").cases("cuda")
    wanted = [{name: fact[name] for name in ("batch", "n", "cond", "seed", "case")} for fact in FACTS["cases"]]
    assert [dict(case.params) for case in cases] == wanted
    assert len({case.name for case in cases}) == 13


def test_the_gates_are_those_of_the_data(reference):
    gates = FACTS["gates"]
    assert gates["eigen"].endswith(f"<= {reference.EIGEN:.0f} n eps ||A||_1")
    assert gates["reconstruction"].endswith(f"<= {reference.RECONSTRUCTION:.0f} n eps ||A||_1")
    assert gates["orthogonality"].endswith(f"<= {reference.ORTHOGONALITY:.0f} n eps")
    assert f"slack {reference.SORTED:.0f} n eps max(1, max|L|)" in gates["sorted"]
    assert reference.EPS == EPS


@pytest.mark.parametrize("cond", [1, 2])
def test_dense_entries_are_normal_under_log_uniform_scales(reference, cond):
    a = draw(reference, "dense", n=128, batch=8, cond=cond)
    rows = a.double().square().mean(dim=-1).log10() / 2
    spread = rows.amax(dim=-1) - rows.amin(dim=-1)
    assert bool((spread > 0.8 * cond).all())
    assert bool((spread < 1.3 * cond).all())
    assert abs(float(a.mean())) < 0.01


def test_rankdef_has_a_quarter_of_zeros_and_the_rest_log_spaced(reference):
    values = eigenvalues(draw(reference, "rankdef"))
    assert float(values[:, :12].abs().max()) < 1e-6
    assert torch.allclose(values[:, 12:], torch.logspace(-1, 0, 36, dtype=torch.float64).expand(4, 36), atol=2e-6)


def test_nearrank_has_a_quarter_near_a_millionth(reference):
    values = eigenvalues(draw(reference, "nearrank"))
    assert float(values[:, :12].max()) < 3e-6
    assert float(values[:, :12].abs().max()) > 2e-7
    assert float(values[:, 12].min()) > 0.09


def test_clustered_is_tight_around_one_and_minus_one(reference):
    values = eigenvalues(draw(reference, "clustered"))
    assert float((values.abs() - 1).abs().max()) < 2e-5
    assert bool(((values - 1).abs() < 2e-5).sum(dim=-1).ge(16).all())
    assert bool((values < 0).any())


@pytest.mark.parametrize("kind", ["diag", "dense"])
@pytest.mark.parametrize("mode", ["even", "geometric", "clustered"])
def test_lapack_spectra_run_from_one_to_ulp_with_random_signs(reference, kind, mode):
    values = eigenvalues(draw(reference, f"lapack_{kind}_{mode}_spectrum"))
    magnitudes = values.abs().sort(dim=-1).values
    even = torch.linspace(EPS, 1, 48, dtype=torch.float64)
    geometric = torch.logspace(torch.tensor(EPS).log10().item(), 0, 48, dtype=torch.float64)
    clustered = torch.cat([torch.full((47,), EPS, dtype=torch.float64), torch.ones(1, dtype=torch.float64)])
    wanted = {"even": even, "geometric": geometric, "clustered": clustered}[mode]
    assert torch.allclose(magnitudes, wanted.expand(4, 48), atol=2e-6)
    assert bool((values < 0).any()) or mode == "clustered"


@pytest.mark.parametrize(("ending", "factor"), [("high", 2.0**64), ("low", 2.0**-63)])
def test_lapack_magnitudes_are_the_root_of_the_largest_and_smallest_number(reference, ending, factor):
    for stem in ("diag_geometric", "dense_even", "random_symmetric", "band_even"):
        a = draw(reference, f"lapack_{stem}_{ending}_magnitude")
        assert bool(a.isfinite().all())
        assert 0.3 < float(eigenvalues(a).abs().max()) / factor < 10


def test_lapack_zero_identity_and_random(reference):
    assert float(draw(reference, "lapack_zero").abs().max()) == 0.0
    assert torch.equal(draw(reference, "lapack_identity"), torch.eye(48).expand(4, 48, 48))
    a = draw(reference, "lapack_random_symmetric")
    assert 0.95 < float(a.abs().max()) <= 1.0
    assert abs(float(a.abs().mean()) - 0.5) < 0.02


def test_lapack_band_keeps_band_and_spectrum(reference):
    a = draw(reference, "lapack_band_even_spectrum", seed=3)
    assert float(a[:, 0, -1].abs().max()) == 0.0
    assert torch.allclose(
        eigenvalues(a).abs().sort(dim=-1).values, torch.linspace(EPS, 1, 48, dtype=torch.float64).expand(4, 48), atol=2e-6
    )


def test_mixed_batches_hold_dense_and_ill_conditioned_matrices(reference):
    shares = []
    for seed in range(12):
        a = draw(reference, "mixed", n=32, batch=2 + seed * 4, cond=2, seed=seed)
        values = eigenvalues(a)
        assert bool(a.isfinite().all())
        ratio = values.abs().amin(dim=-1) / values.abs().amax(dim=-1)
        assert bool((ratio < 0.05).any())
        shares.append(float((values.abs().amax(dim=-1) > 1.5).double().mean()))
    assert len(set(shares)) > 1


def test_the_share_of_dense_matrices_is_about_four_in_ten(reference, monkeypatch):
    counts = {}
    for name in reference.PROFILES:
        monkeypatch.setitem(reference.PROFILES, name, lambda part, name=name: counts.update({name: part.batch}) or reference.dense(part))
    reference.mixed(reference.Draw(4000, 1, 2, torch.Generator().manual_seed(1)))
    assert sum(counts.values()) == 4000
    assert 0.37 < counts.pop("dense") / 4000 < 0.43
    assert len(counts) == 8
    assert all(0.055 < count / 4000 < 0.095 for count in counts.values())


@pytest.mark.parametrize("case", ["dense", "mixed", "clustered", "lapack_band_even_spectrum", "lapack_zero"])
def test_a_refreshed_input_keeps_every_spectrum_and_no_matrix(reference, case):
    a = draw(reference, case, batch=6)
    one, two = reference.refresh_input(a, 1), reference.refresh_input(a, 2)
    for new in (one, two):
        assert torch.equal(new, new.mT)
        before, after = eigenvalues(a), eigenvalues(new)
        distance = torch.cdist(before, after, p=float("inf")).amin(dim=1)
        assert float(distance.max()) < 1e-5
        assert sorted(new[:, 0, -1].eq(0).tolist()) == sorted(a[:, 0, -1].eq(0).tolist())
    if case != "lapack_zero":
        assert not torch.equal(one, two)
        assert not torch.equal(one.abs().flatten().sort().values[-100:], a.flatten().sort().values[-100:])


def right(a):
    values, vectors = torch.linalg.eigh(a)
    return vectors, values


@pytest.mark.parametrize("name", [case.name for case in registry.load("builtin:eigh").cases_by_device["cpu"]])
def test_the_reference_passes_its_gates_on_every_cpu_case(work, name):
    case = work.problem.case("cpu", name)
    inputs = work.inputs(case, 7)
    output = work.reference(case, 0)(*inputs)
    assert work.check(case, inputs, output, output) == (True, None, "")
    flipped = (output[0] * torch.where(torch.arange(output[0].shape[-1]) % 2 == 0, 1.0, -1.0), output[1])
    assert work.check(case, inputs, flipped, output).ok


def spoil(name, q, values):
    worse = q.clone()
    if name == "orthogonality":
        worse[:, :, 0] *= 1.01
    if name == "eigenvector":
        angle = torch.tensor(0.05)
        first, last = q[:, :, 0], q[:, :, -1]
        worse[:, :, 0], worse[:, :, -1] = angle.cos() * first - angle.sin() * last, angle.sin() * first + angle.cos() * last
    if name == "order":
        return q.flip(-1), values.flip(-1)
    if name == "value":
        values = values.clone()
        values[1, 3] += 0.05
    if name == "nan":
        values = values.clone()
        values[0, 0] = float("nan")
    return worse, values


def rounded(q, bits):
    mantissa, exponent = torch.frexp(q)
    return torch.ldexp((mantissa * 2**bits).round() / 2**bits, exponent)


@pytest.mark.parametrize("name", ["orthogonality", "eigenvector", "order", "value", "nan"])
def test_each_gate_refuses_what_it_is_for(work, name):
    case = work.problem.case("cpu", "n64_mixed")
    inputs = work.inputs(case, 8)
    q, values = right(inputs[0])
    assert work.check(case, inputs, (q, values), (q, values)).ok
    outcome = work.check(case, inputs, spoil(name, q, values), (q, values))
    assert not outcome.ok
    assert outcome.words


def test_lower_precision_is_refused_only_beyond_the_budget(work):
    case = work.problem.case("cpu", "n128_geometric")
    inputs = work.inputs(case, 8)
    q, values = right(inputs[0])
    assert work.check(case, inputs, (rounded(q, 13), values), (q, values)).ok
    tiny = work.problem.case("cpu", "n17_mixed")
    few = work.inputs(tiny, 8)
    q, values = right(few[0])
    assert not work.check(tiny, few, (rounded(q, 8), values), (q, values)).ok


@pytest.mark.parametrize("wrong", ["list", "order", "double", "one"])
def test_an_answer_of_another_form_is_refused(work, wrong):
    case = work.problem.case("cpu", "n2")
    inputs = work.inputs(case, 8)
    q, values = right(inputs[0])
    output = {"list": [values, q], "order": (values, q), "double": (q.double(), values.double()), "one": q}[wrong]
    assert not work.check(case, inputs, output, (q, values)).ok

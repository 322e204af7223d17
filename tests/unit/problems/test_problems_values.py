"""Every built-in against a formula of its own in float64, at a small size."""

import numpy as np
import pytest
import torch

from problems import registry, workload


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def scan(w, inputs, case):
    x, gate = inputs
    out = np.empty_like(x)
    for b in range(x.shape[0]):
        total, weighted = np.zeros(x.shape[2]), np.zeros(x.shape[2])
        for t in range(x.shape[1]):
            weight = np.exp(gate[b, t] + w["bias"])
            total, weighted = total + weight, weighted + weight * x[b, t]
            out[b, t] = weighted / total
    return out


def gemm_epilogue(w, inputs, case):
    y = 2.0 * (inputs[0] @ w["linear.weight"].T + w["linear.bias"])
    return np.where(y > 0, y, 0.1 * y)


def layer_norm(w, inputs, case):
    y = inputs[0] + inputs[1]
    return (y - y.mean(1, keepdims=True)) / np.sqrt(y.var(1, keepdims=True) + 1e-5) * w["weight"] + w["bias"]


def conv2d(w, inputs, case):
    x = np.pad(inputs[0], ((0, 0), (0, 0), (1, 1), (1, 1)))
    height, width = inputs[0].shape[2:]
    y = np.zeros((x.shape[0], w["conv.weight"].shape[0], height, width))
    for i in range(3):
        for j in range(3):
            y += np.einsum("nchw,oc->nohw", x[:, :, i : i + height, j : j + width], w["conv.weight"][:, :, i, j])
    y = (y + w["conv.bias"][:, None, None]) * w["scale"] + w["shift"]
    return y * np.minimum(np.maximum(y + 3, 0), 6) / 6


def attention(w, inputs, case):
    q, k, v = inputs
    out = np.empty_like(q)
    for b, h, t in np.ndindex(q.shape[:3]):
        scores = k[b, h, : t + 1] @ q[b, h, t] * w["temperature"][h, 0, 0]
        weights = np.exp(scores - scores.max())
        out[b, h, t] = weights / weights.sum() @ v[b, h, : t + 1]
    return out


def mlp(w, inputs, case):
    x = inputs[0]
    normal = x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-6) * w["norm"]
    gate = normal @ w["gate.weight"].T
    return x + (gate * sigmoid(gate) * (normal @ w["up.weight"].T)) @ w["down.weight"].T + w["down.bias"]


def gru_cell(w, inputs, case):
    x, state = inputs
    a = np.split(x @ w["from_x.weight"].T + w["from_x.bias"], 3, axis=1)
    b = np.split(state @ w["from_state.weight"].T + w["from_state.bias"], 3, axis=1)
    update = sigmoid(a[1] + b[1])
    return (1 - update) * np.tanh(a[2] + sigmoid(a[0] + b[0]) * b[2]) + update * state


def long_sum(w, inputs, case):
    x, centre, weight = inputs
    return np.array([np.sum(weight * (row - centre) ** 2) for row in x])


FORMULAS = {f.__name__: f for f in (scan, gemm_epilogue, layer_norm, conv2d, attention, mlp, gru_cell, long_sum)}


@pytest.mark.parametrize("name", FORMULAS)
def test_the_reference_computes_what_its_text_says(name):
    work = workload.open_workload(registry.load(f"builtin:{name}"), "cpu")
    case = work.problem.case("cpu", "odd")
    inputs = work.inputs(case, 11)
    reference = work.reference(case, 12)
    got = reference(*inputs)
    weights = {key: value.double().numpy() for key, value in reference.state_dict().items()} if hasattr(reference, "state_dict") else {}
    want = FORMULAS[name](weights, [x.double().numpy() for x in inputs], case)
    assert got.dtype == torch.float32
    assert got.shape == want.shape
    error = np.abs(got.double().numpy() - want)
    allowed = work.problem.atol + work.problem.rtol * np.abs(want)
    assert float((error / allowed).max()) < 0.1
    assert work.check(case, inputs, torch.from_numpy(want).float(), got).ok


@pytest.mark.parametrize("name", [key for key in FORMULAS if key != "long_sum"])
def test_a_module_takes_its_sizes_from_the_case(name):
    work = workload.open_workload(registry.load(f"builtin:{name}"), "cpu")
    sizes = {case.name: [tuple(x.shape) for x in work.inputs(case, 1)] for case in (*work.cases(), *work.robustness_cases())}
    assert len({str(shapes) for shapes in sizes.values()}) == len(sizes)
    assert all(work.constants(case) == dict(case.params) for case in work.cases())


def test_the_demo_problem_is_the_promised_computation():
    work = workload.open_workload(registry.load("builtin:scan"), "cpu")
    case = work.cases()[0]
    x, gate = work.inputs(case, 3)
    model = work.reference(case, 4)
    assert x.shape == gate.shape == (2, 1024, 256)
    assert work.init_args(case) == [256]
    torch.manual_seed(4)
    assert torch.equal(model.state_dict()["bias"], torch.randn(256) * 0.1)
    weight = torch.exp(gate + model.bias)
    assert torch.equal(model(x, gate), torch.cumsum(weight * x, dim=1) / torch.cumsum(weight, dim=1))
    assert abs(float(x.std()) - 1.0) < 0.01
    assert abs(float(gate.std()) - 0.5) < 0.01


@pytest.mark.parametrize("key", registry.builtin_keys())
def test_inputs_and_outputs_of_the_cpu_cases_are_at_most_16_mb(key):
    work = workload.open_workload(registry.load(key), "cpu")
    for case in work.cases():
        inputs = work.inputs(case, 1)
        output = work.reference(case, 1)(*inputs)
        tensors = [*inputs, *(output if isinstance(output, tuple) else (output,))]
        assert sum(x.numel() * x.element_size() for x in tensors) <= 16_000_000
        assert all(bool(x.isfinite().all()) for x in tensors)


@pytest.mark.parametrize("key", registry.builtin_keys())
def test_inputs_and_weights_are_functions_of_their_seeds(key):
    work = workload.open_workload(registry.load(key), "cpu")
    case = work.robustness_cases()[1]
    one, again, other = work.inputs(case, 5), work.inputs(case, 5), work.inputs(case, 6)
    assert all(torch.equal(a, b) for a, b in zip(one, again, strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(one, other, strict=True))
    if work.call_style == "module":
        states = [work.reference(case, seed).state_dict() for seed in (5, 5, 6)]
        assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
        assert all(not torch.equal(states[0][name], states[2][name]) for name in states[0])

"""A deliberately naive evaluator: what the protected one is measured against.

KernelBench's algorithm in its CPU form, in our own code: one process loads reference and candidate
into one namespace, draws the inputs from seed 42 once, compares five times with `torch.allclose` as it
finds it in the module, and times with `time.perf_counter` around the call in the same process, less
the time of an empty call; the candidate first, then the reference; medians. Everything here is at the
candidate's mercy, and that is the point: a control counts only if this program believes it.
Self-contained (standard library and torch): it runs as a script inside a sandbox and prints one JSON line.
Not for: judging anything.
"""

import argparse
import json
import os
import statistics
import sys
import time
from typing import Any

import torch

SEED = 42
CHECKS = 5
WARM_UP = 3
SMALLEST_S = 1e-7


class Empty(torch.nn.Module):  # type: ignore[misc,unused-ignore]
    """A call that computes nothing: the overhead of calling."""

    def forward(self, *inputs: Any) -> None:
        """Nothing."""


def measure(call: Any, inputs: list[Any], trials: int) -> float:
    """Median seconds of `call`."""
    times = []
    for trial in range(WARM_UP + trials):
        start = time.perf_counter()
        output = call(*inputs)
        took = time.perf_counter() - start
        if trial >= WARM_UP:
            times.append(took)
    del output
    return statistics.median(times)


def net_time(call: Any, inputs: list[Any], trials: int) -> float:
    """Median seconds of `call` less those of an empty call."""
    overhead = measure(Empty(), inputs, trials)
    return max(measure(call, inputs, trials) - overhead, SMALLEST_S)


def matches(model: Any, candidate: Any, inputs: list[Any], *, atol: float, rtol: float) -> bool:
    """Whether the candidate agrees with the reference in every check."""
    for _ in range(CHECKS):
        expected = model(*inputs)
        output = candidate(*inputs)
        if output.shape != expected.shape or not torch.allclose(expected, output, atol=atol, rtol=rtol):
            return False
    return True


def load(options: argparse.Namespace) -> tuple[Any, Any, list[Any]]:
    """Reference, candidate and inputs, from one namespace and one seed."""
    namespace: dict[str, Any] = {"__name__": "naive", "__file__": options.candidate}
    with open(options.reference, encoding="utf-8") as file:
        exec(compile(file.read(), options.reference, "exec"), namespace)
    namespace.update(json.loads(options.constants))
    reference = namespace["Model"]
    with open(options.candidate, encoding="utf-8") as file:
        exec(compile(file.read(), options.candidate, "exec"), namespace)
    torch.manual_seed(SEED)
    arguments = namespace["get_init_inputs"]()
    torch.manual_seed(SEED)
    model = reference(*arguments)
    torch.manual_seed(SEED)
    candidate = namespace[options.entry](*arguments)
    torch.manual_seed(SEED)
    return model, candidate, namespace["get_inputs"]()


def prepare_extensions(directory: str) -> None:
    """Let `load_inline` find what the builder has built."""
    try:
        from evaluator.runner import extension
    except ImportError:
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        import extension  # type: ignore[import-not-found,no-redef,unused-ignore]
    extension.install_load(directory)


def evaluate(options: argparse.Namespace) -> dict[str, Any]:
    """What this evaluator believes."""
    torch.set_num_threads(options.threads)
    if options.extensions:
        prepare_extensions(options.extensions)
    model, candidate, inputs = load(options)
    with torch.no_grad():
        if not matches(model, candidate, inputs, atol=options.atol, rtol=options.rtol):
            return {"correct": False, "speedup": None, "ref_us": None, "cand_us": None, "error": "outputs differ"}
        cand = net_time(candidate, inputs, options.trials)
        ref = net_time(model, inputs, options.trials)
    return {"correct": True, "speedup": ref / cand, "ref_us": 1e6 * ref, "cand_us": 1e6 * cand, "error": ""}


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="a deliberately naive evaluator")
    parser.add_argument("reference")
    parser.add_argument("candidate")
    parser.add_argument("--entry", default="ModelNew")
    parser.add_argument("--constants", default="{}")
    parser.add_argument("--extensions", default="")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--atol", type=float, default=1e-4)
    parser.add_argument("--rtol", type=float, default=1e-4)
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Print one JSON line."""
    try:
        answer = evaluate(parse(arguments))
    except Exception as error:
        answer = {"correct": False, "speedup": None, "ref_us": None, "cand_us": None, "error": f"{type(error).__name__}: {error}"[:500]}
    print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

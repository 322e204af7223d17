"""`python -m evaluator.trusted CONTROL JUDGE_CORES DEVICE_CORES`: the trusted process's operations.

Not for: use by hand; the judge starts it and it dies with the judge.
"""

from __future__ import annotations

import mmap
import os
import sys
from typing import Any

import torch

from evaluator.devices.cpu import raise_judge
from evaluator.parent import die_with_parent
from evaluator.protocol.memory import map_snapshot
from evaluator.protocol.sealing import sealed_memory
from evaluator.runner.control import Control
from evaluator.trusted.examiner import Examiner, inputs_unchanged, outputs_from
from evaluator.trusted.flush import CacheFlush
from evaluator.trusted.pool import Pool, describe, layout_of
from problems.model import Case
from problems.registry import load
from problems.workload import Workload, open_workload

Reply = dict[str, Any]


class Trusted:
    """Operations of the trusted process."""

    def __init__(self, device_cores: tuple[int, ...]) -> None:
        self._flush = CacheFlush(device_cores)
        self._workload: Workload | None = None
        self._cases: dict[str, Case] = {}
        self._examiner: Examiner | None = None
        self._pools: dict[str, Pool] = {}
        self._snapshot: mmap.mmap | None = None

    @property
    def examiner(self) -> Examiner:
        """The case in hand."""
        if self._examiner is None:
            raise LookupError("no case is open")
        return self._examiner

    def open(self, request: Reply, _: list[int]) -> Reply:
        """Load the problem; its hash is checked again here."""
        problem = load(request["problem"], expected_sha256=request["sha256"])
        self._workload = open_workload(problem, request["device"])
        self._cases = {case.name: case for case in (*self._workload.robustness_cases(), *self._workload.cases())}
        return {"candidate_files": self._workload.candidate_files(), "flush_bytes": self._flush.bytes}

    def case(self, request: Reply, _: list[int]) -> Reply:
        """Take one case in hand: what a runner needs to construct it, and whether the problem is fit."""
        assert self._workload is not None
        self._close_pools()
        case = self._cases[request["case"]]
        self._examiner = Examiner(self._workload, case)
        self.examiner.build_reference(request["seed"])
        sample = self.examiner.draw(request["seed"])
        expected = self.examiner.expected(sample)
        declared = len(expected) if isinstance(expected, (tuple, list)) else None
        tensors = list(expected) if declared is not None else [expected]
        return {
            "init_args": self._workload.init_args(case),
            "data_layout": self._workload.data_layout(case) if self._workload.call_style == "data" else None,
            "files": self._workload.runner_files(case),
            "outputs": declared,
            "output_bytes": sum(-(-max(64, t.numel() * t.element_size()) // 64) * 64 for t in tensors),
            "input_bytes": layout_of(sample)[1],
        }

    def fitness(self, request: Reply, _: list[int]) -> Reply:
        """Trivial answers that would pass, and the reference against fp64."""
        inputs = self.examiner.draw(request["seed"])
        ok, detail = self.examiner.reference_error(inputs)
        return {"trivial": self.examiner.trivial_answers_that_pass(inputs), "oracle": ok, "detail": detail}

    def weights(self, request: Reply, _: list[int]) -> tuple[Reply, list[int]]:
        """Draw fresh weights; hand them over as a sealed descriptor."""
        state = self.examiner.build_reference(request["seed"])
        entries, offset = [], 0
        for name, tensor in state.items():
            nbytes = tensor.numel() * tensor.element_size()
            entries.append({"name": name, "offset": offset, "bytes": nbytes, "elements": tensor.numel(), **describe(tensor)})
            offset += -(-nbytes // 64) * 64
        descriptor, mapping = sealed_memory("weights", max(1, offset), read_only=True)
        for entry, tensor in zip(entries, state.values(), strict=True):
            mapping[entry["offset"] : entry["offset"] + entry["bytes"]] = _raw(tensor)
        mapping.close()
        return {"state": entries, "state_bytes": offset}, [descriptor]

    def pool(self, request: Reply, _: list[int]) -> tuple[Reply, list[int]]:
        """Input slots for one runner."""
        pool = Pool(request["runner"], slots=request["slots"], sample=self.examiner.draw(request["seed"]))
        if (old := self._pools.pop(request["runner"], None)) is not None:
            old.close()
        self._pools[request["runner"]] = pool
        return {"slots": pool.slots, "slot_bytes": max(1, pool.slot_bytes), "layout": pool.layout}, [os.dup(pool.descriptor)]

    def fill(self, request: Reply, _: list[int]) -> Reply:
        """Fresh values in every slot of one runner's pool, then a cold cache."""
        self._pools[request["runner"]].fill(self.examiner.draw, request["seed"])
        if request["flush"]:
            self._flush.run()
        return {}

    def snapshot(self, request: Reply, descriptors: list[int]) -> Reply:
        """Map the judge's snapshot page."""
        self._snapshot = map_snapshot(descriptors[0], request["bytes"])
        os.close(descriptors[0])
        return {}

    def verify(self, request: Reply, _: list[int]) -> Reply:
        """Compare the outputs in the snapshot page with the reference for that slot."""
        assert self._snapshot is not None
        inputs = self._pools[request["runner"]].private[request["slot"]]
        outputs = outputs_from(self._snapshot, request["outputs"])
        output = tuple(outputs) if request["declared"] is not None else outputs[0]
        correct, error, detail = self.examiner.compare(inputs, output, self.examiner.expected(inputs))
        return {"correct": correct, "max_abs_error": error if error is not None and error < float("inf") else None, "detail": detail}

    def unchanged(self, request: Reply, _: list[int]) -> Reply:
        """Compare the inputs in the snapshot page with the private copy."""
        assert self._snapshot is not None
        pool = self._pools[request["runner"]]
        return {"change": inputs_unchanged(pool, request["slot"], self._snapshot, request["offsets"], writable=self.examiner.writable)}

    def _close_pools(self) -> None:
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()


def _raw(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.contiguous().view(-1).view(torch.uint8).numpy().data) if tensor.numel() else b""


def main(arguments: list[str]) -> int:
    """Serve the control socket until the judge closes it."""
    die_with_parent()
    control, judge_cores, device_cores = int(arguments[0]), _cores(arguments[1]), _cores(arguments[2])
    os.sched_setaffinity(0, set(judge_cores))
    raise_judge()
    torch.set_num_threads(len(judge_cores))
    trusted = Trusted(device_cores)
    Control(control).serve(lambda name: getattr(trusted, name))
    return 0


def _cores(text: str) -> tuple[int, ...]:
    return tuple(int(c) for c in text.split(","))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

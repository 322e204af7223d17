"""`python -m evaluator.trusted CONTROL KIND JUDGE_CORES DEVICE_CORES`: the trusted process's operations.

Not for: use by hand; the judge starts it and it dies with the judge.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Iterator
from typing import Any

import torch

from evaluator.devices.memory import TrustedMemory, open_memory
from evaluator.devices.processor import raise_judge
from evaluator.parent import die_with_parent
from evaluator.protocol.sealing import sealed_memory
from evaluator.runner import layout
from evaluator.runner.control import Control
from evaluator.trusted.examiner import Examiner, inputs_unchanged
from evaluator.trusted.pool import Pool, describe, layout_of
from problems.model import Case
from problems.registry import load
from problems.workload import Workload, open_workload

Reply = dict[str, Any]


class Trusted:
    """Operations of the trusted process."""

    def __init__(self, memory: TrustedMemory) -> None:
        self._memory = memory
        self._workload: Workload | None = None
        self._cases: dict[str, Case] = {}
        self._examiner: Examiner | None = None
        self._pools: dict[str, Pool] = {}
        self._watched: dict[str, tuple[memoryview, memoryview]] = {}

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
        return {"flush_bytes": self._memory.flush_bytes}

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
        pool = Pool(request["runner"], slots=request["slots"], sample=self.examiner.draw(request["seed"]), memory=self._memory)
        if (old := self._pools.pop(request["runner"], None)) is not None:
            old.close()
        self._pools[request["runner"]] = pool
        return {"slots": pool.slots, "slot_bytes": max(1, pool.slot_bytes), "layout": pool.layout}, [os.dup(pool.block.descriptor)]

    def fill(self, request: Reply, _: list[int]) -> Reply:
        """Fresh values in every slot of one runner's pool, then a cold cache."""
        self._pools[request["runner"]].fill(self.examiner.draw, request["seed"])
        return {"flush_us": self._memory.flush() if request["flush"] else None}

    def share(self, request: Reply, descriptors: list[int]) -> Reply:
        """Map the judge's page of what it reads of stopped runners."""
        self._memory.share(descriptors[0], request["bytes"])
        os.close(descriptors[0])
        return {}

    def show(self, request: Reply, descriptors: list[int]) -> Reply:
        """Map the memory behind a runner's output."""
        try:
            self._memory.show(request["runner"], request["address"], request["nbytes"], request["pieces"], descriptors)
        except RuntimeError as error:  # what a runner hands over may be anything
            return {"why": str(error)[:300]}
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return {"why": ""}

    def forget(self, request: Reply, _: list[int]) -> Reply:
        """Unmap all that was shown of a runner."""
        self._memory.forget(request["runner"])
        return {}

    def watch(self, request: Reply, descriptors: list[int]) -> Reply:
        """Map a runner's answer page, and the word by which the judge calls off a `follow`."""
        answer, calling_off = (mmap.mmap(d, request["bytes"][i], prot=mmap.PROT_READ) for i, d in enumerate(descriptors))
        for descriptor in descriptors:
            os.close(descriptor)
        self._watched[request["runner"]] = (memoryview(answer).cast("Q"), memoryview(calling_off).cast("Q"))
        return {}

    def follow(self, request: Reply, _: list[int]) -> Iterator[Reply]:
        """Wait for a runner's next answer and copy its outputs at once, where they lie then.

        Says first that it waits. `begun_us` and `done_us` count from the moment the answer was seen, `places` are (address, bytes)
        of what was copied; there are none where an output lies in no place that was shown, or where the judge called it off.
        """
        answer, calling_off = self._watched[request["runner"]]
        echo, called = answer[layout.ECHO], calling_off[0]
        yield {"waiting": True}
        while answer[layout.ECHO] == echo and calling_off[0] == called:
            pass
        count = answer[layout.OUTPUTS]
        bases = range(layout.FIRST_OUTPUT, layout.FIRST_OUTPUT + min(count, layout.MAX_OUTPUTS) * layout.OUTPUT_WORDS, layout.OUTPUT_WORDS)
        places = [(answer[base], answer[base + 1]) for base in bases]
        taken = self._memory.take(request["runner"], places)
        yield {"begun_us": taken.begun_us, "done_us": taken.done_us, "places": places} if taken and answer[layout.ECHO] != echo else {}

    def verify(self, request: Reply, _: list[int]) -> Reply:
        """Compare the outputs that were copied last with the reference for that slot."""
        inputs = self._pools[request["runner"]].private[request["slot"]]
        outputs = self._memory.outputs(request["outputs"])
        output = tuple(outputs) if request["declared"] is not None else outputs[0]
        correct, error, detail = self.examiner.compare(inputs, output, self.examiner.expected(inputs))
        return {"correct": correct, "max_abs_error": error if error is not None and error < float("inf") else None, "detail": detail}

    def unchanged(self, request: Reply, _: list[int]) -> Reply:
        """Compare the runner's view of its inputs with the private copy."""
        pool, writable = self._pools[request["runner"]], self.examiner.writable
        return {"change": inputs_unchanged(pool, request["slot"], self._memory, request["offsets"], writable=writable)}

    def _close_pools(self) -> None:
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()


def _raw(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data) if tensor.numel() else b""


def main(arguments: list[str]) -> int:
    """Serve the control socket until the judge closes it."""
    die_with_parent()
    control, kind, judge_cores, device_cores = int(arguments[0]), arguments[1], _cores(arguments[2]), _cores(arguments[3])
    os.sched_setaffinity(0, set(judge_cores))
    raise_judge()
    trusted = Trusted(open_memory(kind, judge_cores, device_cores))
    Control(control).serve(lambda name: getattr(trusted, name))
    return 0


def _cores(text: str) -> tuple[int, ...]:
    return tuple(int(c) for c in text.split(","))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

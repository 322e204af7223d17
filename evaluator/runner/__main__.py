"""`python -m evaluator.runner KIND CONTROL REQUEST ANSWER`: the runner's control loop.

Reads one JSON object a line from the control socket (descriptors ride along), answers one JSON
object a line. Calls themselves go through the mailbox (`evaluator.runner.serve`). All libraries are imported
before the first answer, so that a runner can be started before its source is known.
Not for: use outside a sandbox.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the mount holds this package and its device's alone

import torch

from evaluator.runner import extension
from evaluator.runner.control import Control
from evaluator.runner.serve import Mailbox, serve
from evaluator.runner.subject import Subject, read_state
from evaluator.runner.watch import Watch


class Session:
    """The operations of one runner."""

    def __init__(self, kind: str, request: int, answer: int) -> None:
        device = importlib.import_module(f"evaluator.devices.{kind}.inside.runner")
        self._inside = device.Inside(int(os.environ["OMP_NUM_THREADS"]))
        self._mailbox = Mailbox(request, answer)
        self._subject: Any = None
        self._slots: list[tuple[Any, ...]] = []
        self._watch: Any = None

    def load(self, request: dict[str, Any], _: list[int]) -> dict[str, Any]:
        """Import the source with its extensions prepared by the builder."""
        self._watch = Watch()
        if request["extensions"]:
            extension.install_load(request["extensions"], blank=bool(request.get("blank")))
        if request.get("triton"):
            from evaluator.runner import triton_kernels

            triton_kernels.install(blank=bool(request.get("blank")))
        self._subject = Subject(request["path"], entry=request["entry"], style=request["style"], place=self._inside.place)
        return {}

    def construct(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        """Build the model under the judge's seed and load the reference's state into it."""
        self._subject.construct(seed=request["seed"], init_args=request["init_args"], data_layout=request["data_layout"])
        answer = self.state(request, descriptors)
        if request.get("compile"):
            self._subject.compile()
        return answer

    def state(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        """Load a reference's state into the model that is there."""
        state = read_state(descriptors[0], request["state"], request["state_bytes"])
        for descriptor in descriptors:
            os.close(descriptor)
        return {"differing": self._subject.load_state(state)[:32]}

    def inputs(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        """Map the input slots."""
        self._slots = self._inside.slots(descriptors[0], slots=request["slots"], slot_bytes=request["slot_bytes"], layout=request["layout"])
        os.close(descriptors[0])
        return {"addresses": [[v.data_ptr() if isinstance(v, torch.Tensor) else 0 for v in slot] for slot in self._slots]}

    def export(self, request: dict[str, Any], _: list[int]) -> tuple[dict[str, Any], list[int]]:
        """Hand over the memory behind an output."""
        pieces, descriptors = self._inside.export(request["address"], request["nbytes"])
        return {"pieces": pieces}, descriptors

    def serve(self, request: dict[str, Any], _: list[int]) -> dict[str, Any]:
        """Answer the mailbox until LEAVE."""
        serve(self._inside, self._mailbox, self._subject.forward, self._slots, declared=request["outputs"])
        return {}

    def profile(self, request: dict[str, Any], _: list[int]) -> dict[str, Any]:
        """What the subject's calls on one slot spend their time on."""
        from evaluator.runner.profiling import profiled  # for this operation alone

        inputs = self._slots[request["slot"]]
        return profiled(self._subject.forward, inputs, calls=request["calls"], synchronise=self._inside.synchronise)

    def honesty(self, _: dict[str, Any], __: list[int]) -> dict[str, Any]:
        """What the candidate left changed, and which of its own kernels ran."""
        return {"changes": self._watch.changes(), "kernels": extension.call_counts()}


def main(arguments: list[str]) -> int:
    """Serve the control socket until it closes."""
    kind, (control, request, answer) = arguments[0], (int(a) for a in arguments[1:])
    session = Session(kind, request, answer)
    Control(control).serve(lambda name: getattr(session, name))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

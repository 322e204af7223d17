"""Handle of the trusted process: every question the judge asks it, typed.

Invariant: an answer that does not come is infrastructure, never the candidate's fault.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.devices.device import Device
from evaluator.errors import UsageError
from evaluator.judge.outcome import Infrastructure
from evaluator.protocol.channel import Channel, ChannelError, Raised
from evaluator.protocol.memory import Snapshot

TIMEOUT_S = 300.0
NO_FAULT_OF_A_PROBLEM = frozenset({"MemoryError", "OSError", "OutOfMemoryError", "AcceleratorError"})
"""Of the machine or its device, wherever they are raised."""
OUR_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class CaseInfo:
    """What a runner needs to construct one case."""

    name: str
    init_args: list[Any]
    data_layout: dict[str, Any] | None
    """How the flat inputs form the one argument of a `data` call."""
    files: dict[str, str]
    """What lies beside the reference where it runs."""
    outputs: int | None
    """Number of outputs declared; None is one tensor."""
    output_bytes: int
    input_bytes: int


@dataclass(frozen=True, slots=True)
class Weights:
    """A reference state, as a sealed descriptor."""

    seed: int
    descriptor: int
    state: list[dict[str, Any]]
    state_bytes: int

    def close(self) -> None:
        """Release the descriptor."""
        os.close(self.descriptor)


@dataclass(frozen=True, slots=True)
class PoolInfo:
    """Input slots of one runner, as a sealed descriptor."""

    descriptor: int
    slots: int
    slot_bytes: int
    layout: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Followed:
    """A copy of outputs right after an answer; times in microseconds after it."""

    begun_us: float
    """When the device had been told."""
    done_us: float
    places: tuple[tuple[int, int], ...]
    """Address and bytes of each output that was copied."""


class TrustedProcess:
    """The trusted process of one job."""

    def __init__(self, device: Device) -> None:
        ours, theirs = socket.socketpair()
        cores = [",".join(map(str, c)) for c in (device.cores.judge, device.cores.runners)]
        command = [sys.executable, "-m", "evaluator.trusted", str(theirs.fileno()), device.kind, *cores]
        environment = {**os.environ, "PYTHONPATH": str(OUR_ROOT), "PYTHONSAFEPATH": "1"}
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment)
        theirs.close()
        self._channel = Channel(ours, takes_descriptors=True)

    def open(self, problem: str, sha256: str, device: str) -> None:
        """Wait until the process is up, and load the problem."""
        self._await_ready()
        self._ask("open", problem=problem, sha256=sha256, device=device)

    def case(self, name: str, seed: int) -> CaseInfo:
        """Take a case in hand."""
        answer = self._ask("case", case=name, seed=seed)
        return CaseInfo(
            name,
            answer["init_args"],
            answer["data_layout"],
            answer["files"],
            answer["outputs"],
            answer["output_bytes"],
            answer["input_bytes"],
        )

    def fitness(self, seed: int) -> dict[str, Any]:
        """Trivial answers that would pass, and the reference against fp64."""
        return self._ask("fitness", seed=seed)

    def weights(self, seed: int) -> Weights:
        """Fresh weights drawn from `seed`."""
        answer = self._ask("weights", seed=seed)
        return Weights(seed, self._channel.take_descriptor(), answer["state"], answer["state_bytes"])

    def pool(self, runner: str, *, slots: int, seed: int) -> PoolInfo:
        """Input slots for one runner."""
        answer = self._ask("pool", runner=runner, slots=slots, seed=seed)
        return PoolInfo(self._channel.take_descriptor(), answer["slots"], answer["slot_bytes"], answer["layout"])

    def fill(self, runner: str, seed: int, *, flush: bool) -> float | None:
        """Fresh values in all slots of one runner, then a cold cache; microseconds that the flush took."""
        took: float | None = self._ask("fill", runner=runner, seed=seed, flush=flush)["flush_us"]
        return took

    def share(self, snapshot: Snapshot) -> None:
        """Map the judge's page of what it reads of stopped runners."""
        self._ask("share", descriptors=[snapshot.descriptor], bytes=snapshot.size)

    def show(self, runner: str, address: int, nbytes: int, pieces: list[dict[str, int]], descriptors: list[int]) -> str:
        """Map the memory behind a runner's output; why that cannot be, or nothing."""
        return str(self._ask("show", descriptors=descriptors, runner=runner, address=address, nbytes=nbytes, pieces=pieces)["why"])

    def forget(self, runner: str) -> None:
        """Unmap all that was shown of a runner."""
        self._ask("forget", runner=runner)

    def watch(self, runner: str, answer: int, calling_off: int, sizes: tuple[int, int]) -> None:
        """Let it map a runner's answer page and the word that calls off a `follow`."""
        self._ask("watch", descriptors=[answer, calling_off], runner=runner, bytes=list(sizes))

    def follow(self, runner: str) -> None:
        """Have it wait for a runner's next answer and copy the outputs at once; returns when it waits."""
        self._ask("follow", runner=runner)

    def followed(self) -> Followed | None:
        """What it copied when the answer was there; None where it could not."""
        answer = self._answered("follow", lambda: self._channel.answer("follow", timeout_s=TIMEOUT_S))
        if "done_us" not in answer:
            return None
        return Followed(answer["begun_us"], answer["done_us"], tuple((address, nbytes) for address, nbytes in answer["places"]))

    def verify(self, runner: str, slot: int, outputs: list[dict[str, Any]], declared: int | None) -> tuple[bool, float | None, str]:
        """Compare the outputs that were copied last with the reference."""
        answer = self._ask("verify", runner=runner, slot=slot, outputs=outputs, declared=declared)
        return answer["correct"], answer["max_abs_error"], answer["detail"]

    def input_change(self, runner: str, slot: int, offsets: list[int] | None) -> str:
        """What a runner changed of its inputs, in words; `offsets` say where its own view lies in the judge's page."""
        return str(self._ask("unchanged", runner=runner, slot=slot, offsets=offsets)["change"])

    def close(self) -> None:
        """End the process."""
        self._channel.close()
        self._process.kill()
        self._process.wait()

    def _await_ready(self) -> None:
        try:
            self._channel.answer("start", timeout_s=TIMEOUT_S)
        except ChannelError as error:
            self.close()
            raise Infrastructure(f"the trusted process did not start: {error}") from error

    def _ask(self, op: str, *, descriptors: list[int] | None = None, **fields: Any) -> dict[str, Any]:
        return self._answered(op, lambda: self._channel.ask(op, timeout_s=TIMEOUT_S, descriptors=descriptors or (), **fields))

    def _answered(self, op: str, question: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        try:
            return question()
        except Raised as error:
            found = _in_the_problem(error.text)
            if found and error.error not in NO_FAULT_OF_A_PROBLEM:
                raise UsageError(f"the problem's own code failed: {found}", "correct the problem file") from error
            raise Infrastructure(f"the reference's side failed at `{op}`: {error}", log=error.text) from error
        except ChannelError as error:
            raise Infrastructure(f"the reference's side: {error}") from error


def _in_the_problem(text: str) -> str:
    """The last line of a traceback with the problem's file and line that it came from; empty where it came from elsewhere.

    A problem's source runs under a name in angle brackets that begins with its file's; frames below it are a library's.
    """
    own = re.findall(r'File "<(?!frozen )([^">]+)>", line (\d+)', text)
    return f"{Path(own[-1][0].split()[0]).name}, line {own[-1][1]}: {text.strip().splitlines()[-1]}" if own else ""

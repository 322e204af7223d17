"""Handle of one runner: the same for the reference and for every candidate.

Between operations the runner is stopped. A failure of a candidate's runner is a `Refusal` with the
status it deserves; the same failure of the reference's runner is `Infrastructure`.
Not for: choosing inputs, or judging outputs.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from evaluator.judge import replies
from evaluator.judge.outcome import Infrastructure, Refusal
from evaluator.judge.spares import FILES_INSIDE, Spare
from evaluator.judge.trusted import CaseInfo, PoolInfo, Weights
from evaluator.protocol.channel import Gone, Raised, Silent, Unasked
from evaluator.protocol.clock import Call, CallDied, CallTimeout
from evaluator.protocol.freeze import NotStopping, Stirred
from evaluator.protocol.mailbox import BadAnswer, EarlyEcho, OutputPlace
from evaluator.protocol.mappings import FileId, Mapping, file_id, is_mapped_once, is_own_memory, read_mappings
from evaluator.protocol.memory import Snapshot, Unreadable
from evaluator.records import ProfileCase, Status
from evaluator.runner import layout

LOG_LIMIT = 16_000
MEMORY_EVERY_S = 0.1
ALL_CALLS = 10
"""All timed calls of a candidate together may take this many times what a single one may."""


T = TypeVar("T")


class Runner:
    """One sandboxed runner process."""

    def __init__(
        self,
        name: str,
        spare: Spare,
        settle: Callable[[], None],
        *,
        timeout_s: float,
        reference: bool = False,
        compiled: bool = False,
        charged: bool = True,
    ) -> None:
        self.name = name
        self.reference = reference
        self.charged = charged and not reference
        """Whether its failures are the candidate's; the reference's and a champion's are infrastructure."""
        self.files = spare.files
        self.process = spare.process
        self.mailbox = spare.mailbox
        self._spare = spare
        self._settle = settle
        self._channel = spare.channel
        self._compiled = compiled
        self._loading: dict[str, Any] = {}
        self._timeout_s = timeout_s
        self._mapped: list[Mapping] | None = None
        self._slots_file: FileId = (0, 0)
        self._slot_bytes = 0
        self._addresses: list[list[int]] = []
        self._layout: list[dict[str, Any]] = []
        self._declared: int | None = None
        self._serving = False
        self._memory_seen = 0.0
        self._called_us = 0.0

    def load(self, *, path: str, entry: str, style: str, extensions: str | None, triton: bool = False, blank: bool = False) -> None:
        """Import the source; of a candidate, its kernels' launches are counted and with `blank` their results overwritten."""
        self._ask("load", path=path, entry=entry, style=style, extensions=extensions, triton=triton, blank=blank)

    def will_load(self, *, entry: str, style: str) -> None:
        """Remember how the reference is loaded; its text depends on the case."""
        self._loading = {"entry": entry, "style": style, "extensions": None}

    def construct(self, case: CaseInfo, weights: Weights) -> list[str]:
        """Build the model under the weights' seed; return the names of state that differ from the reference's."""
        if self.reference:
            self.load(path=self._write_reference(case), **self._loading)
        answer = self._ask(
            "construct",
            descriptors=[weights.descriptor],
            seed=weights.seed,
            init_args=case.init_args,
            data_layout=case.data_layout,
            state=weights.state,
            state_bytes=weights.state_bytes,
            compile=self._compiled,
        )
        self._declared = case.outputs
        return self._read(lambda: replies.words(answer, "differing"))

    def update_state(self, weights: Weights) -> None:
        """Load other weights into the model that is there."""
        self._ask("state", descriptors=[weights.descriptor], state=weights.state, state_bytes=weights.state_bytes)

    def map(self, pool: PoolInfo) -> None:
        """Map the input slots."""
        try:
            answer = self._ask("inputs", descriptors=[pool.descriptor], slots=pool.slots, slot_bytes=pool.slot_bytes, layout=pool.layout)
            self._slots_file = file_id(pool.descriptor)
        finally:
            os.close(pool.descriptor)
        self._addresses = self._read(lambda: replies.addresses(answer, "addresses", slots=pool.slots, inputs=len(pool.layout)))
        self._layout, self._slot_bytes = pool.layout, pool.slot_bytes

    def call(self, operation: int = layout.CALL, *, slot: int = 0, timeout_s: float | None = None) -> Call:
        """One timed call; enters the mailbox loop where needed."""
        deadline_s = timeout_s or self._timeout_s
        if not self._serving:
            self._enter()
        self._mapped = None
        try:
            call = self._spare.clock.call(operation, slot=slot, timeout_s=deadline_s, alive=self._alive)
        except CallTimeout as error:
            raise self._failure(Status.TIMEOUT, f"no answer within {deadline_s:.0f} s") from error
        except CallDied as error:
            raise self._failure(Status.RUNTIME_ERROR, f"the process ended during a call: {self._ending()}") from error
        except EarlyEcho as error:
            raise self._failure(Status.TAMPERED, str(error)) from error
        self._called_us += call.wall_us
        if self.charged and self._called_us > ALL_CALLS * self._timeout_s * 1e6:
            raise self._failure(Status.TIMEOUT, f"its calls took more than {ALL_CALLS * self._timeout_s:.0f} s altogether")
        if call.code == layout.RAISED:
            text = self.mailbox.text()
            raise self._failure(Status.RUNTIME_ERROR, f"forward raised {_last_line(text)}", log=text)
        if call.code == layout.BAD_OUTPUT:
            raise self._failure(Status.INCORRECT, self.mailbox.text())
        return call

    def snapshot_outputs(self, snapshot: Snapshot) -> list[dict[str, Any]]:
        """Copy the last call's outputs out of the stopped runner."""
        places = self.places()
        for index, place in enumerate(places):
            if not is_own_memory(self._mappings(), place.address, place.nbytes):
                raise self.wrong(f"output {index} does not lie in the process's own memory: return what torch allocated")
        try:
            offsets = snapshot.take(self._spare.memory, [(p.address, p.nbytes) for p in places])
        except Unreadable as error:
            raise self._failure(Status.INCORRECT, str(error)) from error
        return [{**p.as_fields(), "offset": o} for p, o in zip(places, offsets, strict=True)]

    def snapshot_inputs(self, snapshot: Snapshot, slot: int) -> list[int]:
        """Copy the runner's own view of one input slot; return where each tensor begins."""
        self._require_one_mapping()
        ranges = [
            (address, item["elements"] * layout.ITEMSIZES[layout.DTYPES.index(item["dtype"])])
            for address, item in zip(self._addresses[slot], self._layout, strict=True)
            if item["kind"] == "tensor" and item["elements"]
        ]
        try:
            return snapshot.take(self._spare.memory, ranges)
        except Unreadable as error:
            raise self._failure(Status.TAMPERED, f"the inputs were unmapped: {error}") from error

    def _require_one_mapping(self) -> None:
        """The slots lie once in the process, where it said: otherwise it could show other ones than it uses."""
        tensors = [
            (row[column] - slot * self._slot_bytes - item["offset"])
            for slot, row in enumerate(self._addresses)
            for column, item in enumerate(self._layout)
            if item["kind"] == "tensor" and item["elements"]
        ]
        if not tensors:
            return
        size = len(self._addresses) * self._slot_bytes
        if len(set(tensors)) != 1 or not is_mapped_once(self._mappings(), self._slots_file, tensors[0], size):
            raise self._failure(Status.TAMPERED, "the inputs are not mapped once, where the process says that they are")

    def _mappings(self) -> list[Mapping]:
        """The stopped process's mappings, read once between two times that it runs."""
        if self._mapped is None:
            self._mapped = read_mappings(self._spare.pid)
        return self._mapped

    @property
    def declared(self) -> int | None:
        """Number of outputs the problem declares; None is one tensor."""
        return self._declared

    def output_address(self) -> int:
        """Address of the last call's first output, as the runner says."""
        return int(self.mailbox.answer[layout.FIRST_OUTPUT])

    def changes(self) -> list[str]:
        """What the candidate left changed in its own process, as that process says."""
        answer = self._ask("honesty")
        return self._read(lambda: replies.words(answer, "changes"))

    def kernels(self) -> dict[str, int]:
        """How often its own kernels ran, as that process says."""
        answer = self._ask("honesty")
        return self._read(lambda: replies.counts(answer, "kernels"))

    def profiled(self, case: str, *, slot: int, calls: int) -> ProfileCase:
        """What its calls on that slot spend their time on, as that process says."""
        answer = self._ask("profile", slot=slot, calls=calls)
        return self._read(lambda: replies.profile(answer, case))

    def leave(self) -> None:
        """Leave the mailbox loop."""
        if self._serving:
            self._serving = False
            try:
                self.mailbox.post(layout.LEAVE)
            except EarlyEcho as error:
                raise self._failure(Status.TAMPERED, str(error)) from error
            self._resume()
            self._answered("serve", lambda: self._channel.answer("serve", timeout_s=self._timeout_s))
            self._stop()

    def bare_us(self) -> float:
        """The shortest request there is."""
        if not self._serving:
            self._enter()
        return self._spare.clock.bare_us()

    def touch(self) -> float:
        """Switch the device to this runner, untimed; microseconds that it took."""
        return self.call(layout.TOUCH).wall_us

    def places(self) -> list[OutputPlace]:
        """Where it says that the last call's outputs lie."""
        try:
            return self.mailbox.outputs()
        except BadAnswer as error:
            raise self._failure(Status.TAMPERED, f"the answer page holds {error}") from error

    def export(self, place: OutputPlace) -> tuple[list[dict[str, int]], list[int]]:
        """The memory behind an output, with a descriptor of each piece; the caller closes them."""
        self.leave()
        self._resume()
        fields = {"address": place.address, "nbytes": place.nbytes}
        answer, descriptors = self._answered(
            "export", lambda: self._channel.ask_for_descriptors("export", timeout_s=self._timeout_s, **fields)
        )
        try:
            return self._read(lambda: replies.pieces(answer, place.address, place.nbytes, len(descriptors))), descriptors
        except BaseException:
            for descriptor in descriptors:
                os.close(descriptor)
            raise

    def rest(self) -> None:
        """Its turn is over: it executes nothing until it is asked again."""
        self._stop()

    @property
    def closed(self) -> bool:
        """Whether its sandbox is gone."""
        return self._spare.closed

    def close(self) -> None:
        """Kill the whole sandbox and verify that it is gone. Does nothing the second time."""
        self._spare.close()

    def _write_reference(self, case: CaseInfo) -> str:
        folder = Path(tempfile.mkdtemp(prefix="case-", dir=self.files))
        folder.chmod(0o755)
        for name, text in case.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        return f"{FILES_INSIDE}/{folder.name}/reference.py"

    def _enter(self) -> None:
        self._answered("serve", self._send_serve)
        self._serving = True

    def _send_serve(self) -> dict[str, Any]:
        self._channel.send("serve", outputs=self._declared)
        return {}

    def _ask(self, op: str, *, descriptors: list[int] | None = None, **fields: Any) -> dict[str, Any]:
        self._settle()
        self.leave()
        self._resume()
        answer = self._answered(op, lambda: self._channel.ask(op, timeout_s=self._timeout_s, descriptors=descriptors or (), **fields))
        self._stop()
        return answer

    def _answered(self, op: str, question: Callable[[], T]) -> T:
        try:
            return question()
        except Raised as error:
            status = Status.COMPILE_ERROR if error.error in ("MissingEntry", "SyntaxError") else Status.RUNTIME_ERROR
            raise self._failure(status, f"{op} raised {_last_line(error.text)}", log=error.text) from error
        except Silent as error:
            raise self._failure(Status.TIMEOUT, str(error)) from error
        except Unasked as error:
            raise self._failure(Status.TAMPERED, str(error)) from error
        except Gone as error:
            raise self._failure(Status.RUNTIME_ERROR, f"the process ended during `{op}`: {self._ending()}") from error

    def _read(self, reading: Callable[[], T]) -> T:
        try:
            return reading()
        except replies.BadReply as error:
            raise self._failure(Status.TAMPERED, str(error)) from error

    def _stop(self) -> None:
        try:
            self._spare.clock.rest()
        except NotStopping as error:
            raise self._failure(Status.RUNTIME_ERROR, f"{error}: {self._ending()}") from error

    def _resume(self) -> None:
        self._mapped = None
        try:
            self._spare.clock.wake()
        except Stirred as error:
            raise self._failure(Status.TAMPERED, str(error)) from error
        except NotStopping as error:
            raise self._failure(Status.RUNTIME_ERROR, f"{error}: {self._ending()}") from error

    def _alive(self) -> bool:
        """Whether the process runs on; a call that lasts has its memory looked at as well."""
        now = time.monotonic()
        if now - self._memory_seen > MEMORY_EVERY_S:
            self._memory_seen = now
            self.process.enforce_memory()
        return self.process.poll() is None

    def _ending(self) -> str:
        ended = self.process.wait(2.0)
        return ended.words() if ended is not None else "it does not answer"

    def wrong(self, detail: str) -> Exception:
        """What a wrong output of this runner means."""
        if not self.charged:
            return Infrastructure(f"the runner `{self.name}` disagrees with the reference: {detail}")
        return Refusal(Status.INCORRECT, detail)

    def tampered(self, detail: str) -> Exception:
        """What a change that no runner program makes means."""
        return self._failure(Status.TAMPERED, detail)

    def _failure(self, status: Status, message: str, *, log: str = "") -> Exception:
        log = "\n".join(text for text in (log, self.process.stdout, self.process.stderr) if text.strip())[-LOG_LIMIT:]
        if not self.charged:
            return Infrastructure(f"the runner `{self.name}`: {message}", log=log)
        return Refusal(status, message, log=log)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else ""

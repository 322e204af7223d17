"""The mailbox loop: spin on the request page, run one operation, echo the nonce.

The same loop serves the reference and every candidate. The judge's clock runs from waking this
process until it is stopped again, so nothing here is trusted with time; the event clock it reports
is the precise, forgeable one that the judge audits.
Not for: choosing inputs, verifying outputs, or keeping any figure.
"""

from __future__ import annotations

import mmap
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any, Protocol

import torch

from evaluator.runner import layout

_DTYPE_INDEX = {getattr(torch, name): index for index, name in enumerate(layout.DTYPES)}


class Mailbox:
    """The two pages as seen from inside the sandbox."""

    def __init__(self, request: int, answer: int) -> None:
        self._request_map = mmap.mmap(request, layout.REQUEST_BYTES, prot=mmap.PROT_READ)
        self._answer_map = mmap.mmap(answer, layout.ANSWER_BYTES)
        self.request = memoryview(self._request_map).cast("Q")
        self.answer = memoryview(self._answer_map).cast("Q")
        self.last = self.request[layout.NONCE]

    def addresses(self) -> tuple[int, int]:
        """Where the two pages lie, for native code."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the request page is read-only: it is only ever read
            pages = (torch.frombuffer(page, dtype=torch.uint8) for page in (self._request_map, self._answer_map))
            request, answer = (page.data_ptr() for page in pages)
        return request, answer

    def wait(self) -> tuple[int, int]:
        """Spin until a new post; return its operation and slot."""
        request, last = self.request, self.last
        while (nonce := request[layout.NONCE]) == last:
            pass
        self.last = nonce
        return request[layout.OPERATION], request[layout.SLOT]

    def describe(self, outputs: tuple[torch.Tensor, ...]) -> None:
        """Write where the output tensors lie."""
        answer = self.answer
        answer[layout.OUTPUTS] = len(outputs)
        for index, tensor in enumerate(outputs):
            base = layout.FIRST_OUTPUT + index * layout.OUTPUT_WORDS
            answer[base] = torch.Tensor.data_ptr(tensor)
            answer[base + 1] = span_bytes(tensor)
            answer[base + 2] = _DTYPE_INDEX[tensor.dtype]
            answer[base + 3] = tensor.dim()
            for dim in range(tensor.dim()):
                answer[base + 4 + dim] = tensor.shape[dim]
                answer[base + 4 + layout.MAX_DIMS + dim] = tensor.stride(dim)

    def say(self, text: str) -> None:
        """Put a message beside the answer."""
        raw = text.encode("utf-8", "replace")[: layout.TEXT_LIMIT]
        self._answer_map[layout.TEXT_OFFSET : layout.TEXT_OFFSET + len(raw)] = raw
        self.answer[layout.TEXT_BYTES] = len(raw)


class Loop(Protocol):
    """The same loop in native code."""

    def serve(
        self,
        request: int,
        answer: int,
        words: tuple[int, ...],
        forward: Callable[..., Any],
        nothing: Callable[..., Any],
        slots: list[tuple[Any, ...]],
        others: Callable[[int], None],
        describe: Callable[[Any], None],
        fail: Callable[[BaseException | None], int],
        /,
    ) -> None:
        """Answer posts until LEAVE; the pages are given by address."""


NATIVE_WORDS = (
    layout.NONCE,
    layout.OPERATION,
    layout.SLOT,
    layout.CALL,
    layout.EMPTY,
    layout.LEAVE,
    layout.BARE,
    layout.DISPATCH,
    layout.ECHO,
    layout.EVENT_NS,
    layout.CODE,
    layout.OK,
    layout.FIRST_OUTPUT,
)
"""What the native loop must know of the layout, in its own order."""


class Inside(Protocol):
    """What this loop asks of the device."""

    loop: Loop | None
    """Native code that does it instead; None where the loop's own time does not matter."""

    def touch(self) -> None:
        """Switch the device to this process."""

    def canary(self) -> None:
        """A fixed piece of work."""


class Nothing(torch.nn.Module):  # type: ignore[misc]  # torch is untyped here
    """The least that a module with one operation of its own can be."""

    def forward(self, *_: Any) -> torch.Tensor:
        """One operation, on nothing."""
        return torch.empty(0)


def serve(inside: Inside, mailbox: Mailbox, forward: Callable[..., Any], slots: list[tuple[Any, ...]], *, declared: int | None) -> None:
    """Answer posts until LEAVE. `declared` is the number of outputs the problem declares (None: one tensor).

    An empty call describes the last output again, so that it costs what a call costs beside `forward`; DISPATCH
    calls a module that does nothing in the place of `forward`.
    """
    if inside.loop is not None:
        with torch.no_grad():
            _serve_natively(inside, inside.loop, mailbox, forward, slots, declared)
        return
    answer = mailbox.answer
    nothing = Nothing()
    keep: Any = None
    with torch.no_grad():
        while True:
            operation, slot = mailbox.wait()
            if operation == layout.LEAVE:
                answer[layout.CODE] = layout.OK
                answer[layout.ECHO] = mailbox.last
                return
            try:
                if operation in (layout.CALL, layout.EMPTY, layout.DISPATCH):
                    begun = time.perf_counter_ns()
                    if operation == layout.CALL:
                        keep = forward(*slots[slot])
                    elif operation == layout.DISPATCH:
                        nothing(*slots[slot])
                    answer[layout.EVENT_NS] = time.perf_counter_ns() - begun
                    if keep is not None:
                        mailbox.describe(_checked(keep, declared))
                else:
                    _other(inside, operation)
                answer[layout.CODE] = layout.OK
            except BaseException as error:  # also SystemExit and KeyboardInterrupt: here they are the candidate's
                answer[layout.CODE] = _fail(mailbox, error)
            answer[layout.ECHO] = mailbox.last


def _serve_natively(
    inside: Inside, loop: Loop, mailbox: Mailbox, forward: Callable[..., Any], slots: list[tuple[Any, ...]], declared: int | None
) -> None:
    loop.serve(
        *mailbox.addresses(),
        NATIVE_WORDS,
        forward,
        Nothing(),
        slots,
        lambda operation: _other(inside, operation),
        lambda output: mailbox.describe(_checked(output, declared)),
        lambda error: _fail(mailbox, error),
    )
    mailbox.last = mailbox.request[layout.NONCE]


def _other(inside: Inside, operation: int) -> None:
    if operation == layout.TOUCH:
        inside.touch()
    elif operation == layout.CANARY:
        inside.canary()


def _fail(mailbox: Mailbox, error: BaseException | None) -> int:
    """Say what was raised; the code of the answer."""
    if isinstance(error, _BadOutput):
        mailbox.say(str(error))
        return layout.BAD_OUTPUT
    mailbox.say("".join(traceback.format_exception(error, limit=-8)) if error is not None else "an error without a name")
    return layout.RAISED


def span_bytes(tensor: torch.Tensor) -> int:
    """Bytes from the first to the last element of a strided tensor."""
    if tensor.numel() == 0:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return int((last + 1) * tensor.element_size())


class _BadOutput(Exception):
    pass


def _checked(output: Any, declared: int | None) -> tuple[torch.Tensor, ...]:
    """Exact types only: a subclass or an unmaterialised tensor is not an answer."""
    outputs = (output,) if declared is None else output
    if declared is not None and (type(output) not in (tuple, list) or len(output) != declared):
        raise _BadOutput(f"expected {declared} outputs, got {type(output).__name__}")
    for tensor in outputs:
        if type(tensor) is not torch.Tensor:
            raise _BadOutput(f"the output's type is {type(tensor).__name__}, not torch.Tensor")
        if tensor.layout is not torch.strided or tensor.dtype not in _DTYPE_INDEX or tensor.dim() > layout.MAX_DIMS:
            raise _BadOutput(f"the output is {tensor.layout}, {tensor.dtype}, {tensor.dim()} dimensions")
        if tensor.device.type == "meta" or any(stride < 0 for stride in tensor.stride()):
            raise _BadOutput("the output has no memory of its own")
    return tuple(outputs)

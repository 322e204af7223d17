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
from collections.abc import Callable
from typing import Any

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


def serve(mailbox: Mailbox, forward: Callable[..., Any], slots: list[tuple[Any, ...]], *, declared: int | None) -> None:
    """Answer posts until LEAVE. `declared` is the number of outputs the problem declares (None: one tensor).

    An empty call describes the last output again, so that it costs what a call costs beside `forward`.
    """
    canary = _Canary()
    answer = mailbox.answer
    keep: Any = None
    with torch.no_grad():
        while True:
            operation, slot = mailbox.wait()
            if operation == layout.LEAVE:
                answer[layout.CODE] = layout.OK
                answer[layout.ECHO] = mailbox.last
                return
            start = time.perf_counter_ns()
            try:
                if operation == layout.CALL:
                    keep = forward(*slots[slot])
                elif operation == layout.CANARY:
                    canary.run()
                answer[layout.EVENT_NS] = time.perf_counter_ns() - start
                answer[layout.CODE] = layout.OK
                if operation == layout.CALL or (operation == layout.EMPTY and keep is not None):
                    mailbox.describe(_checked(keep, declared))
            except _BadOutput as error:
                answer[layout.CODE] = layout.BAD_OUTPUT
                mailbox.say(str(error))
            except Exception:
                answer[layout.CODE] = layout.RAISED
                mailbox.say(traceback.format_exc(limit=-8))
            answer[layout.ECHO] = mailbox.last


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


class _Canary:
    """A fixed piece of work that tells whether the device is quiet."""

    def __init__(self) -> None:
        self._a = torch.ones(160, 160)

    def run(self) -> None:
        torch.mm(self._a, self._a)

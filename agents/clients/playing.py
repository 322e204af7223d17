"""Plays a session's steps against the answers in a conversation.

Reply n is found by walking the steps from the start with the answers to the calls of replies before n,
so it is a pure function of (steps, answers, n): a process that was killed anywhere takes up again.
Invariant: a condition only ever sees answers to calls of earlier replies. A label that is played again
(in a loop) gets the id `<label>#2`, `#3`, …; paths in later text read the latest.
Not for: reading files or asking anything.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from agents.clients.conditions import fill
from agents.clients.interface import ModelReply
from agents.clients.session import PlannedCall, Say, Step, Until, When
from state.events import ToolCall

Answers = Mapping[str, Mapping[str, Any]]
"""Call id to `{"ok": bool, **content}`."""


def reply_at(steps: tuple[Step, ...], *, turn: int, answers: Answers) -> ModelReply | None:
    """Reply `turn` (from 0), or None where the steps end before."""
    return next(itertools.islice(_Play(answers).replies(steps), turn, None), None)


class _Play:
    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._scope: dict[str, Any] = {}
        self._played: dict[str, int] = {}

    def replies(self, steps: tuple[Step, ...]) -> Iterator[ModelReply]:
        for step in steps:
            if isinstance(step, Say):
                yield from self._say(step)
            elif isinstance(step, When):
                yield from self.replies(step.then if step.condition.holds(self._scope) else step.otherwise)
            else:
                yield from self._loop(step)

    def _loop(self, step: Until) -> Iterator[ModelReply]:
        for _ in range(step.at_most):
            if step.condition.holds(self._scope):
                return
            yield from self.replies(step.body)

    def _say(self, step: Say) -> Iterator[ModelReply]:
        calls = tuple(self._call(planned) for planned in step.calls)
        yield ModelReply(text=str(fill(step.text, self._scope) or ""), calls=calls)
        for planned, call in zip(step.calls, calls, strict=True):
            self._scope[planned.label] = self._answers.get(call.id, {})

    def _call(self, planned: PlannedCall) -> ToolCall:
        nth = self._played[planned.label] = self._played.get(planned.label, 0) + 1
        call_id = planned.label if nth == 1 else f"{planned.label}#{nth}"
        return ToolCall(id=call_id, name=planned.tool, input=fill(planned.input, self._scope))

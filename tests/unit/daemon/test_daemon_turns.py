"""Who is in a turn: draining ends exactly when nobody is."""

from __future__ import annotations

import asyncio

import pytest

from daemon.turns import TurnGate


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_closed_gate_holds_the_next_turn_and_not_the_one_in_flight():
    gate = TurnGate()
    await gate.enter("worker:1")
    gate.close()
    resting = asyncio.create_task(gate.rested())
    await settle()
    assert (gate.acting, resting.done()) == (["worker:1"], False)
    held = asyncio.create_task(gate.enter("worker:1"))
    await asyncio.wait_for(resting, 1)
    assert (gate.acting, held.done()) == ([], False)
    gate.open()
    await held
    assert gate.acting == ["worker:1"]


async def test_an_actor_that_waits_for_others_is_at_rest():
    gate = TurnGate()
    happened = asyncio.Event()

    async def orchestrator() -> None:
        await gate.enter("orchestrator")
        with gate.waiting():
            await happened.wait()
        assert gate.acting == ["orchestrator"]
        await gate.enter("orchestrator")

    task = asyncio.create_task(orchestrator())
    await settle()
    gate.close()
    await asyncio.wait_for(gate.rested(), 1)
    happened.set()
    await settle()
    assert (gate.acting, task.done()) == ([], False), "its next turn is held"
    gate.open()
    await task


async def test_a_wait_of_one_actor_says_nothing_of_another():
    gate = TurnGate()
    await gate.enter("worker:1")

    async def other() -> None:
        await gate.enter("worker:2")
        with gate.waiting():
            await asyncio.sleep(60)

    task = asyncio.create_task(other())
    await settle()
    assert gate.acting == ["worker:1"]
    task.cancel()


async def test_a_job_under_way_keeps_the_run_from_rest():
    gate = TurnGate()
    gate.close()
    with gate.occupied("kernel|p|E1|1"):
        resting = asyncio.create_task(gate.rested())
        await settle()
        assert (gate.acting, resting.done()) == (["kernel|p|E1|1"], False)
    await asyncio.wait_for(resting, 1)


async def test_an_actor_that_has_finished_is_not_waited_for():
    gate = TurnGate()
    await gate.enter("worker:1")
    resting = asyncio.create_task(gate.rested())
    gate.leave("worker:1")
    await asyncio.wait_for(resting, 1)
    assert gate.acting == []


async def test_stopping_turns_the_held_away_now_and_later():
    gate = TurnGate()
    gate.close()
    held = asyncio.create_task(gate.enter("worker:1"))
    await settle()
    gate.stop()
    with pytest.raises(asyncio.CancelledError):
        await held
    with pytest.raises(asyncio.CancelledError):
        await gate.enter("worker:2")

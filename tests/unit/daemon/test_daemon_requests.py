"""Request ids: one cause, one id; open means started and neither finished nor voided."""

from __future__ import annotations

from daemon.kind_index import KindIndex
from daemon.requests import Requests
from state.events import Record


def record(seq: int, kind: str, **data) -> Record:
    return Record(v=1, seq=seq, ts="", run="r", kind=kind, actor="daemon", data=data, prev="", hash="")


def started(seq: int, request: str, cause: str) -> Record:
    return record(seq, "job.started", request=request, cause=cause)


def requests_of(records: list[Record]) -> Requests:
    requests = Requests()
    for one in records:
        requests.apply(one)
    return requests


def test_ids_count_per_owner_and_stay_with_their_cause():
    requests = Requests()
    first = requests.assign("builtin:scan", owner="E1", cause="w/1")
    assert first == "kernel|builtin:scan|E1|1"
    assert requests.assign("builtin:scan", owner="E1", cause="w/2") == "kernel|builtin:scan|E1|2"
    assert requests.assign("builtin:scan", owner="E2", cause="w/3") == "kernel|builtin:scan|E2|1"
    assert requests.assign("builtin:scan", owner="E1", cause="w/1") == first


def test_after_a_restart_ids_go_on_where_the_journal_ends():
    requests = requests_of([started(1, "kernel|p|E1|1", "w/1"), started(2, "kernel|p|E1|7", "w/2")])
    assert requests.assign("p", owner="E1", cause="w/2") == "kernel|p|E1|7"
    assert requests.assign("p", owner="E1", cause="w/3") == "kernel|p|E1|8"


def test_a_separator_in_names_cannot_forge_another_owner():
    requests = Requests()
    assert requests.assign("/tmp/a|b", owner="E|1", cause="c") == "kernel|/tmp/a_b|E_1|1"
    assert requests_of([started(1, "kernel|/tmp/a_b|E_1|1", "c")]).assign("/tmp/a|b", owner="E|1", cause="d") == "kernel|/tmp/a_b|E_1|2"


def test_open_requests_are_the_ones_without_an_end():
    records = [
        started(1, "kernel|p|E1|1", "a"), started(2, "kernel|p|E1|2", "b"), started(3, "kernel|p|E1|3", "c"),
        record(4, "job.finished", request="kernel|p|E1|1", result={}), record(5, "job.voided", request="kernel|p|E1|2", why="x"),
    ]  # fmt: skip
    requests = requests_of(records)
    assert requests.open == ["kernel|p|E1|3"]
    assert (requests.finished("kernel|p|E1|1"), requests.finished("kernel|p|E1|2")) == (4, None)
    requests.apply(started(6, "kernel|p|E1|2", "b"))
    assert requests.open == ["kernel|p|E1|3", "kernel|p|E1|2"]


def test_records_are_found_by_kind_in_order():
    index = KindIndex()
    for seq, kind in enumerate(["note", "job.started", "note", "job.finished", "job.started"], start=1):
        index.apply(record(seq, kind))
    assert list(index.select({"job.started", "job.finished", "unknown"})) == [2, 4, 5]
    assert list(index.select({"note", "job.started"}, after=2)) == [3, 5]
    assert list(index.select(set())) == []
